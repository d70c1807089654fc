-- Type bloomcounter: what a user sees of each function, operator and error.

-- adding, removing, reading
CREATE TABLE counter AS SELECT bloom_add(bloom_add(bloom_create_counter(100), 7), 8, 3) AS c;
SELECT bloom_count(c, 7) AS one, bloom_count(c, 8) AS three, bloom_count(c, 9) AS none,
	c @> 7 AS "@>", 9 <@ c AS "<@", bloom_contains(c, 8) AS contains, bloom_contained(9, c) AS contained FROM counter;
SELECT bloom_count(bloom_remove(c, 8), 8) AS two, bloom_count(bloom_remove(c, 8, 3), 8) AS none,
	bloom_remove(bloom_remove(c, 8, 3), 7) = bloom_create_counter(100) AS empty_again FROM counter;
SELECT bloom_remove(c, 9) FROM counter;
SELECT bloom_remove(c, 8, 4) FROM counter;
SELECT bloom_remove(bloom_counter_agg(i, 10), 1000) FROM generate_series(1, 10) AS i;

-- null elements change nothing
SELECT bloom_add(c, NULL::int) = c AS added, bloom_remove(c, NULL::int) = c AS removed, bloom_raise(c, NULL::int, 1) = c AS raised,
	bloom_add(NULL::bloomcounter, 7) IS NULL AS "null", bloom_count(c, NULL::int) IS NULL AS no_count FROM counter;
SELECT bloom_add(c, 7, NULL) FROM counter;
SELECT bloom_raise(c, 7, NULL) FROM counter;

-- a number at the limit stays there
SELECT bloom_count(full_up, 7) AS saturated, bloom_count(bloom_remove(full_up, 7, 15), 7) AS still, i.saturated IS NULL AS sparse
FROM counter, LATERAL (SELECT bloom_add(c, 7, 15)) AS f (full_up), LATERAL bloom_info(full_up) AS i;
SELECT counter_bits, bloom_count(bloom_add(bloom_create_counter(1, counter_bits => counter_bits), 'a'::text, 15), 'a'::text)
FROM unnest(ARRAY[4, 8, 16]) AS counter_bits;
SELECT bloom_add(c, 7, 16) FROM counter;
SELECT bloom_add(c, 7, 0) FROM counter;
SELECT bloom_remove(c, 7, -1) FROM counter;
SELECT bloom_raise(c, 7, 16) FROM counter;
SELECT bloom_decay(c, 0) FROM counter;
SELECT bloom_at_least(c, 16) FROM counter;
SELECT bloom_add(bloom_create_counter(10, 0.01, 8), 7, 256);
SELECT bloom_create_counter(10, 0.01, 5);
SELECT bloom_create_counter(1e9);

-- levels
SELECT bloom_count(l, 7) AS raised, bloom_count(l, 8) AS higher_before, bloom_count(bloom_decay(l), 8) AS decayed,
	bloom_decay(l, 5) = bloom_create_counter(100) AS gone, contents
FROM counter, LATERAL (SELECT bloom_raise(bloom_raise(c, 7, 5), 8, 2)) AS r (l), LATERAL bloom_info(l);
SELECT bloom_remove(bloom_raise(c, 7, 5), 7) FROM counter;
SELECT c - bloom_decay(c) FROM counter;
SELECT bloom_total(bloom_decay(c)) FROM counter;

-- filters
SELECT c::bloomfilter = bloom_agg(i, 100) AS "cast", bloom_at_least(c, 1) = bloom_agg(i, 100) AS one,
	bloom_at_least(c, 2) = bloom_agg(i, 100) FILTER (WHERE i = 8) AS two
FROM counter, unnest(ARRAY[7, 8]) AS i GROUP BY c;

-- + - | &
SELECT bloom_count(c + c, 8) AS sum, bloom_count(c + c - c, 8) AS difference, c + c - c = c AS same, bloom_count(c | d, 8) AS greater,
	bloom_count(c & d, 8) AS lesser, bloom_count(c & d, 7) AS neither, # (c | d) AS united, # (c & d) AS common
FROM counter, LATERAL (SELECT bloom_add(bloom_add(bloom_create_counter(100), 8), 9)) AS o (d);
SELECT c - bloom_add(c, 8) FROM counter;
SELECT c + bloom_create_counter(1000) FROM counter;
SELECT c + bloom_create_counter(100, 0.001) FROM counter;
SELECT c | bloom_create_counter(100, 0.01, 8) FROM counter;
SELECT c & bloom_create_counter(100, layout => 'classic') FROM counter;
SELECT c - bloom_create_counter(100, seed => 1) FROM counter;
SELECT c + bloom_add(bloom_create_counter(100), 'a'::text) FROM counter;
SELECT bloom_add(c, 'a'::text) FROM counter;
SELECT bloom_count(c, 'a'::text) FROM counter;
SELECT bloom_add(c, c) FROM counter;

-- estimates
SELECT # c AS "#", bloom_cardinality(c), bloom_total(c), bloom_fpp(c) < 1e-18 AS fpp FROM counter;
SELECT layout, element_type, representation, contents, counter_bits, positions, hashes, positions_set, saturated, fill, full_blocks,
	cardinality, total, capacity, requested_rate, bytes, overfull, seed FROM counter, bloom_info(c) \gx
SELECT bloom_counter_bytes(1e6), bloom_counter_bytes(1e6, 0.01, 8) - bloom_bytes(1e6) * 8 AS headers, bloom_counter_bytes(100, 0.1, 16, 'classic');

-- aggregates
SELECT bloom_count(c, 1) AS eleven, bloom_count(c, 9) AS ten, # c AS distinct, bloom_total(c) AS total
FROM (SELECT bloom_counter_agg(i % 9 + 1) AS c FROM generate_series(0, 94) AS i) AS v;
SELECT bloom_counter_agg(i, 5) = bloom_counter_agg(i, 5, 0.01) AS same_rate,
	bloom_counter_agg(i, bloom_create_counter(5, 0.01, 8)) = bloom_counter_agg(i, bloom_create_counter(5, counter_bits => 8)) AS given
FROM generate_series(1, 5) AS i;
SELECT bloom_count(bloom_level_agg(i % 3, i), 1) AS ten, bloom_level_agg(i % 3, i, 100) = bloom_level_agg(i % 3, i, 100, 0.01) AS same_rate,
	bloom_count(bloom_level_agg(i % 3, i, bloom_create_counter(100, 0.01, 16)), 2) AS eleven
FROM generate_series(1, 12) AS i;
SELECT bloom_level_agg(i, i) FROM generate_series(0, 1) AS i;
SELECT bloom_level_agg(i, NULL::int) FROM generate_series(0, 1) AS i;
SELECT bloom_counter_agg(i, c) FROM generate_series(1, 2) AS i, LATERAL (SELECT bloom_create_counter(i * 1000)) AS v (c);
SELECT bloom_sum_agg(c) = sum, bloom_count(bloom_union_agg(c), 2) AS greatest, bloom_count(sum, 2) AS sum
FROM (SELECT bloom_counter_agg(i, 100) AS c FROM generate_series(1, 3) AS i, generate_series(1, i) GROUP BY i) AS v,
	(SELECT bloom_counter_agg(i, 100) AS sum FROM generate_series(1, 3) AS i, generate_series(1, i)) AS w GROUP BY sum;

SELECT bloom_counter_agg(i, 5, 0.01, 8) = bloom_counter_agg(i, bloom_create_counter(5, 0.01, 8)) AS counts,
	bloom_level_agg(i, i, 5, 0.01, 16) = bloom_level_agg(i, i, bloom_create_counter(5, 0.01, 16)) AS levels,
	(bloom_info(bloom_counter_agg(i, NULL, 0.01, 16))).counter_bits AS self_sized
FROM generate_series(1, 5) AS i;
SELECT bloom_counter_agg(i, 5, 0.01, 5) FROM generate_series(1, 5) AS i;
SELECT bloom_counter_agg(i, 5, 0.01, NULL) FROM generate_series(1, 5) AS i;
SELECT bloom_counter_agg(i, 5, 0.01, i) FROM (VALUES (4), (8)) AS v (i);

-- folding: the counter that is built at the smaller size
SELECT bits, bloom_fold(large, small) = small AS counts, bloom_fold(level, small_level) = small_level AS levels
FROM (VALUES (4), (8), (16)) AS v (bits), LATERAL (
	SELECT bloom_counter_agg(i % 90, 400, 0.01, bits) AS large, bloom_counter_agg(i % 90, 100, 0.01, bits) AS small,
		bloom_level_agg(i % 90, 1 + i % 15, 400, 0.01, bits) AS level,
		bloom_level_agg(i % 90, 1 + i % 15, 100, 0.01, bits) AS small_level
	FROM generate_series(1, 3000) AS i) AS w ORDER BY bits;
SELECT i.positions < o.positions / 32 AS much_smaller, i.current_rate <= 0.01 AS kept, abs(i.total / o.total - 1) < 0.02 AS total
FROM (SELECT bloom_counter_agg(x, 1 << 18) AS c FROM generate_series(1, 5000) AS x) AS v,
	bloom_info(c) AS o, bloom_info(bloom_fold(c, 0.01)) AS i;
-- a counter has room for as many elements as its filter
SELECT bits, bool_and(bloom_fold(c, p)::bloomfilter = bloom_fold(c::bloomfilter, p)) AS same
FROM (VALUES (4), (8), (16)) AS v (bits), (VALUES (0.01), (0.0001)) AS w (p),
	LATERAL (SELECT bloom_counter_agg(x, 100000, 0.0001, bits) AS c FROM generate_series(1, 500) AS x) AS u GROUP BY bits ORDER BY bits;
SELECT bool_and(bloom_count(bloom_fold(c, 0.4), i) >= 2) AS kept
FROM (SELECT bloom_counter_agg(x % 50, 1000) AS c FROM generate_series(0, 99) AS x) AS v, generate_series(0, 49) AS i;
SELECT bloom_fold(bloom_counter_agg(i, 1000), 0.001) FROM generate_series(1, 1000) AS i;
SELECT bloom_fold(bloom_counter_agg(i, 1000), bloom_create_counter(2000)) FROM generate_series(1, 1000) AS i;
SELECT bloom_fold(bloom_counter_agg(i, 1000), bloom_create_counter(700)) FROM generate_series(1, 1000) AS i;
SELECT bloom_fold(c, bloom_create_counter(100, 0.01, 8)) FROM counter;

-- the empty counter without a size
SELECT bloom_counter_agg(1) = bloom_sum_agg(c) AS same, bloom_sum_agg(c) = bloom_union_agg(c) AS neutral FROM counter WHERE false;
SELECT c + none = c AS sum, c - none = c AS difference, c | none = c AS "union", c & none = bloom_create_counter(100) AS intersection
FROM counter, (SELECT bloom_counter_agg(1) AS none FROM counter WHERE false) AS v;
SELECT bloom_fold(none, 0.01) = none AS folded, bloom_create_counter(20) - (c - c) = c - c AS nothing,
	bloom_fold(c - c, none) = c - c AS "like"
FROM (SELECT bloom_counter_agg(i, 20) AS c FROM generate_series(1, 20) AS i) AS v,
	(SELECT bloom_counter_agg(1) AS none FROM counter WHERE false) AS w;
SELECT none - bloom_counter_agg(i, 20, 0.01, 8) FROM generate_series(1, 2) AS i,
	(SELECT bloom_counter_agg(1) AS none FROM counter WHERE false) AS w GROUP BY none;
SELECT bloom_add(bloom_counter_agg(1), 1) FROM counter WHERE false;
SELECT bloom_counter_agg(1, c) IS NULL AS extended FROM counter WHERE false;

-- order, text and binary form
SELECT c = c AS eq, c <> c AS ne, c < c AS lt, c <= c AS le, c > c AS gt, c >= c AS ge, count(*) FROM counter GROUP BY c ORDER BY c;
SELECT c::text::bloomcounter = c AS text, c::bytea::bloomcounter = c AS bytea, bloom_to_bytea(c) = c::bytea AS function,
	substring(c::bytea FROM 1 FOR 4) AS header FROM counter;
SELECT c::text::bloomfilter FROM counter;
SELECT bloom_create(100)::text::bloomcounter;
SELECT overlay(c::bytea PLACING '\x1d' FROM 3 FOR 1)::bloomcounter FROM counter;
SELECT overlay(c::bytea PLACING '\x00' FROM length(c::bytea) - 1 FOR 1)::bloomcounter FROM counter;
SELECT overlay(c::bytea PLACING '\x10' FROM length(c::bytea) - 1 FOR 1)::bloomcounter FROM counter;
SELECT substring(c::bytea FROM 1 FOR length(c::bytea) - 2)::bloomcounter FROM counter;
SELECT overlay(bloom_create_counter(100)::bytea PLACING '\x25' FROM 3 FOR 1)::bloomcounter;
DROP TABLE counter;
