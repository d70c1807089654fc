-- A question without a certain answer is an error, never false: with the right
-- SQLSTATE, and a hint or a detail.
BEGIN;
SELECT plan(244);

CREATE COLLATION nd (PROVIDER = icu, LOCALE = 'und', DETERMINISTIC = false);
CREATE DOMAIN points AS point;
CREATE DOMAIN nd_text AS text COLLATE nd;
CREATE TYPE pair AS (a int, b int);

CREATE TABLE f AS
SELECT bloom_agg(i, 100) AS ints, bloom_agg(i::text, 100) AS texts, bloom_agg(i::numeric, 100) AS numerics,
       bloom_agg(date '2000-01-01' + i, 100) AS dates, bloom_agg(i::float8, 100) AS floats,
           bloom_agg(decode(md5(i::text), 'hex'), 100) AS byteas
FROM generate_series(1, 100) i;
CREATE TABLE e AS SELECT bloom_agg(i) AS e FROM generate_series(1, 0) i;

CREATE FUNCTION pg_temp.raised(query text, OUT state text, OUT message text, OUT detail text,
    OUT hint text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE query;
EXCEPTION WHEN others THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
        hint = PG_EXCEPTION_HINT;
END
$$;

-- Types that cannot be hashed by value.
CREATE TABLE unhashable (n serial, value text);
INSERT INTO unhashable (value) VALUES
    ('point ''(1,2)'''), ('''(1,2)''::points'), ('ARRAY[1, 2]'), ('''{a,b}''::text[]'), ('(1, 2)::pair'),
    ('ROW (1, 2)'),
    ('json ''{}'''), ('jsonb ''{}'''), ('money ''1'''), ('B''101'''), ('B''101''::varbit'), ('1::oid'),
    ('''pg_class''::regclass'), ('int4range ''[1,2)'''), ('tsvector ''a'''), ('''1''::xid'), ('''(0,1)''::tid'),
    ('''0/1''::pg_lsn'),
    ('''{1,2}''::int[]'), ('''1 2''::int2vector'), ('bloom_create(1)'), ('circle ''<(1,2),3>''');

SELECT throws_ok(format('SELECT bloom_agg(%s)', value), '0A000', NULL, 'bloom_agg of ' || value) FROM unhashable
ORDER BY n;
SELECT throws_ok(format('SELECT bloom_agg(%s, 10)', value), '0A000', NULL, 'sized bloom_agg of ' || value)
FROM unhashable WHERE n IN (1, 2, 3, 5, 12) ORDER BY n;
SELECT throws_ok(format('SELECT bloom_agg(%s, bloom_create(10))', value), '0A000', NULL,
    'bloom_agg onto a filter of ' || value) FROM unhashable WHERE n IN (1, 2, 3, 5, 12) ORDER BY n;
SELECT throws_ok(format('SELECT bloom_add(bloom_create(1), %s)', value), '0A000', NULL, 'bloom_add of ' || value)
FROM unhashable WHERE n IN (1, 2, 3, 5, 12) ORDER BY n;
SELECT throws_ok(format('SELECT ints @> %s FROM f', value), '0A000', NULL, 'probe with ' || value) FROM unhashable
WHERE n IN (1, 2, 3, 5, 12) ORDER BY n;
SELECT throws_ok(format('SELECT %s <@ ints FROM f', value), '0A000', NULL, 'probe from the left with ' || value)
FROM unhashable WHERE n IN (1, 2, 3, 5, 12) ORDER BY n;
SELECT is(array_agg(value) FILTER (WHERE coalesce(hint, '') = ''), NULL, 'each has a hint')
FROM unhashable, pg_temp.raised(format('SELECT bloom_agg(%s)', value));
SELECT is(array_agg(value) FILTER (WHERE NOT coalesce(hint, '') ~* 'cast'), NULL, 'which says what to cast to')
FROM unhashable, pg_temp.raised(format('SELECT bloom_agg(%s)', value)) WHERE n IN (1, 2, 7, 9, 12);

-- Nondeterministic collations.
CREATE TABLE collated (n serial, query text);
INSERT INTO collated (query) VALUES
    ('SELECT bloom_agg(''a''::text COLLATE nd)'),
    ('SELECT bloom_agg(''a''::text COLLATE nd, 10)'),
    ('SELECT bloom_agg(''a''::text COLLATE nd, 10, 0.1)'),
    ('SELECT bloom_agg(''a''::text COLLATE nd, bloom_create(10))'),
    ('SELECT bloom_agg(''a''::varchar(5) COLLATE nd)'),
    ('SELECT bloom_agg(''a''::char(5) COLLATE nd)'),
    ('SELECT bloom_agg(''a''::nd_text)'),
    ('SELECT bloom_add(bloom_create(1), ''a''::text COLLATE nd)'),
    ('SELECT texts @> (''a''::text COLLATE nd) FROM f'),
    ('SELECT texts @> (''a''::varchar COLLATE nd) FROM f'),
    ('SELECT texts @> ''a''::nd_text FROM f'),
    ('SELECT (''a''::text COLLATE nd) <@ texts FROM f'),
    ('SELECT bloom_contains(texts, ''a''::text COLLATE nd) FROM f'),
    ('SELECT texts @> ANY (ARRAY[''a''::text COLLATE nd]) FROM f');
SELECT throws_ok(query, '0A000', NULL, query) FROM collated ORDER BY n;
SELECT is(array_agg(query) FILTER (WHERE coalesce(hint, '') = ''), NULL,
    'nondeterministic collations: each has a hint')
FROM collated, pg_temp.raised(query);
SELECT lives_ok('SELECT bloom_agg(''a''::text COLLATE nd COLLATE "C") @> (''a''::text COLLATE nd COLLATE "C")',
    'another COLLATE helps');

-- The wrong class, at a probe, when adding and when combining.
CREATE TABLE mismatch (n serial, query text);
INSERT INTO mismatch (query) VALUES
    ('SELECT ints @> ''1'' FROM f'),
    ('SELECT ints @> 1.0 FROM f'),
    ('SELECT ints @> 1::float8 FROM f'),
    ('SELECT ints @> true FROM f'),
    ('SELECT ints @> ANY (ARRAY[1.5]) FROM f'),
    ('SELECT ''1'' <@ ints FROM f'),
    ('SELECT 1.0 <@ ints FROM f'),
    ('SELECT texts @> 1 FROM f'),
    ('SELECT 1 <@ texts FROM f'),
    ('SELECT numerics @> 1 FROM f'),
    ('SELECT numerics @> 1::float8 FROM f'),
    ('SELECT floats @> 1 FROM f'),
    ('SELECT floats @> 1.5::numeric FROM f'),
    ('SELECT dates @> timestamp ''2000-01-02'' FROM f'),
    ('SELECT dates @> timestamptz ''2000-01-02'' FROM f'),
    ('SELECT dates @> ''2000-01-02''::text FROM f'),
    ('SELECT byteas @> ''a''::text FROM f'),
    ('SELECT bloom_contains(ints, ''1'') FROM f'),
    ('SELECT bloom_contains(texts, 1) FROM f'),
    ('SELECT bloom_add(ints, ''1'') FROM f'),
    ('SELECT bloom_add(texts, 1) FROM f'),
    ('SELECT (SELECT bloom_agg(''1''::text, ints) FROM generate_series(1, 2)) FROM f'),
    ('SELECT ints | texts FROM f'),
    ('SELECT ints & texts FROM f'),
    ('SELECT bloom_union(ints, numerics) FROM f'),
    ('SELECT bloom_intersection(dates, texts) FROM f'),
    ('SELECT ints @>= texts FROM f'),
    ('SELECT ints <=@ texts FROM f'),
    ('SELECT bloom_union_cardinality(ints, texts) FROM f'),
    ('SELECT bloom_intersection_cardinality(ints, texts) FROM f'),
    ('SELECT bloom_jaccard(ints, texts) FROM f'),
    ('SELECT bloom_union_agg(x) FROM f, LATERAL (VALUES (ints), (texts)) v (x)'),
    ('SELECT bloom_intersect_agg(x) FROM f, LATERAL (VALUES (ints), (texts)) v (x)');
SELECT throws_ok(query, '42804', NULL, query) FROM mismatch ORDER BY n;
SELECT is(array_agg(query) FILTER (WHERE coalesce(hint, '') = ''), NULL, 'wrong class: each has a hint')
FROM mismatch, pg_temp.raised(query);
SELECT ok(message || coalesce(detail, '') ~ 'bigint' AND message || coalesce(detail, '') ~ 'text',
    'the message names both types: ' || query)
FROM (VALUES ('SELECT ints @> ''1'' FROM f'), ('SELECT ints | texts FROM f')) v (query), pg_temp.raised(query);
SELECT ok(NOT ints = texts AND ints <> texts, '= and <> compare anything') FROM f;
-- A filter without elements has no class yet.
SELECT ok(NOT c @> 1 AND NOT c @> 'a' AND c | ints = ints AND texts | c = texts,
    'an empty filter goes with every class')
FROM f, bloom_create(100) c;

-- Filters that do not combine: k, seed, layout, size.
CREATE TABLE apart (n serial, what text, a text, b text);
INSERT INTO apart (what, a, b) VALUES
    ('k', 'bloom_create(100, 0.01)', 'bloom_create(100, 0.001)'),
    ('k, of equal size', 'bloom_create(1, 0.01)', 'bloom_create(1, 0.4)'),
    ('seed', 'bloom_create(100, 0.01, ''blocked'', 0)', 'bloom_create(100, 0.01, ''blocked'', 1)'),
    ('layout', 'bloom_create(100, 2 ^ -10, ''blocked'')', 'bloom_create(100, 2 ^ -10, ''classic'')'),
    ('size of classic ones', 'bloom_create(100, 0.01, ''classic'')', 'bloom_create(200, 0.01, ''classic'')'),
    -- 2 and 3 blocks.
    ('block counts that do not divide', 'bloom_create(103)', 'bloom_create(150)'),
    -- 2 and 4.
    ('block counts that divide', 'bloom_create(100)', 'bloom_create(200)');
SELECT throws_ok(format('SELECT bloom_add(%s, 1) %s bloom_add(%s, 1)', a, op, b), '22023', NULL,
    format('%s: %s', op, what))
FROM apart, unnest('{|,&,@>=,<=@}'::text[]) WITH ORDINALITY o (op, place) ORDER BY n, place;
SELECT throws_ok(format('SELECT %s(bloom_add(%s, 1), bloom_add(%s, 1))', fn, a, b), '22023', NULL,
    format('%s: %s', fn, what))
FROM apart, unnest('{bloom_union_cardinality,bloom_intersection_cardinality,bloom_jaccard}'::text[]) fn
WHERE n IN (1, 3, 6) ORDER BY n, fn;
SELECT throws_ok(format('SELECT %s(x) FROM (VALUES (bloom_add(%s, 1)), (bloom_add(%s, 1))) v (x)', fn, a, b), '22023',
    NULL, format('%s: %s', fn, what))
FROM apart, unnest('{bloom_union_agg,bloom_intersect_agg}'::text[]) fn ORDER BY n, fn;
SELECT is(array_agg(what) FILTER (WHERE coalesce(detail, '') = '' OR coalesce(hint, '') = ''), NULL,
    'filters that do not combine: each has a detail and a hint')
FROM apart, pg_temp.raised(format('SELECT bloom_add(%s, 1) | bloom_add(%s, 1)', a, b));

-- Parameters out of bounds: the message names the value and the limit.
CREATE TABLE parameter (n serial, state text, query text, says text);
INSERT INTO parameter (state, query, says)
SELECT '22023', format(query, 'float8 ''' || v || ''''), '\m1\M.*' || replace(v, '+', '\+') || '\M'
FROM unnest('{SELECT bloom_create(%s),SELECT bloom_agg(1\, %s),"SELECT bloom_agg(1, %s, 0.1)",SELECT bloom_bytes(%s)}'::text[]) query,
     unnest('{0,-1,0.999,-1e+300,NaN,-Infinity}'::text[]) v;
INSERT INTO parameter (state, query, says)
SELECT '22023', format(query, 'float8 ''' || v || ''''), '1e-0?9.*0\.5.*' || v || '\M'
FROM unnest('{"SELECT bloom_create(10, %s)","SELECT bloom_agg(1, 10, %s)","SELECT bloom_agg(1, NULL, %s)","SELECT bloom_bytes(10, %s)","SELECT bloom_fold(bloom_create(10), %s)"}'::text[]) query,
     unnest('{0,-0.01,1,0.51,NaN,Infinity,-Infinity,1e-10}'::text[]) v;
INSERT INTO parameter (state, query, says)
SELECT '54000', format(query, quote_literal(n)), replace(n, '+', '\+') || '.*2147483648'
FROM (VALUES ('SELECT bloom_create(%s)', '217000000'), ('SELECT bloom_create(%s)', '9e+300'),
             ('SELECT bloom_create(%s, 1e-9, ''classic'')', '50000000'),
             ('SELECT bloom_create(%s, 0.5, ''classic'')', 'Infinity'), ('SELECT bloom_agg(1, %s)', 'Infinity'),
             ('SELECT bloom_create(%s, 1e-9)', '27000000'), ('SELECT bloom_agg(1, %s)', '300000000'),
             ('SELECT bloom_agg(1, %s, 1e-6)', '100000000'), ('SELECT bloom_bytes(%s)', '217000000')) v (query, n);
SELECT throws_ok(query, state, NULL, query) FROM parameter ORDER BY n;
SELECT is(array_agg(query || ': ' || concat_ws(' ', message, detail, hint))
    FILTER (WHERE NOT concat_ws(' ', message, detail, hint) ~ ('.*' || says)), NULL,
    'the message names the value and the limit, ' || state)
FROM parameter, pg_temp.raised(query) r (s, message, detail, hint) GROUP BY state ORDER BY state;
SELECT ok(concat_ws(' ', message, detail, hint) ~ '0\.5000001',
    'a value just beyond the limit is not shown as the limit')
FROM pg_temp.raised('SELECT bloom_create(10, 0.5000001)');

SELECT throws_ok(query, '22023', NULL, query)
FROM (VALUES ('SELECT bloom_create(10, 0.01, ''cuckoo'')'), ('SELECT bloom_create(10, 0.01, '''')'),
     ('SELECT bloom_bytes(10, 0.01, ''blocked '')')) v (query);
SELECT ok(length(regexp_replace(concat_ws(' ', message, detail, hint), '[^☃]', '', 'g')) * 3 <= 64,
    'no more than 64 bytes of a layout in any message')
FROM pg_temp.raised('SELECT bloom_create(10, 0.01, repeat(''☃'', 100000))');

-- The limits themselves are allowed.
SELECT lives_ok(query, query)
FROM (VALUES ('SELECT bloom_create(1, 1e-9)'), ('SELECT bloom_create(1, 0.5)'),
     ('SELECT bloom_create(1, 1e-9, ''classic'')'), ('SELECT bloom_create(1, 0.5, ''classic'')'),
             ('SELECT bloom_create(216000000)'), ('SELECT bloom_create(49000000, 1e-9, ''classic'')'),
             ('SELECT bloom_create(1, 0.01, ''blocked'', -9223372036854775808)'),
             ('SELECT bloom_bytes(216000000)')) v (query);

-- PostgreSQL casts nothing to a filter by itself.
SELECT throws_ok('INSERT INTO e VALUES (''\x00''::bytea)', '42804', NULL, 'bytea is not assigned to a filter');

SELECT * FROM finish();
ROLLBACK;
