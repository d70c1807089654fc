-- bloom_agg, bloom_union_agg and bloom_intersect_agg.
CREATE TEMP TABLE events AS
	SELECT x AS id, x % 10 AS day, CASE WHEN x % 7 <> 0 THEN x % 100 END AS visitor
	FROM generate_series(1, 1000) x;

-- the four forms
SELECT i.layout, i.element_type, i.representation, i.bits, i.requested_rate, i.capacity >= 1000 AS enough, i.overfull
FROM (VALUES (1, (SELECT bloom_agg(id) FROM events)),
	(2, (SELECT bloom_agg(id, 1000) FROM events)),
	(3, (SELECT bloom_agg(id, 500, 0.001) FROM events)),
	(4, (SELECT bloom_agg(id, bloom_create(2000, 0.05, 'classic', 7)) FROM events))) AS v (number, f), bloom_info(f) AS i
ORDER BY number;
SELECT bloom_agg(id, NULL) = bloom_agg(id) AS null_count,
	bloom_agg(id, NULL, 0.01) = bloom_agg(id) AS null_count_and_rate,
	bloom_agg(id, 1000) = bloom_agg(id, bloom_create(1000)) AS onto_empty,
	bloom_agg(id, NULL::bloomfilter) = bloom_agg(id) AS onto_null
FROM events;

-- NULLs are skipped
SELECT bloom_agg(visitor) = bloom_agg(visitor) FILTER (WHERE visitor IS NOT NULL) AS same FROM events;

-- nothing to aggregate
SELECT bloom_agg(id), bloom_agg(id, 1000), bloom_union_agg(NULL::bloomfilter), bloom_intersect_agg(NULL::bloomfilter)
FROM events WHERE false;
SELECT bloom_agg(NULL::int), bloom_agg(NULL::int, 10), bloom_union_agg(NULL::bloomfilter),
	bloom_intersect_agg(NULL::bloomfilter);

-- parameters must be the same in all rows of a group
SELECT bloom_agg(id, id) FROM events;
SELECT bloom_agg(id, 100, id / 10000.0) FROM events;
SELECT bloom_agg(id, nullif(id, 1)) FROM events;
SELECT day, capacity >= 10 * (day + 1) AS enough
FROM (SELECT day, bloom_agg(id, 10 * (day + 1)) AS f FROM events GROUP BY day) AS v, bloom_info(f)
ORDER BY day LIMIT 3;
SELECT bloom_agg(id, 0) FROM events;
SELECT bloom_agg(id, 100, 0.9) FROM events;
SELECT bloom_agg(id, 100, NULL) FROM events;
SELECT bloom_agg(id, 1000000000) FROM events;

-- so must a filter to add to, wherever it is stored
CREATE TEMP TABLE bases AS
	SELECT x, bloom_add(bloom_create(n), CASE WHEN x < 90 THEN -1 ELSE -2 END) AS few, many.f AS many, others.f AS others
	FROM generate_series(1, 100) x, (VALUES (1000)) AS v (n),
		(SELECT bloom_agg(y, 20000) AS f FROM generate_series(1, 20000) y) AS many,
		(SELECT bloom_agg(-y, 20000) AS f FROM generate_series(1, 20000) y) AS others;
SELECT bloom_agg(x, few) = (SELECT bloom_agg(x, 1000) FROM generate_series(-1, 89) x WHERE x <> 0) AS small,
	bloom_agg(x, many) = (SELECT bloom_agg(y, 20000) FROM generate_series(1, 20000) y) AS stored_often,
	bloom_agg(x, CASE WHEN x % 3 = 0 THEN many::bytea::bloomfilter ELSE many END) = max(many::text)::bloomfilter
		AS in_memory_and_not,
	bloom_agg(x, CASE WHEN x % 3 = 0 THEN (many::bytea || '')::bloomfilter ELSE many::bytea::bloomfilter END)
		= max(many::text)::bloomfilter AS computed
FROM bases WHERE x < 90;
SELECT x >= 90 AS late, bloom_agg(-3, few) = bloom_union_agg(bloom_add(few, -3)) AS in_groups FROM bases GROUP BY 1;
SELECT bloom_agg(x, few) FROM bases;
SELECT bloom_agg(x, CASE WHEN x < 50 THEN many ELSE bloom_add(many, -1) END) FROM bases;
SELECT bloom_agg(x, CASE WHEN x < 50 THEN many ELSE few END) FROM bases;
SELECT bloom_agg(x, CASE WHEN x < 50 THEN many ELSE others END) FROM bases;
SELECT bloom_agg(x, (CASE WHEN x < 50 THEN many ELSE others END)::bytea::bloomfilter) FROM bases;
SELECT bloom_agg(x, bloom_add(few, CASE WHEN x < 50 THEN -3 ELSE -4 END)) FROM bases WHERE x < 90;
SET work_mem = '64kB';
SELECT bloom_agg(x, few ORDER BY x) FROM bases;
RESET work_mem;
SELECT bloom_agg(x) OVER (ORDER BY x) = bloom_agg(x, NULL::bloomfilter) OVER (ORDER BY x) AS windows FROM bases LIMIT 1;
SELECT bloom_agg(x, few) OVER (ORDER BY x DESC) FROM bases;
SELECT bloom_agg(x, CASE WHEN x < 50 THEN few END) FROM bases;
SELECT bloom_agg(x, CASE WHEN x > 50 THEN few END) FROM bases;
SELECT bloom_agg(x, CASE WHEN x > 50 THEN many END) FROM bases;
-- compressed in memory: PL/pgSQL does not decompress a stored filter
CREATE TEMP TABLE packed (f bloomfilter);
ALTER TABLE packed ALTER f SET STORAGE extended;
INSERT INTO packed SELECT (set_byte(substr(f::bytea, 1, 28), 2, 0) || decode(repeat('00ff', (bits / 16)::int), 'hex'))::bloomfilter
	FROM bloom_add(bloom_create(3000000), 1) AS f, bloom_info(f);
SELECT pg_column_size(f) BETWEEN 10000 AND 100000 AS compressed FROM packed;
SET plan_cache_mode = force_generic_plan;
DO $$
DECLARE
	v bloomfilter;
	same bool;
BEGIN
	SELECT f INTO v FROM packed;
	FOR nth IN 1 .. 2 LOOP
		SELECT bloom_agg(x, CASE WHEN x = nth THEN v ELSE f END) = bloom_agg(x, v) INTO same
			FROM packed, generate_series(1, 2) x;
		ASSERT same;
	END LOOP;
END
$$;
RESET plan_cache_mode;
DROP TABLE bases, packed;

-- filters of filters
CREATE TEMP TABLE days AS
	SELECT day, bloom_agg(id, 1000) AS f FROM events GROUP BY day;
SELECT bloom_union_agg(f) = (SELECT bloom_agg(id, 1000) FROM events) AS lossless FROM days;
SELECT bloom_intersect_agg(f) @> ALL (ARRAY[1, 2, 3]) AS common
FROM (SELECT bloom_agg(x, 100) FROM generate_series(1, 3) x UNION ALL
	SELECT bloom_agg(x, 100) FROM generate_series(1, 60) x UNION ALL
	SELECT bloom_agg(x, 100) FROM generate_series(-50, 50) x) AS v (f);
SELECT bloom_union_agg(f) FROM (VALUES (bloom_add(bloom_create(10), 1)), (bloom_add(bloom_create(10), 'one'))) AS v (f);
SELECT bloom_union_agg(f) FROM (VALUES (bloom_create(10)), (bloom_create(10, 0.1))) AS v (f);
SELECT bloom_intersect_agg(f) FROM (VALUES (bloom_create(10)), (bloom_create(10, 0.1))) AS v (f);

-- a dense filter arrives while the state still collects hashes
CREATE TEMP TABLE arrivals AS
	SELECT n, o, bloom_agg(x, n) AS f
	FROM (VALUES (100000, 1, 1, 1500), (100000, 2, 100001, 150000), (200000, 1, 1, 3100), (200000, 2, 100001, 150000),
		(2000000, 1, 1, 5000), (2000000, 2, 100001, 150000)) AS v (n, o, low, high), generate_series(low, high) x
	GROUP BY n, o;
SELECT n, bloom_union_agg(f ORDER BY o) = bloom_union_agg(f ORDER BY o DESC) AS in_any_order,
	bloom_union_agg(f ORDER BY o) = (SELECT a.f | b.f FROM arrivals a, arrivals b
		WHERE a.n = arrivals.n AND b.n = a.n AND a.o = 1 AND b.o = 2) AS as_the_operator
FROM arrivals GROUP BY n ORDER BY n;
-- filters that do not combine, in any order
SELECT bloom_intersect_agg(f) FROM (VALUES (bloom_add(bloom_create(10), 1)), (bloom_add(bloom_create(10), 'x'))) AS v (f);
SELECT bloom_intersect_agg(f) FROM (VALUES (bloom_add(bloom_create(10), 'x')), (bloom_add(bloom_create(10), 1))) AS v (f);
-- also with the empty filter without a size between them, which empties an intersection
SELECT bloom_intersect_agg(f ORDER BY n)
FROM (VALUES (1, bloom_add(bloom_create(10), 1)), (2, (SELECT bloom_agg(x) FROM generate_series(1, 0) x)),
	(3, bloom_add(bloom_create(10), 'x'))) AS v (n, f);
SELECT bloom_intersect_agg(f) = bloom_add(bloom_create(10), 1) & bloom_create(10) AS empty, # bloom_intersect_agg(f)
FROM (VALUES (bloom_add(bloom_create(10), 1)), ((SELECT bloom_agg(x) FROM generate_series(1, 0) x)),
	(bloom_create(10))) AS v (f);

-- a foreign state, in an aggregate that only a superuser can create
CREATE AGGREGATE strings_as_elements (text, text) (SFUNC = string_agg_transfn, STYPE = internal,
	FINALFUNC = bloom_agg_final);
CREATE AGGREGATE numbers_as_elements (numeric) (SFUNC = numeric_avg_accum, STYPE = internal,
	FINALFUNC = bloom_agg_final);
SELECT strings_as_elements(repeat('x', 1000), 'y');
SELECT numbers_as_elements(1);
DROP AGGREGATE strings_as_elements (text, text), numbers_as_elements (numeric);
-- support functions outside an aggregate
SELECT bloom_union_agg_add(bloom_create(1), bloom_create(1));
SELECT bloom_intersect_agg_add(bloom_create(1), bloom_create(1));
SELECT bloom_union_agg_final(bloom_create(1));
SELECT bloom_union_agg_final(NULL);
