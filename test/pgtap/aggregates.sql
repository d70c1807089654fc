-- The aggregates in every place of a query: over NULLs and no rows, with DISTINCT and
-- FILTER, in groups, grouping sets and windows.
BEGIN;
SELECT plan(86);

SET LOCAL jit = off;

-- Every form that builds a filter of x. No aggregate may change a stored filter in place.
CREATE TABLE stored (id int PRIMARY KEY, f bloomfilter);
INSERT INTO stored
SELECT 1, bloom_agg(i, 100) FROM generate_series(1001, 1005) i
UNION ALL SELECT 2, bloom_agg(i, 100) FROM generate_series(1001, 1100) i
UNION ALL SELECT 3, bloom_agg(i, 100000) FROM generate_series(1001, 50000) i;
CREATE TABLE before AS SELECT id, f::bytea AS f FROM stored;

CREATE TABLE form (id serial, name text, call text);
INSERT INTO form (name, call) VALUES
    ('self-sized', 'bloom_agg(%sx)'),
    ('self-sized at a rate', 'bloom_agg(%sx, NULL, 0.001)'),
    ('sized', 'bloom_agg(%sx, 300)'),
    ('sized at a rate', 'bloom_agg(%sx, 300, 0.05)'),
    ('onto a sparse filter', 'bloom_agg(%sx, (SELECT f FROM stored WHERE id = 1))'),
    ('onto a dense filter', 'bloom_agg(%sx, (SELECT f FROM stored WHERE id = 2))'),
    ('onto a large filter', 'bloom_agg(%sx, (SELECT f FROM stored WHERE id = 3))');

CREATE FUNCTION pg_temp.build(call text, source text, modifier text DEFAULT '') RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
    f bytea;
BEGIN
    EXECUTE format('SELECT (%s)::bytea FROM %s', format(call, modifier), source) INTO STRICT f;
    RETURN f;
END
$$;

-- NULLs add nothing.
SELECT is(
    pg_temp.build(call, '(SELECT CASE WHEN i % 3 > 0 THEN i END FROM generate_series(1, 300) i) s (x)'),
    pg_temp.build(call, '(SELECT i FROM generate_series(1, 300) i WHERE i % 3 > 0) s (x)'),
    name || ': NULLs are skipped') FROM form ORDER BY id;

-- Over no rows the parameters are unknown, but the result is a filter.
SELECT is(pg_temp.build(call, '(SELECT 1 WHERE false) s (x)'), bloom_agg(i)::bytea,
    name || ': over no rows the empty filter')
FROM form, generate_series(1, 0) i WHERE name = 'self-sized' GROUP BY form.id, name, call;
SELECT ok(NOT f @> 1 AND NOT f @> 'a' AND f | bloom_create(10) = bloom_create(10),
    name || ': over no rows, nothing is in it')
FROM form, LATERAL (SELECT pg_temp.build(call, '(SELECT 1 WHERE false) s (x)')::bloomfilter) b (f)
WHERE name NOT LIKE 'onto%' ORDER BY id;
-- No row brings the filter to add to. An empty filter would lose its elements.
SELECT is(pg_temp.build(call, '(SELECT 1 WHERE false) s (x)'), NULL, name || ': over no rows NULL')
FROM form WHERE name LIKE 'onto%' ORDER BY id;
SELECT ok(NOT f @> 1 AND f IS NOT NULL, name || ': over NULLs alone, nothing is in it')
FROM form, LATERAL (SELECT pg_temp.build(call, 'unnest(ARRAY[NULL, NULL]::int[]) x')::bloomfilter) b (f) ORDER BY id;

SELECT is(pg_temp.build(call, '(SELECT i % 50 FROM generate_series(1, 300) i) s (x)', 'DISTINCT '),
    pg_temp.build(call, 'generate_series(0, 49) x'), name || ': DISTINCT') FROM form WHERE name LIKE '%sized%'
        ORDER BY id;
SELECT is(pg_temp.build(call || ' FILTER (WHERE x %% 2 = 0)', 'generate_series(1, 300) x'),
    pg_temp.build(call, 'generate_series(2, 300, 2) x'), name || ': FILTER') FROM form ORDER BY id;

-- A window with a growing frame takes results from a state that goes on growing. One
-- with a moving frame starts anew for each row. The filters change from sparse to
-- dense on the way.
CREATE FUNCTION pg_temp.wrong_rows(call text, frame text, start text,
    stop text) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    wrong bigint[];
BEGIN
    EXECUTE format('
        WITH w AS (SELECT x, (%s OVER (ORDER BY x %s))::bytea AS f FROM generate_series(1, 200) x)
        SELECT array_agg(w.x ORDER BY w.x) FILTER (
            WHERE f IS DISTINCT FROM (SELECT (%s)::bytea FROM generate_series(greatest(1, w.x + %s), least(200, w.x + %s)) x))
        FROM w', format(call, ''), frame, format(call, ''), start, stop) INTO STRICT wrong;
    RETURN wrong;
END
$$;

SELECT is(pg_temp.wrong_rows(call, frame, start, stop), NULL, name || ': window ' || frame)
FROM form, (VALUES
    (1, 'ROWS UNBOUNDED PRECEDING', '-200', '0'),
    (2, 'ROWS BETWEEN 3 PRECEDING AND 4 FOLLOWING', '-3', '4'),
    (3, 'ROWS BETWEEN 90 PRECEDING AND 1 PRECEDING', '-90', '-1'),
    (4, 'ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING', '0', '200')) v (n, frame, start, stop)
WHERE name NOT LIKE '%large%' OR n = 1 ORDER BY id, n;

-- Filters as input to a window.
CREATE TABLE piece AS
SELECT p, bloom_agg(p * 10 + i, 1000) AS f FROM generate_series(1, 60) p, generate_series(0, 19) i GROUP BY p;

SELECT is(count(*) FILTER (WHERE u::bytea <> (SELECT bloom_agg(i, 1000)::bytea
    FROM generate_series(10, w.p * 10 + 19) i)), 0::bigint,
    'bloom_union_agg over a growing frame')
FROM (SELECT p, bloom_union_agg(f) OVER (ORDER BY p) AS u FROM piece) w;
SELECT is(count(*) FILTER (WHERE u::bytea <> (SELECT bloom_agg(i, 1000)::bytea
                                              FROM generate_series(greatest(1, p - 2) * 10,
                                                   least(60, p + 1) * 10 + 19) i)), 0::bigint,
    'bloom_union_agg over a moving frame')
FROM (SELECT p, bloom_union_agg(f) OVER (ORDER BY p ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS u FROM piece) w;
SELECT is(count(*) FILTER (WHERE u::bytea <> (SELECT bloom_agg(i, 1000)::bytea
    FROM generate_series(p * 10 + 10, p * 10 + 19) i)), 0::bigint,
    'bloom_intersect_agg over a moving frame')
FROM (SELECT p, bloom_intersect_agg(f) OVER (ORDER BY p ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS u FROM piece) w
WHERE p < 60;
SELECT is(array_agg(p ORDER BY p) FILTER (WHERE # u > 0), '{1,2}', 'bloom_intersect_agg over a growing frame')
FROM (SELECT p, bloom_intersect_agg(f) OVER (ORDER BY p) AS u FROM piece) w;
SELECT ok(bool_and(CASE WHEN p = 1 THEN u IS NULL ELSE u IS NOT NULL END),
    'bloom_intersect_agg over an empty frame is NULL')
FROM (SELECT p, bloom_intersect_agg(f) OVER (ORDER BY p ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS u FROM piece) w;

-- The stored filters are unchanged.
SELECT is((SELECT array_agg(id ORDER BY id) FROM stored JOIN before USING (id) WHERE stored.f::bytea = before.f),
    '{1,2,3}',
    'no aggregate changed a stored filter in place');
-- The same within one query, which passes the filter without a copy.
SELECT is(
    (SELECT array_agg((added @> 5 AND NOT f @> 5 AND f = again)::text)
     FROM (SELECT f, (SELECT bloom_agg(i, f) FROM generate_series(1, 10) i) AS added, f AS again
           FROM (SELECT bloom_agg(i, 1000) AS f FROM generate_series(101, 103) i UNION ALL
                 SELECT bloom_agg(i, 1000) FROM generate_series(101, 400) i OFFSET 0) a) b),
    '{true,true}', 'an argument is unchanged');
CREATE FUNCTION pg_temp.changed() RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
    f bloomfilter := bloom_create(1000);
    g bloomfilter := f;
    h bloomfilter;
    changed bool := false;
BEGIN
    FOR i IN 1..100 LOOP
        h := g;
        g := bloom_add(g, i);
        changed := changed OR h @> i OR NOT g @> i;
    END LOOP;
    RETURN changed OR # f > 0;
END
$$;
SELECT ok(NOT pg_temp.changed(), 'bloom_add changes no variable in place');

-- The number of distinct values decides the size, not that of rows.
SELECT is((SELECT bloom_agg(i % 10)::bytea FROM generate_series(1, 300000) i),
    (SELECT bloom_agg(i)::bytea FROM generate_series(0, 9) i),
    'ten values in 300,000 rows are ten elements');
SELECT is((SELECT (bloom_info(bloom_agg(i % 50))).bits FROM generate_series(1, 300000) i), 512::bigint,
    'fifty values fit one block');
SELECT is((SELECT bloom_agg(i % 20000)::bytea FROM generate_series(1, 300000) i),
    (SELECT bloom_agg(i)::bytea FROM generate_series(0, 19999) i),
    '20,000 values in 300,000 rows');

-- Groups, by hashing and by sorting.
CREATE TABLE item AS SELECT i AS id, i % 20000 AS g, i / 20000 AS x, i % 500 AS h FROM generate_series(0, 199999) i;
ANALYZE item;
CREATE FUNCTION pg_temp.plan_of(query text, what text DEFAULT 'Strategy') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO STRICT plan;
    RETURN plan -> 0 -> 'Plan' ->> what;
END
$$;

SET LOCAL work_mem = '512MB';
SET LOCAL enable_sort = off;
SELECT is(pg_temp.plan_of('SELECT g, bloom_agg(x) FROM item GROUP BY g'), 'Hashed', 'many groups are hashed');
SELECT is((SELECT count(*) FROM (SELECT g, bloom_agg(x) AS f FROM item GROUP BY g) s
           WHERE f::bytea = (SELECT bloom_agg(i)::bytea FROM generate_series(0, 9) i)), 20000::bigint,
               'right in 20,000 hashed groups');
SELECT is((SELECT count(*) FROM (SELECT g, bloom_agg(x * 20000 + g, 100) AS f FROM item GROUP BY g) s
           WHERE # f = 10 AND f @> g AND f @> (180000 + g) AND NOT f @> (g + 1)), 20000::bigint,
               'and each group has its own elements');
CREATE TABLE hashed AS SELECT h, bloom_agg(id) AS f FROM item GROUP BY h;
-- A hash table that does not fit goes to disk in parts.
SET LOCAL work_mem = '64kB';
SELECT is((SELECT count(*) FROM (SELECT g, bloom_agg(x * 20000 + g, 100) AS f FROM item GROUP BY g) s
           WHERE # f = 10 AND f @> g AND f @> (180000 + g) AND NOT f @> (g + 1)), 20000::bigint,
               'right when hashed groups spill');
SET LOCAL work_mem = '64MB';
SET LOCAL enable_sort = on;
SET LOCAL enable_hashagg = off;
SELECT is(pg_temp.plan_of('SELECT g, bloom_agg(x) FROM item GROUP BY g'), 'Sorted', 'or sorted');
SELECT is((SELECT count(*) FROM hashed JOIN (SELECT h, bloom_agg(id) AS f FROM item GROUP BY h) s USING (h)
           WHERE hashed.f::bytea = s.f::bytea), 500::bigint, 'sorted groups are what hashed groups are');
SET LOCAL enable_hashagg = on;

-- Grouped in workers.
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL max_parallel_workers_per_gather = 4;
-- No query that calls pgTAP runs in workers, so this is a query of its own.
SET LOCAL parallel_tuple_cost = 0.1;
CREATE TABLE in_workers AS SELECT h, bloom_agg(id) AS f FROM item GROUP BY h;
SELECT is(pg_temp.plan_of('SELECT h, bloom_agg(id) FROM item GROUP BY h', 'Partial Mode'), 'Finalize',
    'groups are made in parts');
SELECT is(count(*), 500::bigint, 'groups made in parallel are the same')
FROM hashed JOIN in_workers USING (h) WHERE hashed.f::bytea = in_workers.f::bytea;
SET LOCAL max_parallel_workers_per_gather = 0;

-- Grouping sets keep several states at once.
SELECT is((SELECT array_agg((f::bytea = (SELECT bloom_agg(x, 20)::bytea FROM item
    WHERE id < 1000 AND (a IS NULL OR id % 2 = a) AND (b IS NULL OR id % 3 = b)))::text)
           FROM (SELECT id % 2 AS a, id % 3 AS b, bloom_agg(x, 20) AS f FROM item WHERE id < 1000
                GROUP BY CUBE (id % 2, id % 3)) s),
    array_fill('true'::text, ARRAY[12]), 'CUBE');

-- Two aggregates that share a state, and one that uses another's result.
SELECT ok(a = b AND c @> 1 AND c <> a, 'several aggregates in one query')
FROM (SELECT bloom_agg(x) AS a, bloom_agg(x) AS b, bloom_agg(x, 5000) AS c FROM generate_series(1, 20) x) s;

-- Aggregates over filters.
SELECT is(bloom_union_agg(g)::bytea, bloom_union_agg(f)::bytea, 'bloom_union_agg skips NULLs')
FROM stored, LATERAL (VALUES (f), (NULL)) v (g) WHERE id < 3;
SELECT is(bloom_intersect_agg(g)::bytea, bloom_intersect_agg(f)::bytea, 'bloom_intersect_agg skips NULLs')
FROM stored, LATERAL (VALUES (f), (NULL)) v (g) WHERE id < 3;
SELECT is(bloom_union_agg(f)::bytea, (SELECT f FROM before WHERE id = 2),
    'bloom_union_agg of one filter is that filter') FROM stored WHERE id = 2;
SELECT is(bloom_intersect_agg(f)::bytea, (SELECT f FROM before WHERE id = 2),
    'bloom_intersect_agg of one filter is that filter') FROM stored WHERE id = 2;
SELECT is(bloom_union_agg(f)::bytea, (SELECT bloom_agg(i, 1000)::bytea FROM generate_series(10, 619) i),
    'bloom_union_agg loses nothing') FROM piece;
SELECT is(bloom_intersect_agg(f)::bytea, (SELECT bloom_agg(i, 1000)::bytea FROM generate_series(21, 28) i),
    'bloom_intersect_agg keeps what all have')
FROM (SELECT bloom_agg(i, 1000) AS f FROM generate_series(1, 28) i UNION ALL SELECT bloom_agg(i, 1000)
     FROM generate_series(21, 60) i) s;
SELECT is(count(*), 0::bigint, 'groups of very different size united by bloom_union_agg hold every element')
FROM item WHERE id < 10000 AND NOT (SELECT bloom_union_agg(f)
     FROM (SELECT bloom_agg(id, 10000) AS f FROM item WHERE id < 10000 GROUP BY floor(log(id + 1))) s) @> id;

SELECT is((SELECT array_agg(id ORDER BY id) FROM stored JOIN before USING (id) WHERE stored.f::bytea = before.f),
    '{1,2,3}',
    'aggregates over filters changed none of them');

SELECT * FROM finish();
ROLLBACK;
