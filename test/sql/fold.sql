-- Folding: smaller filters at a higher rate, without losing an element.
CREATE TEMP TABLE roomy AS SELECT bloom_agg(x, 65536) AS f, bloom_agg(x) AS own FROM generate_series(1, 1000) x;
CREATE TEMP TABLE folded AS
	SELECT p, bloom_fold(own | own, p) AS f FROM roomy, (VALUES (0.01), (0.02), (0.1), (0.4)) AS v (p);
SELECT p, bits, requested_rate, current_rate <= p AS kept, capacity >= 1000 AS enough
	FROM folded, bloom_info(f) ORDER BY p;
SELECT p, bool_and(f @> x) AS nothing_lost FROM folded, generate_series(1, 1000) x GROUP BY p ORDER BY p;

-- a dense filter with far too much room gets small
SELECT i.bits < o.bits / 32 AS much_smaller, i.current_rate <= 0.01 AS kept
FROM (SELECT bloom_agg(x, 1 << 20) AS f FROM generate_series(1, 20000) x) AS v,
	bloom_info(f) AS o, bloom_info(bloom_fold(f, 0.01)) AS i;
-- hashes are kept where they are smaller than bits
SELECT representation, bits, cardinality FROM bloom_info(bloom_fold(bloom_add(bloom_create(8192), 1), 0.01));
-- the smallest there is: already at the rate, of no size, classic
SELECT bloom_fold(own, 0.01) = own AS as_it_is FROM roomy;
SELECT bloom_fold((SELECT bloom_agg(x) FROM generate_series(1, 0) x), 0.01);
SELECT bits FROM bloom_info(bloom_fold(bloom_create(1000, 0.01, 'classic'), 0.1));

SELECT bloom_fold(bloom_agg(x, 100), 0.01) FROM generate_series(1, 200) x;
SELECT bloom_fold(f, 0.6) FROM roomy;
