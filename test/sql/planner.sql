-- Plans: the estimator, parallel aggregation, and the estimators of other operators.
CREATE TABLE uniform AS SELECT x, 'user' || x AS name FROM generate_series(1, 20000) x;
CREATE TABLE skewed AS
	SELECT CASE WHEN i <= 10000 THEN 1 WHEN i <= 15000 THEN 2 ELSE i END AS x FROM generate_series(1, 20000) i;
ANALYZE uniform, skewed;

CREATE FUNCTION rows_expected(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END
$$;
-- how many times the estimate is off, in either direction
CREATE FUNCTION off_by(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	rows float8;
BEGIN
	EXECUTE 'SELECT count(*) FROM (' || query || ') AS q' INTO rows;
	RETURN greatest(rows / rows_expected(query), rows_expected(query) / rows);
END
$$;
CREATE FUNCTION filter_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	f bloomfilter;
BEGIN
	EXECUTE query INTO f;
	RETURN quote_literal(f) || '::bloomfilter';
END
$$;

-- constant filters: most elements of the last are not in the column, as its histogram tells
SELECT filter_of('SELECT bloom_agg(x) FROM generate_series(1, 2000) x') AS first_2000,
	filter_of('SELECT bloom_agg(x, 5000) FROM generate_series(1, 20) x') AS first_20,
	filter_of('SELECT bloom_agg(x) FROM generate_series(19001, 400000) x') AS foreign_values \gset
SELECT off_by('SELECT * FROM uniform WHERE x <@ ' || :'first_2000') <= 2 AS uniform,
	off_by('SELECT * FROM skewed WHERE ' || :'first_20' || ' @> x') <= 2 AS common_values,
	off_by('SELECT * FROM uniform WHERE x <@ ' || :'foreign_values') <= 2 AS foreign_values;
SELECT rows_expected('SELECT * FROM uniform WHERE x <@ NULL::bloomfilter') AS null_filter;

-- The planner estimates a filter once, whatever the number of partitions: it
-- evaluates a STABLE function once, even if the function plans another query.
CREATE TABLE twice (half int, x int, name varchar) PARTITION BY LIST (half);
CREATE TABLE twice_1 PARTITION OF twice FOR VALUES IN (1);
CREATE TABLE twice_2 PARTITION OF twice FOR VALUES IN (2);
INSERT INTO twice SELECT half, x, name FROM uniform, generate_series(1, 2) half;
ANALYZE twice;
CREATE SEQUENCE evaluations;
CREATE FUNCTION evaluated(n bigint) RETURNS bloomfilter STABLE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM nextval('evaluations'), rows_expected('SELECT * FROM uniform WHERE bloom_create(1) @> x');
	RETURN (SELECT bloom_agg(x, 20000) FROM generate_series(1, n) x);
END
$$;
SELECT abs(rows_expected('SELECT * FROM twice WHERE evaluated(5000) @> x') / 10000 - 1) < 0.05 AS quarter,
	abs(rows_expected('SELECT * FROM twice WHERE evaluated(10000) @> x AND evaluated(5000) @> x') / 5000 - 1) < 0.05
		AS quarter_of_half,
	nextval('evaluations') - 1 AS evaluations;
-- the next planning estimates anew: filters of one size may be at the same address
CREATE FUNCTION expected_of(filters bloomfilter[]) RETURNS SETOF float8 LANGUAGE plpgsql AS $$
DECLARE
	f bloomfilter;
	plan json;
BEGIN
	FOREACH f IN ARRAY filters LOOP
		EXECUTE 'EXPLAIN (FORMAT json) SELECT * FROM uniform WHERE $1 @> x' INTO plan USING f;
		RETURN NEXT plan -> 0 -> 'Plan' ->> 'Plan Rows';
	END LOOP;
END
$$;
SELECT count(*) FILTER (WHERE abs(rows / (5000 * (1 + i % 4)) - 1) < 0.05) AS as_many
FROM expected_of(ARRAY(SELECT bloom_agg(x, 20000) FROM generate_series(1, 20) i, generate_series(1, 5000 * (1 + i % 4)) x
	GROUP BY i ORDER BY i)) WITH ORDINALITY AS e (rows, i);
DROP FUNCTION expected_of(bloomfilter[]), evaluated(bigint);
DROP SEQUENCE evaluations;

-- a filter that a subquery will build: the planner knows how many values to expect
SELECT off_by('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(x) FROM uniform WHERE x <= 2000)') <= 2 AS subquery,
	off_by('SELECT * FROM uniform WHERE (SELECT bloom_agg(x, 1000) FROM uniform WHERE x <= 1000) @> x') <= 2 AS commuted,
	off_by('SELECT * FROM uniform WHERE (SELECT bloom_agg(x, 1000, 0.5) FROM uniform WHERE x <= 1000) @> x') <= 2 AS rate,
	off_by('SELECT * FROM uniform u WHERE EXISTS (SELECT FROM (SELECT x FROM uniform v WHERE v.x <@
		(SELECT bloom_agg(x) FROM uniform WHERE x <= 2000) OFFSET 0) v WHERE v.x = u.x)') <= 2 AS nested,
	off_by('WITH c AS MATERIALIZED (SELECT x FROM uniform WHERE x <= 2000)
		SELECT * FROM uniform WHERE (SELECT bloom_agg(x) FROM c) @> x') <= 2 AS cte,
	off_by('SELECT * FROM uniform WHERE name <@ (SELECT bloom_agg(name) FROM uniform WHERE x > 100)') <= 2 AS most,
	off_by('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(u.x) FROM uniform u LEFT JOIN skewed v ON v.x = u.x
		WHERE u.x <= 400)') <= 2 AS of_a_join,
	off_by('SELECT * FROM uniform WHERE NOT (SELECT bloom_agg(x) FROM uniform WHERE x <= 10000) @> x') <= 2 AS negated,
	off_by('SELECT * FROM uniform WHERE (SELECT bloom_agg(i, 3000) FROM generate_series(1, 3000) i) @> x') <= 2
		AS of_a_function;
-- the values that FILTER selects, of 10 rows each
CREATE TABLE tens AS SELECT i % 2000 AS x, i FROM generate_series(1, 20000) i;
ANALYZE tens;
SELECT off_by('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(x) FILTER (WHERE x > 19800) FROM uniform)') <= 2 AS filtered,
	off_by('SELECT * FROM tens WHERE x <@ (SELECT bloom_agg(x) FILTER (WHERE i <= 500) FROM tens)') <= 2 AS filtered_tens;
-- a filter that a CTE or a subquery in FROM computes
SELECT off_by(format('WITH c AS %s (SELECT 1 AS one, bloom_agg(x) AS f FROM uniform WHERE x <= 500)
	SELECT * FROM uniform WHERE %s @> x', materialized, filter)) <= 2 AS from_cte
FROM (VALUES ('MATERIALIZED', '(SELECT f FROM c)'), ('NOT MATERIALIZED', '(SELECT f FROM c)'),
	('MATERIALIZED', '(SELECT f FROM c WHERE one = 1 LIMIT 1)'), ('MATERIALIZED', '(SELECT (SELECT f FROM c))'),
	('MATERIALIZED', '(WITH d AS MATERIALIZED (SELECT f FROM c) SELECT f FROM d)'),
	('', '(SELECT f FROM (SELECT f FROM c OFFSET 0) AS s)')) AS v (materialized, filter);
-- one element, however many rows, and 1 % of the others
SELECT rows_expected('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(7) FROM uniform)') BETWEEN 200 AND 202 AS constant,
	rows_expected('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(7))') BETWEEN 200 AND 202 AS no_table,
	rows_expected('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(x) FILTER (WHERE x = 7) FROM uniform)')
		BETWEEN 200 AND 202 AS filtered;
-- beside a join on the same column: the square root of the selectivity, 2,000 of 20,000 and 1 % of the others
CREATE FUNCTION scanned(query text, alias text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	RETURN jsonb_path_query_first(plan, 'strict $.** ? (@.Alias == $alias)."Plan Rows"', jsonb_build_object('alias', alias));
END
$$;
SELECT scanned(q, 'u') / (20000 * sqrt(0.1 + 0.9 * 0.01)) BETWEEN 0.9 AND 1.1 AS joined
FROM (VALUES ('SELECT * FROM uniform u JOIN uniform v USING (x) WHERE v.x <= 2000
		AND (SELECT bloom_agg(x) FROM uniform WHERE x <= 2000) @> u.x'),
	('SELECT * FROM uniform u WHERE x IN (SELECT x FROM uniform v WHERE x <= 2000)
		AND x <@ (SELECT bloom_agg(x) FROM uniform WHERE x <= 2000)')) v (q);
-- the same with varchar, and with partitions
SELECT scanned(q, 'u_1') / (20000 * sqrt(0.1 + 0.9 * 0.01)) BETWEEN 0.9 AND 1.1 AS joined
FROM (VALUES ('SELECT * FROM twice u JOIN uniform v USING (x)
		WHERE (SELECT bloom_agg(x) FROM uniform WHERE x <= 2000) @> u.x'),
	('SELECT * FROM twice u JOIN uniform v USING (name)
		WHERE (SELECT bloom_agg(name) FROM uniform WHERE x <= 2000) @> u.name')) v (q);
SELECT scanned('SELECT * FROM uniform u JOIN skewed v ON v.x = length(u.name)
	WHERE (SELECT bloom_agg(x) FROM uniform WHERE x <= 2000) @> u.x', 'u') / (20000 * (0.1 + 0.9 * 0.01)) BETWEEN 0.9 AND 1.1 AS joined_by_another;

-- a filter that is unknown at planning time: one row in ten
CREATE TABLE stored AS SELECT bloom_agg(x) AS f FROM uniform;
SELECT rows_expected('SELECT * FROM uniform WHERE (SELECT f FROM stored) @> x') AS stored,
	rows_expected('SELECT * FROM uniform WHERE x <@ (SELECT bloom_union_agg(f) FROM stored)') AS "union",
	rows_expected('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(x) FROM uniform GROUP BY x > 0)') AS grouped,
	rows_expected('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(x) | bloom_agg(x) FROM uniform)') AS "computed",
	rows_expected('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(x) FROM uniform WHERE x <= 50
		UNION ALL SELECT NULL WHERE false)') AS "union_all",
	rows_expected('WITH RECURSIVE c AS (SELECT bloom_agg(x) AS f FROM uniform WHERE x <= 50
		UNION ALL SELECT f FROM c WHERE false) SELECT * FROM uniform WHERE x <@ (SELECT f FROM c)') AS recursive,
	rows_expected('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(x) FROM uniform WHERE x <= 50
		GROUP BY GROUPING SETS ((), ()) LIMIT 1)') AS grouping_sets;
-- a CTE may return another value than it inserts
CREATE TABLE inserted (x int, f bloomfilter);
SELECT rows_expected('WITH c AS (INSERT INTO inserted SELECT 1, bloom_agg(x) FROM uniform WHERE x <= 50
	RETURNING x, f | f) SELECT * FROM uniform WHERE x <@ (SELECT "?column?" FROM c)') AS "returning";
DROP TABLE inserted;
SELECT rows_expected('SELECT * FROM uniform u JOIN stored AS s ON s.f @> u.x') /
	rows_expected('SELECT * FROM uniform u CROSS JOIN stored') AS "join";
-- a filter that elements are added to counts with its own elements, unless it is stored and so unknown
SELECT off_by('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(x, ' || :'first_2000' ||
	') FROM uniform WHERE x > 19900)') <= 2 AS added_to,
	off_by('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(x, bloom_create(500, 0.5, ''classic'')) FROM uniform WHERE x <= 500)') <= 2 AS classic,
	rows_expected('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(x, (SELECT f FROM stored)) FROM uniform WHERE x <= 10)') AS added_to_stored;
-- rates outside 0 to 1 do not count: they raise an error when the query runs, or are sort keys
SELECT rate, rows_expected(format('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(x, 500, %L) FROM uniform WHERE x <= 500)', rate)) BETWEEN 500 AND 1000 AS as_default
FROM unnest('{NaN,Infinity,7,0,-1}'::float8[]) AS rate;
SELECT off_by('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(x ORDER BY name, 0.9::float8) FROM uniform WHERE x <= 500)') <= 2 AS sorted;
SELECT off_by('SELECT * FROM uniform WHERE x <@ (SELECT bloom_counter_agg(x, 2000, 0.01, 8) FROM uniform WHERE x <= 2000)') <= 2 AS wide,
	off_by('SELECT * FROM uniform WHERE x <@ (SELECT bloom_level_agg(x, 3, 2000, 0.01, 8) FROM uniform WHERE x <= 2000)') <= 2 AS levels;
-- an invalid probe raises its error when the query runs, not when it is planned
EXPLAIN (COSTS OFF) SELECT * FROM uniform WHERE name <@ bloom_add(bloom_create(8), 1);
SELECT * FROM uniform WHERE name <@ bloom_add(bloom_create(8), 1);

-- parallel aggregation gives the same bytes
CREATE TEMP TABLE serial AS
	SELECT bloom_agg(x) AS own, bloom_agg(x, 20000) AS sized, bloom_agg(x, 20000, 0.001) AS strict FROM uniform;
ALTER TABLE uniform SET (parallel_workers = 2);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT bloom_agg(x) FROM uniform;
SELECT off_by('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(x) FROM uniform WHERE x <= 2000)') <= 2
	AS parallel_subquery;
SET enable_partitionwise_aggregate = on;
EXPLAIN (COSTS OFF) SELECT bloom_agg(x) FROM twice;
SELECT off_by('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(x) FROM twice WHERE x <= 200)') <= 2 AS partitionwise;
SET max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS OFF) SELECT bloom_agg(x) FROM twice;
SELECT off_by('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(x) FROM twice WHERE x <= 200)') <= 2 AS partitionwise;
RESET max_parallel_workers_per_gather;
RESET enable_partitionwise_aggregate;
-- an expression over the aggregate is unknown, a condition over it is not
SELECT rows_expected('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(x) | bloom_agg(x) FROM uniform WHERE x <= 500)') AS "computed",
	off_by('SELECT * FROM uniform WHERE x <@ (SELECT bloom_agg(x) FROM uniform WHERE x <= 500 HAVING count(*) > 5)') <= 2
		AS "having";
SELECT bloom_agg(x) = (SELECT own FROM serial) AS own, bloom_agg(x, 20000) = (SELECT sized FROM serial) AS sized,
	bloom_agg(x, 20000, 0.001) = (SELECT strict FROM serial) AS strict
FROM uniform;
-- fifty filters, with three common elements
CREATE TABLE parts AS
	SELECT part, bloom_agg(x, 20000) AS f
	FROM (SELECT x % 50 AS part, x FROM uniform UNION ALL SELECT part, x FROM generate_series(0, 49) part, generate_series(1, 3) x)
		AS v GROUP BY part;
ALTER TABLE parts SET (parallel_workers = 2);
EXPLAIN (COSTS OFF) SELECT bloom_union_agg(f), bloom_intersect_agg(f) FROM parts;
SELECT bloom_union_agg(f) = (SELECT sized FROM serial) AS "union", # bloom_intersect_agg(f) AS common FROM parts;
-- the lowest requested rate reaches the result from a worker, too
CREATE TABLE rates AS SELECT bloom_agg(x, 1, 0.015) AS f FROM generate_series(1, 3) x;
INSERT INTO rates SELECT bloom_agg(x, 1, 0.01) FROM generate_series(4, 5) x, generate_series(1, 2000) g GROUP BY g;
ALTER TABLE rates SET (parallel_workers = 2);
SET parallel_leader_participation = off;
SELECT requested_rate FROM bloom_info((SELECT bloom_union_agg(f) FROM rates));
DROP TABLE rates;
-- filters of different seeds and no size, one to a worker
CREATE TABLE seeded (seed int, x int, f bloomfilter) PARTITION BY LIST (seed);
CREATE TABLE seeded_0 PARTITION OF seeded FOR VALUES IN (0);
CREATE TABLE seeded_5 PARTITION OF seeded FOR VALUES IN (5);
INSERT INTO seeded SELECT seed, x, set_byte('\x01000106000000000ad7233c00000000000000000000000000000000', 12,
	seed)::bloomfilter
FROM generate_series(1, 20000) x, (VALUES (0), (5)) AS s (seed);
ALTER TABLE seeded_0 SET (parallel_workers = 2);
ALTER TABLE seeded_5 SET (parallel_workers = 2);
SET enable_partitionwise_aggregate = on;
EXPLAIN (COSTS OFF) SELECT bloom_agg(x, f) FROM seeded;
SELECT count(*) AS missing FROM (SELECT bloom_agg(x, f) AS f FROM seeded) AS v, generate_series(1, 20000) x
	WHERE NOT v.f @> x;
DROP TABLE seeded;
RESET ALL;

-- the estimator on other types: a tenth of the 20,000 rows, or none for a null
-- filter; the planner can inline none of these functions
CREATE FUNCTION same(text, text) RETURNS boolean IMMUTABLE LANGUAGE internal AS 'texteq';
CREATE FUNCTION wanted(text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
CREATE FUNCTION wanted(uniform, text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
CREATE FUNCTION wanted(bloomfilter, text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
CREATE OPERATOR <@@> (LEFTARG = text, RIGHTARG = text, FUNCTION = same, RESTRICT = bloom_contains_sel,
	JOIN = bloom_contains_joinsel);
CREATE OPERATOR <@@> (RIGHTARG = text, FUNCTION = wanted, RESTRICT = bloom_contains_sel);
CREATE OPERATOR <@@> (LEFTARG = uniform, RIGHTARG = text, FUNCTION = wanted, RESTRICT = bloom_contains_sel);
CREATE OPERATOR <@@> (LEFTARG = bloomfilter, RIGHTARG = text, FUNCTION = wanted, RESTRICT = bloom_contains_sel);
SELECT count(*) AS rows, rows_expected('SELECT * FROM uniform WHERE name <@@> ''user1''') AS texts,
	rows_expected('SELECT * FROM uniform u JOIN uniform v ON u.name <@@> v.name') AS joined,
	rows_expected('SELECT * FROM uniform WHERE <@@> name') AS prefix,
	rows_expected('SELECT * FROM uniform u WHERE u <@@> ''user1''') AS composite,
	rows_expected('SELECT * FROM uniform WHERE NULL::bloomfilter <@@> name') AS no_filter
FROM uniform;

-- and on aggregates that share only their final function with bloom_agg
CREATE FUNCTION no_element_add(internal) RETURNS internal AS '$libdir/bloomtype', 'bloomfilter_agg_combine' LANGUAGE C;
CREATE FUNCTION strange_add(internal, int, text, text) RETURNS internal AS '$libdir/bloomtype',
	'bloomfilter_agg_combine' LANGUAGE C;
CREATE AGGREGATE no_element (*) (SFUNC = no_element_add, STYPE = internal, FINALFUNC = bloom_agg_final);
CREATE AGGREGATE strange (int, text, text) (SFUNC = strange_add, STYPE = internal, FINALFUNC = bloom_agg_final);
SELECT rows_expected('SELECT * FROM uniform WHERE x <@ (SELECT no_element(*) FROM uniform WHERE x <= 10)')
	AS no_element,
	rows_expected('SELECT * FROM uniform WHERE x <@ (SELECT strange(x, name, ''x'') FROM uniform WHERE x <= 10)')
		AS strange;
DROP AGGREGATE no_element (*), strange (int, text, text);
DROP FUNCTION no_element_add(internal), strange_add(internal, int, text, text);

DROP OPERATOR <@@> (text, text);
DROP OPERATOR <@@> (NONE, text);
DROP OPERATOR <@@> (uniform, text);
DROP OPERATOR <@@> (bloomfilter, text);
DROP FUNCTION wanted(text), wanted(uniform, text), wanted(bloomfilter, text);
DROP FUNCTION same(text, text), off_by(text), rows_expected(text), filter_of(text);
DROP TABLE uniform, skewed, tens, twice, stored, parts;
