-- Stored filters, inline, out of line or compressed, answer as the same filters do
-- in memory, whatever is cached between calls.
BEGIN;
SELECT plan(64);

SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0;

-- Filter id has the elements id * 100000 + 1 .. id * 100000 + n. The sizes are inline
-- with a short header, inline, and out of line. The last filters compress well.
CREATE TABLE made AS
SELECT id, n, what, bloom_agg(id * 100000 + i, e)::bytea AS b
FROM (VALUES (1, 5, 'a few hashes', bloom_create(1000)), (2, 60, 'a block or two', bloom_create(60)),
             (3, 100, 'hashes', bloom_create(10000)),
             (4, 1000, 'some blocks', bloom_create(1000)), (5, 3000, 'many blocks', bloom_create(3000)),
             (6, 20000, 'very many blocks', bloom_create(20000)),
             (7, 3000, 'classic', bloom_create(3000, 0.01, 'classic')),
             (8, 20000, 'many hashes', bloom_create(200000)),
             (9, 20000, 'very many blocks of another', bloom_create(20000))) v (id, n, what, e),
     LATERAL generate_series(1, n) i
GROUP BY id, n, what;
-- Zeros and ones, which compress.
INSERT INTO made SELECT 10, 0, 'no bit set', substr(b, 1, 28) || decode(repeat('00', length(b) - 28), 'hex') FROM made
    WHERE id = 6;
INSERT INTO made SELECT 11, 0, 'half of the blocks full',
    substr(b, 1, 28) || decode(repeat('ff', (length(b) - 28) / 128 * 64)
                               || repeat('00', length(b) - 28 - (length(b) - 28) / 128 * 64), 'hex')
FROM made WHERE id = 6;

CREATE TABLE external (id int, f bloomfilter);
CREATE TABLE extended (id int, f bloomfilter);
ALTER TABLE extended ALTER f SET STORAGE extended;
CREATE TABLE main (id int, f bloomfilter);
ALTER TABLE main ALTER f SET STORAGE main;
INSERT INTO external SELECT id, b::bloomfilter FROM made ORDER BY id;
-- Values are stored as the column that they are copied to demands.
INSERT INTO extended SELECT id, f FROM external ORDER BY id;
INSERT INTO main SELECT id, f FROM external ORDER BY id;
CREATE VIEW stored AS
SELECT 'external' AS storage, * FROM external
UNION ALL SELECT 'extended', * FROM extended
UNION ALL SELECT 'main', * FROM main;

SELECT ok((SELECT pg_column_size(f) < 5000 FROM main WHERE id = 10)
          AND (SELECT pg_column_size(f) < 5000 FROM extended WHERE id = 11)
          AND (SELECT pg_column_size(f) > 20000 FROM external WHERE id = 10),
    'compressible filters are compressed, except in external storage');
SELECT is(array_agg(id ORDER BY id) FILTER (WHERE f::bytea <> b), NULL, storage || ': the bytes are what was stored')
FROM stored JOIN made USING (id) GROUP BY storage ORDER BY storage;

CREATE TABLE probe AS
SELECT id * 100000 + i AS x FROM made, generate_series(1, 5) i UNION ALL SELECT -i FROM generate_series(1, 60) i;
-- The answers of the same bytes in memory.
CREATE TABLE want AS
SELECT id, x, f @> x AS hit FROM made, LATERAL (SELECT b::bloomfilter AS f OFFSET 0) s, probe;
SELECT is(count(*) FILTER (WHERE hit), 45::bigint, 'members are found in the filters in memory')
FROM want WHERE x / 100000 = id AND id < 10;

-- Many filters for each element, many elements for each filter, and any mixture.
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;
SET LOCAL enable_material = off;
SELECT is((SELECT count(*) FROM want, stored s WHERE s.storage = t AND s.id = want.id 
                  AND (s.f @> want.x) IS DISTINCT FROM want.hit), 0::bigint,
    t || ': every probe answers the same') FROM unnest('{external,extended,main}'::text[]) t;
SELECT is((SELECT count(*) FROM (SELECT p.x, s.id, s.f @> p.x AS hit FROM probe p
           CROSS JOIN LATERAL (SELECT * FROM stored WHERE storage = t AND id > p.x - 10000000 OFFSET 0) s) a
           JOIN want USING (id, x) WHERE a.hit <> want.hit), 0::bigint,
    t || ': every filter for each element') FROM unnest('{external,extended,main}'::text[]) t;
SELECT is((SELECT count(*) FROM (SELECT p.x, s.id, p.x <@ s.f AS hit
           FROM (SELECT * FROM stored WHERE storage = t OFFSET 0) s
               CROSS JOIN LATERAL (SELECT x FROM probe WHERE x > s.id - 10000000 OFFSET 0) p) a
           JOIN want USING (id, x) WHERE a.hit <> want.hit), 0::bigint,
    t || ': every element for each filter') FROM unnest('{external,extended,main}'::text[]) t;
SELECT is((SELECT count(*) FROM (SELECT want.*, s.f @> want.x AS now
    FROM want JOIN stored s ON s.storage = t AND s.id = want.id ORDER BY md5(want.id || ' ' || want.x)) a
           WHERE now <> hit), 0::bigint, t || ': shuffled') FROM unnest('{external,extended,main}'::text[]) t;

-- One expression, under which filters are replaced, changed and rolled back.
CREATE FUNCTION pg_temp.wrong_answers() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    wrong int := 0;
    m record;
BEGIN
    CREATE TABLE one (f bloomfilter);
    FOR round IN 1..3 LOOP
        FOR m IN SELECT * FROM made WHERE id < 10 ORDER BY md5(round || ' ' || id) LOOP
            DELETE FROM one;
            INSERT INTO one VALUES (m.b::bloomfilter);
            wrong := wrong + (SELECT count(*) FROM one, want WHERE want.id = m.id AND (f @> x) <> hit);
            UPDATE one SET f = bloom_add(f, -1000);
            wrong := wrong + (SELECT count(*) FROM one WHERE NOT f @> -1000);
            BEGIN
                UPDATE one SET f = bloom_create(10);
                wrong := wrong + (SELECT count(*) FROM one WHERE f @> (m.id * 100000 + 1));
                RAISE division_by_zero;
            EXCEPTION WHEN division_by_zero THEN
            END;
            wrong := wrong + (SELECT count(*) FROM one WHERE NOT f @> (m.id * 100000 + 1));
        END LOOP;
    END LOOP;
    RETURN wrong;
END
$$;
SELECT is(pg_temp.wrong_answers(), 0, 'replaced, changed or rolled back, a stored filter gives its own answers');

-- The other functions, on stored values.
SELECT is(array_agg(id ORDER BY id)
              FILTER (WHERE # s.f IS DISTINCT FROM # m.f OR bloom_fpp(s.f) <> bloom_fpp(m.f) OR s.f <> m.f
                      OR bloom_info(s.f) <> bloom_info(m.f) OR (s.f | m.f)::bytea <> m.f::bytea
                      OR (s.f & s.f)::bytea <> m.f::bytea OR NOT s.f @>= m.f), NULL,
    storage || ': estimates and set operations say the same')
FROM stored s JOIN (SELECT id, b::bloomfilter AS f FROM made OFFSET 0) m USING (id) GROUP BY storage ORDER BY storage;
SELECT is((SELECT bloom_union_agg(f)::bytea FROM stored WHERE storage = t AND id IN (6, 9, 10)),
    (SELECT bloom_union_agg(b::bloomfilter)::bytea FROM made WHERE id IN (6, 9, 10)),
    t || ': bloom_union_agg') FROM unnest('{external,extended,main}'::text[]) t;
SELECT is((SELECT bloom_agg(i, (SELECT f FROM stored WHERE storage = t AND id = 6))::bytea
    FROM generate_series(1, 9) i),
    (SELECT bloom_agg(i, (SELECT b::bloomfilter FROM made WHERE id = 6))::bytea FROM generate_series(1, 9) i),
    t || ': bloom_agg onto a stored filter') FROM unnest('{external,extended,main}'::text[]) t;
SELECT is(array_agg(id ORDER BY id) FILTER (WHERE f::bytea <> b), NULL,
    storage || ': the bytes are still what was stored')
FROM stored JOIN made USING (id) GROUP BY storage ORDER BY storage;

-- Stored bytea, compressed or not, becomes a filter.
SELECT is(count(*) FILTER (WHERE b::bloomfilter::bytea = b), count(*), 'stored bytea is cast') FROM made;

CREATE FUNCTION pg_temp.plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO STRICT plan;
    RETURN plan::text;
END
$$;

-- In workers: a constant filter, and stored ones.
CREATE TABLE number WITH (parallel_workers = 3) AS SELECT i FROM generate_series(590000, 630000) i;
ANALYZE number;
CREATE TABLE serial AS SELECT 'stored' AS what, count(*) AS n FROM number
    WHERE (SELECT f FROM external WHERE id = 6) @> i
UNION ALL SELECT 'probes of many', count(*) FROM number, main WHERE id IN (3, 5, 6) AND f @> i;
SET LOCAL max_parallel_workers_per_gather = 4;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
-- No query that calls pgTAP runs in workers, so these are queries of their own.
CREATE TABLE parallel AS SELECT 'stored' AS what, count(*) AS n FROM number
    WHERE (SELECT f FROM external WHERE id = 6) @> i;
CREATE TABLE parallel_many AS SELECT count(*) AS n FROM number, main WHERE id IN (3, 5, 6) AND f @> i;
INSERT INTO parallel SELECT 'probes of many', n FROM parallel_many;
SELECT is(array_agg(parallel.what || ': ' || parallel.n) FILTER (WHERE parallel.n <> serial.n), NULL,
    'workers find what one process finds')
FROM parallel JOIN serial USING (what);
SELECT is(count(*), 2::bigint, 'and the plans have workers')
FROM (VALUES ('SELECT count(*) FROM number WHERE (SELECT f FROM external WHERE id = 6) @> i'),
             ('SELECT count(*) FROM number, main WHERE id IN (3, 5, 6) AND f @> i')) v (query),
                 pg_temp.plan_of(query) plan WHERE plan ~ 'Gather';
SELECT cmp_ok(n, '>=', 20000::bigint, 'which find what is there') FROM serial WHERE what = 'stored';

-- A filter that is probed only a few times is not fetched whole.
CREATE FUNCTION pg_temp.pages(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT json) ' || query INTO STRICT plan;
    RETURN (plan->0->'Plan'->>'Shared Hit Blocks')::bigint + (plan->0->'Plan'->>'Shared Read Blocks')::bigint;
END
$$;
SET LOCAL max_parallel_workers_per_gather = 0;
CREATE TABLE large AS
SELECT id, bloom_agg(i, 1000000) AS f FROM generate_series(1, 4) id, generate_series(1, 160000) i GROUP BY id;
SELECT cmp_ok(pages, '<', pg_table_size('large') / 8192 / 4, format('%s keys in large filters: few pages', n))
FROM generate_series(1, 4) n,
    pg_temp.pages(format('SELECT count(*) FROM large WHERE f @> ANY (array_fill(-1, ARRAY[%s]))', n)) pages;
SELECT cmp_ok(pg_temp.pages('SELECT count(*) FROM large WHERE f @> ANY (array_fill(-1, ARRAY[10000]))'), '<',
    8 * pg_table_size('large') / 8192, 'ten thousand keys: each filter is fetched whole, once and soon');
-- Every filter for each key, with fewer copies in memory than filters: copies stay, and the other filters are read by
-- slices of two or three pages.
CREATE FUNCTION pg_temp.pages_by_turns(keys int) RETURNS bigint LANGUAGE sql AS $$
    SELECT pg_temp.pages(format('SELECT count(*) FROM (SELECT -x AS x FROM generate_series(1, %s) AS x OFFSET 0) AS k
        CROSS JOIN LATERAL (SELECT id FROM large WHERE f @> x OFFSET 0) AS f', keys))
$$;
SET LOCAL work_mem = '3MB';
SELECT cmp_ok(pg_temp.pages_by_turns(2000), '<', 2 * 2000 * 5 / 2 + 3 * pg_table_size('large') / 8192,
    'two of four filters fit: no filter is fetched again and again');
SET LOCAL work_mem = '64MB';
SELECT cmp_ok(pg_temp.pages_by_turns(2000), '<', 2000 + 8 * pg_table_size('large') / 8192,
    'all four fit: each is fetched once');
RESET work_mem;
-- In a classic filter each bit is a slice, and an absent element soon meets a zero bit.
CREATE TABLE large_classic AS
SELECT id, bloom_agg(i, bloom_create(400000, 0.001, 'classic')) AS f
FROM generate_series(1, 8) id, generate_series(1, 100000) i GROUP BY id;
SELECT cmp_ok(pg_temp.pages('SELECT count(*) FROM large_classic WHERE f @> -1'), '<',
    pg_table_size('large_classic') / 8192 / 4, 'a key in classic filters: few pages');
SELECT is(count(*), 8::bigint, 'and its elements are found') FROM large_classic WHERE f @> ALL ('{1,777,100000}'::int[]);
-- The same with hashes that are not evenly spread: the lowest ones.
CREATE TABLE dense_hashes AS
SELECT (substr(b, 1, 28) || string_agg(substr(int8send(i), 8, 1) || substr(int8send(i), 7, 1) || substr(int8send(i), 6, 1)
                                       || '\x0000000000', '' ORDER BY i))::bloomfilter AS f
FROM (SELECT bloom_agg(1, 10000000)::bytea AS b) v, generate_series(1, 130000) i GROUP BY b;
SELECT cmp_ok(pg_temp.pages('SELECT count(*) FROM dense_hashes WHERE f @> ANY (ARRAY(SELECT generate_series(1, 300)))'),
    '<', 8 * pg_table_size('dense_hashes') / 8192, 'hashes that are close together: the filter is fetched whole soon');
SELECT is(count(*), 0::bigint, 'and contains no others')
FROM dense_hashes WHERE f @> ANY (ARRAY(SELECT generate_series(1, 300)));

-- Adding a present element does not rewrite the stored value: no chunk of it changes. Adding an absent one does.
CREATE FUNCTION pg_temp.chunks(rel text) RETURNS oid[] LANGUAGE plpgsql AS $$
DECLARE
    chunks oid[];
BEGIN
    EXECUTE (SELECT format('SELECT array_agg(DISTINCT chunk_id ORDER BY chunk_id) FROM %s', reltoastrelid::regclass)
             FROM pg_class WHERE oid = rel::regclass) INTO chunks;
    RETURN chunks;
END
$$;
CREATE FUNCTION pg_temp.written_by(rel text, command text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    before oid[] := pg_temp.chunks(rel);
BEGIN
    EXECUTE format(command, rel);
    RETURN cardinality(ARRAY(SELECT unnest(pg_temp.chunks(rel)) EXCEPT SELECT unnest(before)));
END
$$;
SELECT cmp_ok(cardinality(pg_temp.chunks(t)), '>=', 3, t || ': some filters are out of line')
FROM unnest('{external,extended,main}'::text[]) t;
SELECT is(pg_temp.written_by(t, 'UPDATE %s AS t SET f = bloom_add(f, (SELECT min(x) FROM want WHERE hit
    AND want.id = t.id))'), 0, t || ': adding present elements, or NULL, writes no chunk')
FROM unnest('{external,extended,main}'::text[]) t;
SELECT is(array_agg(id ORDER BY id) FILTER (WHERE f::bytea <> b), NULL, storage || ': and changes nothing')
FROM stored JOIN made USING (id) GROUP BY storage ORDER BY storage;
SELECT is(pg_temp.written_by(t, 'UPDATE %s AS t SET f = bloom_add(f, (SELECT min(x) FROM want WHERE NOT hit
    AND want.id = t.id))'), cardinality(pg_temp.chunks(t)), t || ': adding absent elements writes all of them')
FROM unnest('{external,extended,main}'::text[]) t;
SELECT is(array_agg(s.id ORDER BY s.id)
              FILTER (WHERE NOT s.f @> a.x OR s.f::bytea <> bloom_add(b::bloomfilter, a.x)::bytea), NULL,
    storage || ': and adds them')
FROM stored s JOIN made USING (id) JOIN (SELECT id, min(x) AS x FROM want WHERE NOT hit GROUP BY id) a USING (id)
GROUP BY storage ORDER BY storage;
SELECT throws_ok('SELECT bloom_add(f, ''5''::text) FROM external WHERE id = 6', '42804', NULL,
    'another class of element is an error for a stored filter');
SELECT throws_ok('SELECT bloom_add(f, ''5''::text) FROM external WHERE id = 1', '42804', NULL, 'and for an inline one');

-- A domain over the type.
CREATE DOMAIN ids AS bloomfilter CHECK (VALUE IS NULL OR (bloom_info(VALUE)).layout = 'blocked');
CREATE TABLE owned (f ids);
INSERT INTO owned SELECT bloom_agg(i) FROM generate_series(1, 50) i;
SELECT ok(f @> 42 AND 42 <@ f AND (# f) > 40 AND f | f = f, 'a domain over bloomfilter works as one') FROM owned;
SELECT throws_ok('INSERT INTO owned VALUES (bloom_create(10, 0.01, ''classic''))', '23514', NULL,
    'and its constraint holds');

SELECT * FROM finish();
ROLLBACK;
