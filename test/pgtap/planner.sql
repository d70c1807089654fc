-- Row estimates of @> and <@ with a constant filter: within a factor of 2 of the
-- truth, on uniform and on skewed columns, in both orders of the arguments.
BEGIN;
SELECT plan(71);

SET LOCAL jit = off;
-- ANALYZE samples the whole of each table, so that the estimates do not depend on luck.
SET LOCAL default_statistics_target = 1000;
SET LOCAL max_parallel_workers_per_gather = 0;

-- uniform: 20,000 values 10 times each, in few: 100 values 2000 times each, in one:
-- every value once. skewed: value v has 20,000 / v rows, by Zipf's law. holey: nine
-- in ten are NULL.
CREATE TABLE t AS
WITH zipf AS (
    SELECT v, row_number() OVER (ORDER BY md5(v || 'x' || i)) AS id
    FROM generate_series(1, 20000) v, generate_series(1, 20000 / v) i)
SELECT id::int, (id % 20000)::int AS uniform, (id % 100)::int AS few, id::int AS one, v AS skewed,
       CASE WHEN id % 10 = 0 THEN (id % 20000)::int END AS holey
FROM zipf WHERE id <= 190000;
ALTER TABLE t ADD uniform_text text, ADD few_text varchar(20), ADD skewed_text text COLLATE "C", ADD one_text text,
    ADD uniform_numeric numeric, ADD skewed_date date, ADD skewed_char char(10), ADD skewed_name name;
UPDATE t SET uniform_text = 'u' || uniform, few_text = 'f' || few, skewed_text = 's' || skewed,
    one_text = md5(one::text),
    uniform_numeric = uniform / 100.0, skewed_date = date '2000-01-01' + skewed, skewed_char = skewed::text,
        skewed_name = skewed::text;
ANALYZE t;

CREATE FUNCTION pg_temp.estimate(condition text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) SELECT 1 FROM t WHERE ' || condition INTO STRICT plan;
    RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END
$$;

CREATE FUNCTION pg_temp.truth(condition text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
BEGIN
    EXECUTE 'SELECT count(*) FROM t WHERE ' || condition INTO STRICT n;
    RETURN n;
END
$$;

-- The constant is the filter of those values of a column that match.
CREATE FUNCTION pg_temp.constant(col text, build text, match text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    f text;
BEGIN
    EXECUTE format('SELECT %s::text FROM t WHERE %s', format(build, col), match) INTO STRICT f;
    RETURN format('%L::bloomfilter', f);
END
$$;

-- Subsets by a hash of the value, which have frequent and rare values alike, and
-- the head of the skewed distribution alone.
CREATE TABLE c AS
SELECT n, col, what, pg_temp.constant(col, build, match) AS f
FROM (VALUES
    (1, 'uniform', 'half of the values', 'bloom_agg(%s)', 'hashint4(uniform) % 2 = 0'),
    (2, 'uniform', 'a tenth of the values', 'bloom_agg(%s, 2000)', 'uniform % 10 = 3'),
    (3, 'uniform', 'a hundred values, sparse', 'bloom_agg(%s, 20000)', 'uniform < 100'),
    (4, 'uniform', 'every value', 'bloom_agg(%s)', 'true'),
    (5, 'uniform', 'a tenth of the values at 10 %', 'bloom_agg(%s, 2000, 0.1)', 'uniform % 10 = 3'),
    (6, 'uniform', 'a tenth of the values, classic', 'bloom_agg(%s, bloom_create(2000, 0.01, ''classic''))',
        'uniform % 10 = 3'),
    (7, 'few', 'ten of a hundred values', 'bloom_agg(%s)', 'few % 10 = 3'),
    (8, 'few', 'one of a hundred values', 'bloom_agg(%s, 1000)', 'few = 3'),
    (9, 'one', 'a tenth of a unique column', 'bloom_agg(%s)', 'one % 10 = 3'),
    (10, 'one', 'half of a unique column', 'bloom_agg(%s, 100000)', 'one % 2 = 0'),
    (11, 'skewed', 'the most frequent value', 'bloom_agg(%s, 100)', 'skewed = 1'),
    (12, 'skewed', 'the ten most frequent values', 'bloom_agg(%s, 100)', 'skewed <= 10'),
    (13, 'skewed', 'all but the ten most frequent values', 'bloom_agg(%s, NULL, 0.0001)', 'skewed > 10'),
    (14, 'skewed', 'a tenth of the values', 'bloom_agg(%s)', 'skewed % 10 = 3'),
    (15, 'skewed', 'half of the values', 'bloom_agg(%s)', 'hashint4(skewed) % 2 = 0'),
    (16, 'holey', 'a tenth of the values that are not NULL', 'bloom_agg(%s)', 'holey % 100 = 30'),
    (17, 'uniform_text', 'a tenth of the values', 'bloom_agg(%s)', 'uniform % 10 = 3'),
    (18, 'few_text', 'ten of a hundred values', 'bloom_agg(%s)', 'few % 10 = 3'),
    (19, 'one_text', 'a tenth of a unique column', 'bloom_agg(%s)', 'one % 10 = 3'),
    (20, 'skewed_text', 'the ten most frequent values', 'bloom_agg(%s, 100)', 'skewed <= 10'),
    (21, 'skewed_text', 'half of the values', 'bloom_agg(%s)', 'hashint4(skewed) % 2 = 0'),
    (22, 'uniform_numeric', 'a tenth of the values', 'bloom_agg(%s)', 'uniform % 10 = 3'),
    (23, 'skewed_date', 'a tenth of the values', 'bloom_agg(%s)', 'skewed % 10 = 3'),
    (24, 'skewed_char', 'the ten most frequent values', 'bloom_agg(%s, 100)', 'skewed <= 10'),
    (25, 'skewed_char', 'a tenth of the values', 'bloom_agg(%s)', 'skewed % 10 = 3'),
    (26, 'skewed_name', 'the ten most frequent values', 'bloom_agg(%s, 100)', 'skewed <= 10')
) v (n, col, what, build, match);

SELECT ok(pg_temp.estimate(q) BETWEEN pg_temp.truth(q) / 2.0 AND pg_temp.truth(q) * 2.0,
    format('%s, %s, %s: %s rows estimated, %s there', col, what, v.op, pg_temp.estimate(q), pg_temp.truth(q)))
FROM c, LATERAL (VALUES (1, '@>', format('%s @> %I', f, col)), (2, '<@', format('%I <@ %s', col, f)),
                        (3, 'NOT', format('NOT %s @> %I', f, col))) v (place, op, q)
WHERE place < 3 OR n IN (2, 10, 12, 20)
ORDER BY c.n, place;

-- Both orders give the same estimate.
SELECT is(array_agg(n ORDER BY n)
    FILTER (WHERE pg_temp.estimate(format('%s @> %I', f, col)) <> pg_temp.estimate(format('%I <@ %s', col, f))), NULL,
    'the order of the arguments does not matter') FROM c;

-- The empty filter contains nothing, a saturated one everything.
SELECT cmp_ok(pg_temp.estimate(format('%L::bloomfilter @> %I', e, col)), '<=', 1::float8,
    'no rows for the empty filter, ' || col)
FROM (SELECT bloom_agg(i)::text FROM generate_series(1, 0) i) s (e),
     unnest('{uniform,skewed,uniform_text}'::text[]) col;
SELECT cmp_ok(pg_temp.estimate(format('%L::bloomfilter @> %I', f, col)), '>=', 95000::float8,
    'every row for a saturated filter, ' || col)
FROM (SELECT bloom_agg(i, bloom_create(1, 0.01, 'classic'))::text FROM generate_series(1, 5000) i) s (f),
     unnest('{uniform,skewed,one}'::text[]) col;

-- An expression that the planner folds counts as a constant.
SELECT ok(pg_temp.estimate('bloom_add(bloom_create(10), 1) @> skewed') BETWEEN 10000 AND 40000,
    'a filter that the planner computes');

-- Queries without statistics, on expressions and in joins have a plan, too.
CREATE TABLE bare (x int, y text);
INSERT INTO bare SELECT i, i FROM generate_series(1, 1000) i;
SELECT lives_ok(format('EXPLAIN SELECT * FROM bare WHERE %s @> x', f), 'a table without statistics') FROM c
WHERE n = 1;
SELECT lives_ok(format('EXPLAIN SELECT * FROM t WHERE %s @> (uniform + 1)', f), 'an expression') FROM c WHERE n = 1;
SELECT lives_ok(format('EXPLAIN SELECT * FROM t WHERE %s @> lower(uniform_text)', f), 'an expression of text') FROM c
WHERE n = 17;
CREATE TABLE filters AS SELECT g, bloom_agg(g * 100 + i) AS f FROM generate_series(1, 20) g, generate_series(1, 20) i
    GROUP BY g;
ANALYZE filters;
SELECT lives_ok('EXPLAIN SELECT * FROM filters JOIN t ON one_text <@ f', 'a join from the left');
SELECT lives_ok('EXPLAIN SELECT * FROM filters WHERE f @> 42', 'a column of filters');
SELECT lives_ok('EXPLAIN SELECT * FROM filters WHERE f @>= bloom_create(10)', 'containment of filters');
PREPARE probe (bloomfilter) AS SELECT count(*) FROM t WHERE $1 @> uniform;
SET LOCAL plan_cache_mode = force_generic_plan;
SELECT lives_ok('EXECUTE probe(bloom_create(10))', 'a generic plan');

SELECT * FROM finish();
ROLLBACK;
