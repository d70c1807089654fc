-- Creating filters, the bounds of the parameters, and adding elements.

-- the sizes are those of doc/format.md
SELECT layout, bits, hashes, capacity >= 1000 AS enough, bytes
FROM (VALUES ('blocked'), ('classic')) AS l (name), bloom_info(bloom_create(1000, 0.01, l.name)) ORDER BY layout;
SELECT bloom_create(expected_items => 10, seed => 7, layout => 'classic', false_positive_rate => 0.1) =
	bloom_create(10, 0.1, 'classic', 7) AS named_parameters;

SELECT bloom_add(bloom_add(bloom_create(100), 'bob'), 'alice') @> 'alice' AS untyped_literal;
-- adding a present element or NULL changes nothing
SELECT bloom_add(f, 2) = f AS again, bloom_add(f, NULL::int) = f AS null_element,
	bloom_add(NULL, 1) IS NULL AS null_filter
FROM (SELECT bloom_add(bloom_create(100), 2)) AS v (f);
-- from hashes to bits, once bits are smaller
SELECT n, representation, bits, cardinality::numeric(10, 1)
FROM (VALUES (7), (8)) AS v (n),
	bloom_info((SELECT bloom_agg(x, 50) FROM generate_series(1, n) x));

-- out of bounds
SELECT bloom_create(0);
SELECT bloom_create('NaN');
SELECT bloom_create(100, 0.51);
SELECT bloom_create(100, 'NaN');
SELECT bloom_create(100, 0.01, 'square');
SELECT bloom_create(300000000);
SELECT bloom_bytes(300000000);
SELECT bloom_create(NULL) IS NULL AS null_in_null_out;
SELECT bloom_bytes(1000000), bloom_bytes(1000000, 0.001), bloom_bytes(1000000, 0.001, 'CLASSIC');

-- the size of this filter is unknown
SELECT bloom_add((SELECT bloom_agg(x) FROM generate_series(1, 0) x), 1);
