-- A stored filter to which bloom_agg adds nothing new comes back as it is stored,
-- so that an UPDATE writes no new copy of it.
BEGIN;
SELECT plan(11);

SET LOCAL jit = off;
CREATE TABLE stored (id int PRIMARY KEY, f bloomfilter);
INSERT INTO stored
SELECT 1, bloom_agg(i, 100000) FROM generate_series(1, 100000) i      -- dense
UNION ALL SELECT 2, bloom_agg(i, 100000) FROM generate_series(1, 1000) i  -- sparse
UNION ALL SELECT 3, bloom_agg(i, bloom_create(10000, 0.01, 'classic')) FROM generate_series(1, 9000) i;

CREATE FUNCTION pg_temp.chunks() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
BEGIN
    EXECUTE format('SELECT count(DISTINCT chunk_id) FROM %s',
        (SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 'stored'::regclass)) INTO n;
    RETURN n;
END
$$;
-- Of the values that are visible now.
CREATE FUNCTION pg_temp.written(statement text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
    before text;
    after text;
    query text := format('SELECT string_agg(DISTINCT chunk_id::text, '','') FROM %s',
        (SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 'stored'::regclass));
BEGIN
    EXECUTE query INTO before;
    EXECUTE statement;
    EXECUTE query INTO after;
    RETURN before <> after;
END
$$;
SELECT is(pg_temp.chunks(), 3::bigint, 'all three are stored out of line');

SELECT ok(NOT pg_temp.written('UPDATE stored SET f = (SELECT bloom_agg(i, f) FROM generate_series(1, 1000) i)'),
    'elements that are all there write nothing');
SELECT ok(NOT pg_temp.written('UPDATE stored SET f = (SELECT bloom_agg(nullif(i, i), f) FROM generate_series(1, 3) i)'),
    'nulls write nothing');
SELECT ok(NOT pg_temp.written('UPDATE stored s SET f = g.f FROM (SELECT t.id, bloom_agg(i, t.f) AS f FROM stored t,'
        || ' generate_series(1, 1000) i GROUP BY t.id) g WHERE g.id = s.id AND s.id = 2'),
    'nor do they where each row brings the filter along');
SELECT is((SELECT count(*) FROM stored, generate_series(1, 1000) i WHERE f @> i), 3000::bigint, 'all elements are there still');

CREATE TABLE before AS SELECT * FROM stored;
SELECT ok(pg_temp.written(format('UPDATE stored SET f = (SELECT bloom_agg(i, f) FROM generate_series(500000, 500030) i) WHERE id = %s', id)),
    format('new elements are written: %s', id))
FROM generate_series(1, 3) id;
SELECT is((SELECT count(*) FROM stored, generate_series(500000, 500030) i WHERE f @> i), 93::bigint, 'and found');
SELECT ok((SELECT bool_and(bloom_agg_of.f = s.f) FROM stored s JOIN (SELECT b.id, bloom_agg(i, b.f) AS f FROM before b,
    generate_series(500000, 500030) i GROUP BY b.id) AS bloom_agg_of USING (id)), 'with the same result as from a copy');
SELECT ok((SELECT f <> (SELECT f FROM stored WHERE id = 2) FROM before WHERE id = 2), 'which is not the filter of before');

SELECT * FROM finish();
ROLLBACK;
