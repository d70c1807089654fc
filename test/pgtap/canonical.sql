-- One set, one value: neither the order of the input nor duplicates, partitions or
-- parallel workers change the bytes.
BEGIN;
SELECT plan(87);

SET LOCAL jit = off;

CREATE TABLE form (id serial, name text, filter text);
INSERT INTO form (name, filter) VALUES
    ('self-sized', 'bloom_agg(x%s)'),
    ('self-sized at a rate', 'bloom_agg(x, NULL, 0.001%s)'),
    ('sized, dense', 'bloom_agg(x, 20000%s)'),
    ('sized, sparse', 'bloom_agg(x, 1000000%s)'),
    ('sized, overfull', 'bloom_agg(x, 100, 0.1%s)'),
    ('classic', 'bloom_agg(x, bloom_create(20000, 0.01, ''classic'')%s)'),
    ('onto a filter', 'bloom_agg(x, (SELECT bloom_agg(''old '' || i, 20000) FROM generate_series(1, 3000) i)%s)');

-- 20000 texts, most of them several times, in a mixed order. Parallel workers cannot
-- read temporary tables, so this is a permanent one.
CREATE TABLE element AS
SELECT i AS id, 'element ' || i * 7919::bigint % 20000 AS x FROM generate_series(1, 60000) i;
ALTER TABLE element SET (parallel_workers = 3);
ANALYZE element;

CREATE FUNCTION pg_temp.build(filter text, modifier text, source text) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
    f bytea;
BEGIN
    EXECUTE format('SELECT (%s)::bytea FROM %s', format(filter, modifier), source) INTO STRICT f;
    RETURN f;
END
$$;

SET LOCAL max_parallel_workers_per_gather = 0;
CREATE TABLE want AS
SELECT id, name, filter, pg_temp.build(filter, '', '(SELECT DISTINCT x FROM element) e') AS f FROM form;

SELECT is(pg_temp.build(filter, '', 'element'), f, name || ': duplicates') FROM want ORDER BY id;
SELECT is(pg_temp.build(filter, ' ORDER BY x', 'element'), f, name || ': ascending') FROM want ORDER BY id;
SELECT is(pg_temp.build(filter, ' ORDER BY x DESC', 'element'), f, name || ': descending') FROM want ORDER BY id;
SELECT is(pg_temp.build(filter, ' ORDER BY md5(x || 1)', 'element'), f, name || ': shuffled') FROM want ORDER BY id;

-- Whether a plan aggregates in workers.
CREATE FUNCTION pg_temp.is_partial(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO STRICT plan;
    RETURN plan::text ~ '"Partial Mode": "Partial"' AND plan::text ~ '"Node Type": "Gather';
END
$$;

SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL max_parallel_workers_per_gather = 4;

SELECT ok(pg_temp.is_partial(format('SELECT %s FROM element', format(filter, ''))), name || ': the plan is parallel')
FROM want ORDER BY id;
SELECT is(pg_temp.build(filter, '', 'element'), f, name || ': parallel') FROM want ORDER BY id;
-- The bytes must not depend on which process gets which rows: first only the workers
-- aggregate, then most of them have no rows.
SET LOCAL parallel_leader_participation = off;
SELECT is(pg_temp.build(filter, '', 'element'), f, name || ': parallel, without the leader') FROM want ORDER BY id;
SELECT is(pg_temp.build(filter, '', 'element WHERE id < 30'),
    pg_temp.build(filter, '', '(SELECT DISTINCT x FROM element WHERE id < 30 OFFSET 0) e'),
    name || ': parallel, most workers without rows') FROM want ORDER BY id;

-- Partitions are aggregated one by one, and the results combined.
SET LOCAL max_parallel_workers_per_gather = 0;
SET LOCAL enable_partitionwise_aggregate = on;
CREATE TABLE parted (id int, x text) PARTITION BY HASH (id);
DO $$
BEGIN
    FOR i IN 0..4 LOOP
        EXECUTE format('CREATE TABLE parted_%s PARTITION OF parted FOR VALUES WITH (MODULUS 5, REMAINDER %s)', i, i);
    END LOOP;
END
$$;
INSERT INTO parted SELECT * FROM element;
ANALYZE parted;
SELECT is(pg_temp.build(filter, '', 'parted'), f, name || ': partitions') FROM want ORDER BY id;

-- Filters of parts, united.
SELECT is((SELECT bloom_union_agg(f)::bytea FROM (SELECT bloom_agg(x, 20000) AS f FROM element GROUP BY id % n) s),
    (SELECT f FROM want WHERE name = 'sized, dense'), format('union of %s parts', n))
FROM unnest(ARRAY[1, 2, 10, 1000]) n;
SELECT is((SELECT bloom_union_agg(f ORDER BY f::bytea DESC)::bytea
    FROM (SELECT bloom_agg(x, 20000) AS f FROM element GROUP BY id % 100) s),
    (SELECT f FROM want WHERE name = 'sized, dense'), 'union of parts in another order');

-- One by one, across the number at which a filter becomes dense.
SELECT is(
    (WITH RECURSIVE r (i, f) AS (
        SELECT 0, bloom_create(100) UNION ALL SELECT i + 1, bloom_add(f, i + 1) FROM r WHERE i < 60)
     SELECT array_agg(i) FILTER (WHERE f::bytea <> (SELECT bloom_agg(j, 100)::bytea FROM generate_series(1, r.i) j))
     FROM r WHERE i > 0),
    NULL, 'bloom_add gives the bytes of bloom_agg at every number of elements');

-- The same set by one aggregate, and added to a filter.
SELECT is(
    (SELECT bloom_agg(i, (SELECT bloom_agg(i, 100) FROM generate_series(1, n) i))::bytea
        FROM generate_series(n / 2, 2 * n) i),
    (SELECT bloom_agg(i, 100)::bytea FROM generate_series(1, 2 * n) i), format('%s elements onto %s', 2 * n, n))
FROM unnest(ARRAY[2, 10, 20, 80]) n;

-- Sparse and dense filters: the union does not depend on their order, nor on which
-- filters each worker gets.
CREATE TABLE part WITH (fillfactor = 10, parallel_workers = 3) AS
SELECT id, (SELECT bloom_agg(i, 2000) FROM generate_series(id, id + n) i) AS f
FROM generate_series(1, 1000) id, LATERAL (SELECT (ARRAY[1, 30, 50, 100, 400, 700])[1 + id * 7919 % 6]) s (n);
CREATE TABLE same_size WITH (fillfactor = 10, parallel_workers = 3) AS
SELECT id, (SELECT bloom_agg(i, 2000) FROM generate_series(id, id + n) i) AS f
FROM generate_series(1, 1000) id, LATERAL (SELECT (ARRAY[1100, 2000])[1 + id * 7919 % 2]) s (n);
ANALYZE part, same_size;

CREATE TABLE united AS
SELECT 'bloom_union_agg, many fills' AS name, 'bloom_union_agg(f%s)' AS filter, 'part' AS source,
       bloom_union_agg(f ORDER BY id)::bytea AS f FROM part
UNION ALL SELECT 'bloom_union_agg, dense', 'bloom_union_agg(f%s)', 'same_size',
    bloom_union_agg(f ORDER BY id)::bytea FROM same_size
UNION ALL SELECT 'bloom_intersect_agg', 'bloom_intersect_agg(f%s)', 'same_size',
    bloom_intersect_agg(f ORDER BY id)::bytea FROM same_size;

SELECT is(pg_temp.build(filter, ' ORDER BY length(f::bytea), id', source), f, name || ': smallest first') FROM united
ORDER BY name;
SELECT is(pg_temp.build(filter, ' ORDER BY length(f::bytea) DESC, id DESC', source), f, name || ': largest first')
FROM united ORDER BY name;

SET LOCAL max_parallel_workers_per_gather = 4;
SELECT ok(pg_temp.is_partial(format('SELECT %s FROM %s', format(filter, ''), source)),
    name || ': the plan is parallel') FROM united ORDER BY name;
SELECT is(pg_temp.build(filter, '', source), f, name || ': parallel') FROM united ORDER BY name;

SELECT is((SELECT count(*) FROM generate_series(1, 1000) i WHERE united.f::bloomfilter @> i), 1000::bigint,
    name || ': nothing is lost')
FROM united WHERE name LIKE '%union%' ORDER BY name;

SELECT * FROM finish();
ROLLBACK;
