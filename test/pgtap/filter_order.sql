-- The order of filters is that of their bytes. Sorts, groups, joins and indexes use it.
BEGIN;
SELECT plan(19);

CREATE TABLE filter (id serial, f bloomfilter);
INSERT INTO filter (f)
SELECT bloom_agg(x, n) FROM generate_series(1, 40) g, (VALUES (10), (1000), (5000)) v (n), generate_series(1, g % 20 * g % 20 * 20) x
GROUP BY g, n;
INSERT INTO filter (f) SELECT f FROM filter;
INSERT INTO filter (f) SELECT bloom_agg(x) FROM generate_series(1, 0) x;
ANALYZE filter;
SELECT ok((SELECT count(DISTINCT pg_column_size(f)) > 5 AND count(*) > 200 FROM filter), 'short, compressed and large filters');

-- Against the order of the bytes.
SELECT is_empty(format('SELECT a.id, b.id FROM filter a, filter b WHERE (a.f %s b.f) IS DISTINCT FROM (a.f::bytea %1$s b.f::bytea)', o),
    format('%s is that of the bytes', o))
FROM unnest('{<,<=,=,>=,>,<>}'::text[]) o;
SELECT is_empty('SELECT a.id, b.id FROM filter a, filter b WHERE bloom_cmp(a.f, b.f) <> byteacmp(a.f::bytea, b.f::bytea)',
    'bloom_cmp is that of the bytes');
SELECT results_eq('SELECT f::bytea FROM filter ORDER BY f', 'SELECT f::bytea FROM filter ORDER BY f::bytea', 'ORDER BY sorts by bytes');

-- Queries that need an order.
SELECT is((SELECT count(DISTINCT f) FROM filter), (SELECT count(DISTINCT f::bytea) FROM filter), 'count(DISTINCT)');
SELECT is((SELECT count(*) FROM (SELECT f FROM filter UNION SELECT f FROM filter) u), (SELECT count(DISTINCT f::bytea) FROM filter),
    'UNION');
SELECT is((SELECT count(*) FROM (SELECT f, array_agg(id ORDER BY id DESC) FROM filter GROUP BY f) g),
    (SELECT count(DISTINCT f::bytea) FROM filter), 'GROUP BY beside an ordered aggregate');
SELECT is((SELECT max(n) FROM (SELECT count(*) OVER (PARTITION BY f) AS n FROM filter) w),
    (SELECT max(n) FROM (SELECT count(*) AS n FROM filter GROUP BY f::bytea) g), 'PARTITION BY');
SELECT is((SELECT count(*) FROM filter WHERE (f, 1) IN (SELECT f, 1 FROM filter WHERE id = 3)),
    (SELECT count(*) FROM filter WHERE f::bytea = (SELECT f::bytea FROM filter WHERE id = 3)), 'a row in a set of rows');
SELECT is((SELECT count(*) FROM filter WHERE (f, id) < (SELECT f, id FROM filter WHERE id = 3)),
    (SELECT count(*) FROM filter WHERE (f::bytea, id) < (SELECT f::bytea, id FROM filter WHERE id = 3)), 'rows are compared');

SET LOCAL enable_hashjoin = off;
SET LOCAL enable_nestloop = off;
SELECT is((SELECT count(*) FROM filter a JOIN filter b USING (f)), (SELECT sum(n * n)::bigint FROM (SELECT count(*) AS n FROM filter
    GROUP BY f::bytea) g), 'a merge join');
CREATE TABLE plan (line text);
DO $$ DECLARE line text; BEGIN
    FOR line IN EXPLAIN SELECT * FROM filter a JOIN filter b USING (f) LOOP INSERT INTO plan VALUES (line); END LOOP;
END $$;
SELECT ok(EXISTS (SELECT FROM plan WHERE line LIKE '%Merge Join%'), 'is one');

CREATE INDEX small ON filter (f) WHERE bloom_cardinality(f) < 100;
SET LOCAL enable_seqscan = off;
SELECT is((SELECT count(*) FROM filter WHERE f = (SELECT f FROM filter WHERE id = 1) AND bloom_cardinality(f) < 100),
    (SELECT count(*) FROM filter WHERE f::bytea = (SELECT f::bytea FROM filter WHERE id = 1)), 'a btree index on small ones');

-- ANALYZE collects common values.
SELECT ok(most_common_vals IS NOT NULL, 'common filters are in the statistics') FROM pg_stats
WHERE tablename = 'filter' AND attname = 'f';

SELECT * FROM finish();
ROLLBACK;
