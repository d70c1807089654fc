-- Collations under which different strings are equal: every function, aggregate and operator of the extension in the
-- catalog that takes an element or an array of elements refuses them, and a collation that is not determined.
BEGIN;
SELECT plan(13);

CREATE COLLATION nd (PROVIDER = icu, LOCALE = 'und-u-ks-level2', DETERMINISTIC = false);
CREATE DOMAIN nd_text AS text COLLATE nd;
CREATE TABLE customers (k text, c char(9), b bigint);
INSERT INTO customers VALUES ('user7', 'user7', 7);
CREATE INDEX customers_k ON customers USING bloomset (k) WITH (false_positive_rate = 1e-7);
CREATE INDEX ON customers USING bloomset (c) WITH (false_positive_rate = 1e-7);
CREATE INDEX ON customers USING bloomset (b) WITH (false_positive_rate = 1e-7);

-- A row for each polymorphic argument of a function, aggregate or operator, with the call in which %s is its value.
CREATE VIEW pg_temp.call AS
WITH member AS (
    SELECT p.oid, proname, prokind, proargnames, string_to_array(proargtypes::text, ' ')::oid[]::regtype[] AS types
    FROM pg_depend d JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
    WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
        AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomtype')
        AND NOT proargtypes::oid[] && '{internal}'::regtype[]::oid[]),
argument AS (
    SELECT m.oid, n, type, type::text LIKE 'anycompatible%' AS is_element, CASE
        WHEN type = 'anyelement'::regtype THEN 'NULL::customers'
        WHEN type::text LIKE 'any%' THEN '%s'
        WHEN proargnames[n] = 'false_positive_rate' THEN '0.1'
        WHEN proargnames[n] = 'counter_bits' THEN '4'
        WHEN type = 'bloomfilter'::regtype THEN 'bloom_create(10)'
        WHEN type = 'bloomcounter'::regtype THEN 'bloom_create_counter(10)'
        WHEN type = 'name'::regtype THEN '''k'''
        WHEN type = 'regclass'::regtype AND 'name'::regtype = ANY (types) THEN '''customers'''
        WHEN type = 'regclass'::regtype THEN '''customers_k'''
        ELSE '1' END AS value
    FROM member m, unnest(types) WITH ORDINALITY t (type, n)),
arguments AS (
    SELECT oid, array_agg(value ORDER BY n) AS list, bool_or(type::text LIKE '%array') AS of_array
    FROM argument GROUP BY oid HAVING bool_or(is_element))
SELECT format('SELECT %I(%s)', proname, array_to_string(list, ', ')) AS template, of_array
FROM arguments JOIN member USING (oid)
UNION ALL
SELECT format('SELECT %s %s %s', list[1], oprname, list[2]), of_array
FROM arguments a JOIN pg_operator ON oprcode = a.oid;

CREATE FUNCTION pg_temp.answer(query text, OUT answer text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE query INTO answer;
    answer := 'answered ' || coalesce(answer, 'nothing');
EXCEPTION WHEN others THEN
    answer := SQLSTATE;
END
$$;

-- The calls that do not answer a value as they should.
CREATE FUNCTION pg_temp.others(wanted text, element text) RETURNS text[] LANGUAGE sql AS $$
    SELECT array_agg(query || ': ' || answer)
    FROM pg_temp.call, format(replace(template, '%s', '%1$s'),
        CASE WHEN of_array THEN format('ARRAY[%s]', element) ELSE element END) query, pg_temp.answer(query)
    WHERE answer !~ wanted
$$;

SELECT cmp_ok(count(*), '>', 30::bigint, 'the catalog names the calls') FROM pg_temp.call;
-- bloom_remove does not find it.
SELECT is(pg_temp.others('^(answered|22023)', '''user7''::text COLLATE "C"'), NULL, 'a deterministic collation');
SELECT is(pg_temp.others('0A000', '''User7''::text COLLATE nd'), NULL, 'a nondeterministic collation');
SELECT is(pg_temp.others('0A000', '''User7''::varchar(9) COLLATE nd'), NULL, 'of a varchar');
SELECT is(pg_temp.others('0A000', '''User7''::nd_text'), NULL, 'of a domain');
SELECT is(pg_temp.others('42P22', '(SELECT x || y FROM (VALUES (''us'' COLLATE "C", ''er7'' COLLATE "POSIX")) v (x, y))'),
    NULL, 'a collation that is not determined');

-- The collation of the value counts, not that of the column's name, which is another argument.
CREATE TABLE asked (d text, c text COLLATE "C", p text COLLATE "POSIX", n text COLLATE nd);
INSERT INTO asked VALUES ('user7', 'user7', 'user7', 'User7');
SELECT is((SELECT ARRAY[bloomset_contains('customers', 'k', d), bloomset_contains('customers', 'k', c),
    bloomset_contains('customers', 'k', p), bloomset_contains('customers', 'k', n COLLATE "C"),
    bloomset_contains('customers'::regclass, a.attname, p)]
    FROM asked, pg_attribute a WHERE attrelid = 'customers'::regclass AND attname = 'k'),
    '{t,t,t,f,t}', 'columns of every deterministic collation');
SELECT is(array_agg(answer), '{0A000,0A000,0A000,0A000}', 'a column of another one')
FROM unnest('{k,c}'::text[]) k, unnest(ARRAY[
    format('SELECT bloomset_contains(''customers'', %L, n) FROM asked', k),
    format('SELECT bloomset_partitions(''customers'', %L, n) FROM asked', k)]) query, pg_temp.answer(query);
SELECT is(array_agg(answer), '{0A000,0A000}', 'text that is converted')
FROM unnest(ARRAY['SELECT bloomset_contains(''customers'', ''b'', ''7'' COLLATE nd)',
    'SELECT bloomset_partitions(''customers'', ''b'', ''7'' COLLATE nd)']) query, pg_temp.answer(query);
SELECT throws_ok('SELECT bloomset_contains(''customers'', ''k'', x || y) FROM asked, (SELECT c, p FROM asked) v (x, y)',
    '42P22', 'could not determine which collation to use for bloom filter elements', 'two columns of different ones');

PREPARE prepared(text) AS SELECT bloomset_contains('customers', 'k', $1);
SELECT is(pg_temp.answer('EXECUTE prepared (''user7'')'), 'answered true', 'a parameter');
CREATE FUNCTION pg_temp.ask(x text) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN RETURN bloomset_contains('customers', 'k', x); END $$;
SELECT is(pg_temp.answer('SELECT pg_temp.ask(p) FROM asked'), 'answered true', 'a variable of plpgsql');
SELECT is(pg_temp.answer('SELECT pg_temp.ask(n) FROM asked'), '0A000', 'which has its function''s collation');

SELECT * FROM finish();
ROLLBACK;
