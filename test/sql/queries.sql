-- Queries: several keys, and how many of them a filter contains.
CREATE TEMP TABLE sets (id int, seen bloomfilter);
INSERT INTO sets SELECT g, bloom_agg(10 * g + i, 20) FROM generate_series(1, 3) g, generate_series(0, 9) i GROUP BY g;
INSERT INTO sets VALUES (4, bloom_create(20)), (5, NULL);

-- the text form, of a key, of several, and of at least so many
SELECT bloom_query(17), bloom_query('alice');
SELECT bloom_query(ARRAY[17, 18, 25]::smallint[]), bloom_query(ARRAY['a', NULL, 'b ']::char(3)[]), bloom_query('{}'::uuid[]);
SELECT bloom_query(ARRAY[17, 18], 1), bloom_query('{17,18}', 0), bloom_query(NULL::int) IS NULL AS no_key,
	bloom_query(keys => NULL::int[], at_least => 1) IS NULL AS no_keys;

-- the operators and functions
SELECT id, seen @@ bloom_query(17) AS one, seen @@ bloom_query(ARRAY[17, 25]) AS "all",
	seen @@ bloom_query(ARRAY[17, 25], 1) AS "any", seen @@ bloom_query(ARRAY[17, 18, 25], 2) AS two,
	seen <-> bloom_query(ARRAY[17, 18, 25]) AS absent
FROM sets ORDER BY id;
SELECT id, bloom_hits(seen, ARRAY[17, 18, 25, 17, NULL]) AS hits, bloom_contains_any(seen, ARRAY[17, 25]) AS "any",
	bloom_contains_all(seen, ARRAY[17, 18]) AS "all", bloom_contains_least(seen, ARRAY[17, 18, 25], 2) AS two,
	bloom_matches(seen, bloom_query(17)) AS matches, bloom_absent(seen, bloom_query(17)) AS absent
FROM sets ORDER BY id;
SELECT id FROM sets WHERE seen IS NOT NULL ORDER BY seen <-> bloom_query(ARRAY[17, 25, 26]), id LIMIT 2;

-- NULL, no keys, and more than there are
SELECT id, bloom_contains_any(seen, ARRAY[17, NULL]) AS any_null, bloom_contains_all(seen, ARRAY[17, NULL]) AS all_null,
	bloom_contains_any(seen, '{}'::int[]) AS any_of_none, bloom_contains_all(seen, '{}'::int[]) AS all_of_none,
	bloom_contains_any(seen, NULL::int[]) AS any_of_null, bloom_hits(seen, '{NULL}'::int[]) AS hits_of_null
FROM sets ORDER BY id;
SELECT id, seen @@ bloom_query(ARRAY[17, NULL]) AS with_null, seen @@ bloom_query('{}'::int[]) AS none,
	seen @@ bloom_query(ARRAY[17], 2) AS too_many, bloom_contains_least(seen, ARRAY[17], 2) AS least_too_many,
	bloom_contains_least(seen, ARRAY[17], 0) AS least_0
FROM sets ORDER BY id;

-- char(n) and other strings; untyped arrays are text, and so are untyped keys
SELECT bloom_agg(x) @@ bloom_query(ARRAY['ab  ', 'cd'], 2) AS text, bloom_hits(bloom_agg(x), '{ab,"cd ",e}') AS untyped,
	bloom_agg(x) @@ bloom_query('ab'::name) AS name
FROM (VALUES ('ab'::char(4)), ('cd')) v (x);

-- in and out
CREATE TEMP TABLE queries AS SELECT bloom_query(ARRAY[17, 18]) AS q;
SELECT q::text::bloomquery::text = q::text AS same, pg_column_size(q) AS bytes FROM queries;
SELECT '\x1900000001000000010000000500000061' || '6C696365' AS text, '\x19000000010000000100000005000000616C696365'::bloomquery;

-- errors
SELECT seen @@ bloom_query('alice') FROM sets;
SELECT bloom_hits(seen, '{17}') FROM sets;
SELECT bloom_contains_any(seen, ARRAY[1.5]) FROM sets;
SELECT bloom_agg(x) <-> bloom_query('ab'::char(4)) FROM (VALUES ('ab')) v (x);
SELECT bloom_query(json '1');
SELECT bloom_query('{1}'::json[]);
SELECT bloom_contains_all(seen, '{}'::point[]) FROM sets;
SELECT bloom_query(ARRAY[1, 2], -1);
SELECT bloom_contains_least(seen, ARRAY[1, 2], -1) FROM sets;
\set VERBOSITY terse
SELECT bloom_hits(seen, 17) FROM sets;
\set VERBOSITY default
SELECT 'alice'::bloomquery;
SELECT '\x140'::bloomquery;
SELECT '\x1z'::bloomquery;
SELECT '\x14000000'::bloomquery;
SELECT '\x010000000100000000000000'::bloomquery;
SELECT '\x140000000100000001000000'::bloomquery;
SELECT '\x14000000010000000100000008000000'::bloomquery;
SELECT '\x140000000100000001000000040000002a000000'::bloomquery;
SELECT '\x140000000100000001000000080000002a0000000000000000'::bloomquery;

-- what the planner expects, from the filters that ANALYZE has seen
CREATE TABLE days WITH (autovacuum_enabled = off) AS
SELECT d, bloom_agg(10 * d + i, 20) AS seen FROM generate_series(1, 100) d, generate_series(0, 9) i GROUP BY d;
CREATE FUNCTION expected(condition text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) SELECT FROM days WHERE ' || condition INTO plan;
	RETURN plan -> 0 -> 'Plan' -> 'Plan Rows';
END $$;
CREATE TEMP TABLE condition (n serial, condition text);
INSERT INTO condition (condition) VALUES
	('seen @@ bloom_query(17)'), ('seen @> 17'), ('17 <@ seen'), ('seen @@ bloom_query(ARRAY[17, 25, 31], 1)'),
	('bloom_contains_any(seen, ARRAY[17, 25, 31])'), ('bloom_contains_all(seen, ARRAY[17, 18])'),
	('bloom_contains_least(seen, ARRAY[17, 18, 25], 0)'), ('bloom_contains_least(seen, ARRAY[17, 18, 25], 4)'),
	('seen @@ NULL'), ('seen @@ bloom_query(d)'), ('seen @> d'), ('bloom_contains_any(seen, ARRAY[d])'), ('seen @> ''a''::text');
SELECT condition, round(expected(condition) / expected('true'), 2) AS unknown FROM condition ORDER BY n;
ANALYZE days;
SELECT condition, round(expected(condition) / expected('true'), 2) AS share FROM condition ORDER BY n;
DROP TABLE days;
DROP FUNCTION expected;
