-- Stored filters: kept between rows or read in slices, the answers are the same.
CREATE TABLE stored (id int PRIMARY KEY, f bloomfilter);
INSERT INTO stored
	SELECT id, bloom_agg(x, n, 0.01) FROM (VALUES (1, 100000), (2, 20000), (3, 1000), (4, 3000000)) AS v (id, n),
		generate_series(id * 1000000, id * 1000000 + 20000) x
	GROUP BY id, n
	UNION ALL
	SELECT 5, bloom_agg(x, bloom_create(50000, 0.01, 'classic')) FROM generate_series(5000000, 5020000) x;
SELECT id, layout, representation, bytes > 8000 AS out_of_line FROM stored, bloom_info(f) ORDER BY id;

-- the same filters in memory, where every probe sees the whole of them
CREATE FUNCTION in_memory(f bloomfilter) RETURNS bloomfilter IMMUTABLE
	LANGUAGE sql AS $$ SELECT f::bytea::bloomfilter $$;

-- one filter, many rows; many filters, one key; and all by turns
SELECT id, count(*) FILTER (WHERE f @> x) = 20001 AS all_found,
	count(*) FILTER (WHERE f @> -x) = count(*) FILTER (WHERE in_memory(f) @> -x) AS same_others
FROM stored, generate_series(id * 1000000, id * 1000000 + 20000) x GROUP BY id ORDER BY id;
SELECT x, array_agg(id ORDER BY id) FILTER (WHERE f @> x) AS found,
	bool_and((f @> x) = (in_memory(f) @> x) AND (x <@ f) = (f @> x)) AS same
FROM generate_series(1000000, 5000000, 1000000) x, stored GROUP BY x ORDER BY x;
SELECT count(*) AS different FROM generate_series(990000, 5030000, 9973) x, stored
	WHERE (f @> x) <> (in_memory(f) @> x);
SELECT count(*) AS different FROM stored, generate_series(990000, 5030000, 9973) x
	WHERE (x <@ f) <> (x <@ in_memory(f));
-- a constant key, in filters of several seeds
SELECT seed, f @> 1 AS found
FROM (SELECT seed, bloom_agg(x, bloom_create(20000, 0.01, 'blocked', seed)) AS f
	FROM generate_series(1, 3) AS seed, generate_series(0, 1000) AS x GROUP BY seed) AS v ORDER BY seed;
SELECT id FROM stored WHERE f @> ANY (ARRAY[1000001, 3000001, -1]) ORDER BY id;
SELECT id FROM stored WHERE f @> ALL (ARRAY[4000001, 4000002, 4020000]) ORDER BY id;

-- the filter changes under a call site: updates, rollback to a savepoint
DO $$
DECLARE
	g bloomfilter;
BEGIN
	FOR i IN 1 .. 20 LOOP
		BEGIN
			UPDATE stored SET f = bloom_add(f, -i) WHERE id = 1;
			FOR j IN 1 .. i LOOP
				SELECT f INTO g FROM stored WHERE id = 1;
				ASSERT g @> -j OR j % 3 = 0, format('%s lost after %s', j, i);
				ASSERT (SELECT f @> -j FROM stored WHERE id = 1) OR j % 3 = 0;
			END LOOP;
			IF i % 3 = 0 THEN
				RAISE division_by_zero;
			END IF;
		EXCEPTION WHEN division_by_zero THEN
			NULL;
		END;
	END LOOP;
END
$$;
SELECT count(*) AS kept FROM stored, generate_series(1, 20) i WHERE id = 1 AND f @> -i AND i % 3 <> 0;
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

-- more filters than are kept, and less memory than they take
SET work_mem = '64kB';
SELECT count(*) AS missing
FROM generate_series(0, 500) AS i, (SELECT s, bloom_agg(x, 20000) AS f
	FROM generate_series(1, 12) s, generate_series(0, 500) x GROUP BY s) AS v
WHERE NOT f @> i;
CREATE TABLE dozen AS SELECT s, bloom_agg(x, 20000) AS f FROM generate_series(1, 12) s, generate_series(0, 5000) x
	GROUP BY s;
SELECT count(*) AS missing FROM (SELECT i, f FROM generate_series(0, 500) AS i, dozen OFFSET 0) AS v WHERE NOT f @> i;
-- one by one, where a copy gives way to the next; by turns, where it must not
SELECT count(*) AS missing
FROM (SELECT f, i FROM dozen, generate_series(0, 500) AS i ORDER BY s, i OFFSET 0) AS v WHERE NOT f @> i;
SELECT count(*) AS missing
FROM (SELECT f, i FROM dozen, generate_series(0, 500) AS i WHERE s <= 3 ORDER BY i, s OFFSET 0) AS v WHERE NOT f @> i;
RESET work_mem;
SELECT count(*) AS missing
FROM (SELECT f, i FROM dozen, generate_series(0, 500) AS i ORDER BY s, i OFFSET 0) AS v WHERE NOT f @> i;
-- hashes that are not spread as hashes are: near those of 1 and of 2, every 20th
CREATE TABLE uneven (x int, f bloomfilter);
INSERT INTO uneven
SELECT x, (substr(b, 1, 28) ||
	string_agg(set_byte(set_byte(substr(b, 29), 0, low & 255), 1, low >> 8), '' ORDER BY low))::bloomfilter
FROM (SELECT x, bloom_agg(x, 100000)::bytea AS b FROM generate_series(1, 2) AS x GROUP BY x) AS v,
	LATERAL (SELECT generate_series(0, 65535, 20) AS low UNION SELECT get_byte(b, 28) + 256 * get_byte(b, 29)) AS l
GROUP BY x, b;
SELECT x, bloom_cardinality(f) > 3276 AS many, f @> x AS found, f @> -x AS others FROM uneven ORDER BY x;
DROP TABLE uneven;
-- memory stays flat over many probes of changing filters, read in slices or kept
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
-- compressed out of line, if somebody wants that
ALTER TABLE dozen ALTER f SET STORAGE EXTENDED;
CREATE TABLE compressed (LIKE dozen INCLUDING STORAGE);
INSERT INTO compressed SELECT s, bloom_agg(x, 10000000) FROM generate_series(1, 2) s, generate_series(1, 200000) x
	GROUP BY s;
SELECT count(*) AS missing FROM compressed, generate_series(1, 1000) x WHERE NOT f @> x;

DROP TABLE stored, dozen, compressed;
DROP FUNCTION in_memory(bloomfilter);
