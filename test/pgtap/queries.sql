-- filter @@ query, filter <-> query and the functions of several keys say what @> says of
-- each key: for all element types and filters, with duplicates, NULLs and no keys, and with
-- the same errors.
BEGIN;
SELECT plan(85);

SET LOCAL jit = off;

CREATE DOMAIN price AS numeric(12, 2);
CREATE TYPE label AS ENUM ('label 0', 'label 1', 'label 2', 'label 3', 'label 4', 'label 5', 'label 6', 'label 7',
    'label 8', 'label 9');

-- The expression of element number i, of 1 .. 3000.
CREATE TABLE kind (id serial, name text, element text);
INSERT INTO kind (name, element) VALUES
    ('smallint', '(i - 1500)::smallint'),
    ('boolean', 'i % 2 = 0'),
    ('enum', '(''label '' || i % 10)::label'),
    ('integer', '(i - 1500) * 1431655'),
    ('bigint', '(i - 1500) * bigint ''6148914691236517'''),
    ('real', '(CASE i WHEN 1 THEN ''-0'' WHEN 2 THEN ''NaN'' ELSE (i / 7.0)::text END)::real'),
    ('double precision', '(CASE i WHEN 1 THEN ''-0'' WHEN 2 THEN ''NaN'' ELSE sqrt(i)::text END)::float8'),
    ('numeric', '((2 * i - 3001) || ''e'' || i % 40 - 20)::numeric'),
    ('domain over numeric', '(i / 4.0)::price'),
    ('text', '''word '' || i || repeat(''ä '', i % 40)'),
    ('varchar', '(''word '' || i)::varchar(20)'),
    ('char(n)', 'i::text::char(12)'),
    ('name', '(''n'' || i)::name'),
    ('bytea', 'substr(sha256(int4send(i)), 1, 4 + i % 29)'),
    ('uuid', 'md5(i::text)::uuid'),
    ('date', 'date ''1800-01-01'' + 100 * i'),
    ('time', 'time ''00:00'' + i * interval ''28 s'''),
    ('timetz', '((time ''00:00'' + i * interval ''28 s'')::text || ''+'' || i % 14)::timetz'),
    ('timestamp', 'timestamp ''1900-01-01'' + i * interval ''1 day 0.000001 s'''),
    ('timestamptz', 'timestamptz ''1900-01-01'' + i * interval ''1 day 0.000001 s'''),
    ('interval', 'i * interval ''1 month'' - i * interval ''29 days 1 second'''),
    ('inet', 'CASE WHEN i % 2 = 0 THEN inet ''10.0.0.0/8'' ELSE inet ''2001:db8::/32'' END + i'),
    ('cidr', '(''10.'' || i / 65536 || ''.'' || i / 256 % 256 || ''.'' || i % 256)::cidr'),
    ('macaddr', 'lpad(to_hex(i * bigint ''9382499223''), 12, ''0'')::macaddr'),
    ('macaddr8', 'lpad(to_hex(i * bigint ''614891469123651''), 16, ''0'')::macaddr8');

-- Filters of the elements up to 1000: some other keys are in them, too. The last are stored out of line.
CREATE TABLE build (id serial, name text, filter text);
INSERT INTO build (name, filter) VALUES
    ('dense', 'bloom_agg(x, 1000, 0.2)'),
    ('classic', 'bloom_agg(x, bloom_create(1000, 0.2, ''classic''))'),
    ('self-sized', 'bloom_agg(x)'),
    ('sparse', 'bloom_agg(x, 100000, 0.2)'),
    ('other seed', 'bloom_agg(x, bloom_create(1000, 0.2, ''blocked'', -7))'),
    ('overfull', 'bloom_agg(x, 100, 0.2)'),
    ('empty', 'bloom_create(1000)'),
    ('unsized', 'bloom_agg(x) FILTER (WHERE false)'),
    ('stored', 'bloom_agg(x, 20000, 0.2)'),
    ('stored classic', 'bloom_agg(x, bloom_create(20000, 0.2, ''classic'', 3))');

-- Of each filter and each array of keys, where functions of several keys differ from @>. One
-- call site sees all filters and arrays. Keys: up to 80, some of them in the filter, one of
-- them twice, and a NULL in every other array; also no keys, and only NULL.
CREATE FUNCTION pg_temp.compare(element text, OUT rows bigint, OUT hits bigint, OUT misses bigint, OUT wrong text[])
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE (SELECT format('CREATE TABLE f AS
        SELECT v.* FROM (SELECT %s FROM (SELECT %s AS x FROM generate_series(1, 1000) i) e) a,
            LATERAL (VALUES %s) v (build, f)',
        string_agg(format('%s AS f%s', filter, id), ', '), element, string_agg(format('(%L, f%s)', name, id), ', '))
        FROM build);
    EXECUTE format('CREATE TABLE q AS
        SELECT n, array_agg(x ORDER BY i) || array_agg(x) FILTER (WHERE o = 1)
            || CASE WHEN n %% 2 = 0 THEN array_agg(NULLIF(x, x)) FILTER (WHERE o = 1) END AS keys
        FROM (SELECT n, o, (n * 997 + o * 31) %% 3000 + 1 AS i FROM generate_series(1, 20) n, generate_series(1, 40) o
              WHERE o <= 2 * n) k, LATERAL (SELECT %s AS x) e
        GROUP BY n', element);
    INSERT INTO q SELECT 101, keys[1:0] FROM q WHERE n = 1;
    INSERT INTO q SELECT 102, keys[1:1] || NULLIF(keys[1], keys[1]) || keys[1] FROM q WHERE n = 2;
    INSERT INTO q SELECT 103, array_fill(NULLIF(keys[1], keys[1]), ARRAY[2, 2]) FROM q WHERE n = 2;
    SELECT count(*), sum(want), sum(absent), array_agg(format('%s of %s: %s', build, n, c)) FILTER (WHERE c <> '')
    INTO rows, hits, misses, wrong
    FROM (
        SELECT build, n, want, absent, concat_ws(', ',
            CASE WHEN bloom_hits(f, keys) <> want THEN 'hits' END,
            CASE WHEN f <-> bloom_query(keys) <> absent THEN 'absent' END,
            CASE WHEN bloom_contains_any(f, keys) IS DISTINCT FROM (f @> ANY (keys)) THEN 'any' END,
            CASE WHEN bloom_contains_all(f, keys) IS DISTINCT FROM (f @> ALL (keys)) THEN 'all' END,
            CASE WHEN f @@ bloom_query(keys) <> coalesce(f @> ALL (keys), false) THEN 'query for all' END,
            CASE WHEN f @@ bloom_query(keys, 1) <> coalesce(f @> ANY (keys), false) THEN 'query for one' END,
            CASE WHEN f @@ bloom_query(keys, least) <> (want >= least) THEN 'query for least' END,
            CASE WHEN bloom_contains_least(f, keys, least) <> (want >= least) THEN 'least' END,
            CASE WHEN f @@ bloom_query(keys, least)::text::bloomquery <> (want >= least) THEN 'from text' END,
            CASE WHEN f @@ bloom_query(keys[1]) IS DISTINCT FROM (f @> keys[1]) THEN 'one key' END) AS c
        FROM f, q,
            LATERAL (SELECT count(*) FILTER (WHERE f @> x)::int AS want, count(*) FILTER (WHERE NOT f @> x) AS absent
                     FROM unnest(keys) x) w,
            LATERAL (VALUES (0), (1), (7), (want), (want + 1)) l (least)) s;
    DROP TABLE f, q;
END $$;

CREATE TABLE compared AS SELECT id, name, c.* FROM kind, pg_temp.compare(element) c;
SELECT is(wrong[1:3], NULL, name || ': the same as @>') FROM compared ORDER BY id;
SELECT ok(rows = 10 * 23 * 5 AND hits > 0 AND misses > 0, format('%s: %s hits, %s misses', name, hits, misses))
FROM compared ORDER BY id;

-- The outcome of each form is that of @>, errors included.
CREATE FUNCTION pg_temp.outcome(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE 'SELECT ' || query INTO result;
    RETURN coalesce(result, 'null');
EXCEPTION WHEN others THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
CREATE TABLE filter AS SELECT unnest(ARRAY['bloom_agg(x::char(9))', 'bloom_agg(x::text)', 'bloom_agg(length(x))',
    'bloom_agg(x::label)', 'bloom_create(1)', 'bloom_agg(x::bytea)', 'NULL::bloomfilter']) AS filter;
CREATE TABLE key AS SELECT unnest(ARRAY[$$'label 1 '::text$$, $$'label 1'::varchar$$, $$'label 1'::name$$,
    $$'label 1'::char(12)$$, $$'label 1'::label$$, '7', '7::smallint', '7.0', 'NULL::text', 'NULL::label', $$'label 1'$$,
    $$'label 1'::bytea$$, $$'2 days'::interval$$, 'NULL::json', $$'1'::json$$, '(SELECT NULL::int)']) AS key;
CREATE TABLE form (form text, twin text);
INSERT INTO form VALUES
    ('f @@ bloom_query(%1$s)', 'f @> %1$s'),
    ('bloom_contains_any(f, ARRAY[%1$s])', 'f @> ANY (ARRAY[%1$s])'),
    ('bloom_contains_all(f, ARRAY[%1$s, NULL])', 'f @> ALL (ARRAY[%1$s, NULL])'),
    ('bloom_hits(f, ARRAY[NULL, %1$s, %1$s])', 'CASE WHEN f IS NOT NULL THEN coalesce(2 * (f @> %1$s)::int, 0) END'),
    ('bloom_contains_least(f, ARRAY[%1$s], 1)', 'CASE WHEN f IS NOT NULL THEN coalesce(f @> %1$s, false) END'),
    ('f <-> bloom_query(%1$s)', '1 - (f @> %1$s)::int');
CREATE FUNCTION pg_temp.outcome(form text, filter text, key text) RETURNS text LANGUAGE sql
    RETURN pg_temp.outcome(format(form, key)
        || format($$ FROM (SELECT %s FROM (VALUES ('label 1'), ('label 2')) v (x)) s (f)$$, filter));
-- A query of an unsupported type is an error even if it has no key.
SELECT is(array_agg(format('%s asked for %s: %s, not %s', filter, key, got, want)) FILTER (WHERE got IS NOT NULL), NULL,
    form || ' and ' || twin)
FROM form LEFT JOIN LATERAL (
    SELECT * FROM filter, key, pg_temp.outcome(form, filter, key) got, pg_temp.outcome(twin, filter, key) want
    WHERE got <> want AND key !~ 'json') d ON true
GROUP BY form, twin ORDER BY form;
SELECT is(array_agg(DISTINCT left(pg_temp.outcome(form, filter, key), 43)),
    ARRAY['0A000 cannot put values of type json into a'], form || ': an unsupported type')
FROM form, filter, key WHERE key ~ 'json' AND form !~ 'query' AND filter !~ 'NULL' GROUP BY form ORDER BY form;

-- A call site notices that keys change in place.
DO $$
DECLARE
    f bloomfilter := (SELECT bloom_agg(2 * i, 1000, 0.0001) FROM generate_series(1, 500) i);
    keys int[] := ARRAY[2, 4, 5];
BEGIN
    CREATE TEMP TABLE in_place (i int, hits int, q bool);
    FOR i IN 1 .. 100 LOOP
        keys[1] := i;
        INSERT INTO in_place VALUES (i, bloom_hits(f, keys), f @@ bloom_query(keys[1]));
    END LOOP;
END $$;
SELECT is(array_agg(i ORDER BY i) FILTER (WHERE hits <> 2 - i % 2 OR q <> (i % 2 = 0)), NULL, 'keys change in place')
FROM in_place;

-- Also that a label is renamed.
CREATE FUNCTION pg_temp.renamed(OUT before int, OUT after int) LANGUAGE plpgsql AS $$
DECLARE
    f bloomfilter := bloom_add(bloom_create(10), 'label 1'::text);
    key label := 'label 1';
    hits int;
BEGIN
    FOR i IN 1 .. 2 LOOP
        hits := bloom_hits(f, ARRAY[key]);
        before := coalesce(before, hits);
        after := hits;
        IF i = 1 THEN
            ALTER TYPE label RENAME VALUE 'label 1' TO 'renamed';
        END IF;
    END LOOP;
END $$;
SELECT is(r, (1, 0)::record, 'a renamed label is another key') FROM pg_temp.renamed() r;

-- A call site goes on after an error, with a filter of another class.
CREATE FUNCTION pg_temp.goes_on() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    f bloomfilter;
    said text := '';
BEGIN
    FOR i IN 1 .. 4 LOOP
        f := CASE WHEN i % 2 = 0 THEN bloom_add(bloom_create(10), 7) ELSE bloom_add(bloom_create(10), '7'::text) END;
        BEGIN
            said := said || bloom_hits(f, ARRAY[7, 8]);
        EXCEPTION WHEN datatype_mismatch THEN
            said := said || 'x';
        END;
    END LOOP;
    RETURN said;
END $$;
SELECT is(pg_temp.goes_on(), 'x1x1', 'a call site goes on after an error');

-- Large queries are stored compressed and out of line.
CREATE TABLE stored AS
SELECT i, bloom_query(ARRAY(SELECT generate_series(i, i + 10000)), 2) AS q FROM generate_series(1, 3) i;
CREATE TABLE out_of_line (i int, q bloomquery);
ALTER TABLE out_of_line ALTER q SET STORAGE external;
INSERT INTO out_of_line SELECT * FROM stored;
SELECT is(array_agg(f @@ q ORDER BY n, i), '{t,f,f,t,f,f}', 'large queries')
FROM (SELECT 1 AS n, * FROM stored UNION ALL SELECT 2, * FROM out_of_line) s,
    (SELECT bloom_agg(x, 1000, 0.000001) AS f FROM generate_series(-500, 2) x) b;

-- Bytes of a query: what input refuses.
CREATE FUNCTION pg_temp.refused(header text, payload text DEFAULT '') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
BEGIN
    RETURN ('\x' || replace(header || payload, ' ', ''))::bloomquery::text;
EXCEPTION WHEN invalid_binary_representation THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN detail;
END $$;
SELECT is(pg_temp.refused(b), 'A key has bytes that no value of its element class has.', 'refused: ' || what)
FROM (VALUES ('boolean 2', '10000000 01000000 01000000 01000000 02'),
    ('no boolean', '10000000 01000000 01000000 00000000'),
    ('integer of 4 bytes', '14000000 01000000 01000000 04000000 01000000'),
    ('minus zero', 'bd020000 01000000 01000000 08000000 0000000000000080'),
    ('another NaN', 'bd020000 01000000 01000000 08000000 010000000000f87f'),
    ('a negative NaN', 'bd020000 01000000 01000000 08000000 000000000000f8ff'),
    ('day of 24 hours', 'a2040000 01000000 01000000 10000000 0000000000000000 0060d71d14000000'),
    ('IPv4 address of 33 bits', '65030000 01000000 01000000 06000000 04217f000001'),
    ('IPv6 address of 4 bytes', '65030000 01000000 01000000 06000000 06207f000001'),
    ('IPv4 address of 16 bytes', '65030000 01000000 01000000 12000000 042000000000000000000000000000000001'),
    ('blank at the end of char(n)', '12040000 01000000 01000000 02000000 6120'),
    ('uuid of 15 bytes', '860b0000 01000000 01000000 0f000000 000000000000000000000000000000'),
    ('the second key', '10000000 01000000 02000000 01000000 01 01000000 02')) v (what, b);
SELECT is(pg_temp.refused(b), 'Its element class is unknown.', 'refused: ' || what)
FROM (VALUES ('class 0', '00000000 01000000 00000000'), ('class of arrays', 'ef030000 01000000 00000000')) v (what, b);
SELECT is(pg_temp.refused(b), '\x' || replace(b, ' ', ''), 'accepted: ' || what)
FROM (VALUES ('infinity', 'bd020000 01000000 01000000 08000000 000000000000f0ff'),
    ('labels', 'ac0d0000 01000000 01000000 03000000 736164'), ('no key', '14000000 ffffffff 00000000'),
    ('empty bytea', '11000000 01000000 01000000 00000000'), ('empty char(n)', '12040000 01000000 01000000 00000000'))
    v (what, b);

-- From a client, by the receive function.
CREATE TABLE sent AS SELECT bloomquery_send(q) AS b, q::text AS t FROM stored LIMIT 1;
SELECT is('\x' || encode(b, 'hex'), t, 'the binary form is that of the text') FROM sent;

SELECT * FROM finish();
ROLLBACK;
