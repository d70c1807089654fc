-- Creating filters: parameters, their bounds and what they lead to.

-- room for n elements at rate p; the sizes are those of doc/format.md
SELECT n, p, layout, bits, hashes, capacity >= n AS enough, bytes
FROM (VALUES (1, 0.01), (1000, 0.01), (1000000, 0.01), (1000000, 0.1), (1000000, 0.001), (1000, 1e-9)) AS v (n, p),
	(VALUES ('blocked'), ('classic')) AS l (name),
	bloom_info(bloom_create(n, p, l.name)) AS i
ORDER BY layout, p DESC, n;

-- any number of elements will do, and a fraction is rounded up
SELECT bloom_create(1e6) = bloom_create(1000000) AS literal, bloom_create(999.5) = bloom_create(1000) AS fraction,
	bloom_create(1000::real) = bloom_create(1000::bigint) AS typed;

-- adding one by one gives what the aggregate gives
SELECT bloom_add(bloom_add(bloom_add(bloom_create(100), 3), 1), 2) =
	(SELECT bloom_agg(x, 100) FROM generate_series(1, 3) x) AS same;
SELECT bloom_add(bloom_add(bloom_create(100), 'bob'), 'alice') @> 'alice' AS untyped_literal;
-- adding what is there changes nothing, adding NULL neither
SELECT bloom_add(f, 2) = f AS again, bloom_add(f, NULL::int) = f AS null_element,
	bloom_add(NULL, 1) IS NULL AS null_filter
FROM (SELECT bloom_add(bloom_create(100), 2)) AS v (f);
-- from hashes to bits when those get smaller
SELECT n, representation, bits, cardinality::numeric(10, 1)
FROM (VALUES (7), (8)) AS v (n),
	bloom_info((SELECT bloom_agg(x, 50) FROM generate_series(1, n) x));

-- out of bounds
SELECT bloom_create(0);
SELECT bloom_create(-5);
SELECT bloom_create(0.5);
SELECT bloom_create('NaN');
SELECT bloom_create('Infinity');
SELECT bloom_create(100, 0);
SELECT bloom_create(100, 0.51);
SELECT bloom_create(100, -0.01);
SELECT bloom_create(100, 1e-10);
SELECT bloom_create(100, 'NaN');
SELECT bloom_create(100, 'Infinity');
SELECT bloom_create(100, 0.01, 'square');
SELECT bloom_create(300000000);
SELECT bloom_create(1e300);
SELECT bloom_bytes(300000000);
SELECT bloom_create(NULL) IS NULL AS null_in_null_out;
SELECT bloom_bytes(1000000), bloom_bytes(1000000, 0.001), bloom_bytes(1000000, 0.001, 'CLASSIC');

-- nothing says how large this should be
SELECT bloom_add((SELECT bloom_agg(x) FROM generate_series(1, 0) x), 1);
