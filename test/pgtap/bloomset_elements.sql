-- The elements of a bloomset: two values are one element exactly if = of the column's type
-- says so. At a rate of 1e-7 no "yes" is there by chance, so the sets of this file must
-- answer as their tables do. Other types and collations are errors.
BEGIN;
SET LOCAL client_min_messages = warning;
SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SELECT * FROM no_plan();

\ir lib/command_answer.sql

-- Operator classes

SELECT ok(amvalidate(c.oid), format('operator class %s is valid', opcname))
FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'bloomset' ORDER BY opcname;

-- The operators are those of B-trees that compare two types of one class.
CREATE TABLE class (type regtype PRIMARY KEY, class text);
INSERT INTO class VALUES
    ('smallint', 'integers'), ('integer', 'integers'), ('bigint', 'integers'), ('real', 'floats'),
    ('double precision', 'floats'), ('text', 'texts'), ('varchar', 'texts'), ('name', 'texts'), ('inet', 'addresses'),
    ('cidr', 'addresses');
INSERT INTO class SELECT type, type FROM unnest('{numeric,bpchar,bytea,uuid,boolean,date,time,timetz,timestamp,
    timestamptz,interval,macaddr,macaddr8}'::regtype[]) type;
CREATE VIEW equality AS
SELECT DISTINCT amname, amopopr::regoperator AS operator
FROM pg_amop JOIN pg_am a ON a.oid = amopmethod
    JOIN class l ON l.type = amoplefttype JOIN class r ON r.type = amoprighttype AND r.class = l.class
WHERE amname = 'bloomset' OR amname = 'btree' AND amopstrategy = 3;
SELECT is(array_agg(operator ORDER BY operator) FILTER (WHERE amname = 'bloomset'),
    array_agg(operator ORDER BY operator) FILTER (WHERE amname = 'btree'), 'all equalities within a class')
FROM equality;
SELECT is((SELECT count(*) FROM pg_amop JOIN pg_am a ON a.oid = amopmethod WHERE amname = 'bloomset'),
    (SELECT count(*) FROM equality WHERE amname = 'bloomset'), 'and no other operator');

-- Equal values

CREATE DOMAIN small AS smallint CHECK (VALUE < 1000);
CREATE DOMAIN smaller AS small;
CREATE DOMAIN code AS char(8);
CREATE DOMAIN amount AS numeric(20, 6);

-- Every second value of a list goes into a table, half of them before the index is made.
-- The set, and a scan of it, must answer each probe as = does.
CREATE FUNCTION pg_temp.wrong_answers(type text, list text[], probe text, probes text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    wrong text[] := '{}';
    put constant text :=
        'INSERT INTO elements SELECT v::%s FROM unnest($1) WITH ORDINALITY l (v, i) WHERE i %% 4 = %s';
    value text;
    query text;
    there bool;
    scanned bool;
    by_column bool;
    by_index bool;
BEGIN
    EXECUTE format('CREATE TABLE elements (x %s)', type);
    EXECUTE format(put, type, 1) USING list;
    CREATE INDEX elements_set ON elements USING bloomset (x) WITH (false_positive_rate = 1e-7);
    EXECUTE format(put, type, 3) USING list;
    FOREACH value IN ARRAY list || probes LOOP
        query := format('SELECT EXISTS (SELECT FROM elements WHERE x = %s)', format(probe, value));
        PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'off', true);
        EXECUTE query INTO STRICT there;
        PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'on', true);
        EXECUTE query INTO STRICT scanned;
        EXECUTE format('SELECT bloomset_contains(''elements'', ''x'', %1$s), bloomset_contains(''elements_set'', %1$s)',
            format(probe, value)) INTO STRICT by_column, by_index;
        IF (there, there, there) IS DISTINCT FROM (scanned, by_column, by_index) THEN
            wrong := wrong || format('%s: in the table %s, by the scan %s, by column %s, by index %s',
                format(probe, value), there, scanned, by_column, by_index);
        END IF;
    END LOOP;
    DROP TABLE elements;
    PERFORM set_config('enable_seqscan', 'on', true);
    RETURN wrong;
END
$$;

-- Values of the column's type, and untyped literals.
SELECT is(pg_temp.wrong_answers(type, list, probe, '{}'), '{}', format('%s, probes as %s', type, format(probe, 'x')))
FROM (VALUES
    (1, 'smallint', '{0,1,-1,255,256,-256,32767,-32768}'::text[]),
    (2, 'integer', '{0,1,-1,65536,2147483647,-2147483648}'),
    (3, 'bigint', '{0,1,-1,4294967296,9223372036854775807,-9223372036854775808}'),
    (4, 'real', '{0,1,-0,-1,NaN,Infinity,-Infinity,1e-45,-1e-45,1e38,0.1,16777216,16777217}'),
    (5, 'double precision', '{1,0,-1,-0,NaN,Infinity,-Infinity,4.9e-324,-4.9e-324,1e308,0.1,0.10000000000000001,9007199254740993,9007199254740992}'),
    (6, 'numeric', '{0,1,1.0,-0,1e0,10,0e5,1e1,1e4,10000,10000.0000,1e5,0.1,0.10,1e-1,0.0001,0.00010,0.00001,-1,-1.0,-0.1,NaN,Infinity,-Infinity,99999999,100000000,1e8,1e1000,1e-1000,1.0000e1000,12345.6789,12345.67890,1234567890123456789012345678901234567890.5}'),
    (7, 'text', '{"",A,a,"a "," a","a\t",ä,Ä,ß,ss,\\000,æ,日本,"日本 ",😀}'),
    (8, 'char(4)', '{"",A,a,"a ","a  "," a","a\t",ä,"ä "}'),
    (9, 'varchar(9)', '{"",a,"a ","a  "," a"}'),
    (10, 'name', '{"",a,"a "," a"}'),
    (11, 'bytea', '{"","\\x00","\\x0000","\\x01","\\xff",a}'),
    (12, 'uuid', '{00000000-0000-0000-0000-000000000000,00000000-0000-0000-0000-000000000001,01000000-0000-0000-0000-000000000000}'),
    (13, 'boolean', '{t,f,yes,0}'),
    (14, 'date', '{2000-01-01,1999-12-31,infinity,-infinity,4713-01-01 BC,5874897-12-31,epoch}'),
    (15, 'time', '{00:00,24:00,23:59:59.999999,00:00:00.000001}'),
    (16, 'timetz', '{00:00+00,01:00+01,23:00-01,24:00+00,12:00+05:30,12:00+05:30:01,06:30+00,12:00-15:59}'),
    (17, 'timestamp', '{2000-01-01,1999-12-31 23:59:59.999999,infinity,-infinity,4713-01-01 BC,294276-12-31,2000-01-01 00:00:00.000001}'),
    (18, 'timestamptz', '{2000-01-01 00:00+00,1999-12-31 19:00-05,2000-01-01 01:00,infinity,2000-01-01 00:00:01+00,-infinity}'),
    (19, 'interval', '{0,1 mon,1 day,30 days,24:00,720 hours,-24:00,-1 day,1 mon -30 days,1 year,12 mons,360 days,365 days,1 mon -1 day,29 days,178956970 years,-178956970 years,2147483647 mons 2147483647 days,2562047788 hours,0.000001 s,-0.000001 s,1 day -0.000001 s,23:59:59.999999}'),
    (20, 'inet', '{0.0.0.0,0.0.0.0/0,::,::/0,10.0.0.1,10.0.0.1/24,10.0.0.1/32,10.0.0.0/24,::ffff:10.0.0.1,::10.0.0.1,2001:db8::1,2001:db8::1/64,2001:DB8:0::1}'),
    (21, 'cidr', '{10.0.0.0/24,10.0.0.0/16,10.0.0.0/8,10.0.0.0,::/128,::/0,2001:db8::/32,2001:db8::/33}'),
    (22, 'macaddr', '{00:00:00:00:00:01,01:00:00:00:00:00,000000000001,ff:ff:ff:ff:ff:ff}'),
    (23, 'macaddr8', '{00:00:00:00:00:01,00:00:00:ff:fe:00:00:02,00:00:00:ff:fe:00:00:01,01:00:00:00:00:00:00:00,08:00:2b:01:02:03}'),
    (24, 'smaller', '{0,1,-1,999}'),
    (25, 'code', '{"",x,"x ",y,"x  "," x"}'),
    (26, 'amount', '{0,1.5,0.0,2,1.500000,1.5000001}')
) v (n, type, list),
    LATERAL (VALUES ('%L'), ('%L::' || regexp_replace(type, '\(.*', ''))) p (probe)
WHERE probe <> '%L::char'
ORDER BY n, probe;

-- Values of other types that = compares with the column's, and texts.
SELECT is(pg_temp.wrong_answers(type, list, probe, others), '{}', format('%s, probes as %s', type, format(probe, 'x')))
FROM (VALUES
    (1, 'smallint', '%L::integer', '{0,1,-1,32767,-32768}'::text[], '{32768,65536,65537,2147483647}'::text[]),
    (2, 'smallint', '%L::bigint', '{0,1,-1,32767,-32768}', '{32768,65536,4294967297}'),
    (3, 'integer', '%L::smallint', '{0,1,-1,32767,-32768}', '{}'),
    (4, 'integer', '%L::bigint', '{0,1,-1,2147483647}', '{4294967296,4294967297,-9223372036854775808}'),
    (5, 'bigint', '%L::smallint', '{0,1,-1,32767}', '{2,-32768}'),
    (6, 'bigint', '%L::integer', '{0,1,-1,2147483647}', '{}'),
    (7, 'real', '%L::float8', '{0,1,-1,-0,0.1,NaN,0.5,Infinity,16777216}', '{0.1,0.10000000149011612,16777217,1e300}'),
    (8, 'double precision', '%L::real', '{0,1,-0,-1,0.1,0.2,NaN,0.5,Infinity,0.10000000149011612}', '{}'),
    (9, 'text', '%L::varchar', '{"",A,a,"a ",ä}', '{"a  "}'),
    (10, 'text', '%L::name', '{"",A,a,"a ",ä}', '{"a  "}'),
    (11, 'varchar(5)', '%L::text', '{"",A,a,"a ",ä}', '{abcdef}'),
    (12, 'varchar(5)', '%L::name', '{"",A,a,"a ",ä}', '{abcdef}'),
    (13, 'name', '%L::text', '{"",A,a,"a ",ä}', '{"a  "}'),
    (14, 'name', '%L::varchar', '{"",A,a,"a ",ä}', '{"a  "}'),
    (15, 'char(4)', '%L::varchar', '{"",A,a,"a ",ä}', '{"ä  "}'),
    (16, 'inet', '%L::cidr', '{10.0.0.0/8,10.0.0.0/16,10.0.0.0,::/0}', '{0.0.0.0/0}'),
    (17, 'cidr', '%L::inet', '{10.0.0.0/8,10.0.0.0/16,10.0.0.0,::/0}', '{10.0.0.1/8,0.0.0.0/0}'),
    (18, 'amount', '%L::numeric', '{1.5,2,1.50}', '{1.5000001,1.50000000}'),
    (19, 'smaller', '%L::bigint', '{1,2,3}', '{1000,65537}'),
    (20, 'code', '%L::bpchar', '{a,b,"a "}', '{"b  "}'),
    (21, 'char(4)', '%L::bpchar', '{a,b,"a "}', '{"b  ",abcdef}')
) v (n, type, probe, list, others)
ORDER BY n;

-- A text is converted as a literal is: by the input function of the column's type, without the
-- column's length or scale.
SELECT is(pg_temp.wrong_answers(type, list, '%L', others), '{}', type || ', literals of other lengths and scales')
FROM (VALUES
    (1, 'numeric(5, 2)', '{1.23,1.24,4}'::text[], '{1.234,1.230,123456}'::text[]),
    (2, 'varchar(3)', '{abc,abd,x}', '{abcd,"abc "}'),
    (3, 'char(3)', '{abc,abd,x}', '{abcd,"abc ","abc  ","x   "}'),
    (4, 'timestamp(0)', '{2000-01-01 00:00:01,2000-01-01 00:00:02}', '{2000-01-01 00:00:01.4}'),
    (5, 'interval day', '{1 day,2 days,3 days}', '{24:00,24:01,36 hours}'),
    -- As a name, a literal is cut after 63 bytes.
    (6, 'name', ARRAY[repeat('x', 63), 'a'], ARRAY[repeat('x', 62), repeat('x', 64), repeat('x', 63) || 'y'])
) v (n, type, list, others)
ORDER BY n;
CREATE TABLE texts (number, date, uuid) AS
SELECT i::text, (date '2000-01-01' + i)::text, md5(i::text) FROM generate_series(1, 200) i;
CREATE TABLE typed AS SELECT number::int, date::date, uuid::uuid FROM texts WHERE number::int <= 100;
CREATE INDEX ON typed USING bloomset (number) WITH (false_positive_rate = 1e-7);
CREATE INDEX ON typed USING bloomset (date) WITH (false_positive_rate = 1e-7);
CREATE INDEX ON typed USING bloomset (uuid) WITH (false_positive_rate = 1e-7);
SELECT unnest(ARRAY[
    is(count(*) FILTER (WHERE bloomset_contains('typed', 'number', number) AND bloomset_contains('typed', 'date', date)
        AND bloomset_contains('typed', 'uuid', uuid) AND number::int <= 100), 100::bigint,
        'columns of text find values'),
    is(count(*) FILTER (WHERE bloomset_contains('typed', 'number', number) OR bloomset_contains('typed', 'date', date)
        OR bloomset_contains('typed', 'uuid', uuid)), 100::bigint, 'and no others')])
FROM texts;
SELECT is(pg_temp.answer(format('SELECT bloomset_contains(''typed'', %L, %s)', c, v)), state,
    format('%s: %s', c, v))
FROM (VALUES
    (1, 'number', '''one''', '22P02'), (2, 'number', '''99999999999''', '22003'), (3, 'number', '''1.0''', '22P02'),
    (4, 'number', '''one''::text', '22P02'), (5, 'date', '''soon''', '22007'), (6, 'date', '''2001-02-30''', '22008'),
    (7, 'uuid', '''1''', '22P02'), (8, 'number', ''' 7 ''', 'true'), (9, 'date', '''Jan 5, 2000''', 'true'),
    (10, 'uuid', quote_literal('{' || upper(md5('7')) || '}'), 'true')
) v (n, c, v, state)
ORDER BY n;
SET LOCAL TimeZone = 'Asia/Tokyo';
SELECT is(pg_temp.wrong_answers('timestamptz', '{2000-01-01 00:00+00,2000-01-01 00:00:01+00}', '%L',
    '{2000-01-01 09:00,2000-01-01 00:00}'), '{}', 'timestamptz: literals without a zone are in that of the session');
RESET TimeZone;

-- Parameters whose type the server infers are texts.
PREPARE untyped AS SELECT bloomset_contains($1, $2, $3);
PREPARE untyped_by_index AS SELECT bloomset_contains($1, $2);
PREPARE untyped_partitions AS SELECT bloomset_partitions($1, $2, $3);
SELECT is(parameter_types::text, types, name || ': types of parameters')
FROM (VALUES ('untyped', '{regclass,name,text}'), ('untyped_by_index', '{regclass,text}'),
    ('untyped_partitions', '{regclass,name,text}')) v (name, types) LEFT JOIN pg_prepared_statements USING (name);
DEALLOCATE ALL;

-- Another class.
CREATE TABLE wrong_class (n serial, type text, value text);
INSERT INTO wrong_class (type, value) VALUES
    ('integer', '1.0'), ('integer', '1::float8'), ('integer', 'true'), ('integer', '''1''::varchar'),
    ('integer', '''1''::char'), ('integer', '''1''::name'), ('numeric', '1'), ('numeric', '1::float8'), ('float8', '1'),
    ('float8', '1.5'), ('text', '1'), ('text', '''a''::char(2)'), ('text', '''a''::bytea'),
    ('date', 'timestamp ''2000-01-02'''), ('timestamp', 'date ''2000-01-02'''),
    ('timestamp', 'timestamptz ''2000-01-02'''), ('timestamptz', 'timestamp ''2000-01-02'''),
    ('time', 'timetz ''00:00'''), ('macaddr', 'macaddr8 ''00:00:00:00:00:01'''), ('char(2)', '1'), ('uuid', '1');
CREATE FUNCTION pg_temp.ask(type text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE format('CREATE TABLE asked (x %s)', type);
    CREATE INDEX asked_set ON asked USING bloomset (x);
    result := concat(pg_temp.answer(query), ' ' || nullif(pg_temp.hint_of(query), ''));
    DROP TABLE asked;
    RETURN result;
END
$$;
SELECT ok(pg_temp.ask(type, format('SELECT bloomset_contains(''asked'', ''x'', %s)', value)) ~ '^42804 Look up a value of type ',
    format('%s, %s: an error and a hint', type, value)) FROM wrong_class ORDER BY n;
SELECT matches(pg_temp.ask('integer', query), '^42804 ', query)
FROM (VALUES ('SELECT bloomset_contains(''asked_set'', 1.0)'), ('SELECT bloomset_partitions(''asked'', ''x'', 1.0)'),
    ('SELECT bloomset_contains(''asked'', ''x'', ''{}''::json)'), ('SELECT bloomset_contains(''asked'', ''x'', ARRAY[1])'),
    ('SELECT bloomset_contains(''asked'', ''x'', bloom_create(1))')) v (query);

-- Types and collations that have no set.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN humour AS mood;
CREATE COLLATION nd (PROVIDER = icu, LOCALE = 'und-u-ks-level2', DETERMINISTIC = false);
CREATE DOMAIN nd_text AS text COLLATE nd;
CREATE TABLE refused (mood mood, humour humour, json json, jsonb jsonb, ints int[], oid oid, bits bit(3), point point,
    filter bloomfilter, nd text COLLATE nd, nd_domain nd_text, plain text);
INSERT INTO refused (nd, plain) VALUES ('alice', 'alice');
-- No operator class.
SELECT is(pg_temp.answer(format('CREATE INDEX ON refused USING bloomset (%I)', c)), '42704', 'no set of ' || c)
FROM unnest('{mood,humour,json,jsonb,ints,oid,bits,point,filter}'::text[]) c;
-- Also one of the user's own does not help.
CREATE OPERATOR CLASS mood_ops DEFAULT FOR TYPE mood USING bloomset AS OPERATOR 1 =(anyenum, anyenum);
CREATE OPERATOR CLASS jsonb_ops DEFAULT FOR TYPE jsonb USING bloomset AS OPERATOR 1 =(jsonb, jsonb);
CREATE OPERATOR CLASS array_ops DEFAULT FOR TYPE anyarray USING bloomset AS OPERATOR 1 =(anyarray, anyarray);
SELECT is(pg_temp.answer(format('CREATE INDEX ON refused USING bloomset (%I)', c)), '0A000', 'no set of ' || c)
FROM unnest('{jsonb,ints}'::text[]) c;
SELECT is(amvalidate(oid), false, opcname || ' is not valid')
FROM pg_opclass WHERE opcname IN ('mood_ops', 'jsonb_ops', 'array_ops') AND opcmethod = (SELECT oid FROM pg_am
    WHERE amname = 'bloomset');
-- Collations, and several columns.
SELECT is(pg_temp.answer(format('CREATE INDEX ON refused USING bloomset (%s)', keys)), '0A000', 'no set of ' || keys)
FROM unnest(ARRAY['nd', 'nd_domain', 'nd COLLATE "C"', 'nd_domain COLLATE "C"',
    'plain COLLATE nd', '(lower(plain) COLLATE nd)', '(lower(nd))', 'plain, nd']) WITH ORDINALITY v (keys, n) ORDER BY n;
SELECT lives_ok('CREATE INDEX lower_nd ON refused USING bloomset ((lower(nd) COLLATE "C"))',
    'an expression of a deterministic collation');
SELECT is(bloomset_contains('lower_nd', v), v = 'alice', 'which is asked under its own: ' || v)
FROM unnest('{alice,Alice}'::text[]) v;
-- ALTER TYPE can keep the index's file, and give the column a collation that the set must not answer for.
CREATE INDEX plain_c ON refused USING bloomset (plain COLLATE "C");
SELECT isnt(concat_ws(' ', pg_temp.answer('ALTER TABLE refused ALTER plain TYPE text COLLATE nd'),
        pg_temp.answer('SELECT EXISTS (SELECT FROM refused WHERE plain = ''ALICE'')
            AND NOT bloomset_contains(''refused'', ''plain'', ''ALICE'')')), 'true',
    'a column that gets a nondeterministic collation');
SELECT isnt(pg_temp.answer('SELECT EXISTS (SELECT FROM refused WHERE plain = ''ALICE'')
    AND NOT bloomset_contains(''plain_c'', ''ALICE'')'), 'true', 'the same by index');
SELECT throws_ok('REINDEX TABLE refused', '0A000',
    'bloomset index "plain_c" is on a column with a nondeterministic collation', 'which REINDEX names');

SELECT * FROM finish();
ROLLBACK;
