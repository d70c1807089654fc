-- bloomslices in queries: a scan of the index gives the rows, the order and the errors of a
-- sequential scan, for filters of every kind, in each state of the index.
BEGIN;
SET LOCAL client_min_messages = warning;
SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SELECT * FROM no_plan();

-- Element j of row i is in its filter, with a density of so many percent.
CREATE FUNCTION pg_temp.has(i int, j int, percent int) RETURNS boolean IMMUTABLE LANGUAGE sql AS $$
    SELECT hashint8(i * 100003::bigint + j) % 100 BETWEEN 0 AND percent - 1
        OR hashint8(i * 100003::bigint + j) % 100 BETWEEN -percent AND -1 $$;

CREATE FUNCTION pg_temp.add_elements(f bloomfilter, i int, percent int) RETURNS bloomfilter LANGUAGE sql AS $$
    SELECT coalesce(bloom_agg(j, f), f) FROM generate_series(1, 300) j WHERE pg_temp.has(i, j, percent) $$;

-- Filters of every kind. Those that @>= compares have equal parameters.
CREATE FUNCTION pg_temp.make_filter(kind text, i int) RETURNS bloomfilter LANGUAGE plpgsql AS $$
DECLARE
    plain constant bloomfilter := bloom_create(200, 0.01);
BEGIN
    RETURN CASE kind
        WHEN 'dense' THEN pg_temp.add_elements(plain, i, 40)
        WHEN 'sparse' THEN pg_temp.add_elements(plain, i, 4)
        WHEN 'empty' THEN plain
        WHEN 'no elements' THEN bloom_add(plain, -1) & bloom_add(plain, -2)
        WHEN 'null' THEN NULL
        WHEN 'other size' THEN pg_temp.add_elements(bloom_create(500, 0.01), i, 60)
        WHEN 'smaller' THEN pg_temp.add_elements(bloom_create(60, 0.01), i, 20)
        WHEN 'folded' THEN bloom_fold(pg_temp.add_elements(bloom_create(1600, 0.01), i, 60), 0.01)
        WHEN 'more hashes' THEN pg_temp.add_elements(bloom_create(200, 0.0001), i, 30)
        WHEN 'fewer hashes' THEN pg_temp.add_elements(bloom_create(200, 0.2), i, 50)
        WHEN 'seed' THEN pg_temp.add_elements(bloom_create(200, 0.01, seed => 7), i, 30)
        WHEN 'classic' THEN pg_temp.add_elements(bloom_create(200, 0.01, 'classic'), i, 30)
        WHEN 'full' THEN pg_temp.add_elements(bloom_create(1, 0.5), i, 100)
        WHEN 'self-sized' THEN (SELECT bloom_agg(j) FROM generate_series(1, 300) j WHERE pg_temp.has(i, j, 30))
        WHEN 'text' THEN (SELECT bloom_agg(j::text, 200) FROM generate_series(1, 300) j WHERE pg_temp.has(i, j, 30))
    END;
END
$$;

-- What a query gives by a plan: its rows in order, or its SQLSTATE.
CREATE FUNCTION pg_temp.outcome(query text, plan text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    rows text[];
BEGIN
    PERFORM set_config('enable_seqscan', (plan = 'Seq Scan')::text, true),
        set_config('enable_indexscan', (plan = 'Index Scan')::text, true),
        set_config('enable_bitmapscan', (plan = 'Bitmap Index Scan')::text, true);
    EXECUTE format('SELECT array_agg(q::text) FROM (%s) q', query) INTO STRICT rows;
    RETURN rows;
EXCEPTION WHEN OTHERS THEN
    RETURN ARRAY[SQLSTATE];
END
$$;

CREATE FUNCTION pg_temp.uses(query text, plan text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    lines json;
BEGIN
    PERFORM set_config('enable_seqscan', 'off', true),
        set_config('enable_indexscan', (plan ~ '^Index')::text, true),
        set_config('enable_bitmapscan', (plan = 'Bitmap Index Scan')::text, true);
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO STRICT lines;
    RETURN lines::text ~ format('"Node Type": "%s"', plan);
EXCEPTION WHEN OTHERS THEN
    RETURN true; -- as the query itself
END
$$;

-- How the plans differ from the sequential one; NULL if they do not. A query with ORDER BY has no bitmap plan.
CREATE FUNCTION pg_temp.difference(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    by_table constant text[] := pg_temp.outcome(query, 'Seq Scan');
    by_index text[];
    plan text;
BEGIN
    FOREACH plan IN ARRAY CASE WHEN query ~ '<->' THEN '{Index Scan}' ELSE '{Index Scan,Bitmap Index Scan}'::text[] END LOOP
        by_index := pg_temp.outcome(query, plan);
        IF by_index IS DISTINCT FROM by_table THEN
            RETURN format('%s: %s rows %s, not %s %s', plan, cardinality(by_index), left(by_index::text, 200),
                cardinality(by_table), left(by_table::text, 200));
        END IF;
        IF NOT pg_temp.uses(query, plan) THEN
            RETURN 'no ' || plan;
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

-- Conditions on f; %s is a seed for the keys.
CREATE TABLE conditions (condition text);
INSERT INTO conditions
SELECT format(condition, k, k + 1, k + 2, k + 3)
FROM unnest(ARRAY['f @> %s', '%s <@ f', 'f @> -%s', 'f @> %s::bigint', 'f @> %s::smallint', 'f @> %s AND f @> %s',
    'f @> %s AND NOT f @> %s', 'f @@ bloom_query(%s)', 'f @@ bloom_query(ARRAY[%s, %s, %s])',
    'f @@ bloom_query(ARRAY[%1$s, %2$s, %1$s, %1$s, -5], 3)', 'f @@ bloom_query(ARRAY[%s, %s, NULL])',
    'f @@ bloom_query(ARRAY[%s, NULL, %s], 2)', 'f @@ bloom_query(ARRAY[%s], 0)', 'f @@ bloom_query(ARRAY[%s], 2)',
    'bloom_contains_any(f, ARRAY[%s, -7, -8])', 'bloom_contains_any(f, ARRAY[%s, NULL])',
    'bloom_contains_all(f, ARRAY[%s, %s])', 'bloom_contains_all(f, ARRAY[%s, NULL])',
    'bloom_contains_least(f, ARRAY(SELECT generate_series(%s, 300)), 100)',
    'bloom_contains_least(f, ARRAY(SELECT generate_series(%s, 1300)), 120)',
    'bloom_contains_least(f, ARRAY[%s, %s, %s, %s], 2) AND bloom_contains_any(f, ARRAY[%1$s, %4$s])',
    'f @> ''%s''::text', 'f @> %s.5', 'f @> (SELECT NULL::int)', 'f @> (SELECT %s)']) condition,
    unnest(ARRAY[3, 150]) k;
INSERT INTO conditions VALUES ('f @@ bloom_query(''{}''::int[])'), ('f @@ bloom_query(''{}''::int[], 1)'),
    ('bloom_contains_any(f, ''{}''::int[])'), ('bloom_contains_all(f, ''{}''::int[])'), ('f @@ (SELECT NULL::bloomquery)'),
    ('bloom_contains_all(f, ''{}''::text[])');
CREATE TABLE supersets (condition text);
INSERT INTO supersets
SELECT format('f @>= %L::bloomfilter', g)
FROM unnest(ARRAY[pg_temp.make_filter('dense', 5), pg_temp.make_filter('sparse', 5), pg_temp.make_filter('empty', 1),
    pg_temp.add_elements(bloom_create(200, 0.01), 5, 1), pg_temp.add_elements(bloom_create(200, 0.01), 12, 30),
    pg_temp.make_filter('dense', 7) & pg_temp.make_filter('dense', 8), pg_temp.make_filter('no elements', 1),
    pg_temp.make_filter('seed', 5), pg_temp.make_filter('classic', 5), pg_temp.make_filter('other size', 5),
    pg_temp.make_filter('text', 5), bloom_add(bloom_create(200, 0.01), 'a') & bloom_add(bloom_create(200, 0.01), 'b'),
    pg_temp.add_elements(bloom_create(200, 0.01), 5, 100), (SELECT bloom_agg(1) FILTER (WHERE false))]) g;

-- Orders: distances alone, because rows of one distance may come in any order.
CREATE TABLE orders (query text);
INSERT INTO orders
SELECT format('SELECT f <-> q FROM %%1$s t, (VALUES (%1$s)) v (q) %2$s ORDER BY t.f <-> %1$s %3$s', q, w, l)
FROM unnest(ARRAY['bloom_query(7)', 'bloom_query(ARRAY[1, 2, 3, NULL, 3])', 'bloom_query(''{}''::int[])',
    'bloom_query(ARRAY(SELECT generate_series(50, 249)))', 'bloom_query(''7''::text)', '(SELECT NULL::bloomquery)', '(SELECT bloom_query(9))']) q,
    unnest(ARRAY['', 'WHERE f @> 5', 'WHERE f @@ bloom_query(ARRAY(SELECT generate_series(50, 249)), 70)',
        'WHERE f @@ bloom_query(ARRAY(SELECT generate_series(20, 219)), 60)']) w,
    unnest(ARRAY['', 'LIMIT 7']) l;

CREATE FUNCTION pg_temp.differences(tab text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    query text;
BEGIN
    FOR query IN
        SELECT format('SELECT ctid FROM %I t WHERE %s ORDER BY ctid', tab, condition) FROM conditions
        UNION ALL SELECT format('SELECT ctid FROM %I t WHERE %s ORDER BY ctid', tab, condition) FROM supersets
        UNION ALL SELECT format(orders.query, quote_ident(tab)) FROM orders
    LOOP
        IF pg_temp.difference(query) IS NOT NULL THEN
            RETURN NEXT left(query, 300) || E'\n' || pg_temp.difference(query);
        END IF;
    END LOOP;
END
$$;

CREATE FUNCTION pg_temp.agrees(tab text, name text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN NEXT is(array(SELECT pg_temp.differences(tab)), '{}', tab || ', ' || name || ': as a sequential scan');
    RETURN NEXT is(bloomslices_check((tab || '_f')::regclass)::text, '', tab || ', ' || name || ': bloomslices_check');
END
$$;

-- Tables of one kind of filter, and of several. Comparing parameters with @>= is an error for some.
CREATE TABLE kinds (tab text, kinds text[], nrows int);
INSERT INTO kinds VALUES
    ('exact', '{dense}', 700), ('flagged', '{sparse,folded,other size,smaller,more hashes,dense}', 600),
    ('listed', '{classic,seed,fewer hashes,empty,null,no elements}', 300),
    ('comparable', '{dense,sparse,empty,null,no elements}', 600),
    ('everything', '{dense,dense,dense,dense,sparse,empty,null,other size,smaller,folded,more hashes,fewer hashes,seed,classic,full,self-sized,no elements}', 800),
    ('mixed_classes', '{dense,dense,text,sparse,empty}', 400), ('nothing', '{empty,null}', 50), ('none', '{}', 0);
CREATE FUNCTION pg_temp.fill(tab text, from_row int, to_row int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('INSERT INTO %I SELECT i, pg_temp.make_filter(kinds[1 + i %% cardinality(kinds)], i)
        FROM kinds, generate_series(%s, %s) i WHERE tab = %1$L', tab, from_row, to_row);
END
$$;
CREATE FUNCTION pg_temp.make(tab text, options text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I (id int, f bloomfilter)', tab);
    PERFORM pg_temp.fill(make.tab, 1, k.nrows * 2 / 3) FROM kinds k WHERE k.tab = make.tab;
    EXECUTE format('CREATE INDEX %I ON %I USING bloomslices (f) %s', tab || '_f', tab, options);
END
$$;

SELECT is(pg_temp.make(tab, '')::text, '', 'build on ' || tab) FROM kinds;
SELECT pg_temp.agrees(tab, 'built') FROM kinds;
SELECT is(pg_temp.fill(tab, nrows * 2 / 3 + 1, nrows)::text, '', 'insert into ' || tab) FROM kinds;
SELECT pg_temp.agrees(tab, 'inserted') FROM kinds;
SELECT is(bloomslices_merge((tab || '_f')::regclass)::text, '', 'merge of ' || tab) FROM kinds;
SELECT pg_temp.agrees(tab, 'merged') FROM kinds;

-- Of a slab whose rows have the parameters of the index, @>= reads only the entries of rows that have the bits.
CREATE TABLE codes (f bloomfilter);
INSERT INTO codes SELECT pg_temp.make_filter(kind, i) FROM unnest('{dense,sparse}'::text[]) kind, generate_series(1, 450) i;
CREATE INDEX codes_f ON codes USING bloomslices (f);
CREATE FUNCTION pg_temp.rechecked(query text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, TIMING off, FORMAT json) ' || query INTO STRICT plan;
    RETURN (plan -> 0 -> 'Plan' ->> 'Actual Rows')::numeric + coalesce((plan -> 0 -> 'Plan' ->> 'Rows Removed by Index Recheck')::numeric, 0);
END
$$;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_indexscan = on;
SET LOCAL enable_bitmapscan = off;
SELECT cmp_ok(pg_temp.rechecked(format('SELECT FROM codes WHERE f @>= %L', g)), '<', 100::numeric, 'few rows are rechecked')
FROM unnest(ARRAY[pg_temp.make_filter('dense', 5), pg_temp.make_filter('sparse', 5)]) g;
INSERT INTO codes VALUES (bloom_add(bloom_create(500, 0.01), -5)); -- without the bits
REINDEX INDEX codes_f;
SELECT throws_ok(format('SELECT FROM codes WHERE f @>= %L', pg_temp.make_filter('dense', 5)), '22023', NULL,
    'one row of other parameters raises the error of a sequential scan');
RESET enable_bitmapscan;

-- Sparse filters compare by hashes: with one bit an element, four of these have the bit of g by chance.
CREATE TABLE short (f bloomfilter);
INSERT INTO short SELECT bloom_agg(i * 5 + j, bloom_create(1, 0.5)) FROM generate_series(1, 450) i, generate_series(1, 5) j GROUP BY i;
CREATE INDEX short_f ON short USING bloomslices (f);
SELECT is(pg_temp.difference(format('SELECT ctid FROM short WHERE f @>= %L ORDER BY ctid', bloom_add(bloom_create(1, 0.5), k))), NULL,
    'sparse filters, ' || k) FROM unnest(ARRAY[-1, -2, 777]) k;

-- Queries that need no column.
SET LOCAL enable_seqscan = off;
SET LOCAL enable_indexscan = on;
SELECT is(array(SELECT 1 FROM everything), array_fill(1, '{800}'), 'all rows by the index alone');
SELECT ok(NOT pg_temp.uses('SELECT count(*) FROM everything', 'Index Only Scan'), 'no index-only scan');

-- Several distances, of which the executor compares no more if the first is null.
SELECT is(pg_temp.outcome(query, 'Index Scan'), pg_temp.outcome(query, 'Seq Scan'), 'two distances, the first null')
FROM (VALUES ('SELECT f <-> bloom_query(ARRAY(SELECT generate_series(50, 249))) FROM exact
    ORDER BY f <-> (SELECT NULL::bloomquery), f <-> bloom_query(ARRAY(SELECT generate_series(50, 249)))')) v (query);

-- Rows that the table loses, and others in their place.
CREATE FUNCTION pg_temp.change(tab text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DELETE FROM %I WHERE id %% 5 = 0', tab);
    EXECUTE format('UPDATE %I SET f = pg_temp.make_filter(''dense'', id + 9) WHERE id %% 7 = 0', tab);
    EXECUTE format('UPDATE %I SET id = -id WHERE id %% 11 = 0', tab);
END
$$;
SELECT is(pg_temp.change(tab)::text, '', 'change of ' || tab) FROM kinds;
SELECT pg_temp.agrees(tab, 'changed') FROM kinds;

-- A shape that no filter has, or that of some; an index that has seen no row first.
SAVEPOINT shapes;
DELETE FROM kinds WHERE tab NOT IN ('comparable', 'everything');
UPDATE kinds SET nrows = 200;
CREATE FUNCTION pg_temp.reshape(tab text, options text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('TRUNCATE %I', tab);
    EXECUTE format('DROP INDEX %I', tab || '_f');
    EXECUTE format('CREATE INDEX %I ON %I USING bloomslices (f) %s', tab || '_f', tab, options);
    PERFORM pg_temp.fill(tab, 1, 200);
END
$$;
SELECT pg_temp.agrees(tab, options)
FROM kinds, unnest(ARRAY['', 'WITH (expected_items = 200)', 'WITH (expected_items = 3000, false_positive_rate = 0.001)',
    'WITH (expected_items = 200, seed = 7)', 'WITH (expected_items = 1, false_positive_rate = 0.5)']) options,
    pg_temp.reshape(tab, options);

-- The planner knows that a scan tests many keys of each filter. A subquery gives a key as an unknown query.
CREATE TABLE priced (id int, f bloomfilter);
INSERT INTO priced SELECT i, pg_temp.make_filter('dense', i) FROM generate_series(1, 500) i;
CREATE INDEX priced_f ON priced USING bloomslices (f);
CREATE TABLE few AS SELECT * FROM priced LIMIT 5;
CREATE INDEX few_f ON few USING bloomslices (f);
ANALYZE priced, few;
CREATE FUNCTION pg_temp.chosen_plan(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    PERFORM set_config(name, 'on', true) FROM unnest('{enable_seqscan,enable_indexscan,enable_bitmapscan}'::text[]) name;
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO STRICT plan;
    RETURN plan;
END
$$;
CREATE FUNCTION pg_temp.plan_of(query text) RETURNS text LANGUAGE sql AS $$
    SELECT substring(pg_temp.chosen_plan(query) FROM '"(Index Scan|Bitmap Heap Scan|Seq Scan)"')
$$;
SELECT is(pg_temp.plan_of(format('SELECT id FROM priced WHERE ' || condition, keys)), 'Index Scan', condition)
FROM unnest(ARRAY['f @> 7', 'bloom_contains_any(f, %L::int[])', 'bloom_contains_all(f, %L::int[])',
    'bloom_contains_least(f, %L::int[], 30)', 'f @@ bloom_query(%L::int[], 30)', 'f @@ bloom_query((SELECT 7))',
    'true ORDER BY f <-> bloom_query(%L::int[]) LIMIT 3']) condition,
    (SELECT array_agg(i)::text keys FROM generate_series(1, 40) i) k;
SELECT is(pg_temp.plan_of('SELECT id FROM few WHERE f @> 7'), 'Seq Scan', 'no index for 5 rows');

-- An index whose rows must all be tested again is worse than a scan, and than an index of the right shape.
CREATE FUNCTION pg_temp.index_of(query text) RETURNS text LANGUAGE sql AS $$
    SELECT coalesce(substring(pg_temp.chosen_plan(query) FROM '"Index Name": "(\w+)"'), 'none')
$$;
CREATE FUNCTION pg_temp.questions() RETURNS SETOF text LANGUAGE sql AS $$
    VALUES ('SELECT count(*) FROM generate_series(1, 50) g JOIN reshaped ON f @> g'),
        ('SELECT count(*) FROM reshaped WHERE f @> 7'), ('SELECT id FROM reshaped ORDER BY f <-> bloom_query(ARRAY[1, 2, 3]) LIMIT 5')
$$;
CREATE TABLE reshaped AS SELECT id, f FROM priced;
CREATE INDEX reshaped_seed ON reshaped USING bloomslices (f) WITH (expected_items = 200, seed = 1);
ANALYZE reshaped;
SELECT is(pg_temp.index_of(q), 'none', 'another seed: ' || q) FROM pg_temp.questions() q;
CREATE INDEX reshaped_small ON reshaped USING bloomslices (f) WITH (expected_items = 5);
SELECT is(pg_temp.index_of(q), 'none', 'far too small: ' || q) FROM pg_temp.questions() q;
CREATE INDEX reshaped_f ON reshaped USING bloomslices (f);
SELECT is(pg_temp.index_of(q), 'reshaped_f', 'beside the right one: ' || q) FROM pg_temp.questions() q;

-- A policy hides filters of another type from a distance, too.
CREATE TABLE tenants AS SELECT 'us' AS tenant, id, f FROM priced;
CREATE INDEX tenants_f ON tenants USING bloomslices (f);
INSERT INTO tenants SELECT 'them', 0, bloom_agg('a'::text, 200);
ANALYZE tenants;
CREATE ROLE bloomslices_tenant;
GRANT SELECT ON tenants TO bloomslices_tenant;
ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON tenants TO bloomslices_tenant USING (tenant = 'us');
SET LOCAL ROLE bloomslices_tenant;
SELECT lives_ok('SELECT id FROM tenants ORDER BY f <-> bloom_query(ARRAY[1, 2, 2000000000]) LIMIT 2', 'hidden rows raise no error');
RESET ROLE;

-- Arrays of queries and filters, whose plans search by the index for each value.
SELECT is(pg_temp.outcome(q, 'Bitmap Index Scan'), pg_temp.outcome(q, 'Seq Scan'), left(q, 80))
FROM (SELECT array_agg(f) AS filters FROM priced WHERE id IN (3, 4)) a, LATERAL (VALUES
    ('SELECT id FROM priced WHERE f @@ ANY (ARRAY[bloom_query(7), bloom_query(8)]) ORDER BY id'),
    ('SELECT id FROM priced WHERE f @@ ANY (ARRAY(SELECT bloom_query(i) FROM generate_series(1, 5) i)) ORDER BY id'),
    (format('SELECT id FROM priced WHERE f @>= ANY (%L::bloomfilter[]) ORDER BY id', filters))) v (q);

-- Arguments that an SQL function uses twice are priced without a planner.
CREATE FUNCTION pg_temp.twice(b int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT b + b';
CREATE FUNCTION pg_temp.either(b boolean) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT b OR b';
SELECT is(sum(pg_temp.twice(bloom_hits(f, ARRAY[7, id]))), sum(2 * bloom_hits(f, ARRAY[7, id])), 'bloom_hits in a function')
FROM priced;
SELECT is(count(*) FILTER (WHERE pg_temp.either(bloom_contains_least(f, ARRAY[7, id], 1))),
    count(*) FILTER (WHERE pg_temp.either(f @@ bloom_query(ARRAY[7, id], 1))), 'bloom_contains_least and @@ in a function')
FROM priced;

-- Large filters, each a slab of its own.
CREATE TABLE large (id int, f bloomfilter);
INSERT INTO large SELECT i, (SELECT bloom_agg(i * 1000 + j, 50000, 0.01) FROM generate_series(1, 12000) j) FROM generate_series(1, 6) i;
CREATE INDEX large_f ON large USING bloomslices (f);
INSERT INTO large SELECT i, (SELECT bloom_agg(i * 1000 + j, 50000, 0.01) FROM generate_series(1, 12000) j) FROM generate_series(7, 9) i;
INSERT INTO large VALUES (10, bloom_create(50000, 0.01)), (11, bloom_add(bloom_create(50000, 0.01), 5000)), (12, NULL);
SELECT is(pg_temp.difference(format('SELECT ctid FROM large WHERE f @> %s', k)), NULL, 'large: ' || k)
FROM unnest(ARRAY[1001, 5000, 12345, 20999, -4]) k;
SELECT is(bloomslices_check('large_f')::text, '', 'large: bloomslices_check');
INSERT INTO large SELECT 12 + i, f FROM large, generate_series(1, 60) i;
ANALYZE large;
SELECT is(pg_temp.index_of('SELECT id FROM large WHERE f @> 5000001'), 'large_f', 'many slabs of a row beside as many TOAST values');

-- Operator classes that cannot work. INFO messages are no output.
SET LOCAL client_min_messages = error;
CREATE FUNCTION pg_temp.near(bloomfilter, bloomquery) RETURNS float8 IMMUTABLE LANGUAGE sql AS 'SELECT 1.0::float8';
CREATE OPERATOR public.<~> (LEFTARG = bloomfilter, RIGHTARG = bloomquery, FUNCTION = pg_temp.near);
CREATE FUNCTION pg_temp.near(bloomfilter, integer) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT 1';
CREATE OPERATOR public.<~> (LEFTARG = bloomfilter, RIGHTARG = integer, FUNCTION = pg_temp.near);
CREATE FUNCTION pg_temp.amvalidates(members text, type text DEFAULT 'bloomfilter') RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    valid boolean;
BEGIN
    EXECUTE format('CREATE OPERATOR CLASS public.other_ops FOR TYPE %s USING bloomslices AS %s', type, members);
    SELECT amvalidate(oid) INTO STRICT valid FROM pg_opclass WHERE opcname = 'other_ops';
    DROP OPERATOR FAMILY public.other_ops USING bloomslices;
    RETURN valid;
END
$$;
SELECT is(pg_temp.amvalidates(members, type), valid, format('amvalidate of %s: %s', type, members))
FROM (VALUES ('OPERATOR 1 @@ (bloomfilter, bloomquery)', 'bloomfilter', true),
    ('OPERATOR 2 @>= (bloomfilter, bloomfilter)', 'bloomfilter', true),
    ('OPERATOR 3 <-> (bloomfilter, bloomquery) FOR ORDER BY pg_catalog.integer_ops', 'bloomfilter', true),
    ('OPERATOR 1 @>= (bloomfilter, bloomfilter)', 'bloomfilter', false),
    ('OPERATOR 2 @@ (bloomfilter, bloomquery)', 'bloomfilter', false),
    ('OPERATOR 3 @@ (bloomfilter, bloomquery)', 'bloomfilter', false),
    ('OPERATOR 1 @> (bloomfilter, anycompatible)', 'bloomfilter', false),
    ('OPERATOR 3 public.<~> (bloomfilter, integer) FOR ORDER BY pg_catalog.integer_ops', 'bloomfilter', false),
    ('OPERATOR 2 = (bloomcounter, bloomcounter)', 'bloomcounter', false),
    ('OPERATOR 3 public.<~> (bloomfilter, bloomquery) FOR ORDER BY pg_catalog.float_ops', 'bloomfilter', false))
    v (members, type, valid);

SELECT * FROM finish();
ROLLBACK;
