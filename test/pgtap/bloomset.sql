-- bloomset: what a set says about its table, while rows come, and the set grows and is
-- built anew. It never says "no" to a value that is there, and says "yes" to others at
-- the rate asked. Elements, trees of tables and scans have files of their own.
BEGIN;
SET LOCAL client_min_messages = warning;
SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SELECT * FROM no_plan();

\ir lib/command_answer.sql
-- As many "yes" as probes of absent values may give at most.
CREATE FUNCTION pg_temp.at_most(rate float8, probes bigint) RETURNS float8 LANGUAGE sql
    RETURN probes * rate + 4 * sqrt(probes * rate * (1 - rate));

-- The catalog

SELECT is(concat_ws(' ', provolatile, proisstrict, proparallel), properties, function || ': volatile, strict, parallel')
FROM (VALUES
    ('bloomset_contains(regclass,name,anycompatible)', 's t s'),
    ('bloomset_contains(regclass,anycompatible)', 's t s'),
    ('bloomset_partitions(regclass,name,anycompatible)', 's t r'),
    ('bloomset_filters(regclass,name)', 's t r'),
    ('bloomset_info(regclass)', 's t r'),
    ('bloomset_check(regclass)', 'v t u')) v (function, properties)
LEFT JOIN pg_proc ON pg_proc.oid = to_regprocedure(function);

-- NULLs

CREATE TABLE nulls (x int, y text);
INSERT INTO nulls SELECT nullif(i % 10, 0), NULL FROM generate_series(1, 1000) i;
CREATE INDEX nulls_x ON nulls USING bloomset (x) WITH (false_positive_rate = 1e-7);
CREATE INDEX nulls_y ON nulls USING bloomset (y);
INSERT INTO nulls VALUES (NULL, NULL), (10, NULL);
SELECT is(elements, expected, 'NULLs are not in the set')
FROM (VALUES ('nulls_x', 10::bigint), ('nulls_y', 0)) v (index, expected), bloomset_info(index::regclass);
SELECT is(array_agg(i ORDER BY i) FILTER (WHERE bloomset_contains('nulls', 'x', i)), '{1,2,3,4,5,6,7,8,9,10}',
    'but the other values are') FROM generate_series(-1, 12) i;
SELECT is(pg_temp.answer('SELECT ' || call), NULL, call)
FROM unnest(ARRAY['bloomset_contains(''nulls'', ''x'', NULL)', 'bloomset_contains(''nulls'', ''x'', NULL::int)',
    'bloomset_contains(''nulls'', NULL, 1)', 'bloomset_contains(NULL, ''x'', 1)',
    'bloomset_contains(''nulls_x'', NULL::int)',
    'bloomset_contains(NULL, 1)', 'bloomset_partitions(''nulls'', ''x'', NULL)', 'bloomset_partitions(NULL, ''x'', 1)',
    'bloomset_filters(NULL, ''x'')', 'bloomset_filters(''nulls'', NULL)', 'bloomset_info(NULL)',
    'bloomset_check(NULL)']) WITH ORDINALITY v (call, n) ORDER BY n;
SELECT is((SELECT count(*) FROM bloomset_partitions('nulls', 'x', NULL::int)), 0::bigint, 'no leaf for NULL');

-- Options

CREATE TABLE options (x int);
INSERT INTO options SELECT generate_series(1, 100);
SELECT lives_ok(format('CREATE INDEX ON options USING bloomset (x) WITH (%s)', o), o)
FROM unnest(ARRAY['false_positive_rate = 1e-7', 'false_positive_rate = 0.5', 'expected_items = 1',
    'expected_items = 1000', 'seed = 0', 'seed = -5', 'seed = 9223372036854775807', 'seed = ''-9223372036854775808''',
    'seed = ''42''']) WITH ORDINALITY v (o, n) ORDER BY n;
SELECT is(pg_temp.answer(format('CREATE INDEX ON options USING bloomset (x) WITH (%s)', o)), state, o)
FROM (VALUES
    ('22023', ARRAY['false_positive_rate = 0', 'false_positive_rate = 0.51', 'false_positive_rate = 9e-8',
        'false_positive_rate = -0.01', 'false_positive_rate = 1', 'false_positive_rate = ''NaN''',
        'false_positive_rate = ''low''', 'expected_items = 0', 'expected_items = 0.5', 'expected_items = -1',
        'expected_items = 1000000000001', 'expected_items = ''NaN''', 'expected_items = ''Infinity''',
        'expected_items = ''many''', 'fillfactor = 50', 'capacity = 1000']),
    ('22003', ARRAY['seed = 9223372036854775808', 'seed = ''-9223372036854775809''']),
    ('22P02', ARRAY['seed = ''one''', 'seed = 1.5', 'seed = ''''', 'seed = ''7 7''']))
    v (state, options), unnest(options) o;
CREATE INDEX options_set ON options USING bloomset (x);
SELECT lives_ok('ALTER INDEX options_set SET (expected_items = 1e12)', 'expected_items may be 1e12');
ALTER INDEX options_set RESET (expected_items);

-- The defaults.
SELECT ok(abs(requested_rate / 0.01 - 1) < 1e-6, '1 % is the default rate') FROM bloomset_info('options_set');
SELECT cmp_ok(capacity, '>=', 6000::bigint, 'and 6,000 elements, for which a page has room') FROM bloomset_info('options_set');
SELECT is(seed, 0::bigint, 'and seed 0') FROM bloomset_filters('options', 'x') s, bloom_info(s.filter)
WHERE generation = 1 LIMIT 1;

-- They are read when the index is built.
CREATE TABLE rebuilt (x int);
INSERT INTO rebuilt SELECT generate_series(1, 100);
CREATE INDEX rebuilt_set ON rebuilt USING bloomset (x)
    WITH (false_positive_rate = 0.1, expected_items = 100000, seed = 7);
CREATE VIEW rebuilt_info AS
SELECT round(s.requested_rate::numeric, 9)::float8 AS rate, s.capacity, s.bytes, f.seed, f.element_type
FROM bloomset_info('rebuilt_set') s, bloomset_filters('rebuilt', 'x') b, bloom_info(b.filter) f;
CREATE TABLE rebuilt_before AS SELECT * FROM rebuilt_info;
SELECT is((rate, seed, element_type)::text, '(0.1,7,bigint)', 'the options of the build') FROM rebuilt_before;
ALTER INDEX rebuilt_set SET (false_positive_rate = 0.001, expected_items = 1000, seed = '-7');
INSERT INTO rebuilt SELECT generate_series(101, 200);
SELECT is(i::text, b::text, 'ALTER INDEX SET does not change the set') FROM rebuilt_before b, rebuilt_info i;
SELECT is(count(*), 0::bigint, 'which still finds all rows') FROM rebuilt WHERE NOT bloomset_contains('rebuilt', 'x', x);
REINDEX INDEX rebuilt_set;
SELECT is((rate, seed)::text, '(0.001,-7)', 'REINDEX does') FROM rebuilt_info;
SELECT cmp_ok(i.bytes, '<', b.bytes, 'and makes a set for fewer elements') FROM rebuilt_before b, rebuilt_info i;
SELECT is(count(*), 0::bigint, 'which finds all rows') FROM rebuilt WHERE NOT bloomset_contains('rebuilt', 'x', x);

-- The sizes: as a filter of the elements, rounded up to pages.
CREATE TABLE sized AS SELECT i, i % 1000 AS few FROM generate_series(1, 50000) i;
CREATE INDEX sized_i ON sized USING bloomset (i) WITH (expected_items = 100);
CREATE INDEX sized_few ON sized USING bloomset (few) WITH (expected_items = 100);
CREATE INDEX sized_many ON sized USING bloomset (few) WITH (expected_items = 1000000);
SELECT unnest(ARRAY[
    cmp_ok(bytes, '<=', (bloom_bytes(n) * 1.1 + 4 * 8192)::bigint, index || ': not much larger than a filter'),
    cmp_ok(bytes, '>=', bloom_bytes(n), index || ': large enough'),
    cmp_ok(capacity, '>=', n, index || ': capacity'),
    is(bytes, pg_relation_size(index), index || ': bytes'),
    is(generations, 1, index || ': generations'),
    is(reindex_pays, false, index || ': REINDEX does not pay')])
FROM (VALUES ('sized_i', 50000::bigint), ('sized_few', 1000), ('sized_many', 1000000)) v (index, n),
    bloomset_info(index::regclass);

-- A small set takes two pages, at any rate, which have room for all that fits there.
CREATE TABLE small (x int);
SELECT is(pg_temp.answer(format('CREATE INDEX small_%s ON small USING bloomset (x) WITH (false_positive_rate = %s)', n, rate)),
    '00000', 'an empty set at ' || rate)
FROM unnest('{0.5,0.1,0.01,1e-3,1e-5,1e-7}'::float8[]) WITH ORDINALITY v (rate, n);
CREATE INDEX small_50 ON small USING bloomset (x) WITH (expected_items = 50);
INSERT INTO small SELECT generate_series(1, 50);
REINDEX TABLE small;
SELECT is(bytes, 16384::bigint, indexrelid::regclass || ': two pages with 50 rows')
FROM pg_index, bloomset_info(indexrelid) WHERE indrelid = 'small'::regclass ORDER BY indexrelid;
SELECT cmp_ok(capacity, '>', 1000::bigint, format('small_%s: a page is full', n))
FROM unnest('{1,2,3,4,5,6}'::int[]) n, bloomset_info(format('small_%s', n)::regclass);

-- A build within little memory writes hashes to files, and the filter in parts.
CREATE TABLE many AS SELECT (i * 7919::bigint) % 400000 AS x FROM generate_series(1, 500000) i;
CREATE INDEX many_x ON many USING bloomset (x) WITH (false_positive_rate = 1e-6);
CREATE TABLE many_filters AS SELECT * FROM bloomset_filters('many', 'x');
SET LOCAL maintenance_work_mem = '1MB';
REINDEX INDEX many_x;
RESET maintenance_work_mem;
INSERT INTO many_filters SELECT * FROM bloomset_filters('many', 'x');
SELECT is(count(DISTINCT filter::bytea), 1::bigint, 'the same set with little memory and with much') FROM many_filters;
SELECT is(count(*), 0::bigint, 'which has all rows') FROM many WHERE NOT bloomset_contains('many', 'x', x);
SELECT ok(400000 - elements BETWEEN 0 AND 10, 'and each value once') FROM bloomset_info('many_x');
DROP TABLE many;

-- Partial indexes and expressions, asked by index

CREATE TABLE orders (id int, customer text, open bool, "Two Words" text,
    doubled int GENERATED ALWAYS AS (id * 2) STORED);
INSERT INTO orders SELECT i, 'Customer' || i, i % 2 = 0, 'w' || i FROM generate_series(1, 500) i;
CREATE INDEX orders_open ON orders USING bloomset (id) WITH (false_positive_rate = 1e-7) WHERE open;
CREATE INDEX orders_lower ON orders USING bloomset (lower(customer)) WITH (false_positive_rate = 1e-7);
CREATE INDEX orders_next ON orders USING bloomset ((id + 1)) WITH (false_positive_rate = 1e-7) WHERE NOT open;
INSERT INTO orders SELECT i, 'Customer' || i, i % 2 = 0, 'w' || i FROM generate_series(501, 1000) i;
SELECT unnest(ARRAY[
    is(count(*) FILTER (WHERE bloomset_contains('orders_open', i) <> (i BETWEEN 1 AND 1000 AND i % 2 = 0)),
    0::bigint, 'a partial set answers about the rows of its predicate'),
    is(count(*) FILTER (WHERE bloomset_contains('orders_lower', 'customer' || i) <> (i BETWEEN 1 AND 1000)
        OR bloomset_contains('orders_lower', 'Customer' || i)), 0::bigint, 'a set of an expression about its values'),
    is(count(*) FILTER (WHERE bloomset_contains('orders_next', i::bigint) <> (i BETWEEN 2 AND 1000 AND i % 2 = 0)),
    0::bigint, 'a partial set of an expression about both')])
FROM generate_series(-100, 1100) i;
UPDATE orders SET open = true WHERE id = 501;
SELECT is(bloomset_contains('orders_open', 501), true, 'a row comes under the predicate');
SELECT is(pg_temp.answer(format('SELECT bloomset_contains(''orders'', %L, 1)', c)), '55000', c || ': no set by column')
FROM unnest('{id,customer,doubled}'::text[]) c;
SELECT unnest(ARRAY[
    is(pg_temp.answer('SELECT bloomset_partitions(''orders'', ''id'', 1)'), '55000', 'nor leaves'),
    is(pg_temp.answer('SELECT bloomset_filters(''orders'', ''id'')'), '55000', 'nor filters')]);
CREATE INDEX ON orders USING bloomset (doubled) WITH (false_positive_rate = 1e-7);
CREATE INDEX ON orders USING bloomset ("Two Words") WITH (false_positive_rate = 1e-7);
CREATE INDEX ON orders USING bloomset (customer COLLATE "C") WITH (false_positive_rate = 1e-7);
SELECT unnest(ARRAY[
    is(count(*) FILTER (WHERE bloomset_contains('orders', 'doubled', i) <> (i BETWEEN 1 AND 2000 AND i % 2 = 0)),
    0::bigint, 'a generated column'),
    is(count(*) FILTER (WHERE bloomset_contains('orders', 'Two Words', 'w' || i) <> (i BETWEEN 1 AND 1000)),
    0::bigint, 'a column whose name needs quotes'),
    is(count(*) FILTER (WHERE bloomset_contains('orders', 'customer', 'Customer' || i) <> (i BETWEEN 1 AND 1000)),
    0::bigint, 'another deterministic collation than the column''s')])
FROM generate_series(-100, 2100) i;

-- Which of several sets

CREATE TABLE several (x int);
INSERT INTO several SELECT generate_series(1, 20000);
CREATE INDEX several_1 ON several USING bloomset (x) WITH (false_positive_rate = 0.1, expected_items = 20000);
CREATE INDEX several_2 ON several USING bloomset (x) WITH (false_positive_rate = 0.1, expected_items = 20000, seed = 2);
SELECT is(count(*), 0::bigint, 'two sets of a column: no row is missed')
FROM several WHERE NOT bloomset_contains('several', 'x', x);
SELECT unnest(ARRAY[
    is(count(*) FILTER (WHERE bloomset_contains('several', 'x', -i)
        <> (bloomset_contains('several_1', -i) AND bloomset_contains('several_2', -i))), 0::bigint,
    'any "no" is enough'),
    cmp_ok(count(*) FILTER (WHERE bloomset_contains('several', 'x', -i))::float8, '<=', pg_temp.at_most(0.013, 100000),
    'so the rates multiply')])
FROM generate_series(1, 100000) i;
CREATE TABLE several_filters AS SELECT * FROM bloomset_filters('several', 'x');
SELECT is(count(*), count(DISTINCT (partition, generation)), 'the filters are those of one set')
FROM several_filters;
SELECT is(count(*), 0::bigint, 'which hold all rows')
FROM several WHERE NOT EXISTS (SELECT FROM several_filters WHERE filter @> x);

-- A set that cannot answer says "maybe". The server skips an index that is not ready, so
-- that rows are missing from it.
CREATE TABLE unready (x int);
CREATE INDEX unready_1 ON unready USING bloomset (x) WITH (false_positive_rate = 1e-7);
CREATE FUNCTION pg_temp.answers(x int, OUT by_column text, OUT by_index text, OUT leaves text) LANGUAGE sql AS $$
    SELECT pg_temp.answer(format('SELECT bloomset_contains(''unready'', ''x'', %s)', x)),
        pg_temp.answer(format('SELECT bloomset_contains(''unready_1'', %s)', x)),
        pg_temp.answer(format('SELECT count(*) FROM bloomset_partitions(''unready'', ''x'', %s)', x))
$$;
SELECT is(a::text, '(false,false,0)', 'a set that is ready says "no"') FROM pg_temp.answers(1) a;
UPDATE pg_index SET indisvalid = false, indisready = false WHERE indexrelid = 'unready_1'::regclass;
INSERT INTO unready VALUES (1);
SELECT is(by_index, 'true', 'index not ready: maybe') FROM pg_temp.answers(1);
SELECT ok(by_column IN ('true', '55000') AND leaves IN ('1', '55000'), 'and by column never "no"')
FROM pg_temp.answers(1);
UPDATE pg_index SET indisready = true WHERE indexrelid = 'unready_1'::regclass;
SELECT is(by_index, 'true', 'index not valid: maybe') FROM pg_temp.answers(1);
SELECT ok(by_column IN ('true', '55000') AND leaves IN ('1', '55000'), 'and by column never "no"')
FROM pg_temp.answers(1);
SELECT is(i::text, '(1,t)', 'its rate is 1, and REINDEX pays')
FROM (SELECT current_rate, reindex_pays FROM bloomset_info('unready_1')) i;
CREATE INDEX unready_2 ON unready USING bloomset (x) WITH (false_positive_rate = 1e-7);
SELECT is(a::text, '(true,true,1)', 'a valid set beside it knows the row') FROM pg_temp.answers(1) a;
SELECT is(a::text, '(false,true,0)', 'and says "no" to others') FROM pg_temp.answers(2) a;
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'unready_1'::regclass;
DROP INDEX unready_2;
REINDEX INDEX unready_1;
SELECT is(i::text, '(t,f)', 'valid again, the set has its rate')
FROM (SELECT current_rate <= 1e-7, reindex_pays FROM bloomset_info('unready_1')) i;
SELECT is(a::text, '(true,true,1)', 'REINDEX repairs it') FROM pg_temp.answers(1) a;
SELECT is(a::text, '(false,false,0)', 'so that it says "no" again') FROM pg_temp.answers(2) a;
-- indcheckxmin: the set lacks row versions that older snapshots see, until its pg_index row is older than they are.
UPDATE pg_index SET indcheckxmin = true WHERE indexrelid = 'unready_1'::regclass;
SELECT is(a::text, '(true,true,1)', 'indcheckxmin of a young index: maybe') FROM pg_temp.answers(2) a;
CREATE TABLE hot (x int, y int);
INSERT INTO hot VALUES (1, 1);
UPDATE hot SET x = 2;
CREATE INDEX hot_x ON hot USING bloomset (x);
SELECT is(bloomset_contains('hot', 'x', 1), true, 'which index_build() sets for broken HOT chains');
SELECT is(indcheckxmin, true, 'as here') FROM pg_index WHERE indexrelid = 'hot_x'::regclass;

-- Rows that come

CREATE TABLE written (id int PRIMARY KEY, x text);
CREATE INDEX written_x ON written USING bloomset (x) WITH (false_positive_rate = 1e-7);
INSERT INTO written SELECT i, 'insert' || i FROM generate_series(1, 1000) i;
UPDATE written SET x = 'update' || id WHERE id % 3 = 0;
INSERT INTO written SELECT i, 'conflict' || i FROM generate_series(990, 1010) i
    ON CONFLICT (id) DO UPDATE SET x = excluded.x;
MERGE INTO written USING generate_series(1005, 1020) i ON id = i
    WHEN MATCHED THEN UPDATE SET x = 'merge' || i WHEN NOT MATCHED THEN INSERT VALUES (i, 'new' || i);
WITH moved AS (DELETE FROM written WHERE id <= 10 RETURNING id)
INSERT INTO written SELECT -id, 'moved' || id FROM moved;
SELECT is(count(*), 0::bigint, 'INSERT, UPDATE, ON CONFLICT, MERGE and WITH: no row is missed')
FROM written WHERE NOT bloomset_contains('written', 'x', x);
-- The same text, stored in every way.
CREATE TABLE wide (id int, x text);
CREATE INDEX wide_x ON wide USING bloomset (x) WITH (false_positive_rate = 1e-7);
INSERT INTO wide SELECT i, repeat('a', i) FROM unnest('{1,100,130,2000,5000,1000000}'::int[]) i;
ALTER TABLE wide ALTER x SET STORAGE external;
INSERT INTO wide SELECT i, repeat('b', i) FROM unnest('{1,100,130,2000,5000,1000000}'::int[]) i;
CREATE INDEX wide_x2 ON wide USING bloomset (x) WITH (false_positive_rate = 1e-7);
SELECT unnest(ARRAY[
    is(count(*) FILTER (WHERE bloomset_contains('wide_x', x) AND bloomset_contains('wide_x2', x)
        AND bloomset_contains('wide_x', repeat(left(x, 1), length(x)))), 12::bigint,
    'compressed and out-of-line values'),
    is(count(*) FILTER (WHERE bloomset_contains('wide_x', x || 'x') OR bloomset_contains('wide_x2', x || 'x')),
        0::bigint, 'and not those with another end')])
FROM wide;

-- Growth: a set made for 100 elements, or for those of a page, gets 20,000

CREATE FUNCTION pg_temp.grow(type text, element text, rate float8, steps int, seed int, items int DEFAULT 100)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DROP TABLE IF EXISTS grown;
    EXECUTE format('CREATE TABLE grown (x %s)', type);
    EXECUTE format('CREATE INDEX grown_set ON grown USING bloomset (x) WITH (false_positive_rate = %s, seed = %s%s)',
        rate, seed, ', expected_items = ' || items);
    FOR step IN 1..steps LOOP
        EXECUTE format('INSERT INTO grown SELECT %s FROM generate_series($1 + 1, $1 + $2) i', element)
            USING 20000 / steps * (step - 1), 20000 / steps;
    END LOOP;
END
$$;
CREATE FUNCTION pg_temp.measured(element text, probes int) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
    hits float8;
BEGIN
    EXECUTE format('SELECT count(*) FROM generate_series(20001, 20000 + $1) i
        WHERE bloomset_contains(''grown'', ''x'', %s)', element) INTO STRICT hits USING probes;
    RETURN hits;
END
$$;
CREATE FUNCTION pg_temp.grown_missed() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM grown WHERE NOT bloomset_contains('grown', 'x', x));
END
$$;
CREATE TABLE growth (n int, type text, element text, rate float8, steps int, probes int, items int DEFAULT 100);
INSERT INTO growth VALUES
    (1, 'int', 'i', 0.1, 1, 100000), (2, 'int', 'i', 0.01, 20, 200000), (3, 'text', '''user'' || i', 0.01, 1, 200000),
    (4, 'uuid', 'md5(i::text)::uuid', 0.001, 4, 500000), (5, 'date', 'date ''2000-01-01'' + i', 0.5, 10, 100000),
    (6, 'int', 'i', 1e-7, 1, 100000), (7, 'numeric', 'i / 10.0', 0.01, 500, 200000);
INSERT INTO growth VALUES
    (8, 'int', 'i', 0.01, 20, 200000, NULL), (9, 'int', 'i', 0.5, 1, 100000, 1), (10, 'int', 'i', 0.001, 7, 500000, NULL);
CREATE FUNCTION pg_temp.growth() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    g growth;
    info record;
    what text;
    hits float8;
BEGIN
    FOR g IN SELECT * FROM growth ORDER BY n LOOP
        what := format('%s: %s at %s in %s steps', g.n, g.type, g.rate, g.steps);
        PERFORM pg_temp.grow(g.type, g.element, g.rate, g.steps, 5, g.items);
        hits := pg_temp.measured(g.element, g.probes);
        SELECT * INTO info FROM bloomset_info('grown_set');
        RETURN NEXT is(pg_temp.grown_missed(), 0::bigint, what || ': no row is missed');
        RETURN NEXT cmp_ok(abs(hits - g.probes * info.current_rate), '<=',
            0.1 * g.probes * info.current_rate + 4 * sqrt(g.probes * info.current_rate),
            what || ': the rate measured is current_rate');
        RETURN NEXT ok(abs(info.requested_rate / g.rate - 1) < 1e-6, what || ': requested_rate');
        -- What is in the set by chance is not counted.
        RETURN NEXT ok(20000 - info.elements BETWEEN 0 AND pg_temp.at_most(info.current_rate, 20000),
            format('%s: %s elements', what, info.elements));
        RETURN NEXT cmp_ok(info.capacity, '>=', info.elements, what || ': capacity');
        -- 100 + 200 + ... + 12,800 is more than 20,000.
        RETURN NEXT ok(info.generations BETWEEN 2 AND 8, format('%s: %s generations', what, info.generations));
        RETURN NEXT is(info.bytes, pg_relation_size('grown_set'), what || ': bytes');
        RETURN NEXT is(info.reindex_pays, true, what || ': REINDEX pays');
        RETURN NEXT lives_ok('SELECT bloomset_check(''grown_set'')', what || ': bloomset_check');
        CREATE TABLE grown_filters AS SELECT * FROM bloomset_filters('grown', 'x');
        RETURN NEXT is((SELECT array_agg(generation ORDER BY generation) FROM grown_filters
            WHERE partition = 'grown'::regclass), ARRAY(SELECT generate_series(1, info.generations)),
            what || ': a filter for each generation');
        RETURN NEXT cmp_ok((SELECT sum(requested_rate::float8) FROM grown_filters, bloom_info(filter)), '<=',
            g.rate * (1 + 1e-6::float8), what || ': the sum of their rates');
        EXECUTE format('SELECT count(*) FROM generate_series(10001, 30000) i
            WHERE bloomset_contains(''grown'', ''x'', %1$s)
                <> EXISTS (SELECT FROM grown_filters WHERE filter @> (%1$s)::%2$s)', g.element, g.type) INTO STRICT hits;
        RETURN NEXT is(hits, 0::float8, what || ': the filters say what the set says');
        DROP TABLE grown_filters;
    END LOOP;
END
$$;
SELECT pg_temp.growth();

-- The rate is the mean over sets. A generation for few elements varies around it.
CREATE FUNCTION pg_temp.rates(rate float8, sets int, probes int) RETURNS TABLE (measured float8, known float8)
LANGUAGE plpgsql AS $$
BEGIN
    FOR seed IN 1..sets LOOP
        PERFORM pg_temp.grow('int', 'i', rate, 1, seed);
        measured := pg_temp.measured('i', probes) / probes;
        known := (SELECT current_rate FROM bloomset_info('grown_set'));
        RETURN NEXT;
    END LOOP;
END
$$;
SELECT unnest(ARRAY[
    cmp_ok(avg(measured), '<=', 1.05 * rate + 4 * sqrt(var_samp(measured) / 10 + rate * (1 - rate) / 200000),
        format('growth at %s: the rate measured', rate)),
    cmp_ok(avg(known), '<=', 1.05 * rate + 4 * sqrt(var_samp(known) / 10), format('growth at %s: current_rate', rate))])
FROM unnest('{0.5,0.3,0.1,0.01,0.001}'::float8[]) rate, pg_temp.rates(rate, 10, 20000) GROUP BY rate ORDER BY rate;
SELECT is(pg_temp.grow('numeric', 'i / 10.0', 0.01, 1, 0)::text, '', 'a set that grew');

-- Full to its capacity, a set of one generation has the rate asked, too.
CREATE TABLE full_set (x int);
CREATE INDEX full_set_x ON full_set USING bloomset (x) WITH (expected_items = 20000);
INSERT INTO full_set SELECT generate_series(1, 20000);
SELECT cmp_ok(count(*) FILTER (WHERE bloomset_contains('full_set', 'x', -i))::float8, '<=',
    pg_temp.at_most(0.01, 200000), 'the rate at capacity') FROM generate_series(1, 200000) i;
SELECT cmp_ok(generations, '<=', 2, 'a set that has what it was made for') FROM bloomset_info('full_set_x');
SELECT is(count(*), 0::bigint, 'and finds all') FROM full_set WHERE NOT bloomset_contains('full_set', 'x', x);

-- REINDEX compacts to one generation, and forgets

-- Rows of a rolled back subtransaction are dead at once, deleted ones only when no snapshot sees them.
DO $$
BEGIN
    INSERT INTO grown SELECT -i FROM generate_series(1, 5000) i;
    RAISE division_by_zero;
EXCEPTION WHEN division_by_zero THEN
END
$$;
SELECT is(count(*) FILTER (WHERE bloomset_contains('grown', 'x', -i::numeric)), 5000::bigint,
    'what is in the set stays there') FROM generate_series(1, 5000) i;
-- The rate of a small set is above the one asked for by chance, which REINDEX does not change.
CREATE TABLE seeds (x int);
INSERT INTO seeds SELECT generate_series(1, 100);
DO $$
BEGIN
    FOR seed IN 1..50 LOOP
        EXECUTE format('CREATE INDEX seeds_%s ON seeds USING bloomset (x) WITH (seed = %1$s, expected_items = 100)', seed);
    END LOOP;
END
$$;
SELECT unnest(ARRAY[
    cmp_ok(count(*) FILTER (WHERE current_rate > requested_rate), '>', 0::bigint, 'small sets above their rate'),
    is(count(*) FILTER (WHERE reindex_pays), 0::bigint, 'for which REINDEX does not pay')])
FROM generate_series(1, 50) seed, bloomset_info(('seeds_' || seed)::regclass);
CREATE TABLE before_reindex AS SELECT * FROM bloomset_info('grown_set');
REINDEX INDEX grown_set;
SELECT unnest(ARRAY[
    is(generations, 1, 'one generation'),
    ok(20000 - elements BETWEEN 0 AND pg_temp.at_most(0.01, 20000), format('%s elements', elements)),
    cmp_ok(capacity, '>=', 20000::bigint, 'capacity'),
    cmp_ok(bytes, '<=', (SELECT bytes FROM before_reindex), 'no more bytes'),
    is(bytes, pg_relation_size('grown_set'), 'as the file says'),
    is(reindex_pays, false, 'REINDEX does not pay again'),
    cmp_ok(current_rate, '<=', 0.01::float8, 'the rate')])
FROM bloomset_info('grown_set');
SELECT is(pg_temp.grown_missed(), 0::bigint, 'no row is missed after REINDEX');
SELECT cmp_ok(count(*) FILTER (WHERE bloomset_contains('grown', 'x', -i::numeric))::float8, '<=',
    pg_temp.at_most(0.01, 5000), 'the dead ones are forgotten') FROM generate_series(1, 5000) i;
SELECT cmp_ok(pg_temp.measured('i / 10.0', 200000), '<=', pg_temp.at_most(0.01, 200000), 'the rate measured');
SELECT is((SELECT count(*) FROM bloomset_filters('grown', 'x')), 1::bigint, 'one filter');
TRUNCATE grown;
SELECT is((elements, generations)::text, '(0,1)', 'TRUNCATE empties the set') FROM bloomset_info('grown_set');
SELECT is(current_rate, 0::float8, 'which then says "no" to everything') FROM bloomset_info('grown_set');
SELECT is(count(*) FILTER (WHERE bloomset_contains('grown', 'x', i / 10.0)), 0::bigint, 'as it does')
FROM generate_series(1, 20000) i;

-- Filters

-- A generation is the filter that bloom_agg builds: emptied and filled again, it has the same bytes.
CREATE FUNCTION pg_temp.emptied(f bytea) RETURNS bloomfilter LANGUAGE sql
    RETURN (substr(f, 1, 2) || '\x01' || substr(f, 4, 1) || '\x00000000' || substr(f, 9, 20))::bloomfilter;
CREATE TABLE made (i int, t text, n numeric, u uuid, b bytea, d date, inet inet);
INSERT INTO made SELECT i, 'user' || i, i / 100.0, md5(i::text)::uuid, decode(md5(i::text), 'hex'),
    date '2000-01-01' + i, inet '10.0.0.0' + i FROM generate_series(1, 20000) i;
CREATE FUNCTION pg_temp.made_filter(c name, rate float8, seed bigint) RETURNS bloomfilter LANGUAGE plpgsql AS $$
DECLARE
    f bloomfilter;
BEGIN
    EXECUTE format('CREATE INDEX made_set ON made USING bloomset (%I)
        WITH (false_positive_rate = %s, expected_items = 1000, seed = %L)', c, rate, seed);
    SELECT filter INTO STRICT f FROM bloomset_filters('made', c);
    DROP INDEX made_set;
    RETURN f;
END
$$;
CREATE FUNCTION pg_temp.aggregated(c name, empty bloomfilter) RETURNS bloomfilter LANGUAGE plpgsql AS $$
DECLARE
    f bloomfilter;
BEGIN
    EXECUTE format('SELECT bloom_agg(%I, $1) FROM made', c) INTO STRICT f USING empty;
    RETURN f;
END
$$;
CREATE TABLE made_filters AS
SELECT v.*, pg_temp.made_filter(c, rate, seed) AS f
FROM (VALUES ('i', 0.01, 0), ('i', 0.001, -1), ('t', 0.01, 5000000000), ('n', 0.1, 0), ('u', 1e-6, 0), ('b', 0.5, 1),
    ('d', 0.01, 0), ('inet', 0.01, 0)) v (c, rate, seed);
SELECT unnest(ARRAY[
    is(f::bytea, pg_temp.aggregated(c, pg_temp.emptied(f::bytea))::bytea,
        format('%s at %s: the bytes that bloom_agg gives', c, rate)),
    is((i.seed, i.layout, i.hashes, i.element_type)::text, (a.seed, a.layout, a.hashes, a.element_type)::text,
        format('%s at %s: seed, layout, k and class', c, rate))])
FROM made_filters m, bloom_info(f) i,
    LATERAL bloom_info(pg_temp.aggregated(c, bloom_create(20000, i.requested_rate, 'blocked', m.seed))) a;
-- The first generation gets most of the rate.
SELECT ok(requested_rate BETWEEN 0.8 * rate AND rate, format('%s at %s: the rate of a generation', c, rate))
FROM made_filters, bloom_info(f);
CREATE INDEX ON made USING bloomset (t);
CREATE INDEX ON made USING bloomset (u);
CREATE TABLE made_sets AS SELECT (SELECT filter FROM bloomset_filters('made', 't')) AS t,
    (SELECT filter FROM bloomset_filters('made', 'u')) AS u;
SELECT unnest(ARRAY[
    is(count(*) FILTER (WHERE bloomset_contains('made', 't', 'user' || i) <> t @> ('user' || i)
        OR bloomset_contains('made', 'u', md5(i::text)) <> u @> md5(i::text)::uuid), 0::bigint,
    'sets and their filters agree'),
    is(count(*) FILTER (WHERE t @> ('user' || i) AND u @> md5(i::text)::uuid AND i BETWEEN 1 AND 20000), 20000::bigint,
    'and find all')])
FROM made_sets, generate_series(-20000, 40000) i;

-- bloomset_check

CREATE TABLE checked (x int, y text);
CREATE INDEX checked_x ON checked USING bloomset (x) WITH (false_positive_rate = 1e-7);
CREATE INDEX checked_y ON checked USING bloomset (upper(y)) WITH (false_positive_rate = 1e-7) WHERE x % 2 = 0;
INSERT INTO checked SELECT i, 'y' || i FROM generate_series(1, 5000) i;
INSERT INTO checked VALUES (NULL, NULL);
SELECT lives_ok(format('SELECT bloomset_check(%L)', i), i || ' is good') FROM unnest('{checked_x,checked_y}'::text[]) i;
-- The server does not put a row into an index that it believes not to be ready.
CREATE FUNCTION pg_temp.set_ready(index text, ready bool) RETURNS void LANGUAGE sql AS
    'UPDATE pg_index SET indisready = ready WHERE indexrelid = index::regclass';
DO $$
BEGIN
    PERFORM pg_temp.set_ready('checked_x', false), pg_temp.set_ready('checked_y', false);
    INSERT INTO checked VALUES (5001, 'y5001');
    PERFORM pg_temp.set_ready('checked_x', true), pg_temp.set_ready('checked_y', true);
END
$$;
SELECT throws_ok('SELECT bloomset_check(''checked_x'')', 'XX002', NULL, 'a row is missing');
SELECT lives_ok('SELECT bloomset_check(''checked_y'')', 'but not under the other set''s predicate');
-- By the other column, since a scan of the set would not find the row.
UPDATE checked SET x = 5003 WHERE y = 'y5001';
SELECT lives_ok('SELECT bloomset_check(''checked_x'')', 'a row version that is not visible does not count');
DO $$
BEGIN
    PERFORM pg_temp.set_ready('checked_y', false);
    INSERT INTO checked VALUES (5004, 'y5004');
    PERFORM pg_temp.set_ready('checked_y', true);
END
$$;
SELECT throws_ok('SELECT bloomset_check(''checked_y'')', 'XX002', NULL, 'a row is missing under the predicate');
SELECT lives_ok('SELECT bloomset_check(''checked_x'')', 'but not in the other set');
REINDEX INDEX checked_y;
SELECT lives_ok('SELECT bloomset_check(''checked_y'')', 'REINDEX repairs it');

-- Kinds of relations

CREATE TABLE source AS SELECT generate_series(1, 1000) AS i;
CREATE MATERIALIZED VIEW materialized AS SELECT i FROM source;
CREATE INDEX materialized_i ON materialized USING bloomset (i) WITH (false_positive_rate = 1e-7);
CREATE UNLOGGED TABLE unlogged (i int);
CREATE INDEX unlogged_i ON unlogged USING bloomset (i) WITH (false_positive_rate = 1e-7);
INSERT INTO unlogged SELECT i FROM source;
CREATE TEMP TABLE temporary (i int);
CREATE INDEX temporary_i ON temporary USING bloomset (i) WITH (false_positive_rate = 1e-7);
INSERT INTO temporary SELECT i FROM source;
SELECT unnest(ARRAY[
    is(count(*) FILTER (WHERE bloomset_contains(r::regclass, 'i', i) <> (i BETWEEN 1 AND 1000)), 0::bigint, r),
    is(count(*) FILTER (WHERE bloomset_contains((r || '_i')::regclass, i) <> (i BETWEEN 1 AND 1000)), 0::bigint,
        r || ', by index')])
FROM unnest('{materialized,unlogged,temporary}'::text[]) r, generate_series(-1000, 2000) i GROUP BY r ORDER BY r;
SELECT unnest(ARRAY[
    is((SELECT array_agg(l) FROM bloomset_partitions(r::regclass, 'i', 7) l), ARRAY[r::regclass], r || ' is a leaf'),
    is((SELECT bool_and(filter @> 7) FROM bloomset_filters(r::regclass, 'i')), true, r || ' has a filter'),
    lives_ok(format('SELECT bloomset_check(%L)', r || '_i'), r || ' is good')])
FROM unnest('{materialized,unlogged,temporary}'::text[]) r;
UPDATE source SET i = i + 1000;
REFRESH MATERIALIZED VIEW materialized;
SELECT is(count(*) FILTER (WHERE bloomset_contains('materialized', 'i', i) <> (i > 1000)), 0::bigint,
    'REFRESH builds the set again') FROM generate_series(1, 2000) i;

-- A worker has no part in the leader's local buffers, so the set of a temporary table says "maybe".
CREATE FUNCTION pg_temp.in_worker(bool) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config(name, CASE WHEN $1 THEN 'on' ELSE 'off' END, true),
        set_config('max_parallel_workers_per_gather', CASE WHEN $1 THEN '2' ELSE '0' END, true)
    FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
END
$$;
DO 'BEGIN PERFORM pg_temp.in_worker(true); END';
CREATE TABLE from_worker AS SELECT bloomset_contains('temporary', 'i', 7) AS temporary_there,
    bloomset_contains('temporary', 'i', -7) AS temporary_absent, bloomset_contains('temporary_i', -7) AS by_index,
    bloomset_contains('unlogged', 'i', 7) AS unlogged_there, bloomset_contains('unlogged', 'i', -7) AS unlogged_absent;
DO 'BEGIN PERFORM pg_temp.in_worker(false); END';
SELECT is(w::text, '(t,t,t,t,f)', 'a worker does not say "no" for a temporary table') FROM from_worker w;

CREATE VIEW a_view AS SELECT * FROM unlogged;
CREATE SEQUENCE a_sequence;
CREATE FOREIGN DATA WRAPPER dummy;
CREATE SERVER dummy FOREIGN DATA WRAPPER dummy;
CREATE FOREIGN TABLE a_foreign_table (i int) SERVER dummy;
CREATE TYPE a_type AS (i int);
CREATE INDEX a_btree ON unlogged (i);
CREATE TABLE bare (i int, gone int);
ALTER TABLE bare DROP gone;
CREATE TABLE parted (i int) PARTITION BY LIST (i);
CREATE INDEX parted_btree ON parted (i);
SELECT is(pg_temp.answer(format(query, r)), '42809', format(query, r))
FROM unnest('{a_view,a_sequence,a_foreign_table,a_type,a_btree,unlogged_i}'::text[]) r,
    unnest(ARRAY['SELECT bloomset_contains(%L, ''i'', 7)', 'SELECT bloomset_partitions(%L, ''i'', 7)',
        'SELECT bloomset_filters(%L, ''i'')']) query;
SELECT is(pg_temp.answer(format(query, r)), '42809', format(query, r))
FROM unnest('{unlogged,a_view,a_sequence,a_foreign_table,a_type,a_btree,parted,parted_btree}'::text[]) r,
    unnest(ARRAY['SELECT bloomset_contains(%L, 7)', 'SELECT bloomset_info(%L)', 'SELECT bloomset_check(%L)']) query;
SELECT is(pg_temp.answer(format(query, r, c)), state, format(query, r, c))
FROM (VALUES ('unlogged', 'I', '42703'), ('unlogged', 'nothing', '42703'),
        ('bare', '........pg.dropped.2........', '42703'), ('parted', 'nothing', '42703'), ('bare', 'i', '55000'),
        ('parted', 'i', '55000'), ('pg_class', 'relname', '55000')) v (r, c, state),
    unnest(ARRAY['SELECT bloomset_contains(%L, %L, ''7'')', 'SELECT bloomset_partitions(%L, %L, ''7'')',
        'SELECT bloomset_filters(%L, %L)']) query;
SELECT isnt(coalesce(pg_temp.hint_of(query), ''), '', 'a hint how to make a set: ' || query)
FROM unnest(ARRAY['SELECT bloomset_contains(''bare'', ''i'', 7)', 'SELECT bloomset_partitions(''bare'', ''i'', 7)',
    'SELECT bloomset_filters(''bare'', ''i'')']) query;
-- OIDs of nothing.
SELECT matches(pg_temp.answer(query), '^[0-9A-Z]{5}$', query)
FROM unnest(ARRAY['SELECT bloomset_contains(4000000000::regclass, ''i'', 7)',
    'SELECT bloomset_contains(4000000000::regclass, 7)', 'SELECT bloomset_info(4000000000::regclass)',
    'SELECT bloomset_check(0::regclass)', 'SELECT bloomset_filters(0::regclass, ''i'')']) query;

-- Another table access method.
CREATE ACCESS METHOD other_heap TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE elsewhere (i int) USING other_heap;
SELECT throws_ok('CREATE INDEX ON elsewhere USING bloomset (i)', '0A000', NULL, 'a table that is not a heap');

-- Changes of the table

CREATE TABLE altered (i int, v varchar(10), c char(8), t timestamp, net cidr, n numeric(10, 2), number text);
INSERT INTO altered SELECT i, 'v' || i, 'c' || i, timestamp '2000-01-01' + i * interval '1 hour',
    ('10.0.' || i % 256 || '.0/24')::cidr, i / 100.0, i FROM generate_series(1, 200) i;
CREATE INDEX altered_i ON altered USING bloomset (i) WITH (false_positive_rate = 1e-7);
CREATE INDEX altered_v ON altered USING bloomset (v) WITH (false_positive_rate = 1e-7);
CREATE INDEX altered_c ON altered USING bloomset (c) WITH (false_positive_rate = 1e-7);
CREATE INDEX altered_t ON altered USING bloomset (t) WITH (false_positive_rate = 1e-7);
CREATE INDEX altered_net ON altered USING bloomset (net) WITH (false_positive_rate = 1e-7);
CREATE INDEX altered_n ON altered USING bloomset (n) WITH (false_positive_rate = 1e-7);
CREATE INDEX altered_number ON altered USING bloomset (number) WITH (false_positive_rate = 1e-7);
-- Changes the type of a column, and inserts a value. Returns whether the index's file is the same.
CREATE FUNCTION pg_temp.altered(c name, type text, added text, absent text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    index text := 'altered_' || c;
    before oid := pg_relation_filenode(index);
    missed int;
    found int;
BEGIN
    EXECUTE format('ALTER TABLE altered ALTER %I TYPE %s', c, type);
    EXECUTE format('SELECT count(*) FROM generate_series(1, 200) i WHERE bloomset_contains(''altered'', %L, %s)',
        c, absent) INTO STRICT found;
    EXECUTE format('INSERT INTO altered (%I) VALUES (%s)', c, added);
    EXECUTE format('SELECT count(*) FROM altered WHERE NOT bloomset_contains(''altered'', %1$L, %1$I)
        OR NOT bloomset_contains(%2$L, %1$I)', c, index) INTO STRICT missed;
    RETURN format('%s, %s missed, %s found', CASE pg_relation_filenode(index) WHEN before THEN 'kept' ELSE 'built' END,
        missed, found);
END
$$;
SET LOCAL TimeZone = 'UTC';
SELECT is(pg_temp.altered(c, type, added, absent), file || ', 0 missed, 0 found', format('%s becomes %s', c, type))
FROM (VALUES
    (1, 'v', 'varchar(20)', '''new1''', '''x'' || i', 'kept'),
    (2, 'v', 'text', '''new2''', '''y'' || i', 'kept'),
    (3, 'v', 'varchar(30)', '''new3''', '''z'' || i', 'built'),
    (4, 'i', 'bigint', '5000000000', '-i', 'built'),
    (5, 'i', 'numeric', '0.5', '-i::numeric', 'built'),
    (6, 'i', 'text', '''new''', '(-i)::text', 'built'),
    (7, 'c', 'varchar', '''new ''', '''d'' || i', 'built'),
    (8, 't', 'timestamptz', 'timestamptz ''2020-01-01 00:00+00''',
        'timestamptz ''1999-01-01 00:00+00'' - i * interval ''1 day''', 'built'),
    (9, 'net', 'inet', 'inet ''10.0.0.1/24''', '(''11.0.'' || i || ''.0/24'')::inet', 'kept'),
    (10, 'n', 'numeric(12, 2)', '1e9', '-i::numeric', 'kept'),
    (11, 'n', 'numeric(12, 1)', '12.34', '-i::numeric', 'built'),
    (12, 'number', 'int USING number::int', '1000', '-i', 'built')) v (n, c, type, added, absent, file)
ORDER BY n;
RESET TimeZone;
ALTER TABLE altered RENAME v TO w;
ALTER TABLE altered RENAME TO altered_2;
ALTER INDEX altered_v RENAME TO altered_w;
SELECT is((bloomset_contains('altered_2', 'w', 'v7'), bloomset_contains('altered_w', 'v7'),
    bloomset_contains('altered_2', 'w', 'nobody'))::text, '(t,t,f)', 'renamed');
SELECT is(pg_temp.answer('SELECT bloomset_contains(''altered_2'', ''v'', ''v7'')'), '42703', 'the old name is gone');

SELECT * FROM finish();
ROLLBACK;
