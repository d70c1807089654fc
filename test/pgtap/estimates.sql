-- Estimates against the truth, within the errors that theory predicts, and against
-- the same formulas computed here from the bytes.
BEGIN;
SELECT plan(139);

SET LOCAL jit = off;

-- The standard deviation of the cardinality estimate of n elements, from the
-- variance of the number of zero bits: two bits are both zero with a probability
-- that depends on whether they share a block.
CREATE FUNCTION pg_temp.sigma(n float8, m float8, k float8, layout text) RETURNS float8 LANGUAGE sql AS $$
    SELECT sqrt(m * z + m * (b - 1) * same + m * (m - b) * other - (m * z) ^ 2) / (m * z * -ln(1 - q / nb))
    FROM (SELECT CASE layout WHEN 'blocked' THEN 512.0 ELSE m END) s (b),
         LATERAL (SELECT m / b, 1 - (1 - 1 / b) ^ k) t (nb, q),
         LATERAL (SELECT (1 - q / nb) ^ n,
                         (1 - (1 - (1 - 2 / b) ^ k) / nb) ^ n,
                         CASE WHEN nb > 1 THEN (1 - 2 * q / nb) ^ n ELSE 0 END) u (z, same, other)
$$;

-- Cardinality and current rate from the bytes of a dense filter.
CREATE FUNCTION pg_temp.from_bytes(f bytea, OUT bits_set bigint, OUT cardinality float8,
    OUT rate float8) LANGUAGE sql AS $$
    SELECT x,
           ln(1 - x / m) / ln(1 - (1 - (1 - 1 / b) ^ k) / (m / b)),
           (SELECT avg((bit_count(substr(f, i, (b / 8)::int)) / b) ^ k)
               FROM generate_series(29, length(f), (b / 8)::int) i)
    FROM (SELECT bit_count(substr(f, 29)), (length(f) - 28) * 8::float8, get_byte(f, 3)::float8) s (x, m, k),
         LATERAL (SELECT CASE get_byte(f, 1) WHEN 0 THEN 512::float8 ELSE m END) t (b)
$$;

CREATE TABLE filter AS
SELECT shape, room, p, load, (room * load)::int AS n,
       (SELECT bloom_agg(i, e) FROM generate_series(1, (room * load)::int) i) AS f
FROM (VALUES ('blocked'), ('classic')) l (shape),
     (VALUES (10000, 0.01), (10000, 0.0001), (3000, 0.1), (100, 0.01)) c (room, p),
     LATERAL (SELECT bloom_create(room, p, shape) AS e OFFSET 0) m,
     (VALUES (0.4), (0.7), (1), (1.5), (2)) v (load);

SELECT cmp_ok(abs((# f) - n), '<=', 4 * pg_temp.sigma(n, i.bits, i.hashes, shape),
    format('# of %s elements, %s for %s at %s', n, shape, room, p))
FROM filter, LATERAL bloom_info(f) i ORDER BY shape, room, p, load;

SELECT is(array_agg(n ORDER BY shape, room, p, load) FILTER (WHERE abs((# f) / c.cardinality - 1) > 1e-9), NULL,
    '# is what the formula gives')
FROM filter, pg_temp.from_bytes(f::bytea) c;
SELECT is(array_agg(n ORDER BY shape, room, p, load) FILTER (WHERE abs(bloom_fpp(f) / c.rate - 1) > 1e-9), NULL,
    'bloom_fpp is what the formula gives')
FROM filter, pg_temp.from_bytes(f::bytea) c;
SELECT is(count(*), 40::bigint, 'of dense filters') FROM filter WHERE get_byte(f::bytea, 2) = 0;
SELECT is(count(*), 40::bigint, 'bloom_cardinality is #') FROM filter WHERE bloom_cardinality(f) = (# f);

-- No bias: the mean over a hundred seeds is within the error of that mean, and the
-- second-order term of the logarithm.
SELECT cmp_ok(abs(mean - n), '<=', 4 * pg_temp.sigma(n, m, k, shape) / 10 + 0.001 * n,
    format('mean of # over a hundred filters of %s elements, %s', n, shape))
FROM (SELECT s.shape, n, avg(# f) AS mean, min(i.bits) AS m, min(i.hashes) AS k
      FROM (SELECT shape, n, (SELECT bloom_agg(i, e) FROM generate_series(1, n) i) AS f
            FROM (VALUES ('blocked'), ('classic')) l (shape), (VALUES (1000), (2000), (4000)) v (n),
                 generate_series(1, 100) seed,
                 LATERAL (SELECT bloom_create(2000, 0.01, shape, seed) AS e OFFSET 0) c) s, LATERAL bloom_info(f) i
      GROUP BY s.shape, n) s
ORDER BY shape, n;

-- Sparse filters are exact.
SELECT is(# f, n::float8, format('# of a sparse filter of %s is exact', n))
FROM (SELECT n, (SELECT bloom_agg(i, 10000) FROM generate_series(1, n) i) AS f
     FROM unnest(ARRAY[0, 1, 2, 100, 1500]) n) s ORDER BY n;
SELECT ok(bloom_fpp(f) < 1e-15 AND bloom_union_cardinality(f, g) = 1500 AND bloom_intersection_cardinality(f, g) = 500
          AND abs(bloom_jaccard(f, g) - 1 / 3.0::float8) < 1e-12,
              'sparse filters: exact union, intersection and similarity')
FROM (SELECT bloom_agg(i, 100000), bloom_agg(i + 500, 100000) FROM generate_series(1, 1000) i) s (f, g);

-- bloom_fpp against the rate of a million probes.
SELECT cmp_ok(abs(hits - 1000000 * bloom_fpp(f)), '<=', 4 * sqrt(1000000 * bloom_fpp(f)) + 1,
    format('bloom_fpp against the measured rate: %s elements, %s for %s at %s', n, shape, room, p))
FROM filter, LATERAL (SELECT f::text::bloomfilter AS g OFFSET 0) c,
LATERAL (SELECT count(*) FROM generate_series(1, 1000000) i WHERE g @> -i) h (hits)
WHERE room <> 3000 AND load IN (0.7, 1, 2) AND p > 0.001 OR p = 0.0001 AND load = 2 OR p = 0.1 AND load = 0.4
ORDER BY shape, room, p, load;

-- Two sets: a has 1 .. n, b has n - common + 1 .. 2 n - common.
CREATE TABLE pair AS
SELECT shape, n, common,
       (SELECT bloom_agg(i, e) FROM generate_series(1, n) i) AS a,
       (SELECT bloom_agg(i, e) FROM generate_series(n - common + 1, 2 * n - common) i) AS b
FROM (VALUES ('blocked'), ('classic')) l (shape), LATERAL (SELECT bloom_create(10000, 0.01, shape) AS e OFFSET 0) m,
     (VALUES (5000, 0), (5000, 100), (5000, 2500), (5000, 5000), (10000, 0), (10000, 5000), (10000, 9900))
     v (n, common);

SELECT cmp_ok(abs(bloom_union_cardinality(a, b) - (2 * n - common)), '<=',
    4 * pg_temp.sigma(2 * n - common, i.bits, i.hashes, shape),
    format('union of two sets of %s with %s in common, %s', n, common, shape))
FROM pair, LATERAL bloom_info(a) i ORDER BY shape, n, common;
SELECT cmp_ok(abs(bloom_intersection_cardinality(a, b) - common), '<=',
    4 * sqrt(2 * pg_temp.sigma(n, i.bits, i.hashes, shape) ^ 2
             + pg_temp.sigma(2 * n - common, i.bits, i.hashes, shape) ^ 2),
    format('intersection of two sets of %s with %s in common, %s', n, common, shape))
FROM pair, LATERAL bloom_info(a) i ORDER BY shape, n, common;
SELECT cmp_ok(abs(bloom_jaccard(a, b) - common / (2 * n - common)::float8), '<=',
    4 * sqrt(2 * pg_temp.sigma(n, i.bits, i.hashes, shape) ^ 2
             + 2 * pg_temp.sigma(2 * n - common, i.bits, i.hashes, shape) ^ 2) / (2 * n - common),
    format('similarity of two sets of %s with %s in common, %s', n, common, shape))
FROM pair, LATERAL bloom_info(a) i ORDER BY shape, n, common;

SELECT is(count(*) FILTER (WHERE abs(bloom_union_cardinality(a, b) / (# (a | b)) - 1) > 1e-12), 0::bigint,
    'the union estimate is # of the union') FROM pair;
SELECT is(count(*) FILTER (WHERE abs(bloom_intersection_cardinality(a, b) - greatest(0, (# a) + (# b) - (# (a | b))))
                                 > 1e-6), 0::bigint,
    'the intersection estimate is inclusion and exclusion, floored at 0') FROM pair;
SELECT is(count(*) FILTER (WHERE bloom_intersection_cardinality(a, b) < 0 OR bloom_jaccard(a, b) NOT BETWEEN 0 AND 1
                           OR bloom_union_cardinality(a, b) <> bloom_union_cardinality(b, a)
                           OR bloom_intersection_cardinality(a, b) <> bloom_intersection_cardinality(b, a)
                           OR bloom_jaccard(a, b) <> bloom_jaccard(b, a)), 0::bigint,
                               'estimates of two sets are symmetric and in range') FROM pair;
SELECT is(count(*) FILTER (WHERE bloom_jaccard(a, a) <> 1
    OR abs(bloom_intersection_cardinality(a, a) / (# a) - 1) > 1e-9), 0::bigint,
    'the similarity of a filter to itself is 1') FROM pair;
-- A small set in a large filter that shares nothing with it.
SELECT ok(bloom_intersection_cardinality(a, b)
          BETWEEN 0 AND 4 * 1.5 * pg_temp.sigma(10000, (bloom_info(b)).bits, 6, 'blocked'),
    'a sparse and a dense filter, disjoint')
FROM (SELECT (SELECT bloom_agg(i, 10000) FROM generate_series(1, 100) i),
     (SELECT bloom_agg(i, 10000) FROM generate_series(101, 10000) i)) s (a, b);

-- Thirty days, each with all elements of the day before and 1,000 more: their union is the filter of the last.
CREATE TABLE nested AS
SELECT day, bloom_agg(i, 30000) AS f FROM generate_series(1, 30) day, generate_series(1, day * 1000) i GROUP BY day;
SELECT cmp_ok(abs((# bloom_union_agg(f)) - 30000), '<=',
    4 * pg_temp.sigma(30000, min((bloom_info(f)).bits), 6, 'blocked'), 'nested days united, estimated') FROM nested;
SELECT is(bloom_union_agg(f)::bytea, (SELECT f::bytea FROM nested WHERE day = 30), 'nested days united are the last')
FROM nested;
SELECT cmp_ok(bloom_fpp(bloom_union_agg(f)), '<', 0.0105::float8, 'nested days united keep the rate') FROM nested;

-- The empty filters.
CREATE TABLE empty AS SELECT 'without a size' AS what, bloom_agg(i) AS e FROM generate_series(1, 0) i
    UNION ALL SELECT 'with a size', bloom_create(100);
SELECT ok((# e) = 0 AND bloom_fpp(e) = 0, 'the empty filter ' || what || ' has cardinality 0 and rate 0') FROM empty
ORDER BY what;
SELECT ok(bloom_union_cardinality(e, f) = (# f) AND bloom_intersection_cardinality(e, f) = 0
    AND bloom_jaccard(e, f) = 0,
    'the empty filter ' || what || ' with another one')
FROM empty, (SELECT bloom_agg(i, 100) AS f FROM generate_series(1, 100) i) s ORDER BY what;

-- Saturated: every bit is set.
CREATE TABLE saturated AS
SELECT layout, overlay(f::bytea PLACING decode(repeat('ff', length(f::bytea) - 28), 'hex') FROM 29)::bloomfilter AS f
FROM (SELECT layout, bloom_agg(i, bloom_create(100, 0.01, layout)) AS f
      FROM (VALUES ('blocked'), ('classic')) l (layout), generate_series(1, 100) i GROUP BY layout) s;
SELECT is(# f, 'Infinity'::float8, layout || ': a saturated filter has cardinality Infinity') FROM saturated
ORDER BY layout;
SELECT is(bloom_fpp(f), 1::float8, layout || ': and rate 1') FROM saturated ORDER BY layout;
SELECT ok(f @> 1 AND f @> -1 AND (bloom_info(f)).overfull AND (bloom_info(f)).fill = 1,
    layout || ': contains everything, is overfull') FROM saturated ORDER BY layout;
SELECT is(bloom_union_cardinality(f, bloom_add(bloom_create(100, 0.01, layout), 1)), 'Infinity'::float8,
    layout || ': so has its union') FROM saturated ORDER BY layout;

-- bloom_info.
SELECT is(count(*) FILTER (WHERE i.layout = f.shape AND i.element_type = 'bigint'::regtype
                           AND i.representation = 'dense' AND i.bits = 8 * (length(f.f::bytea) - 28)
                           AND i.hashes = get_byte(f.f::bytea, 3) AND i.bits_set = c.bits_set
                           AND abs(i.fill - c.bits_set / i.bits::float8) < 1e-12
                           AND i.cardinality = (# f.f) AND i.current_rate = bloom_fpp(f.f)
                           AND i.requested_rate = f.p::real AND i.bytes = length(f.f::bytea) + 4
                           AND i.bytes = bloom_bytes(f.room, f.p, f.shape) AND i.seed = 0),
    40::bigint, 'bloom_info of dense filters says what the bytes say')
FROM filter f, pg_temp.from_bytes(f.f::bytea) c, LATERAL bloom_info(f.f) i;
SELECT is(count(*) FILTER (WHERE overfull), 0::bigint, 'at 70 % of the capacity no filter is overfull')
FROM filter, LATERAL bloom_info(f) WHERE load <= 0.7;
SELECT is(count(*) FILTER (WHERE overfull), 16::bigint, 'at 150 % every filter is')
FROM filter, LATERAL bloom_info(f) i WHERE load >= 1.5;
SELECT is(count(*) FILTER (WHERE i.capacity >= room AND i.capacity < room + 64 + room * 0.1), 40::bigint,
    'the capacity is what was asked for, rounded up by less than a block')
FROM filter, LATERAL bloom_info(f) i;
SELECT ok(i.layout = 'classic' AND i.element_type = 'text'::regtype AND i.representation = 'sparse' AND i.bits = 9600
          AND i.hashes = 7 AND i.cardinality = 3 AND i.requested_rate = 0.01::real AND i.bytes = 56 AND NOT i.overfull
          AND i.seed = -5, 'bloom_info of a sparse filter')
FROM (SELECT bloom_agg(x, bloom_create(1000, 0.01, 'classic', -5)) FROM unnest('{a,b,c}'::text[]) x) s (f),
LATERAL bloom_info(f) i;

SELECT * FROM finish();
ROLLBACK;
