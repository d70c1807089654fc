-- Hostile calls by an ordinary user: every function, operator, cast and aggregate of
-- the extension in the catalog, with every combination of NULLs and hostile values as
-- arguments. Each returns a result or an error of a documented kind.
BEGIN;
SELECT plan(8);

CREATE SCHEMA attack;

CREATE TABLE attack.member AS
SELECT classid, objid FROM pg_depend
WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomtype');

-- Filters, by name. Only a superuser can store the values that are not filters.
CREATE FUNCTION attack.forge(bytea, int DEFAULT 1) RETURNS bloomfilter
    LANGUAGE internal IMMUTABLE STRICT AS 'bytea_substr_no_len';
CREATE FUNCTION attack.bytes(header text, payload text DEFAULT '', times int DEFAULT 1) RETURNS bytea
    LANGUAGE sql IMMUTABLE RETURN decode(replace(header, ' ', '') || repeat(payload, times), 'hex');
CREATE FUNCTION attack.forged(header text, payload text DEFAULT '', times int DEFAULT 1) RETURNS bloomfilter
    LANGUAGE sql IMMUTABLE RETURN attack.forge(attack.bytes(header, payload, times));

CREATE TABLE attack.filter (name text PRIMARY KEY, f bloomfilter, corrupt bool NOT NULL DEFAULT false);
INSERT INTO attack.filter SELECT 'unsized', bloom_agg(x) FROM generate_series(1, 0) x;
INSERT INTO attack.filter SELECT 'sparse', bloom_agg(x, 1000) FROM generate_series(1, 5) x;
INSERT INTO attack.filter SELECT 'dense', bloom_agg(x, 1000) FROM generate_series(1, 1000) x;
INSERT INTO attack.filter SELECT 'own size', bloom_agg(x) FROM generate_series(1, 300) x;
INSERT INTO attack.filter SELECT 'texts', bloom_agg(x::text, 1000) FROM generate_series(1, 1000) x;
INSERT INTO attack.filter SELECT 'floats', bloom_agg(x::float8, 1000) FROM generate_series(1, 3) x;
INSERT INTO attack.filter SELECT 'other k', bloom_agg(x, 1000, 0.3) FROM generate_series(1, 1000) x;
INSERT INTO attack.filter SELECT 'stored dense', bloom_agg(x, 20000) FROM generate_series(1, 20000) x;
INSERT INTO attack.filter SELECT 'stored sparse', bloom_agg(x, 2000000) FROM generate_series(1, 5000) x;
INSERT INTO attack.filter SELECT 'many bits', bloom_agg(x, bloom_create(4000000)) FROM generate_series(1, 5) x;
INSERT INTO attack.filter
SELECT 'classic', bloom_agg(x, bloom_create(1000, 0.01, 'classic')) FROM generate_series(1, 1000) x;
INSERT INTO attack.filter VALUES
    ('NULL', NULL),
    ('empty', bloom_create(1000)),
    ('three blocks', bloom_add(bloom_create(150), 1)),
    ('other seed', bloom_add(bloom_create(1000, 0.01, 'blocked', -1), 1)),
    ('most bits', bloom_add(bloom_create(216000000, 0.01, 'blocked', 7), 'one')),
    ('saturated', attack.bytes('01000006 14000000 0ad7233c 0000000000000000 0002000000000000', 'ff', 64)::bloomfilter),
    ('smallest saturated', attack.bytes('01010007 14000000 0ad7233c 0000000000000000 4000000000000000',
        'ff', 8)::bloomfilter),
    ('saturated, k = 32', attack.bytes('01000020 14000000 0ad7233c 0000000000000000 0000010000000000',
        'ff', 8192)::bloomfilter),
    ('least rate', attack.bytes('01000001 19000000 01000000 0000000000000000 0002000000000000', 'aa', 64)::bloomfilter),
    ('hash of zero', attack.bytes('01000106 14000000 0ad7233c 0000000000000000 0000010000000000',
        '0000000000000000')::bloomfilter);
INSERT INTO attack.filter (name, f, corrupt) VALUES
    ('no byte', attack.forge(''), true),
    ('one byte', attack.forge('\x01'), true),
    ('short header', attack.forged('01000006 14000000 0ad7233c 0000000000000000 00020000000000'), true),
    ('version 0', attack.forged('00000006 14000000 0ad7233c 0000000000000000 0002000000000000', 'aa', 64), true),
    ('layout 2', attack.forged('01020006 14000000 0ad7233c 0000000000000000 0002000000000000', 'aa', 64), true),
    ('a counter', attack.forged('01000406 14000000 0ad7233c 0000000000000000 0002000000000000', '11', 256), true),
    ('flags 255', attack.forged('0100ff06 14000000 0ad7233c 0000000000000000 0002000000000000', 'aa', 64), true),
    ('a state', attack.forged('01000306 14000000 0ad7233c 0000000000000000 0000000000000000',
        'aaaaaaaaaaaaaaaa'), true),
    ('k = 0', attack.forged('01000000 14000000 0ad7233c 0000000000000000 0002000000000000', 'aa', 64), true),
    ('k = 33', attack.forged('01000021 14000000 0ad7233c 0000000000000000 0002000000000000', 'aa', 64), true),
    ('class 1', attack.forged('01000006 01000000 0ad7233c 0000000000000000 0002000000000000', 'aa', 64), true),
    ('no class', attack.forged('01000006 00000000 0ad7233c 0000000000000000 0002000000000000', 'aa', 64), true),
    ('rate NaN', attack.forged('01000006 14000000 0000c07f 0000000000000000 0002000000000000', 'aa', 64), true),
    ('no bits', attack.forged('01000006 14000000 0ad7233c 0000000000000000 0000000000000000', 'aa', 64), true),
    ('2^63 bits', attack.forged('01000006 14000000 0ad7233c 0000000000000000 0000000000000080', 'aa', 64), true),
    ('2^31 bits, 64 there', attack.forged('01000006 14000000 0ad7233c 0000000000000000 0000008000000000',
        'aa', 64), true),
    ('513 bits', attack.forged('01000006 14000000 0ad7233c 0000000000000000 0102000000000000', 'aa', 64), true),
    ('a byte more', attack.forged('01000006 14000000 0ad7233c 0000000000000000 0002000000000000', 'aa', 65), true),
    ('half a hash', attack.forged('01000106 14000000 0ad7233c 0000000000000000 0000000400000000', 'aaaaaaaa'), true),
    ('disorder', attack.forged('01000106 14000000 0ad7233c 0000000000000000 0000000400000000',
        'ffffffffffffffffffffffffffffff7f'), true),
    ('one hash twice', attack.forged('01000106 14000000 0ad7233c 0000000000000000 0000000400000000',
        'ffffffffffffff7f', 2), true),
    ('stored disorder', attack.forged('01000106 14000000 0ad7233c 0000000000000000 0000000400000000',
        'fffffffffffffffffefffffffffffffffdffffffffffff7f', 500), true),
    ('stored, cut off', attack.forged('01000006 14000000 0ad7233c 0000000000000000 0000010000000000',
        'aa', 8191), true),
    ('noise', attack.forge(decode(repeat(md5('noise'), 5), 'hex')), true);

-- Counters, in the same way.
CREATE FUNCTION attack.forge_counter(bytea, int DEFAULT 1) RETURNS bloomcounter
    LANGUAGE internal IMMUTABLE STRICT AS 'bytea_substr_no_len';
CREATE FUNCTION attack.forged_counter(header text, payload text DEFAULT '', times int DEFAULT 1) RETURNS bloomcounter
    LANGUAGE sql IMMUTABLE RETURN attack.forge_counter(attack.bytes(header, payload, times));

CREATE TABLE attack.counter (name text PRIMARY KEY, c bloomcounter, corrupt bool NOT NULL DEFAULT false);
INSERT INTO attack.counter SELECT 'unsized', bloom_counter_agg(x) FROM generate_series(1, 0) x;
INSERT INTO attack.counter SELECT 'sparse', bloom_counter_agg(x % 5, 1000) FROM generate_series(1, 50) x;
INSERT INTO attack.counter SELECT 'dense', bloom_counter_agg(x % 1000, 1000) FROM generate_series(1, 3000) x;
INSERT INTO attack.counter SELECT 'sparse levels', bloom_level_agg(x, x, 1000) FROM generate_series(1, 5) x;
INSERT INTO attack.counter SELECT 'dense levels', bloom_level_agg(x, 1 + x % 15, 1000) FROM generate_series(1, 1000) x;
INSERT INTO attack.counter SELECT 'own size', bloom_counter_agg(x) FROM generate_series(1, 300) x;
INSERT INTO attack.counter SELECT 'texts', bloom_counter_agg(x::text, 1000) FROM generate_series(1, 1000) x;
INSERT INTO attack.counter SELECT 'other k', bloom_counter_agg(x, 1000, 0.3) FROM generate_series(1, 1000) x;
INSERT INTO attack.counter SELECT 'stored dense', bloom_counter_agg(x, 20000) FROM generate_series(1, 20000) x;
INSERT INTO attack.counter SELECT 'stored sparse', bloom_counter_agg(x, 2000000) FROM generate_series(1, 5000) x;
INSERT INTO attack.counter
SELECT bits || ' bits', bloom_counter_agg(x, bloom_create_counter(1000, 0.01, bits))
FROM generate_series(1, 1000) x, (VALUES (8), (16)) v (bits) GROUP BY bits;
INSERT INTO attack.counter
SELECT 'classic', bloom_counter_agg(x, bloom_create_counter(1000, 0.01, 4, 'classic')) FROM generate_series(1, 1000) x;
INSERT INTO attack.counter VALUES
    ('NULL', NULL),
    ('empty', bloom_create_counter(1000)),
    ('other seed', bloom_add(bloom_create_counter(1000, 0.01, 4, 'blocked', -1), 1)),
    ('most positions', bloom_add(bloom_create_counter(50000000, 0.01, 4, 'blocked', 7), 'one')),
    ('saturated', attack.bytes('01000406 14000000 0ad7233c 0000000000000000 0002000000000000',
        'ff', 256)::bloomcounter),
    ('saturated, 16 bits', attack.bytes('01001406 14000000 0ad7233c 0000000000000000 0002000000000000',
        'ff', 1024)::bloomcounter),
    ('saturated levels', attack.bytes('01002406 14000000 0ad7233c 0000000000000000 0002000000000000',
        'ff', 256)::bloomcounter),
    ('smallest saturated', attack.bytes('01010407 14000000 0ad7233c 0000000000000000 4000000000000000',
        'ff', 32)::bloomcounter),
    ('all 0', attack.bytes('01000c06 14000000 0ad7233c 0000000000000000 0002000000000000',
        '00', 512)::bloomcounter),
    ('sparse saturated', attack.bytes('01000506 14000000 0ad7233c 0000000000000000 0000010000000000',
        '0000000000000000ffffffffffffffff0f000f00')::bloomcounter);
INSERT INTO attack.counter (name, c, corrupt) VALUES
    ('no byte', attack.forge_counter(''), true),
    ('short header', attack.forged_counter('01000406 14000000 0ad7233c 0000000000000000 00020000000000'), true),
    ('version 2', attack.forged_counter('02000406 14000000 0ad7233c 0000000000000000 0002000000000000',
        '11', 256), true),
    ('a filter', attack.forged_counter('01000006 14000000 0ad7233c 0000000000000000 0002000000000000',
        'aa', 64), true),
    ('a sparse filter', attack.forged_counter('01000106 14000000 0ad7233c 0000000000000000 0000010000000000',
        '0000000000000000'), true),
    ('both widths', attack.forged_counter('01001c06 14000000 0ad7233c 0000000000000000 0002000000000000',
        '11', 2048), true),
    ('flags 255', attack.forged_counter('0100ff06 14000000 0ad7233c 0000000000000000 0002000000000000',
        '11', 256), true),
    ('flag 64', attack.forged_counter('01004406 14000000 0ad7233c 0000000000000000 0002000000000000',
        '11', 256), true),
    ('a state', attack.forged_counter('01000706 14000000 0ad7233c 0000000000000000 0000000000000000',
        '00000000000000000100'), true),
    ('no class', attack.forged_counter('01000406 00000000 0ad7233c 0000000000000000 0002000000000000',
        '11', 256), true),
    ('empty with a class', attack.forged_counter('01000506 14000000 0ad7233c 0000000000000000 0002000000000000'), true),
    ('empty with levels', attack.forged_counter('01002506 00000000 0ad7233c 0000000000000000 0002000000000000'), true),
    ('no positions', attack.forged_counter('01000406 14000000 0ad7233c 0000000000000000 0000000000000000'), true),
    ('513 positions', attack.forged_counter('01000406 14000000 0ad7233c 0000000000000000 0102000000000000',
        '11', 256), true),
    ('2^63 positions', attack.forged_counter('01000406 14000000 0ad7233c 0000000000000000 0000000000000080',
        '11', 256), true),
    ('2^29 positions, 512 there', attack.forged_counter('01000406 14000000 0ad7233c 0000000000000000 0000002000000000',
        '11', 256), true),
    ('more than 2^28 bytes', attack.forged_counter('01001506 14000000 0ad7233c 0000000000000000 0000001000000000',
        '00000000000000000100'), true),
    ('a byte more', attack.forged_counter('01000406 14000000 0ad7233c 0000000000000000 0002000000000000',
        '11', 257), true),
    ('as many bytes as positions', attack.forged_counter(
        '01000406 14000000 0ad7233c 0000000000000000 0002000000000000', '11', 512), true),
    ('a number of 0', attack.forged_counter('01000506 14000000 0ad7233c 0000000000000000 0000010000000000',
        '00000000000000000000'), true),
    ('a number of 16', attack.forged_counter('01000506 14000000 0ad7233c 0000000000000000 0000010000000000',
        '00000000000000001000'), true),
    ('half a number', attack.forged_counter('01000506 14000000 0ad7233c 0000000000000000 0000010000000000',
        '000000000000000001'), true),
    ('disorder', attack.forged_counter('01000506 14000000 0ad7233c 0000000000000000 0000010000000000',
        'ffffffffffffffffffffffffffffff7f01000100'), true),
    ('too many elements', attack.forge_counter(attack.bytes(
        '01000506 14000000 0ad7233c 0000000000000000 0002000000000000')
        || (SELECT string_agg(decode(to_hex(h) || '00000000000000', 'hex'), '' ORDER BY h)
            FROM generate_series(16, 41) h) || attack.bytes('', '0100', 26)), true),
    ('stored disorder', attack.forged_counter('01000506 14000000 0ad7233c 0000000000000000 0000000400000000',
        'fffffffffffffffffefffffffffffffffdffffffffffff7f010001000100', 500), true),
    ('stored, cut off', attack.forged_counter('01000406 14000000 0ad7233c 0000000000000000 0000010000000000',
        '11', 32767), true),
    ('noise', attack.forge_counter(decode(repeat(md5('noise'), 5), 'hex')), true);

-- Queries, in the same way.
CREATE FUNCTION attack.forge_query(bytea, int DEFAULT 1) RETURNS bloomquery
    LANGUAGE internal IMMUTABLE STRICT AS 'bytea_substr_no_len';
CREATE FUNCTION attack.forged_query(header text, payload text DEFAULT '', times int DEFAULT 1) RETURNS bloomquery
    LANGUAGE sql IMMUTABLE RETURN attack.forge_query(attack.bytes(header, payload, times));

CREATE TABLE attack.query (name text PRIMARY KEY, q bloomquery, corrupt bool NOT NULL DEFAULT false);
INSERT INTO attack.query VALUES
    ('NULL', NULL),
    ('one', bloom_query(1)),
    ('no keys', bloom_query('{}'::int[])),
    ('none of them', bloom_query('{1,2}'::int[], 0)),
    ('only NULL', bloom_query('{NULL,NULL}'::int[])),
    ('more than there are', bloom_query('{1,2}'::int[], 2147483647)),
    ('most that bytes can ask for', attack.forged_query('14000000 ffffffff 01000000', '080000000100000000000000')),
    ('many', bloom_query(ARRAY(SELECT generate_series(1, 10000)), 5000)),
    ('texts', bloom_query(ARRAY['1', '', 'one ', repeat('☃', 10000)], 1)),
    ('blanks', bloom_query(ARRAY['1 ', ' ']::char(5)[], 1)),
    ('floats', bloom_query(ARRAY[1, 0, 'NaN']::float8[])),
    ('empty texts', attack.forged_query('19000000 01000000 e8030000', '00000000', 1000)),
    ('a label', attack.forged_query('ac0d0000 01000000 01000000', '03000000736164'));
INSERT INTO attack.query VALUES
    ('no byte', attack.forge_query(''), true),
    ('short header', attack.forged_query('14000000 01000000 010000'), true),
    ('class 0', attack.forged_query('00000000 01000000 00000000'), true),
    ('class 1', attack.forged_query('01000000 01000000 00000000'), true),
    ('no key', attack.forged_query('14000000 01000000 01000000'), true),
    ('half a length', attack.forged_query('14000000 01000000 01000000', '0800'), true),
    ('half a key', attack.forged_query('14000000 01000000 01000000', '0800000001000000'), true),
    ('a byte more', attack.forged_query('14000000 01000000 01000000', '08000000010000000000000000'), true),
    ('2^32 - 1 keys', attack.forged_query('19000000 01000000 ffffffff', '00000000', 1000), true),
    ('a key of 2^32 - 1 bytes', attack.forged_query('19000000 01000000 01000000', 'ffffffff', 1000), true),
    ('the last key of 2^31 bytes', attack.forged_query('19000000 01000000 02000000', '0000000000000080'), true),
    ('a boolean 2', attack.forged_query('10000000 01000000 01000000', '0100000002'), true),
    ('an address of 1 byte', attack.forged_query('65030000 01000000 01000000', '0100000004'), true),
    ('stored, cut off', attack.forged_query('14000000 01000000 e8030000', '080000000100000000000000', 999), true),
    ('noise', attack.forge_query(decode(repeat(md5('noise'), 5), 'hex')), true);

-- The arguments of each type: an expression, and whether it is null, or neither a filter nor a counter.
CREATE TABLE attack.value (
    type regtype, call text, missing bool NOT NULL DEFAULT false, corrupt bool NOT NULL DEFAULT false);
INSERT INTO attack.value
SELECT 'bloomfilter', format('(SELECT f FROM attack.filter WHERE name = %L)', name), f IS NULL, corrupt
FROM attack.filter;
INSERT INTO attack.value
SELECT 'bloomcounter', format('(SELECT c FROM attack.counter WHERE name = %L)', name), c IS NULL, corrupt
FROM attack.counter;
INSERT INTO attack.value
SELECT 'bloomquery', format('(SELECT q FROM attack.query WHERE name = %L)', name), q IS NULL, corrupt
FROM attack.query;
INSERT INTO attack.value
SELECT v.type::regtype, format('%L::%s', call, v.type), call IS NULL FROM (VALUES
    ('bigint', ARRAY[NULL, '0', '1', '-1', '100', '1000000', '216000000', '9223372036854775807',
                     '-9223372036854775808']),
    ('integer', ARRAY[NULL, '0', '1', '4', '16', '65536', '-1', '2147483647']),
    ('smallint', ARRAY[NULL, '0']), ('oid', ARRAY[NULL, '0']),
    ('float8', ARRAY[NULL, '0', '1e-9', '1e-10', '1e-320', '0.01', '0.3', '0.5', '0.51', '1', '1.5', '1000000',
                     '216000000', '9e18', '1.7e308', '-1', 'NaN', 'Infinity', '-Infinity']),
    ('text', ARRAY[NULL, 'blocked', 'CLASSIC', '', 'blocked ', '☃', repeat('☃', 1000)]),
    ('cstring', ARRAY['', '\', '\x', '\x0', '\xzz', '\X01', 'x', '\x01☃', 'null'])) v (type, calls), unnest(calls) call;
INSERT INTO attack.value
VALUES ('cstring', 'NULL::cstring', true), ('bytea', 'NULL::bytea', true), ('internal', 'NULL', true), ('"any"', '1', false);

-- As bytes and as text: all these values.
CREATE FUNCTION attack.bytes_of(bloomfilter, int DEFAULT 1) RETURNS bytea
    LANGUAGE internal IMMUTABLE STRICT AS 'bytea_substr_no_len';
CREATE FUNCTION attack.bytes_of(bloomcounter, int DEFAULT 1) RETURNS bytea
    LANGUAGE internal IMMUTABLE STRICT AS 'bytea_substr_no_len';
CREATE FUNCTION attack.bytes_of(bloomquery, int DEFAULT 1) RETURNS bytea
    LANGUAGE internal IMMUTABLE STRICT AS 'bytea_substr_no_len';
CREATE TABLE attack.message AS
SELECT row_number() OVER () AS n, b FROM (
    SELECT attack.bytes_of(f) FROM attack.filter WHERE f IS NOT NULL
    UNION SELECT attack.bytes_of(c) FROM attack.counter WHERE c IS NOT NULL
    UNION SELECT attack.bytes_of(q) FROM attack.query WHERE q IS NOT NULL) s (b);
INSERT INTO attack.value
SELECT 'bytea', format('(SELECT b FROM attack.message WHERE n = %s)', n) FROM attack.message;
INSERT INTO attack.value
SELECT 'cstring', format('(SELECT byteaout(b) FROM attack.message WHERE n = %s)', n) FROM attack.message;

-- Elements: of every supported type, and of others.
CREATE TYPE attack.mood AS ENUM ('sad', 'happy');
CREATE TYPE attack.pair AS (a int, b int);
CREATE DOMAIN attack.number AS int;
CREATE DOMAIN attack.numbers AS int[];
CREATE COLLATION attack.nondeterministic (PROVIDER = icu, LOCALE = 'und', DETERMINISTIC = false);
INSERT INTO attack.value
SELECT t, call, call LIKE 'NULL%' FROM unnest('{anycompatible,anyelement}'::regtype[]) t, unnest(ARRAY[
    '1', '2::smallint', '3::bigint', '-1::attack.number', '1.0', '''NaN''::numeric', '1::real', '''NaN''::float8',
    '''a''::text', 'repeat(''a'', 1000000)', '''a''::varchar(3)', '''a''::char(5)', '''a''::name', '''a''::"char"',
    '''\x00''::bytea', 'true', 'date ''infinity''', 'time ''24:00''', 'timetz ''00:00+15''', 'timestamp ''-infinity''',
    'timestamptz ''infinity''',
    'interval ''178000000 years''', '''00000000-0000-0000-0000-000000000000''::uuid', 'inet ''::/0''', 'cidr ''10/8''',
    'macaddr ''08:00:2b:01:02:03''', 'macaddr8 ''08:00:2b:01:02:03:04:05''', '''sad''::attack.mood',
    '''{1}''::attack.numbers', 'ARRAY[1]', '(1, 2)::attack.pair', 'ROW (1)', 'json ''1''', 'jsonb ''1''',
    'point ''(1,2)''', 'money ''1''', 'B''1''', '1::oid', 'int4range ''[1,2)''', 'tsvector ''a''',
    '''a''::text COLLATE attack.nondeterministic', 'bloom_create(1)',
    'bloom_create_counter(1)', 'NULL::int', 'NULL::text', 'NULL::point', 'NULL::attack.pair', 'NULL::bloomfilter',
    'NULL::bloomcounter']) call;
INSERT INTO attack.value VALUES ('anycompatible', '''a''', false), ('anycompatible', 'NULL', true),
    ('anyelement', 'NULL::attack.seen', false), ('anyelement', 'NULL::attack.view', false), ('anyelement', 'NULL::pg_class', false);
INSERT INTO attack.value
SELECT 'anycompatiblearray', call, call LIKE 'NULL%' FROM unnest(ARRAY[
    'ARRAY[1]', 'ARRAY[1, NULL, 1]::bigint[]', '''{}''::int[]', '''{NULL}''::int[]', '''{{1,2},{3,4}}''::smallint[]',
    'ARRAY(SELECT generate_series(1, 1000))', '''[5:6]={1,2}''::attack.numbers', '''1 2''::int2vector', '''1 2''::oidvector',
    '''{a,NULL}''::text[]', '''{1,two}''::char(5)[]', '''{a}''::name[]', '''{sad,happy}''::attack.mood[]',
    'ARRAY[1, ''NaN'']::float8[]', 'ARRAY[''a''] COLLATE attack.nondeterministic', 'ARRAY[(1, 2)::attack.pair]',
    '''{1}''::json[]', 'ARRAY[bloom_create(1)]', '''{a}''', 'NULL::int[]', 'NULL::json[]', 'NULL']) call;

-- Relations and columns.
CREATE TABLE attack.seen (n int, t text);
INSERT INTO attack.seen SELECT i, i FROM generate_series(1, 1000) i;
CREATE INDEX seen_n ON attack.seen USING bloomset (n) WITH (expected_items = 1);
CREATE INDEX seen_t ON attack.seen USING bloomset (t);
CREATE INDEX seen_b ON attack.seen (n);
CREATE VIEW attack.view AS SELECT * FROM attack.seen;
INSERT INTO attack.value
SELECT v.type::regtype, format('%L::%s', call, v.type), call IS NULL FROM (VALUES
    ('regclass', ARRAY[NULL, 'attack.seen', 'attack.seen_n', 'attack.seen_t', 'attack.seen_b', 'attack.view',
                       'pg_class', '0', '4294967295']),
    ('name', ARRAY[NULL, 'n', 't', 'ctid', '', repeat('☃', 63)]),
    ('boolean', ARRAY[NULL, 'true', 'false'])) v (type, calls), unnest(calls) call;

CREATE TYPE attack.report AS (calls bigint, errors bigint, wrong text[]);

-- Makes every call of a template, which has %s for each argument; a sample if there are too many.
CREATE FUNCTION attack.storm(template text, types regtype[], result regtype, strict bool) RETURNS attack.report
LANGUAGE plpgsql AS $$
DECLARE
    r attack.report := (0, 0, NULL);
    call record;
    query text;
    good bool;
    missing bool;
BEGIN
    FOR call IN
        WITH RECURSIVE calls (calls, missing, corrupt) AS (
            SELECT '{}'::text[], false, false
            UNION ALL
            SELECT c.calls || v.call, c.missing OR v.missing, c.corrupt OR v.corrupt
            FROM calls c JOIN attack.value v ON v.type = types[1 + cardinality(c.calls)]
                AND NOT (c.corrupt AND v.corrupt))
        SELECT * FROM (SELECT *, count(*) OVER () AS total FROM calls WHERE cardinality(calls) = cardinality(types)) a
        WHERE hashtext(calls::text) % (1 + total / 10000) = 0
    LOOP
        r.calls := r.calls + 1;
        query := format(template, VARIADIC call.calls);
        good := false;
        BEGIN
            EXECUTE format('SELECT r IS NULL, %s FROM (SELECT %s AS r OFFSET 0) s',
                CASE WHEN result IN ('bloomfilter'::regtype, 'bloomcounter'::regtype)
                     THEN format('r::bytea::%s = r', result)
                     WHEN result = 'bloomquery'::regtype THEN 'r::text::bloomquery::text = r::text' ELSE 'length(r::text) > 0' END, query)
                INTO missing, good;
            -- a set of no rows leaves it NULL
            good := missing IS NULL OR missing OR good AND NOT (strict AND call.missing);
        EXCEPTION WHEN others THEN
            r.errors := r.errors + 1;
            good := SQLSTATE = ANY (CASE
                WHEN 'internal'::regtype = ANY (types) THEN '{42883,0A000}'::text[]
                WHEN '{regclass,name}'::regtype[] && types THEN '{42809,42703,42P01,42501,42804,0A000,22P02,22004,55000}'
                -- the settings in files, which not everyone may read
                WHEN types = '{boolean}' THEN '{42501}'
                WHEN call.corrupt THEN '{XX001,22P03,22023,22003,22004,42804,0A000}'
                ELSE '{22P02,22P03,22023,22003,22004,54000,42804,0A000}' END);
            query := query || ': ' || SQLSTATE || ' ' || SQLERRM;
        END;
        IF good IS NOT TRUE THEN
            r.wrong := r.wrong || left(query, 300);
        END IF;
    END LOOP;
    IF r.calls = 0 THEN
        r.wrong := ARRAY['no values for ' || types::text];
    END IF;
    r.wrong := r.wrong[1:5];
    RETURN r;
END
$$;

CREATE FUNCTION attack.verdict(what text, reports attack.report[]) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT is(array_agg(w), NULL, what) FROM unnest(reports) r, unnest(r.wrong) w
    UNION ALL
    SELECT diag(format('%s: %s calls, %s errors', what, sum(r.calls), sum(r.errors))) FROM unnest(reports) r
$$;

CREATE FUNCTION attack.places(count int) RETURNS text LANGUAGE sql
    RETURN array_to_string(array_fill('%s'::text, ARRAY[count]), ', ');

CREATE ROLE bloomtype_attacker;
GRANT USAGE ON SCHEMA attack TO bloomtype_attacker;
GRANT SELECT ON ALL TABLES IN SCHEMA attack TO bloomtype_attacker;
SET LOCAL ROLE bloomtype_attacker;
SELECT is(current_setting('is_superuser'), 'off', 'as an ordinary user');

SELECT attack.verdict('every function', array_agg(attack.storm(
    format('%I.%I(%s)', nspname, proname, attack.places(pronargs)),
    string_to_array(proargtypes::text, ' ')::oid[]::regtype[], prorettype, proisstrict)))
FROM attack.member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
    JOIN pg_namespace n ON n.oid = pronamespace
WHERE prokind = 'f';

SELECT attack.verdict('every operator', array_agg(attack.storm(
    format('%s OPERATOR(%I.%s) %%s', CASE WHEN oprleft <> 0 THEN '%s' END, nspname, oprname),
    array_remove(ARRAY[oprleft, oprright], 0)::regtype[], oprresult, true)))
FROM attack.member JOIN pg_operator o ON classid = 'pg_operator'::regclass AND objid = o.oid
    JOIN pg_namespace n ON n.oid = oprnamespace;

SELECT attack.verdict('every cast', array_agg(attack.storm(
    format('%%s::%s', casttarget::regtype), ARRAY[castsource]::regtype[], casttarget, true)))
FROM attack.member JOIN pg_cast c ON classid = 'pg_cast'::regclass AND objid = c.oid;

-- Over two equal rows, over a moving frame, and over two filters or counters.
SELECT attack.verdict('every aggregate' || how, array_agg(attack.storm(
    format('(SELECT %I.%I(%s) %s LIMIT 1)', nspname, proname, attack.places(pronargs), called),
    string_to_array(proargtypes::text, ' ')::oid[]::regtype[], prorettype, false)))
FROM attack.member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
    JOIN pg_namespace n ON n.oid = pronamespace,
    (VALUES (1, '', 'FROM generate_series(1, 2) i'),
            (2, ' in a window', 'OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
            FROM generate_series(1, 3) i')) v (n, how, called)
WHERE prokind = 'a' GROUP BY v.n, how ORDER BY v.n;
SELECT attack.verdict('every aggregate of two filters or counters', array_agg(attack.storm(
    format('(SELECT %I.%I(f) FROM (VALUES (%%s), (%%s)) v (f))', nspname, proname),
    ARRAY[proargtypes[0], proargtypes[0]]::regtype[], prorettype, false)))
FROM attack.member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
    JOIN pg_namespace n ON n.oid = pronamespace
WHERE prokind = 'a' AND pronargs = 1 AND proargtypes[0] IN ('bloomfilter'::regtype, 'bloomcounter'::regtype);

-- Constant filters and counters, in the planner.
RESET ROLE;
CREATE FUNCTION attack.constant(text) RETURNS bloomfilter LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN RETURN (SELECT f FROM attack.filter WHERE name = $1); END $$;
CREATE FUNCTION attack.constant_counter(text) RETURNS bloomcounter LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN RETURN (SELECT c FROM attack.counter WHERE name = $1); END $$;
CREATE FUNCTION attack.constant_query(text) RETURNS bloomquery LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN RETURN (SELECT q FROM attack.query WHERE name = $1); END $$;
CREATE TABLE attack.input AS
SELECT x, x::text AS t, nullif(x, 5)::float8 AS f, bloom_add(bloom_create(10), x % 700) AS s FROM generate_series(1, 1000) x;
ANALYZE attack.input;
GRANT SELECT ON attack.input TO bloomtype_attacker;
DELETE FROM attack.value WHERE type IN ('anycompatible', 'bloomfilter', 'bloomcounter', 'bloomquery');
INSERT INTO attack.value SELECT 'anycompatible', unnest(ARRAY['x', 't', 'f', 'ROW (x)', '1']);
INSERT INTO attack.value
SELECT 'bloomfilter', format('attack.constant(%L)', name), f IS NULL, corrupt FROM attack.filter;
INSERT INTO attack.value
SELECT 'bloomcounter', format('attack.constant_counter(%L)', name), c IS NULL, corrupt FROM attack.counter;
INSERT INTO attack.value VALUES ('bloomfilter', 's');
INSERT INTO attack.value
SELECT 'bloomquery', format('attack.constant_query(%L)', name), q IS NULL, corrupt FROM attack.query;
SET LOCAL ROLE bloomtype_attacker;
SELECT attack.verdict('every operator with a constant filter or counter', array_agg(attack.storm(
    format('(SELECT count(*) FROM attack.input WHERE %s OPERATOR(%I.%s) %%s)', CASE WHEN oprleft <> 0 THEN '%s' END,
           nspname, oprname),
    array_remove(ARRAY[oprleft, oprright], 0)::regtype[], 'bigint', false)))
FROM attack.member JOIN pg_operator o ON classid = 'pg_operator'::regclass AND objid = o.oid
    JOIN pg_namespace n ON n.oid = oprnamespace
WHERE oprresult = 'bool'::regtype;
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
