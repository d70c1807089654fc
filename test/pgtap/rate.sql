-- The requested rate is the measured one: at the stated capacity the mean over sets
-- is at most the requested rate x 1.05, plus 4 sigma of the measurement. Small filters
-- vary around the mean, so small capacities are measured on many filters.
BEGIN;
SELECT plan(203);

SET LOCAL jit = off;
SET LOCAL work_mem = '256MB';

-- Measures with probes: each set has its own elements and seed, and gets an equal
-- share of the probes.
CREATE FUNCTION pg_temp.measured(n bigint, p float8, layout text, sets bigint, probes bigint,
    OUT mean float8, OUT sigma float8) LANGUAGE sql AS $$
    WITH f AS MATERIALIZED (
        SELECT s, CASE layout
            WHEN 'self-sized' THEN (SELECT bloom_agg(x, NULL, p) FROM generate_series(s * n + 1, s * n + n) x)
            ELSE (SELECT bloom_agg(x, e) FROM generate_series(s * n + 1, s * n + n) x) END AS f
        FROM generate_series(1, sets) s,
             LATERAL (SELECT CASE WHEN layout <> 'self-sized' THEN bloom_create(n, p, layout, s) END AS e OFFSET 0) c),
    r AS (
        SELECT (SELECT count(*) FROM generate_series(s * (probes / sets), (s + 1) * (probes / sets) - 1) x
                WHERE f @> -x) / (probes / sets)::float8 AS rate
        FROM f)
    SELECT avg(rate), greatest(coalesce(stddev_samp(rate), 0) / sqrt(sets), sqrt(p * (1 - p) / probes)) FROM r
$$;

CREATE TABLE sets AS
SELECT * FROM (VALUES (1, 1000), (2, 1000), (3, 1000), (5, 1000), (10, 1000), (33, 500), (100, 400), (317, 200),
                      (1000, 100), (10000, 20), (100000, 4), (1000000, 1)) v (n, sets);
CREATE TABLE probes AS
SELECT * FROM (VALUES (0.5, 200000), (0.1, 400000), (0.01, 1000000), (0.001, 2000000)) v (p, probes);

-- Enough probes that sigma is 2 % of the rate or less.
SELECT cmp_ok(mean, '<=', p * 1.05 + 4 * sigma, format('%s, n = %s, p = %s: the rate measured', layout, n, p))
FROM sets, probes, (VALUES ('blocked'), ('classic')) l (layout), pg_temp.measured(n, p, layout, sets, probes)
ORDER BY layout, p, n;

-- The sizes are the least that keep the rate. So if a block is a small part of the
-- filter, the rate is not much lower than requested.
SELECT cmp_ok(mean, '>=', p * 0.95 - 4 * sigma, format('%s, n = %s, p = %s: no larger than needed', layout, n, p))
FROM sets, probes, (VALUES ('blocked'), ('classic')) l (layout), pg_temp.measured(n, p, layout, sets, probes)
WHERE n IN (10000, 100000) ORDER BY layout, p, n;

-- Rates that are too low to measure are computed from the bits: random probes would
-- find the mean, over blocks, of the share of bits set to the power of k.
CREATE FUNCTION pg_temp.from_bits(f bytea) RETURNS float8 LANGUAGE sql AS $$
    SELECT CASE
        -- Sparse: exact.
        WHEN get_byte(f, 2) = 1 THEN 0
        WHEN get_byte(f, 1) = 1 THEN (bit_count(substr(f, 29)) / (8.0 * (length(f) - 28))) ^ get_byte(f, 3)
        ELSE (SELECT avg((bit_count(substr(f, i, 64)) / 512.0::float8) ^ get_byte(f, 3))
              FROM generate_series(29, length(f), 64) i)
    END
$$;

CREATE FUNCTION pg_temp.computed(n bigint, p float8, layout text, sets bigint,
    OUT mean float8, OUT sigma float8) LANGUAGE sql AS $$
    WITH r AS (
        SELECT pg_temp.from_bits((SELECT bloom_agg(x, e)::bytea FROM generate_series(s * n + 1, s * n + n) x)) AS rate
        FROM generate_series(1, sets) s,
             LATERAL (SELECT bloom_create(n, p, layout, s) AS e OFFSET 0) c)
    SELECT avg(rate), coalesce(stddev_samp(rate), 0) / sqrt(sets) FROM r
$$;

SELECT cmp_ok(mean, '<=', p * 1.05 + 4 * sigma,
    format('%s, n = %s, p = %s: the rate that the bits give', layout, n, p))
FROM (VALUES (1, 2000), (2, 2000), (4, 2000), (12, 2000), (30, 1000), (100, 500), (1000, 100), (10000, 10)) s (n,
     sets),
     (VALUES (0.01), (1e-4), (1e-6), (1e-9)) r (p),
     (VALUES ('blocked'), ('classic')) l (layout), pg_temp.computed(n, p, layout, sets)
ORDER BY layout, p, n;

-- Filters that size themselves, just below and above the numbers where they double.
SELECT cmp_ok(mean, '<=', p * 1.05 + 4 * sigma, format('self-sized, n = %s, p = %s: the rate measured', n, p))
FROM (VALUES (1, 0.01, 500), (8, 0.01, 1000), (51, 0.01, 1000), (52, 0.01, 1000), (103, 0.01, 1000), (825, 0.01, 200),
             (826, 0.01, 200), (13214, 0.01, 20), (13215, 0.01, 20), (211428, 0.01, 2), (1000000, 0.01, 1),
             (105, 0.1, 1000), (27103, 0.1, 10), (32, 0.001, 1000), (8431, 0.001, 20), (134900, 0.001, 2)) v (n, p,
             sets),
     pg_temp.measured(n, p, 'self-sized', sets, 1000000)
ORDER BY p, n;

-- The form without parameters promises 1 %.
SELECT cmp_ok(
    (SELECT count(*) FROM generate_series(1, 1000000) i
     WHERE (SELECT bloom_agg('user' || j) FROM generate_series(1, 200000) j) @> ('nobody' || i)),
    '<=', (10000 * 1.05 + 4 * sqrt(10000 * 0.99))::bigint, 'bloom_agg(text)');

-- Elements with patterns: consecutive, short, long.
CREATE FUNCTION pg_temp.hits(member text, other text, n int, probes int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    hits bigint;
BEGIN
    EXECUTE format('
        WITH f AS MATERIALIZED (SELECT bloom_agg(%s, $1) AS f FROM generate_series(1, $1) i)
        SELECT count(*) FROM f, generate_series(1, $2) i WHERE f @> (%s)', member, other)
        INTO STRICT hits USING n, probes;
    RETURN hits;
END
$$;

SELECT cmp_ok(pg_temp.hits(member, other, 20000, 400000), '<=', (4000 * 1.05 + 4 * sqrt(4000 * 0.99))::bigint,
    format('p = 0.01, %s against %s', member, other))
FROM (VALUES
    (1, 'date ''2000-01-01'' + i', 'date ''2000-01-01'' - i'),
    (2, 'i::float8', 'i + 0.5::float8'),
    (3, 'i::numeric', 'i + 0.1::numeric'),
    (4, 'i::text', 'i || ''x'''),
    (5, 'repeat(''x'', 100) || i', 'repeat(''y'', 100) || i'),
    (6, 'i::int8 << 20', '(i::int8 << 20) + 1'),
    (7, 'inet ''10.0.0.0'' + i', 'inet ''11.0.0.0'' + i'),
    (8, 'timestamp ''2020-01-01'' + i * interval ''1 hour''',
        'timestamp ''2020-01-01 00:00:01'' + i * interval ''1 hour'''),
    (9, 'md5(i::text)::uuid', 'md5(i || ''x'')::uuid'),
    (10, 'lpad(to_hex(i), 12, ''0'')::macaddr', '(''ff'' || lpad(to_hex(i), 10, ''0''))::macaddr')
) v (n, member, other) ORDER BY n;

SELECT * FROM finish();
ROLLBACK;
