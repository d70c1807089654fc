-- Stored filters: cached between rows or read by slices, they give the same answers.
CREATE TABLE stored (id int PRIMARY KEY, f bloomfilter);
INSERT INTO stored
	SELECT id, bloom_agg(x, n, 0.01) FROM (VALUES (1, 100000), (2, 20000), (3, 1000), (4, 3000000)) AS v (id, n),
		generate_series(id * 1000000, id * 1000000 + 20000) x
	GROUP BY id, n
	UNION ALL
	SELECT 5, bloom_agg(x, bloom_create(50000, 0.01, 'classic')) FROM generate_series(5000000, 5020000) x;
SELECT id, layout, representation, bytes > 8000 AS out_of_line FROM stored, bloom_info(f) ORDER BY id;

-- one filter, many rows; many filters, one key
SELECT id, count(*) FILTER (WHERE f @> x) = 20001 AS all_found
FROM stored, generate_series(id * 1000000, id * 1000000 + 20000) x GROUP BY id ORDER BY id;
SELECT x, array_agg(id ORDER BY id) FILTER (WHERE x <@ f) AS found
FROM generate_series(1000000, 5000000, 1000000) x, stored GROUP BY x ORDER BY x;
-- a constant key, in filters of several seeds
SELECT seed, f @> 1 AS found
FROM (SELECT seed, bloom_agg(x, bloom_create(20000, 0.01, 'blocked', seed)) AS f
	FROM generate_series(1, 3) AS seed, generate_series(0, 1000) AS x GROUP BY seed) AS v ORDER BY seed;
SELECT id FROM stored WHERE f @> ANY (ARRAY[1000001, 3000001, -1]) ORDER BY id;
SELECT id FROM stored WHERE f @> ALL (ARRAY[4000001, 4000002, 4020000]) ORDER BY id;

-- the filter changes under a cursor, and under a prepared statement
BEGIN;
DECLARE probes CURSOR FOR SELECT x, f @> x AS found FROM stored, generate_series(2000000, 2000003) x WHERE id = 2;
FETCH 2 FROM probes;
UPDATE stored SET f = bloom_create(20000) WHERE id = 2;
FETCH 2 FROM probes;
SELECT f @> 2000000 AS found FROM stored WHERE id = 2;
ROLLBACK;
SELECT f @> 2000000 AS found FROM stored WHERE id = 2;
PREPARE probe (int) AS SELECT f @> $1 FROM stored WHERE id = 3;
EXECUTE probe (3000001);
UPDATE stored SET f = (SELECT bloom_agg(x) FROM generate_series(1, 20000) x) WHERE id = 3;
EXECUTE probe (3000001);
EXECUTE probe (1);

-- more filters than the cache holds, and less memory than they need
SET work_mem = '64kB';
SELECT count(*) AS missing
FROM generate_series(0, 500) AS i, (SELECT s, bloom_agg(x, 20000) AS f
	FROM generate_series(1, 12) s, generate_series(0, 500) x GROUP BY s) AS v
WHERE NOT f @> i;
CREATE TABLE dozen AS SELECT s, bloom_agg(x, 20000) AS f FROM generate_series(1, 12) s, generate_series(0, 5000) x
	GROUP BY s;
SELECT count(*) AS missing FROM (SELECT i, f FROM generate_series(0, 500) AS i, dozen OFFSET 0) AS v WHERE NOT f @> i;
-- one by one, where each copy replaces the last; by turns, where it must not
SELECT count(*) AS missing
FROM (SELECT f, i FROM dozen, generate_series(0, 500) AS i ORDER BY s, i OFFSET 0) AS v WHERE NOT f @> i;
SELECT count(*) AS missing
FROM (SELECT f, i FROM dozen, generate_series(0, 500) AS i WHERE s <= 3 ORDER BY i, s OFFSET 0) AS v WHERE NOT f @> i;
RESET work_mem;
SELECT count(*) AS missing
FROM (SELECT f, i FROM dozen, generate_series(0, 500) AS i ORDER BY s, i OFFSET 0) AS v WHERE NOT f @> i;
-- hashes that are not evenly spread: near those of 1 and of 2, every 20th
CREATE TABLE uneven (x int, f bloomfilter);
INSERT INTO uneven
SELECT x, (substr(b, 1, 28) ||
	string_agg(set_byte(set_byte(substr(b, 29), 0, low & 255), 1, low >> 8), '' ORDER BY low))::bloomfilter
FROM (SELECT x, bloom_agg(x, 100000)::bytea AS b FROM generate_series(1, 2) AS x GROUP BY x) AS v,
	LATERAL (SELECT generate_series(0, 65535, 20) AS low UNION SELECT get_byte(b, 28) + 256 * get_byte(b, 29)) AS l
GROUP BY x, b;
SELECT x, bloom_cardinality(f) > 3276 AS many, f @> x AS found, f @> -x AS others FROM uneven ORDER BY x;
DROP TABLE uneven;
-- memory stays flat over many probes of changing filters, read by slices or cached
CREATE FUNCTION memory_used() RETURNS bigint LANGUAGE sql
	AS 'SELECT sum(used_bytes)::bigint FROM pg_backend_memory_contexts';
BEGIN;
DECLARE by_turns CURSOR FOR SELECT f @> i FROM generate_series(1, 10000) AS i, dozen;
DECLARE one_by_one CURSOR FOR SELECT f @> i FROM dozen, generate_series(1, 10000) AS i;
MOVE 1200 IN by_turns;
MOVE 1200 IN one_by_one;
SELECT memory_used() AS before \gset
MOVE 60000 IN by_turns;
MOVE 60000 IN one_by_one;
SELECT memory_used() - :before < 500000 AS flat;
ROLLBACK;
DROP FUNCTION memory_used();

-- a filter as a column's default, in an index, an array and a record
CREATE TABLE defaults (id int, f bloomfilter DEFAULT bloom_create(10));
INSERT INTO defaults DEFAULT VALUES;
CREATE INDEX ON defaults ((bloom_cardinality(f)));
CREATE INDEX ON defaults (id) WHERE f @> 42;
SELECT f = bloom_create(10) AS "default", ARRAY[f]::text::bloomfilter[] = ARRAY[f] AS "array",
	ROW(id, f)::text::defaults = ROW(id, f)::defaults AS record
FROM defaults;

DROP TABLE stored, dozen, defaults;
