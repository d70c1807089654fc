-- bloomset in trees of tables: a question about a table is one about all its partitions and
-- inheritance children, as a query's is. "No" is never wrong, whatever the shape of the
-- tree, and what was done to it a moment ago.
BEGIN;
SET LOCAL client_min_messages = warning;
SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SELECT * FROM no_plan();

\ir lib/answer.sql
-- As many "yes" as probes of absent values may give at most.
CREATE FUNCTION pg_temp.at_most(rate float8, probes bigint) RETURNS float8 LANGUAGE sql
    RETURN probes * rate + 4 * sqrt(probes * rate * (1 - rate));

CREATE FUNCTION pg_temp.contains(relation text, value text) RETURNS text LANGUAGE sql AS
    'SELECT pg_temp.answer(format(''SELECT bloomset_contains(%L, ''''v'''', %L)'', relation, value))';
CREATE FUNCTION pg_temp.leaves(relation text, value text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.answer(format('SELECT string_agg(l::text, '' '' ORDER BY l::text)
        FROM bloomset_partitions(%L, ''v'', %L) l', relation, value))
$$;
CREATE FUNCTION pg_temp.filters(relation text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.answer(format('SELECT string_agg(partition || '' '' || generation, '', ''
        ORDER BY partition::text, generation) FROM bloomset_filters(%L, ''v'')', relation))
$$;

-- Partitions of partitions, with columns at other places

CREATE TABLE tree (k int, v text) PARTITION BY RANGE (k);
CREATE TABLE tree_a PARTITION OF tree FOR VALUES FROM (0) TO (100);
CREATE TABLE tree_b (gone int, v text, gone_too date, k int);
ALTER TABLE tree_b DROP gone, DROP gone_too;
ALTER TABLE tree ATTACH PARTITION tree_b FOR VALUES FROM (100) TO (200);
CREATE TABLE tree_c (v text, k int) PARTITION BY LIST ((k % 3));
ALTER TABLE tree ATTACH PARTITION tree_c FOR VALUES FROM (200) TO (400);
CREATE TABLE tree_c0 PARTITION OF tree_c FOR VALUES IN (0);
CREATE TABLE tree_c1 (gone text, k int, v text);
ALTER TABLE tree_c1 DROP gone;
ALTER TABLE tree_c ATTACH PARTITION tree_c1 FOR VALUES IN (1);
CREATE TABLE tree_c2 PARTITION OF tree_c DEFAULT;
INSERT INTO tree SELECT k, 'v' || k FROM generate_series(0, 399, 2) k;
CREATE INDEX tree_v ON tree USING bloomset (v) WITH (false_positive_rate = 1e-7, expected_items = 500);
CREATE TABLE tree_rest PARTITION OF tree DEFAULT;
INSERT INTO tree SELECT k, 'v' || k FROM generate_series(1, 499, 2) k;
CREATE FUNCTION pg_temp.leaf_index(leaf regclass) RETURNS regclass LANGUAGE sql RETURN (SELECT indexrelid::regclass
    FROM pg_index JOIN pg_class i ON i.oid = indexrelid JOIN pg_am a ON a.oid = relam
    WHERE indrelid = leaf AND amname = 'bloomset');

CREATE TABLE expected AS SELECT k, v, tableoid::regclass AS leaf FROM tree;
SELECT is(count(DISTINCT leaf), 6::bigint, 'rows are in six leaves') FROM expected;
SELECT unnest(ARRAY[
    is(count(*) FILTER (WHERE bloomset_contains('tree', 'v', v) AND bloomset_contains('tree_v', v)), count(*),
    'each value is in the tree'),
    is(count(*) FILTER (WHERE bloomset_contains('tree', 'v', v || 'x') OR bloomset_contains('tree_v', v || 'x')),
        0::bigint, 'and no other'),
    is(count(*) FILTER (WHERE ARRAY(SELECT bloomset_partitions('tree', 'v', v)) = ARRAY[leaf]), count(*),
    'each is in its leaf'),
    is(count(*) FILTER (WHERE EXISTS (SELECT FROM bloomset_partitions('tree', 'v', v || 'x'))), 0::bigint,
    'and others in none'),
    is(count(*) FILTER (WHERE bloomset_contains('tree_c', 'v', v) = (leaf::text LIKE 'tree\_c_')), count(*),
    'a partition that has partitions answers for these'),
    is(count(*) FILTER (WHERE bloomset_contains(pg_temp.leaf_index('tree_c'), v) = (leaf::text LIKE 'tree\_c_')), count(*),
    'by index, too'),
    is(count(*) FILTER (WHERE ARRAY(SELECT bloomset_partitions('tree_c', 'v', v))
        = CASE WHEN leaf::text LIKE 'tree\_c_' THEN ARRAY[leaf] ELSE '{}' END), count(*), 'and has leaves'),
    is(count(*) FILTER (WHERE bloomset_contains(pg_temp.leaf_index(leaf), v)), count(*), 'by index of the leaf'),
    is(count(*) FILTER (WHERE bloomset_contains('tree_b', 'v', v) = (leaf = 'tree_b'::regclass)
        AND ARRAY(SELECT bloomset_partitions('tree_b', 'v', v))
            = CASE WHEN leaf = 'tree_b'::regclass THEN ARRAY[leaf] ELSE '{}' END), count(*), 'a leaf answers for itself')])
FROM expected;

CREATE TABLE tree_filters AS SELECT * FROM bloomset_filters('tree', 'v');
SELECT unnest(ARRAY[
    is(array_agg(partition::text ORDER BY partition::text), '{tree_a,tree_b,tree_c0,tree_c1,tree_c2,tree_rest}',
    'a filter for each leaf'),
    is(array_agg(DISTINCT generation), '{1}', 'each of one generation')])
FROM tree_filters;
SELECT unnest(ARRAY[
    is(count(*) FILTER (WHERE (filter @> v) <> (leaf = partition)), 0::bigint, 'which has the leaf''s values'),
    is(count(*) FILTER (WHERE filter @> (v || 'x')), 0::bigint, 'and no other')])
FROM tree_filters, expected;
SELECT is(pg_temp.filters('tree_c'), 'tree_c0 1, tree_c1 1, tree_c2 1', 'the filters of a part of the tree');

-- bloomset_info: numbers of the partitioned index are sums, its rate is that of the whole answer.
CREATE TABLE tree_infos AS SELECT leaf, i.* FROM (SELECT DISTINCT leaf FROM expected) l,
    bloomset_info(pg_temp.leaf_index(leaf)) i;
SELECT unnest(ARRAY[
    is(t.elements, 450::bigint, 'elements of the tree'),
    is(t.elements, (SELECT sum(elements)::bigint FROM tree_infos), 'are those of the leaves'),
    is(t.capacity, (SELECT sum(capacity)::bigint FROM tree_infos), 'capacity of the tree'),
    is(t.bytes, (SELECT sum(bytes)::bigint FROM tree_infos), 'bytes of the tree'),
    ok(abs(t.requested_rate / 6e-7 - 1) < 1e-6, 'the rate asked is that of six leaves'),
    is(t.reindex_pays, false, 'REINDEX does not pay')])
FROM bloomset_info('tree_v') t;
SELECT set_eq('SELECT partition, index, elements, capacity, generations, requested_rate, current_rate, bytes, reindex_pays
    FROM bloomset_info(''tree'', ''v'')', 'SELECT leaf, pg_temp.leaf_index(leaf), elements, capacity, generations, requested_rate,
    current_rate, bytes, reindex_pays FROM tree_infos', 'by column, those of each leaf');
CREATE TABLE rates (k int, v int) PARTITION BY LIST (k);
SELECT lives_ok(format('CREATE TABLE rates_%s PARTITION OF rates FOR VALUES IN (%s)', k, k), 'partition ' || k)
FROM generate_series(0, 9) k;
CREATE INDEX rates_v ON rates USING bloomset (v) WITH (false_positive_rate = 0.02, expected_items = 5000);
INSERT INTO rates SELECT i % 10, i FROM generate_series(1, 50000) i;
-- Ten partitions of 2 % say "maybe" somewhere for 18 %.
SELECT unnest(ARRAY[
    cmp_ok(count(*) FILTER (WHERE bloomset_contains('rates', 'v', -i))::float8, '<=',
    pg_temp.at_most(1 - 0.98 ^ 10, 50000), 'the rate of ten partitions'),
    ok(abs(count(*) FILTER (WHERE bloomset_contains('rates', 'v', -i)) / 50000.0 /
        (SELECT current_rate FROM bloomset_info('rates_v')) - 1) < 0.25, 'is that of bloomset_info, within their overlap')])
FROM generate_series(1, 50000) i;
SELECT is(count(*), 0::bigint, 'and no row is missed') FROM rates WHERE NOT bloomset_contains('rates', 'v', v);

SELECT is(array_agg(DISTINCT requested_rate), '{0.02}', 'which has the rate asked for') FROM bloomset_info('rates', 'v');

-- bloomset_check: the leaves of the index.
SELECT lives_ok(format('SELECT bloomset_check(%L)', pg_temp.leaf_index(leaf)), leaf || ' is good')
FROM (SELECT DISTINCT leaf FROM expected) l ORDER BY leaf::text;
SELECT is(pg_temp.answer('SELECT bloomset_check(''tree_v'')'), '', 'the tree is good');
DO $$
BEGIN
    UPDATE pg_index SET indisready = false WHERE indexrelid = pg_temp.leaf_index('tree_c1');
    INSERT INTO tree VALUES (301, 'missing');
    UPDATE pg_index SET indisready = true WHERE indexrelid = pg_temp.leaf_index('tree_c1');
END
$$;
SELECT is(pg_temp.answer('SELECT bloomset_check(''tree_v'')'), 'XX002', 'a row of a leaf is missing');
DELETE FROM tree WHERE v = 'missing';

-- Rows that move between partitions.
UPDATE tree SET k = k + 100 WHERE k % 7 = 0 AND k < 300;
SELECT is(count(*) FILTER (WHERE ARRAY(SELECT l FROM bloomset_partitions('tree', 'v', v) l WHERE l = tableoid)
    = ARRAY[tableoid::regclass]), count(*), 'a row that moved is found where it is') FROM tree;

-- Leaves that say "maybe"

CREATE FOREIGN DATA WRAPPER dummy;
CREATE SERVER dummy FOREIGN DATA WRAPPER dummy;
CREATE TABLE patchy (k int, v text) PARTITION BY LIST (k);
CREATE TABLE patchy_a PARTITION OF patchy FOR VALUES IN (1);
CREATE TABLE patchy_b PARTITION OF patchy FOR VALUES IN (2);
INSERT INTO patchy VALUES (1, 'a'), (2, 'b');
SELECT is(pg_temp.contains('patchy', 'a') || pg_temp.leaves('patchy', 'a') || pg_temp.filters('patchy'),
    '550005500055000', 'no set in the tree is an error');
CREATE INDEX patchy_a_v ON patchy_a USING bloomset (v) WITH (false_positive_rate = 1e-7);
SELECT is(concat_ws(', ', pg_temp.contains('patchy', x), pg_temp.leaves('patchy', x), pg_temp.filters('patchy')),
    'true, ' || leaves || ', 55000', x || ': a leaf has no set')
FROM (VALUES ('a', 'patchy_a patchy_b'), ('b', 'patchy_b'), ('c', 'patchy_b')) v (x, leaves);
CREATE INDEX patchy_b_v ON patchy_b USING bloomset (v) WITH (false_positive_rate = 1e-6, seed = 7);
SELECT is(concat_ws(', ', pg_temp.contains('patchy', x), coalesce(pg_temp.leaves('patchy', x), 'none')), answer,
    x || ': sets of the leaves, none of the partitioned table')
FROM (VALUES ('a', 'true, patchy_a'), ('b', 'true, patchy_b'), ('c', 'false, none')) v (x, answer);
SELECT is(pg_temp.filters('patchy'), 'patchy_a 1, patchy_b 1', 'and their filters');
CREATE INDEX patchy_a_2 ON patchy_a USING bloomset (v);
SELECT is(array_agg(concat_ws(' ', index, requested_rate) ORDER BY index::text), '{patchy_a_2 0.01,patchy_a_v 1e-07,patchy_b_v 1e-06}',
    'the rates of all sets') FROM bloomset_info('patchy', 'v');
DROP INDEX patchy_a_2;
-- The partitioned index is invalid until it has an index in each partition.
CREATE INDEX patchy_v ON ONLY patchy USING bloomset (v);
SELECT unnest(ARRAY[
    is(pg_temp.contains('patchy', x), (x <> 'c')::text, x || ': an invalid partitioned index does not matter by column'),
    is(pg_temp.answer(format('SELECT bloomset_contains(''patchy_v'', %L)', x)), 'true', x || ': by index it says "maybe"')])
FROM unnest('{a,b,c}'::text[]) x;
ALTER INDEX patchy_v ATTACH PARTITION patchy_a_v;
SELECT is(pg_temp.answer('SELECT bloomset_contains(''patchy_v'', ''c'')'), 'true', 'one of two is attached: maybe');
ALTER INDEX patchy_v ATTACH PARTITION patchy_b_v;
SELECT is(pg_temp.answer(format('SELECT bloomset_contains(''patchy_v'', %L)', x)), (x <> 'c')::text,
    x || ': indexes of other options and seeds are attached')
FROM unnest('{a,b,c}'::text[]) x;
-- A foreign partition.
CREATE FOREIGN TABLE patchy_f PARTITION OF patchy FOR VALUES IN (3) SERVER dummy;
SELECT is(concat_ws(', ', pg_temp.contains('patchy', x), pg_temp.leaves('patchy', x), pg_temp.filters('patchy'),
    pg_temp.answer(format('SELECT bloomset_contains(''patchy_v'', %L)', x))), answer, x || ': a foreign partition')
FROM (VALUES ('a', 'true, patchy_a patchy_f, 55000, true'), ('c', 'true, patchy_f, 55000, true')) v (x, answer);
ALTER TABLE patchy DETACH PARTITION patchy_f;
SELECT is(pg_temp.contains('patchy', 'c'), 'false', 'and without it');
-- An invalid set, also one in a leaf.
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'patchy_b_v'::regclass;
SELECT is(concat_ws(', ', pg_temp.contains('patchy', 'c'), pg_temp.leaves('patchy', 'c'), pg_temp.filters('patchy'),
    pg_temp.answer('SELECT bloomset_contains(''patchy_v'', ''c'')')), 'true, patchy_b, 55000, true',
    'an invalid set in a leaf');
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'patchy_b_v'::regclass;
-- A leaf of another table access method cannot have a set.
CREATE ACCESS METHOD other_heap TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE heaps (k int, v text) PARTITION BY LIST (k);
CREATE TABLE heaps_a PARTITION OF heaps FOR VALUES IN (1);
CREATE TABLE heaps_b PARTITION OF heaps FOR VALUES IN (2) USING other_heap;
CREATE INDEX ON heaps_a USING bloomset (v) WITH (false_positive_rate = 1e-7);
INSERT INTO heaps VALUES (1, 'a'), (2, 'b');
SELECT is(pg_temp.contains('heaps', x) || ' ' || pg_temp.leaves('heaps', x), answer, x || ': a leaf that is not a heap')
FROM (VALUES ('a', 'true heaps_a heaps_b'), ('b', 'true heaps_b'), ('c', 'true heaps_b')) v (x, answer);
-- Partial sets and sets of expressions do not count in leaves.
CREATE TABLE partly (k int, v text) PARTITION BY LIST (k);
CREATE TABLE partly_a PARTITION OF partly FOR VALUES IN (1);
CREATE TABLE partly_b PARTITION OF partly FOR VALUES IN (2);
CREATE INDEX ON partly_a USING bloomset (v) WITH (false_positive_rate = 1e-7);
CREATE INDEX ON partly_b USING bloomset (v) WITH (false_positive_rate = 1e-7) WHERE k > 5;
CREATE INDEX ON partly_b USING bloomset (lower(v)) WITH (false_positive_rate = 1e-7);
INSERT INTO partly VALUES (1, 'A'), (2, 'B');
SELECT is(pg_temp.contains('partly', x) || ' ' || pg_temp.leaves('partly', x), answer, x || ': partial sets of a leaf')
FROM (VALUES ('A', 'true partly_a partly_b'), ('B', 'true partly_b'), ('C', 'true partly_b')) v (x, answer);
-- No leaf at all.
CREATE TABLE leafless (k int, v text) PARTITION BY LIST (k);
CREATE INDEX leafless_v ON leafless USING bloomset (v);
SELECT is(concat_ws(', ', pg_temp.contains('leafless', 'a'), coalesce(pg_temp.leaves('leafless', 'a'), 'none'),
    coalesce(pg_temp.filters('leafless'), 'none'), pg_temp.answer('SELECT bloomset_contains(''leafless_v'', ''a'')')),
    'false, none, none, false', 'a partitioned table without partitions has no rows');

-- Inheritance

CREATE TABLE parent (k int, v text);
CREATE TABLE child_a () INHERITS (parent);
CREATE TABLE child_b (v text, extra date, gone int, k int);
ALTER TABLE child_b DROP gone, INHERIT parent;
CREATE TABLE grandchild (v text, k int) INHERITS (child_a, child_b);
INSERT INTO parent VALUES (1, 'parent');
INSERT INTO child_a VALUES (2, 'a');
INSERT INTO child_b (k, v) VALUES (3, 'b');
INSERT INTO grandchild (k, v) VALUES (4, 'grand');
CREATE INDEX parent_v ON parent USING bloomset (v) WITH (false_positive_rate = 1e-7);
SELECT is(concat_ws(' ', pg_temp.contains('parent', 'nobody'), pg_temp.leaves('parent', 'nobody'),
    pg_temp.filters('parent')), 'true child_a child_b grandchild 55000', 'children have no sets');
SELECT is((bloomset_contains('parent_v', 'parent'), bloomset_contains('parent_v', 'a'))::text, '(t,f)',
    'a set of the parent answers for the parent only');
CREATE INDEX ON child_a USING bloomset (v) WITH (false_positive_rate = 1e-7);
CREATE INDEX ON child_b USING bloomset (v) WITH (false_positive_rate = 1e-7, seed = 3);
SELECT is(pg_temp.contains('parent', 'nobody') || ' ' || pg_temp.leaves('parent', 'nobody'), 'true grandchild',
    'a grandchild has no set');
CREATE INDEX ON grandchild USING bloomset (v) WITH (false_positive_rate = 1e-7);
SELECT is(concat_ws(' ', pg_temp.contains(t, x), pg_temp.leaves(t, x)), answer, format('%s in %s', x, t))
FROM (VALUES ('parent', 'parent', 'true parent'), ('parent', 'a', 'true child_a'), ('parent', 'b', 'true child_b'),
    ('parent', 'grand', 'true grandchild'), ('parent', 'nobody', 'false'), ('child_a', 'a', 'true child_a'),
    ('child_a', 'grand', 'true grandchild'), ('child_a', 'b', 'false'), ('child_a', 'parent', 'false'),
    ('child_b', 'grand', 'true grandchild'), ('grandchild', 'a', 'false')) v (t, x, answer);
SELECT is(pg_temp.filters('parent'), 'child_a 1, child_b 1, grandchild 1, parent 1', 'a filter for each table');
DROP INDEX parent_v;
SELECT is(pg_temp.contains('parent', 'nobody') || ' ' || pg_temp.leaves('parent', 'nobody'), 'true parent',
    'the parent has no set');
-- An empty parent needs a set, too: it may get rows.
CREATE TABLE lone_parent (v text);
CREATE TABLE lone_child () INHERITS (lone_parent);
SELECT is(pg_temp.contains('lone_parent', 'a'), '55000', 'no set in an inheritance tree');
CREATE INDEX ON lone_child USING bloomset (v);
SELECT is(pg_temp.contains('lone_parent', 'a') || ' ' || pg_temp.leaves('lone_parent', 'a'), 'true lone_parent',
    'a set in a child only');
-- A foreign child, and one that is temporary.
CREATE INDEX ON lone_parent USING bloomset (v);
SELECT is(pg_temp.contains('lone_parent', 'a'), 'false', 'sets in both');
CREATE TEMP TABLE temporary_child () INHERITS (lone_parent);
INSERT INTO temporary_child VALUES ('a');
SELECT is(pg_temp.contains('lone_parent', 'a'), 'true', 'a temporary child without a set');
CREATE INDEX ON temporary_child USING bloomset (v) WITH (false_positive_rate = 1e-7);
SELECT is(pg_temp.leaves('lone_parent', 'a'), 'temporary_child', 'and with one');
SELECT is(pg_temp.contains('lone_parent', 'b'), 'false', 'which says "no", too');
DROP TABLE temporary_child;
CREATE FOREIGN TABLE foreign_child () INHERITS (lone_parent) SERVER dummy;
SELECT is(pg_temp.contains('lone_parent', 'a') || ' ' || pg_temp.leaves('lone_parent', 'a'), 'true foreign_child',
    'a foreign child');

-- One call, while its tables change

-- Each step is the answer expected (t or f), whether the change is undone after the question (!), and the change.
-- Returns the steps that got the other answer.
CREATE FUNCTION pg_temp.wrong_steps(steps text[], value text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    step text;
    wrong text[] := '{}';
BEGIN
    FOREACH step IN ARRAY steps LOOP
        BEGIN
            EXECUTE substr(step, 3);
            IF bloomset_contains('seen', 'v', value) <> left(step, 1)::bool THEN
                wrong := wrong || step;
            END IF;
            IF substr(step, 2, 1) = '!' THEN
                RAISE division_by_zero;
            END IF;
        EXCEPTION WHEN division_by_zero THEN
        END;
    END LOOP;
    RETURN wrong;
END
$$;
CREATE TABLE seen (k int, v text) PARTITION BY LIST (k);
CREATE TABLE seen_1 PARTITION OF seen FOR VALUES IN (1);
CREATE INDEX seen_v ON seen USING bloomset (v) WITH (false_positive_rate = 1e-7, expected_items = 100);
CREATE TABLE seen_2 (v text, k int);
INSERT INTO seen_2 VALUES ('x', 2);
CREATE INDEX seen_2_v ON seen_2 USING bloomset (v) WITH (false_positive_rate = 1e-7, seed = 9);
SELECT is(pg_temp.wrong_steps(ARRAY[
    'f SELECT',
    't ALTER TABLE seen ATTACH PARTITION seen_2 FOR VALUES IN (2)',
    'f ALTER TABLE seen DETACH PARTITION seen_2',
    'f SELECT',
    't!ALTER TABLE seen ATTACH PARTITION seen_2 FOR VALUES IN (2)',
    'f SELECT',
    't ALTER TABLE seen ATTACH PARTITION seen_2 FOR VALUES IN (2)',
    'f!ALTER TABLE seen DETACH PARTITION seen_2',
    't SELECT',
    'f!DROP TABLE seen_2',
    't SELECT',
    'f DROP TABLE seen_2',
    'f SELECT'], 'x'), '{}', 'a partition that has a set comes and goes');
CREATE TABLE seen_3 (k int, v text);
INSERT INTO seen_3 VALUES (3, 'x');
SELECT is(pg_temp.wrong_steps(ARRAY[
    'f SELECT',
    't!ALTER TABLE seen ATTACH PARTITION seen_3 FOR VALUES IN (3)',
    'f SELECT',
    't ALTER TABLE seen ATTACH PARTITION seen_3 FOR VALUES IN (3)',
    'f ALTER TABLE seen DETACH PARTITION seen_3'], 'x'), '{}', 'one that gets its set then');
SELECT is(pg_temp.wrong_steps(ARRAY[
    'f SELECT',
    't!INSERT INTO seen VALUES (1, ''x'')',
    -- What is in the set stays there. REINDEX forgets it.
    't SELECT',
    'f REINDEX TABLE seen_1',
    't INSERT INTO seen VALUES (1, ''x'')',
    't SELECT',
    'f!TRUNCATE seen',
    't SELECT',
    't!REINDEX TABLE seen_1',
    't SELECT',
    'f!TRUNCATE seen_1',
    't SELECT',
    'f TRUNCATE seen',
    'f SELECT',
    't!INSERT INTO seen VALUES (1, ''x'')',
    'f REINDEX TABLE seen_1'], 'x'), '{}', 'rows and new files come and go');
SELECT is(pg_temp.wrong_steps(ARRAY[
    'f SELECT',
    'f INSERT INTO seen SELECT 1, ''more'' || i FROM generate_series(1, 20000) i',
    't INSERT INTO seen VALUES (1, ''x'')',
    'f!TRUNCATE seen_1',
    't SELECT',
    't!REINDEX TABLE seen_1',
    't SELECT'], 'x'), '{}', 'the set grows');
SELECT is(pg_temp.wrong_steps(ARRAY[
    't SELECT',
    't DROP INDEX seen_v; CREATE INDEX seen_v ON seen USING bloomset (v)',
    't CREATE INDEX seen_v2 ON seen USING bloomset (v)',
    't DROP INDEX seen_v',
    'f TRUNCATE seen',
    't INSERT INTO seen VALUES (1, ''x'')',
    'f TRUNCATE seen'], 'x'), '{}', 'another set takes over');
SELECT is(pg_temp.wrong_steps(ARRAY[
    'f CREATE TABLE seen_4 (k int, v text) PARTITION BY LIST (k)',
    'f CREATE TABLE seen_44 PARTITION OF seen_4 FOR VALUES IN (4)',
    'f ALTER TABLE seen ATTACH PARTITION seen_4 FOR VALUES IN (4)',
    't INSERT INTO seen VALUES (4, ''x'')',
    'f!DROP TABLE seen_44',
    't SELECT',
    'f!ALTER TABLE seen_4 DETACH PARTITION seen_44',
    't SELECT',
    'f DROP TABLE seen_44'], 'x'), '{}', 'partitions of a partition come and go');

DROP TABLE seen;
CREATE TABLE seen (k int, v text);
CREATE INDEX ON seen USING bloomset (v) WITH (false_positive_rate = 1e-7);
CREATE TABLE seen_child (v text, k int);
INSERT INTO seen_child VALUES ('x', 1);
SELECT is(pg_temp.wrong_steps(ARRAY[
    'f SELECT',
    't ALTER TABLE seen_child INHERIT seen',
    't CREATE INDEX ON seen_child USING bloomset (v)',
    'f ALTER TABLE seen_child NO INHERIT seen',
    't!ALTER TABLE seen_child INHERIT seen',
    'f SELECT',
    't CREATE TABLE seen_new () INHERITS (seen)',
    'f CREATE INDEX ON seen_new USING bloomset (v)',
    't INSERT INTO seen_new VALUES (2, ''x'')',
    'f DROP TABLE seen_new'], 'x'), '{}', 'children come and go');
SELECT is(pg_temp.wrong_steps(ARRAY[
    'f SELECT',
    't!INSERT INTO seen VALUES (1, ''x'')',
    'f REINDEX TABLE seen',
    't INSERT INTO seen VALUES (1, ''x'')',
    't ALTER TABLE seen ADD y int DEFAULT random(), DROP k',
    't ALTER TABLE seen SET UNLOGGED',
    't ALTER TABLE seen ALTER v TYPE varchar(10)',
    'f!TRUNCATE seen',
    't ALTER TABLE seen RENAME v TO w; ALTER TABLE seen ADD v text; UPDATE seen SET v = w;
        CREATE INDEX ON seen USING bloomset (v)',
    't ALTER TABLE seen DROP w'], 'x'), '{}', 'the table is rewritten');

-- One call, for tables and columns by turns.
CREATE FUNCTION pg_temp.wrong_by_turns() RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    q record;
    wrong text[] := '{}';
BEGIN
    FOR q IN SELECT relation, c, value, expected
        FROM (VALUES ('tree'::regclass, 'v'::name, 'v8', true), ('tree_b', 'v', 'v8', false),
            ('turns', 'a', 'v8', true), ('turns', 'b', 'v8', false), ('turns', 'b', 'w8', true),
            ('child_a', 'v', 'grand', true), ('tree', 'v', 'w8', false)) v (relation, c, value, expected),
            generate_series(1, 20) i
        ORDER BY md5(i || relation::text || c || value)
    LOOP
        IF bloomset_contains(q.relation, q.c, q.value) <> q.expected THEN
            wrong := wrong || q::text;
        END IF;
    END LOOP;
    RETURN wrong;
END
$$;
CREATE TABLE turns AS SELECT 'v' || i AS a, 'w' || i AS b FROM generate_series(1, 100) i;
CREATE INDEX ON turns USING bloomset (a) WITH (false_positive_rate = 1e-7);
CREATE INDEX ON turns USING bloomset (b) WITH (false_positive_rate = 1e-7);
SELECT is(pg_temp.wrong_by_turns(), '{}', 'by turns');

SELECT * FROM finish();
ROLLBACK;
