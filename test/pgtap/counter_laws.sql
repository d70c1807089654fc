-- Sum and union of counters are commutative and associative, byte for byte, and the
-- aggregates give the same: for counts and levels, sparse and dense, of each width.
BEGIN;
SELECT plan(10);

CREATE TABLE counter (width int, name text, c bloomcounter);
INSERT INTO counter
SELECT width, name, c
FROM (VALUES (4), (8), (16)) w (width),
    LATERAL (SELECT bloom_create_counter(30, 0.01, width) AS e) s,
    LATERAL (VALUES
        ('empty', e),
        ('few counts', (SELECT bloom_counter_agg(i % 10, e) FROM generate_series(1, 20) i)),
        ('sparse counts', (SELECT bloom_counter_agg(i, e) FROM generate_series(1, 2 + 5 * width) i)),
        ('more sparse counts', (SELECT bloom_counter_agg(i, e) FROM generate_series(100, 100 + 5 * width) i)),
        ('sparse levels', (SELECT bloom_level_agg(i, 1 + i % 7, e) FROM generate_series(1, 2 + 5 * width) i)),
        ('more sparse levels', (SELECT bloom_level_agg(i, 3, e) FROM generate_series(100, 100 + 5 * width) i)),
        ('dense counts', (SELECT bloom_counter_agg(i % 200, e) FROM generate_series(1, 500) i)),
        ('dense levels', (SELECT bloom_level_agg(i, 1 + i % 15, e) FROM generate_series(1, 200) i)),
        ('dense, all 0', bloom_decay((SELECT bloom_level_agg(i, 1, e) FROM generate_series(1, 200) i))),
        ('without a size', (SELECT bloom_counter_agg(1) WHERE false))) v (name, c);

SELECT is(array_agg(DISTINCT (bloom_info(c)).representation || ' ' || (bloom_info(c)).contents),
    '{"dense counts","dense levels","sparse counts","sparse levels"}', 'counters of every kind') FROM counter;
SELECT is(array_agg(DISTINCT width), '{4,8,16}', 'sparse counters become dense')
FROM counter a JOIN counter b USING (width), LATERAL bloom_info(a.c + b.c) i
WHERE a.name = 'sparse levels' AND b.name = 'more sparse levels' AND i.representation = 'dense'
    AND i.contents = 'levels';

CREATE TABLE pair AS
SELECT width, a.name AS a_name, b.name AS b_name, a.c AS a, b.c AS b FROM counter a JOIN counter b USING (width);
SELECT is(array_agg(concat_ws(', ', width, a_name, b_name)) FILTER (WHERE a + b <> b + a), NULL, 'a + b = b + a')
FROM pair;
SELECT is(array_agg(concat_ws(', ', width, a_name, b_name)) FILTER (WHERE a | b <> b | a), NULL, 'a | b = b | a')
FROM pair;

CREATE TABLE triple AS SELECT pair.*, counter.name AS d_name, counter.c AS d FROM pair JOIN counter USING (width);
SELECT is(array_agg(concat_ws(', ', width, a_name, b_name, d_name)) FILTER (WHERE (a + b) + d <> a + (b + d)), NULL,
    '(a + b) + c = a + (b + c)') FROM triple;
SELECT is(array_agg(concat_ws(', ', width, a_name, b_name, d_name)) FILTER (WHERE (a | b) | d <> a | (b | d)), NULL,
    '(a | b) | c = a | (b | c)') FROM triple;
SELECT is(array_agg(concat_ws(', ', width, a_name, b_name, d_name)) FILTER (WHERE s <> a + b + d), NULL,
    'bloom_sum_agg is a + b + c')
FROM triple, LATERAL (SELECT bloom_sum_agg(c) AS s FROM unnest(ARRAY[a, b, d]) c OFFSET 0) agg;
SELECT is(array_agg(concat_ws(', ', width, a_name, b_name, d_name)) FILTER (WHERE u <> ((a | b) | d)), NULL,
    'bloom_union_agg is a | b | c')
FROM triple, LATERAL (SELECT bloom_union_agg(c) AS u FROM unnest(ARRAY[a, b, d]) c OFFSET 0) agg;

-- Partial states that saw only nulls carry a counter that is given, and raise to it.
CREATE TABLE part (p int, x int, l int) PARTITION BY LIST (p);
CREATE TABLE part1 PARTITION OF part FOR VALUES IN (1);
CREATE TABLE part2 PARTITION OF part FOR VALUES IN (2);
CREATE TABLE part3 PARTITION OF part FOR VALUES IN (3);
INSERT INTO part VALUES (1, NULL, 1), (2, 7, 1), (2, 3, 9), (3, NULL, 1);
CREATE TABLE base AS SELECT n, (SELECT bloom_counter_agg(i % 50, n) FROM generate_series(1, 250) i) AS c
FROM unnest(ARRAY[50, 1000]) AS n;
SET LOCAL enable_partitionwise_aggregate = on;
SELECT is(array_agg(bloom_count(s, 7) || ' ' || bloom_count(s, 3) || ' ' || contents), '{5 9 levels,5 9 levels}',
    'partitions raise a counter that is given')
FROM base, LATERAL (SELECT bloom_level_agg(x, l, c) AS s FROM part) q, LATERAL bloom_info(s);
DELETE FROM part WHERE p = 2;
SELECT is(array_agg(s = c), '{t,t}', 'partitions without elements return it')
FROM base, LATERAL (SELECT bloom_level_agg(x, l, c) AS s FROM part) q;

SELECT * FROM finish();
ROLLBACK;
