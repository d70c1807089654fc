-- Folding: smaller filters at a higher rate, without the loss of an element.
CREATE TEMP TABLE roomy AS SELECT bloom_agg(x, 65536) AS f, bloom_agg(x) AS own FROM generate_series(1, 1000) x;
CREATE TEMP TABLE folded AS
	SELECT p, bloom_fold(own | own, p) AS f FROM roomy, (VALUES (0.01), (0.02), (0.1), (0.4)) AS v (p);
SELECT p, bits, requested_rate, current_rate <= p AS kept, capacity >= 1000 AS enough
	FROM folded, bloom_info(f) ORDER BY p;

-- a dense filter with much room
SELECT i.bits < o.bits / 32 AS much_smaller, i.current_rate <= 0.01 AS kept
FROM (SELECT bloom_agg(x, 1 << 20) AS f FROM generate_series(1, 20000) x) AS v,
	bloom_info(f) AS o, bloom_info(bloom_fold(f, 0.01)) AS i;
-- a filter stays sparse while hashes are smaller than bits
SELECT representation, bits, cardinality FROM bloom_info(bloom_fold(bloom_add(bloom_create(8192), 1), 0.01));
-- filters that cannot be smaller: already at the rate, without a size, classic
SELECT bloom_fold(own, 0.01) = own AS as_it_is FROM roomy;
SELECT bloom_fold((SELECT bloom_agg(x) FROM generate_series(1, 0) x), 0.01);
SELECT bits FROM bloom_info(bloom_fold(bloom_create(1000, 0.01, 'classic'), 0.1));

-- to the size of another filter: equal to a filter built at that size
CREATE TEMP TABLE few AS SELECT bloom_agg(x) AS f FROM generate_series(5001, 5100) x;
SELECT bloom_fold(roomy.f, few.f) = bloom_fold(own, few.f) AS of_any_size, bloom_fold(few.f, few.f) = few.f AS itself
FROM roomy, few;
SELECT layout, bloom_fold(bloom_add(small, 7), large) = bloom_add(large, 7) AS up,
	bloom_fold(bloom_add(large, 7), small) = bloom_add(small, 7) AS down,
	bloom_fold(many, small) = (SELECT bloom_agg(x, small) FROM generate_series(1, 100) x) AS to_bits,
	bloom_fold(small, large) = large AS empty
FROM unnest('{blocked,classic}'::text[]) AS layout, bloom_create(77, 0.01, layout) AS small,
	bloom_create(10000, 0.01, layout) AS large,
	LATERAL (SELECT bloom_agg(x, large) AS many FROM generate_series(1, 100) x) AS v;
SELECT bloom_fold(bloom_create(100, 0.01), bloom_create(200, 0.011)) = bloom_create(200, 0.011) AS rate,
	bloom_fold(f, none) = f AS as_it_is, bloom_fold(none, f) = bloom_create(65536) AS empty
FROM roomy, (SELECT bloom_agg(x) AS none FROM generate_series(1, 0) x) AS n;
-- filters that cannot be brought to the size, and filters that do not combine
SELECT bloom_fold(few.f, own) FROM roomy, few;
SELECT bloom_fold(own, bloom_create(150)) FROM roomy;
SELECT bloom_fold(own, (SELECT bloom_agg(x, bloom_create(150)) FROM generate_series(1, 100) x)) FROM roomy;
SELECT bloom_fold(bloom_agg(x, bloom_create(100, 0.01, 'classic')), bloom_create(50, 0.01, 'classic'))
	FROM generate_series(1, 100) x;
SELECT bloom_fold(own, bloom_create(10, 0.1)) FROM roomy;
SELECT bloom_fold(own, bloom_add(bloom_create(10), 'x')) FROM roomy;
-- an untyped literal is a filter, unless the parameter is named
SELECT bloom_fold(own, '0.4') FROM roomy;
SELECT bloom_fold(own, NULL) IS NULL AS "null", bloom_fold(own, false_positive_rate => '0.4') = bloom_fold(own, 0.4) AS by_name,
	bloom_fold(own, "like" => few.f::text::bloomfilter) = bloom_fold(own, few.f) AS like_by_name
FROM roomy, few;

SELECT bloom_fold(bloom_agg(x, 100), 0.01) FROM generate_series(1, 200) x;
SELECT bloom_fold(f, 0.6) FROM roomy;
