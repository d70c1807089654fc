-- Membership: operators, function, untyped literals, arrays and NULLs.
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

-- no element is missed, and few others are found
SELECT count(*) AS found FROM numbers, generate_series(1, 1000) x WHERE f @> x;
SELECT count(*) AS found FROM numbers, generate_series(1, 1000) x WHERE x::bigint <@ f;
SELECT count(*) < 30 AS few_others FROM numbers, generate_series(1001, 2000) x WHERE f @> x;
