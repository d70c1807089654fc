-- Estimates, and bloom_info.
SET extra_float_digits = 0;
CREATE FUNCTION pg_temp.filter(low int, high int, n bigint DEFAULT 10000) RETURNS bloomfilter
LANGUAGE sql AS $$ SELECT bloom_agg(x, n) FROM generate_series(low, high) x $$;
CREATE FUNCTION pg_temp.about(estimate float8, truth float8) RETURNS boolean
LANGUAGE sql AS $$ SELECT abs(estimate - truth) <= 0.02 * truth $$;
CREATE TEMP TABLE v AS SELECT pg_temp.filter(1, 6000) AS a, pg_temp.filter(4001, 10000) AS b,
	pg_temp.filter(1, 50) AS few, (SELECT bloom_agg(x) FROM generate_series(1, 0) x) AS nothing;

SELECT pg_temp.about(# a, 6000) AS a, pg_temp.about(bloom_cardinality(b), 6000) AS b, # few AS few FROM v;
SELECT pg_temp.about(bloom_union_cardinality(a, b), 10000) AS "union",
	abs(bloom_intersection_cardinality(a, b) - 2000) < 200 AS intersection,
	abs(bloom_jaccard(a, b) - 0.2) < 0.03 AS jaccard
FROM v;
SELECT bloom_intersection_cardinality(a, few)::numeric(10, 3) AS all_of_few, bloom_jaccard(nothing, nothing) AS empty FROM v;
SELECT bloom_fpp(a | b) BETWEEN 0.009 AND 0.011 AS full FROM v;

-- filters of different sizes are compared at the smaller size
SELECT abs(bloom_intersection_cardinality(s, l) - 1000) < 100 AS intersection,
	pg_temp.about(bloom_union_cardinality(s, l), 2000) AS "union"
FROM (SELECT (SELECT bloom_agg(x) FROM generate_series(1, 1000) x) AS s,
	(SELECT bloom_agg(x) FROM generate_series(1, 2000) x) AS l) AS sizes;

-- where the larger filter may be saturated
SELECT bloom_union_cardinality(s, l) AS "union", bloom_intersection_cardinality(s, l) AS intersection,
	bloom_jaccard(s, l) AS jaccard
FROM (SELECT (SELECT bloom_agg(x) FROM generate_series(1, 10) x) AS s,
	(SELECT bloom_agg(x) FROM generate_series(1, 5000) x) AS l) AS sizes;
-- sizes of which neither divides the other
SELECT bloom_jaccard(bloom_create(100), bloom_create(150));

-- saturated: every bit of a small filter set
CREATE TEMP TABLE full_one AS SELECT bloom_agg(x, 1) AS f FROM generate_series(1, 5000) x;
SELECT bloom_intersection_cardinality(f, f) AS intersection FROM full_one;
SELECT (bloom_info(f)).* FROM full_one \gx

SELECT (bloom_info(nothing)).* FROM v \gx
SELECT (bloom_info(few)).* FROM v \gx

-- full blocks are those with all bits set
CREATE FUNCTION pg_temp.blocks(ones int, zeros int) RETURNS bloomfilter LANGUAGE sql AS $$
	SELECT decode('01000006140000000ad7233c0000000000000000' || '00' || lpad(to_hex(2 * (ones + zeros)), 2, '0') ||
		'000000000000' || repeat('ff', 64 * ones) || repeat('00', 64 * zeros), 'hex')::bloomfilter
$$;
SELECT ones, zeros, bits, bits_set, full_blocks, current_rate, overfull
FROM (VALUES (2, 0), (1, 2), (0, 1)) AS v (ones, zeros), bloom_info(pg_temp.blocks(ones, zeros));
-- a classic filter is one block; a sparse one has none
SELECT layout, bits, bits_set, full_blocks FROM bloom_info((SELECT bloom_agg(x, bloom_create(1, 0.1, 'classic')) FROM
	generate_series(1, 1000) x));
SELECT layout, representation, full_blocks FROM v, bloom_info(few);
