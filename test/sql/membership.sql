-- Membership: operators, functions, untyped literals, arrays and NULLs.
CREATE TEMP TABLE numbers AS SELECT bloom_agg(x) AS f FROM generate_series(1, 1000) x;
CREATE TEMP TABLE names AS SELECT bloom_agg(x) AS f FROM (VALUES ('alice'), ('bob')) AS v (x);

SELECT f @> 42 AS "@>", 42 <@ f AS "<@", bloom_contains(f, 42) AS function FROM numbers;
SELECT f @> 'alice' AS "@>", 'alice' <@ f AS "<@", bloom_contains(f, 'alice') AS function,
	f @> 'carol' AS other
FROM names;
SELECT f @> ANY (ARRAY[1, 2, 3]) AS "any", f @> ALL (ARRAY[1, 2, 3]) AS "all",
	f @> ANY (ARRAY[-1, -2]) AS none, f @> ALL (ARRAY[1, -2]) AS not_all,
	f @> ANY ('{}'::int[]) AS any_of_none, f @> ALL ('{}'::int[]) AS all_of_none
FROM numbers;
SELECT f @> ANY ('{carol,alice}') AS "any", f @> ANY (ARRAY['carol', 'alice']) AS typed FROM names;
SELECT f @> NULL::int AS null_element, NULL::bloomfilter @> 1 AS null_filter, NULL::int <@ f AS commuted FROM numbers;
SELECT count(*) AS found FROM numbers, generate_series(1, 1000) x WHERE f @> x;
SELECT count(*) AS found FROM numbers, generate_series(1, 1000) x WHERE x::bigint <@ f;
SELECT count(*) < 30 AS few_others FROM numbers, generate_series(1001, 2000) x WHERE f @> x;

-- several filters in one call site
SELECT x, f @> x AS found
FROM (VALUES (1), (2)) AS v (x), (VALUES (bloom_add(bloom_create(10), 1)), (bloom_add(bloom_create(10), 2))) AS w (f);

-- prepared, and in PL/pgSQL
PREPARE probe (bloomfilter, text) AS SELECT $1 @> $2;
SELECT f AS names FROM names \gset
EXECUTE probe (:'names', 'alice');
EXECUTE probe (:'names', 'carol');
DO $$
DECLARE
	f bloomfilter := bloom_create(100);
BEGIN
	FOR i IN 1 .. 100 LOOP
		f := bloom_add(f, i);
		ASSERT f @> i AND f @> 1;
	END LOOP;
END
$$;
-- one PL/pgSQL expression, evaluated with ever new values
DO $$
DECLARE
	f bloomfilter := (SELECT bloom_agg(x) FROM generate_series(1, 100) x);
	found boolean;
BEGIN
	FOR i IN REVERSE 200 .. 1 LOOP
		found := f @> i;
		ASSERT found OR i > 100, format('%s is missing', i);
		found := i <@ f;
		ASSERT found OR i > 100, format('%s is missing', i);
	END LOOP;
END
$$;
