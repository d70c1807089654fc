-- Two values are one element if and only if SQL calls them equal, whatever their
-- bytes and their type within a class. Sparse filters list 64-bit hashes, so they
-- show differences, too.
BEGIN;
SELECT plan(119);

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN small AS smallint CHECK (VALUE < 1000);
CREATE DOMAIN smaller AS small;
CREATE DOMAIN code AS char(8);
CREATE DOMAIN humour AS mood;
CREATE DOMAIN amount AS numeric(20, 6);

-- Builds a sparse filter of each expression, and compares the filters.
CREATE FUNCTION pg_temp.compare(a text, b text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    fa bloomfilter;
    fb bloomfilter;
    ab bool;
    ba bool;
BEGIN
    EXECUTE format('SELECT bloom_add(bloom_create(1000), %s), bloom_add(bloom_create(1000), %s)', a, b)
        INTO STRICT fa, fb;
    EXECUTE format('SELECT $1 @> %s, $2 @> %s', b, a) INTO STRICT ab, ba USING fa, fb;
    RETURN CASE
        WHEN ab AND ba AND fa = fb AND fa::bytea = fb::bytea THEN 'same'
        WHEN NOT ab AND NOT ba AND fa <> fb THEN 'different'
        ELSE format('%s in %s: %s, %s in %s: %s, filters equal: %s', b, a, ab, a, b, ba, fa = fb)
    END;
END
$$;

-- Equal, though the bytes or the types are not.
SELECT is(pg_temp.compare(a, b), 'same', format('%s and %s are one element', a, b))
FROM (VALUES
    (1, '42::int2', '42::int4'),
    (2, '42::int4', '42::int8'),
    (3, '(-32768)::int2', '(-32768)::int8'),
    (4, '42::small', '42::int8'),
    (5, '42::smaller', '42::int4'),
    (10, '0.5::float4', '0.5::float8'),
    (11, '0.1::float4', '0.1::float4::float8'),
    (12, '''-0''::float8', '0::float8'),
    (13, '''-0''::float4', '0::float8'),
    (14, '''NaN''::float4', '''NaN''::float8'),
    (15, '''Infinity''::float8 - ''Infinity''::float8', '''NaN''::float8'),
    (16, '-''NaN''::float8', '''NaN''::float8'),
    (17, '''-Infinity''::float4', '''-Infinity''::float8'),
    (20, '1.0::numeric', '1.00::numeric'),
    (21, '100::numeric', '1e2::numeric'),
    (22, '100::numeric', '100.000::numeric'),
    (23, '0::numeric', '0.000::numeric'),
    (24, '-0.0::numeric', '0::numeric'),
    (25, '12.5::numeric(10, 4)', '12.5::amount'),
    (26, '1e-20::numeric', '0.00000000000000000001000::numeric'),
    (27, '1e300::numeric', '(''1'' || repeat(''0'', 300) || ''.0'')::numeric'),
    (28, '''NaN''::numeric', '''nan''::numeric'),
    (29, '''Infinity''::numeric', '''inf''::numeric'),
    (30, '''a''::char(1)', '''a''::char(9)'),
    (31, '''a ''::char(9)', '''a''::bpchar'),
    (32, '''a   ''::char(4)', '''a''::char(3)'),
    (33, '''   ''::char(3)', '''''::char(1)'),
    (34, '''alice''::name', '''alice''::text'),
    (35, '''alice''::varchar', '''alice''::text'),
    (36, '''happy''::mood', '''happy''::text'),
    (37, '''happy''::humour', '''happy''::mood'),
    (38, '''happy''::humour', '''happy''::varchar(20)'),
    (39, '''x1''::code', '''x1  ''::char(4)'),
    (40, '''a'' COLLATE "C"', '''a'' COLLATE "POSIX"'),
    (41, 'U&''\00e4''::name', '''ä''::text'),
    (50, 'interval ''1 month''', 'interval ''30 days'''),
    (51, 'interval ''1 day''', 'interval ''24 hours'''),
    (52, 'interval ''1 year''', 'interval ''360 days'''),
    (53, 'interval ''1 month -30 days''', 'interval ''0'''),
    (54, 'interval ''-1 day +24 hours''', 'interval ''0'''),
    (55, 'interval ''-1 month''', 'interval ''-29 days -24:00'''),
    (56, 'interval ''-1 microsecond''', 'interval ''-1 day 23:59:59.999999'''),
    (57, 'interval ''178956970 years''', 'interval ''2147483640 months'''),
    (60, 'timestamptz ''2024-01-01 12:00+00''', 'timestamptz ''2024-01-01 13:00+01'''),
    (61, 'timestamptz ''infinity''', 'timestamptz ''infinity'''),
    (62, 'date ''-infinity''', 'date ''-infinity'''),
    (63, 'timestamp ''2000-01-01 00:00:00.0000001''', 'timestamp ''2000-01-01'''),
    (64, 'timetz ''12:00+02''', 'timetz ''12:00:00+02:00:00'''),
    (70, 'inet ''10.1.2.3''', 'cidr ''10.1.2.3/32'''),
    (71, 'inet ''10.1.2.0/24''', 'cidr ''10.1.2.0/24'''),
    (72, 'inet ''2001:db8::''', 'cidr ''2001:db8::/128'''),
    (73, 'inet ''::ffff:1.2.3.4''', 'inet ''::ffff:102:304'''),
    (74, 'uuid ''A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11''', 'uuid ''{a0eebc999c0b4ef8bb6d6bb9bd380a11}'''),
    (75, 'macaddr ''08:00:2b:01:02:03''', 'macaddr ''08002b-010203'''),
    (76, 'bytea ''\x6162''', 'bytea ''ab'''),
    (77, 'true', '''on''::bool')
) v (n, a, b) ORDER BY n;

-- Different, though they look alike.
SELECT is(pg_temp.compare(a, b), 'different', format('%s and %s are two elements', a, b))
FROM (VALUES
    (1, '42::int4', '-42::int8'),
    (2, '1::int8', '4294967297::int8'),
    (3, '0.1::float4', '0.1::float8'),
    (4, '1e-320::float8', '0::float8'),
    (5, '1.1::numeric', '1.10000000000000000001::numeric'),
    (6, '100::numeric', '10::numeric'),
    (7, '1e100::numeric', '1e101::numeric'),
    (8, '''a''::text', '''a ''::text'),
    (9, '''a ''::varchar', '''a''::varchar(4)'),
    (10, '''alice''::text', '''Alice''::text'),
    (11, 'U&''\00e4''::text', 'U&''a\0308''::text'),
    (12, '''''::text', ''' ''::text'),
    (13, '''sad''::mood', '''SAD''::text'),
    (14, 'interval ''1 month''', 'interval ''31 days'''),
    (15, 'interval ''1 microsecond''', 'interval ''-1 microsecond'''),
    (16, 'interval ''178956970 years''', 'interval ''-178956970 years'''),
    (17, 'timetz ''12:00+00''', 'timetz ''13:00+01'''),
    (18, 'time ''00:00''', 'time ''24:00'''),
    (19, 'date ''infinity''', 'date ''-infinity'''),
    (20, 'timestamp ''infinity''', 'timestamp ''294276-12-31 23:59:59.999999'''),
    (21, 'inet ''10.1.2.3/24''', 'inet ''10.1.2.3/16'''),
    (22, 'inet ''1.2.3.4''', 'inet ''::ffff:1.2.3.4'''),
    (23, 'inet ''0.0.0.0/0''', 'inet ''::/0'''),
    (24, 'bytea ''\x00''', 'bytea ''\x0000'''),
    (25, 'bytea ''''', 'bytea ''\x00'''),
    (26, 'macaddr8 ''00:00:00:00:00:00:00:01''', 'macaddr8 ''01:00:00:00:00:00:00:00'''),
    (27, 'true', 'false')
) v (n, a, b) ORDER BY n;

-- Every pair of a list of difficult values: one element if and only if = is true.
CREATE FUNCTION pg_temp.disagreements(type text, list text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    a text;
    b text;
    equal bool;
    got text;
    wrong text[] := '{}';
BEGIN
    FOREACH a IN ARRAY list LOOP
        FOREACH b IN ARRAY list LOOP
            EXECUTE format('SELECT %L::%s = %L::%s', a, type, b, type) INTO STRICT equal;
            got := pg_temp.compare(format('%L::%s', a, type), format('%L::%s', b, type));
            IF (CASE WHEN equal THEN 'same' ELSE 'different' END) <> got THEN
                wrong := wrong || format('%s and %s: %s', a, b, got);
            END IF;
        END LOOP;
    END LOOP;
    RETURN wrong;
END
$$;

SELECT is(pg_temp.disagreements(type, list), '{}', type || ': one element if and only if equal')
FROM (VALUES
    (1, 'smallint', '{0,1,-1,255,256,-256,32767,-32768}'::text[]),
    (2, 'integer', '{0,1,-1,65536,2147483647,-2147483648}'),
    (3, 'bigint', '{0,1,-1,4294967296,9223372036854775807,-9223372036854775808}'),
    (4, 'real', '{0,-0,1,-1,NaN,Infinity,-Infinity,1e-45,-1e-45,1e38,0.1,16777216,16777217}'),
    (5, 'double precision', '{0,-0,1,-1,NaN,Infinity,-Infinity,4.9e-324,-4.9e-324,1e308,0.1,0.10000000000000001,9007199254740993,9007199254740992}'),
    (6, 'numeric', '{0,-0,0.0,0e5,0e-5,1,1.0,1e0,10,1e1,1e4,10000,10000.0000,1e5,0.1,0.10,1e-1,0.0001,0.00010,0.00001,-1,-1.0,-0.1,NaN,Infinity,-Infinity,99999999,100000000,1e8,1e1000,1e-1000,1.0000e1000,12345.6789,12345.67890,1234567890123456789012345678901234567890.5}'),
    (7, 'text', '{"",a,A,"a "," a","a\t",ä,ä,ß,ss,\\000,æ,日本,"日本 ",😀}'),
    (8, 'char(4)', '{"",a,"a ","a  "," a","a\t",ä,"ä "}'),
    (9, 'varchar(9)', '{"",a,"a ","a  "," a"}'),
    (10, 'name', '{"",a,"a "," a"}'),
    (11, 'mood', '{sad,ok,happy}'),
    (12, 'bytea', '{"","\\x00","\\x0000","\\x01","\\xff",a}'),
    (13, 'uuid', '{00000000-0000-0000-0000-000000000000,00000000-0000-0000-0000-000000000001,01000000-0000-0000-0000-000000000000}'),
    (14, 'boolean', '{t,true,f,0,yes}'),
    (15, 'date', '{2000-01-01,1999-12-31,infinity,-infinity,4713-01-01 BC,5874897-12-31,epoch}'),
    (16, 'time', '{00:00,24:00,23:59:59.999999,00:00:00.000001}'),
    (17, 'timetz', '{00:00+00,01:00+01,23:00-01,24:00+00,12:00+05:30,12:00+05:30:01,06:30+00,12:00-15:59}'),
    (18, 'timestamp', '{2000-01-01,1999-12-31 23:59:59.999999,infinity,-infinity,4713-01-01 BC,294276-12-31,2000-01-01 00:00:00.000001}'),
    (19, 'timestamptz', '{2000-01-01 00:00+00,2000-01-01 01:00+01,1999-12-31 19:00-05,infinity,-infinity,2000-01-01 00:00:01+00}'),
    (20, 'interval', '{0,1 mon,30 days,720 hours,1 day,24:00,-24:00,-1 day,1 mon -30 days,1 year,12 mons,360 days,365 days,1 mon -1 day,29 days,178956970 years,-178956970 years,2147483647 mons 2147483647 days,-2147483647 mons -2147483647 days,2562047788 hours,-2562047788 hours,0.000001 s,-0.000001 s,1 day -0.000001 s,23:59:59.999999}'),
    (21, 'inet', '{0.0.0.0,0.0.0.0/0,::,::/0,10.0.0.1,10.0.0.1/32,10.0.0.1/24,10.0.0.0/24,::ffff:10.0.0.1,::10.0.0.1,2001:db8::1,2001:db8::1/64,2001:DB8:0::1}'),
    (22, 'cidr', '{10,10.0/8,10.0.0.0/8,10.0.0.0/16,10.0.0.0,::/128,::/0,2001:db8::/32,2001:db8::/33}'),
    (23, 'macaddr', '{00:00:00:00:00:01,000000000001,01:00:00:00:00:00,ff:ff:ff:ff:ff:ff}'),
    (24, 'macaddr8', '{00:00:00:00:00:01,00:00:00:ff:fe:00:00:01,01:00:00:00:00:00:00:00,08:00:2b:01:02:03}'),
    (25, 'smaller', '{0,1,-1,999}'),
    (26, 'code', '{"",x,"x ","x  "," x"}'),
    (27, 'amount', '{0,0.0,1.5,1.500000,1.5000001,2}')
) v (n, type, list) ORDER BY n;

-- A column of one type, and probes of another type of the class.
SELECT is(
    (SELECT array_agg(i ORDER BY i) FROM generate_series(-5, 105) i
     WHERE (SELECT bloom_agg(j::smallint, 10000) FROM generate_series(1, 100) j) @> i::bigint),
    (SELECT array_agg(i) FROM generate_series(1, 100) i), 'smallint in, bigint probes');
SELECT is(
    (SELECT # bloom_agg(x) FROM (SELECT unnest(ARRAY['a', 'b', 'c']::char(7)[])::text
                                 UNION ALL SELECT unnest('{a,b,d}'::text[])) t (x)),
    4::float8, 'trailing blanks of char(n) cast to text do not make an element twice');
SELECT is(
    (SELECT # bloom_agg(x) FROM unnest('{"a","a ","a  ",b}'::bpchar[]) x),
    2::float8, 'trailing blanks of char(n) do not make an element twice');
SELECT is(
    (SELECT # bloom_agg(x) FROM unnest('{1 mon,30 days,720 hours,31 days,1 day,24:00}'::interval[]) x),
    3::float8, 'intervals are counted by value');
SELECT is(
    (SELECT # bloom_agg(x) FROM unnest('{1,1.0,1.00,1e0,10,1e1,-0,0.0}'::numeric[]) x),
    3::float8, 'numerics are counted by value');
SELECT is(
    (SELECT # bloom_agg(x) FROM unnest('{0,-0,NaN,NaN,1}'::float8[]) x),
    3::float8, 'floating-point numbers are counted by value');
SELECT is(
    (SELECT bloom_agg(x, 1000) FROM unnest('{happy,sad}'::mood[]) x),
    (SELECT bloom_agg(x, 1000) FROM unnest('{happy,sad}'::text[]) x),
    'an enum gives the filter that its labels give');
SELECT ok(bloom_agg(x, 1000) @> 'sad', 'an untyped literal finds a label') FROM unnest('{happy,sad}'::mood[]) x;

-- The hash is that of the label, not of the position or the OID.
ALTER TYPE mood RENAME VALUE 'sad' TO 'blue';
SELECT is(pg_temp.compare('''blue''::mood', '''blue''::text'), 'same', 'a renamed label hashes as its new name');

SELECT * FROM finish();
ROLLBACK;
