-- If bloom_agg or a union adds nothing new to a stored filter, the result is the
-- stored value, so that an UPDATE writes no new copy of it. stored.sql tests the
-- same of bloom_add.
BEGIN;
SELECT plan(27);

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
-- Whether a statement changes the chunks that are visible.
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
    'nor do they if each row brings the filter');
SELECT is((SELECT count(*) FROM stored, generate_series(1, 1000) i WHERE f @> i), 3000::bigint, 'all elements are still there');

CREATE TABLE before AS SELECT * FROM stored;
SELECT ok(pg_temp.written(format('UPDATE stored SET f = (SELECT bloom_agg(i, f) FROM generate_series(500000, 500030) i) WHERE id = %s', id)),
    format('new elements are written, filter %s', id))
FROM generate_series(1, 3) id;
SELECT is((SELECT count(*) FROM stored, generate_series(500000, 500030) i WHERE f @> i), 93::bigint, 'and found');
SELECT ok((SELECT bool_and(bloom_agg_of.f = s.f) FROM stored s JOIN (SELECT b.id, bloom_agg(i, b.f) AS f FROM before b,
    generate_series(500000, 500030) i GROUP BY b.id) AS bloom_agg_of USING (id)), 'with the same result as from a copy');
SELECT ok((SELECT f <> (SELECT f FROM stored WHERE id = 2) FROM before WHERE id = 2), 'which is another filter');

-- Unions, with the stored filter on either side.
CREATE TABLE addition AS
SELECT 'dense' AS what, bloom_agg(i, 100000) AS f FROM generate_series(101, 20000) i
UNION ALL SELECT 'sparse', bloom_agg(i, 100000) FROM generate_series(1, 10) i
UNION ALL SELECT 'empty', bloom_create(100000)
UNION ALL SELECT 'empty, without a size', bloom_agg(i) FROM generate_series(1, 0) i
UNION ALL SELECT 'of a higher rate', bloom_fold(bloom_agg(i, 100000), set_byte(bloom_create(100000)::bytea, 8, 16)::bloomfilter)
    FROM generate_series(1, 10) i;
SELECT ok(NOT pg_temp.written(format('UPDATE stored AS s SET f = %s FROM addition AS a WHERE id = 1 AND what = %L', what_is_set, what)),
    format('%s writes nothing: %s', what_is_set, what))
FROM addition, unnest('{s.f | a.f,a.f | s.f}'::text[]) AS what_is_set ORDER BY what, what_is_set;
SELECT ok(pg_temp.written('UPDATE stored SET f = f | bloom_add(bloom_create(100000), -1) WHERE id = 1'),
    'a union with one more element is written');

-- counters: dense, then sparse
ALTER TABLE stored ADD c bloomcounter;
UPDATE stored SET c = (SELECT bloom_level_agg(i, 5, 100000) FROM generate_series(1, CASE id WHEN 1 THEN 90000 ELSE 1000 END) i);
SELECT ok(NOT pg_temp.written('UPDATE stored SET c = c | (SELECT bloom_level_agg(i, 4, 100000) FROM generate_series(1, 900) i)'),
    'a union with lower levels writes nothing');
SELECT ok(NOT pg_temp.written('UPDATE stored SET c = bloom_raise(c, 7, 5)'), 'nor does a level that is there');
SELECT ok(NOT pg_temp.written('UPDATE stored SET c = c + bloom_create_counter(100000)'), 'nor does an empty counter');
SELECT ok(pg_temp.written(format('UPDATE stored SET c = c | (SELECT bloom_level_agg(7, 6, 100000)) WHERE id = %s', id)),
    format('a higher level is written, counter %s', id)) FROM generate_series(1, 2) id;

SELECT * FROM finish();
ROLLBACK;
