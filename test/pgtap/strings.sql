-- Strings of every type, probed with strings of every type: a filter says true
-- wherever SQL's own = does, or raises an error. It says true for other strings only
-- where doc/reference.md allows that.
BEGIN;
SELECT plan(38);

-- To start workers for tens of thousands of queries takes minutes.
SET LOCAL max_parallel_workers_per_gather = 0;

CREATE DOMAIN code AS char(6);
CREATE DOMAIN label AS varchar(20);

-- Blanks in every place, other white space, and characters of several bytes.
CREATE TABLE string AS
SELECT * FROM unnest('{"", " ", "  ", a, " a", "a ", "a  ", "a b", "a b ", " a ", b, "a\t", "a\t ", "\t", ä, "ä ", " ä", "日本 ", 日本, AB, "AB   "}'::text[]) s;

-- An operand of a type: a literal or a parameter without a type, or a cast.
CREATE FUNCTION pg_temp.operand(type text, s text) RETURNS text LANGUAGE sql AS $$
    SELECT CASE type WHEN 'parameter' THEN '$1' WHEN 'literal' THEN quote_literal(s)
                     ELSE format('%L::%s', s, type) END
$$;

-- The answer to a question about two operands: true, false, or an SQLSTATE.
CREATE FUNCTION pg_temp.answer(question text, parameter text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    IF question LIKE '%$1%' THEN
        EXECUTE 'PREPARE probe (unknown) AS SELECT ' || question;
        BEGIN
            EXECUTE format('EXECUTE probe (%L)', parameter) INTO STRICT answer;
        EXCEPTION WHEN datatype_mismatch THEN
            answer := SQLSTATE;
        END;
        DEALLOCATE probe;
    ELSE
        EXECUTE 'SELECT ' || question INTO STRICT answer;
    END IF;
    RETURN left(answer, 5);
EXCEPTION WHEN datatype_mismatch THEN
    RETURN SQLSTATE;
END
$$;

CREATE TABLE answer AS
SELECT f.type AS filter_type, p.type AS probe_type, a.s AS element, b.s AS probe,
    pg_temp.answer(format('(%s = %s)::text', pg_temp.operand(f.type, a.s), pg_temp.operand(p.type, b.s)), b.s) AS equal,
    pg_temp.answer(format('(bloom_agg(%s) @> %s)::text', pg_temp.operand(f.type, a.s), pg_temp.operand(p.type, b.s)), b.s)
        AS found,
    pg_temp.answer(format('(%s <@ bloom_agg(%s))::text', pg_temp.operand(p.type, b.s), pg_temp.operand(f.type, a.s)), b.s)
        AS found_by_commutator
FROM unnest('{text,varchar,varchar(9),label,name,char(6),bpchar,code}'::text[]) f (type),
    unnest('{text,varchar,label,name,char(6),bpchar,code,literal,parameter}'::text[]) p (type), string a, string b;

SELECT is((SELECT count(*) FROM answer), 8 * 9 * 21 * 21::bigint, 'every pair was asked about');
SELECT ok((SELECT count(*) FROM answer WHERE equal = 'true') > 1000, 'many pairs are equal in SQL');
SELECT is_empty('SELECT * FROM answer WHERE found IS DISTINCT FROM found_by_commutator', 'both operators say the same');

-- No false negative.
SELECT is_empty(format('SELECT * FROM answer WHERE filter_type = %L AND equal = ''true'' AND found NOT IN (''true'', ''42804'')', t),
    format('a filter of %s contains what SQL takes as equal', t))
FROM unnest('{text,varchar,varchar(9),label,name,char(6),bpchar,code}'::text[]) t;

-- Text, varchar and name: exact; a char(n) is refused.
SELECT is_empty(format($$SELECT * FROM answer WHERE filter_type = %L AND probe_type NOT IN ('char(6)', 'bpchar', 'code')
        AND (found = 'true') <> (element = probe)$$, t),
    format('a filter of %s contains its element and no other', t))
FROM unnest('{text,varchar,varchar(9),label,name}'::text[]) t;
SELECT is_empty(format($$SELECT * FROM answer WHERE filter_type = %L AND probe_type IN ('char(6)', 'bpchar', 'code')
        AND found <> '42804'$$, t),
    format('a filter of %s refuses char(n)', t))
FROM unnest('{text,varchar,varchar(9),label,name}'::text[]) t;

-- char(n): any string by its form without trailing blanks.
SELECT is_empty(format($$SELECT * FROM answer WHERE filter_type = %L
        AND found <> (rtrim(element, ' ') = rtrim(probe, ' '))::text$$, t),
    format('a filter of %s compares without trailing blanks', t))
FROM unnest('{char(6),bpchar,code}'::text[]) t;
SELECT is_empty($$SELECT * FROM answer WHERE filter_type IN ('char(6)', 'bpchar', 'code') AND equal = 'false' AND found = 'true'
        AND NOT (probe_type IN ('text', 'name') AND rtrim(element, ' ') = rtrim(probe, ' '))$$,
    'only text and name with trailing blanks get more than SQL says');

-- Adding and combining demand equal classes.
SELECT throws_ok(format('SELECT bloom_add(bloom_agg(%s), %s)', a, b), '42804', NULL, format('%s cannot be added to %s', b, a))
FROM (VALUES ('''a''::char(3)', '''a''::text'), ('''a''::char(3)', '''a'''), ('''a''::text', '''a''::char(3)'),
    ('''a''::name', '''a''::bpchar')) v (a, b);
SELECT throws_ok(format('SELECT bloom_agg(%s, 10) %s bloom_agg(%s, 10)', a, o, b), '42804', NULL, format('%s %s %s', a, o, b))
FROM (VALUES ('''a''::char(3)', '''a''::text')) v (a, b), unnest('{|,&}'::text[]) o;
SELECT throws_ok('SELECT bloom_agg(x, f) FROM (SELECT bloom_agg(''a''::text, 10) AS f) q, (VALUES (''a''::char(2))) v (x)',
    '42804', NULL, 'char(n) cannot be aggregated onto text');
SELECT is(bloom_agg('a'::char(3), 10) | bloom_agg('b'::char(9), 10), (SELECT bloom_agg(x, 10) FROM unnest('{a,b}'::bpchar[]) x),
    'char(n) of different lengths combine');
SELECT is(bloom_agg('a'::char(3), 10) = bloom_agg('a'::char(9), 10), true, 'the length of char(n) leaves no trace');

-- The messages say what to do, and no type named in them truncates.
SELECT throws_ok('SELECT bloom_agg(''a''::text) @> ''a''::char(3)', '42804', 'bloom filter holds elements of type text, not bpchar',
    'the message about a char(n)');
SELECT lives_ok('SELECT bloom_add(bloom_agg(''abc''::char(3), 10), ''abc''::bpchar)', 'the type in the message can be cast to');
SELECT is((SELECT element_type FROM bloom_info(bloom_add(bloom_create(9), 'a'::char(3)))), 'bpchar'::regtype,
    'bloom_info names the type');

-- Literals are hashed once for each class.
SELECT is(array_agg(f @> 'a ' ORDER BY n), '{t,f,t,f}', 'one literal in filters of both classes by turns')
FROM (SELECT 1, bloom_agg('a'::char(3)) UNION ALL SELECT 2, bloom_agg('a'::text) UNION ALL
      SELECT 3, bloom_agg('a'::char(3)) UNION ALL SELECT 4, bloom_agg('a'::text)) q (n, f);

SELECT * FROM finish();
ROLLBACK;
