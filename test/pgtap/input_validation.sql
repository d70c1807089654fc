-- The text of a filter, counter or query: what is not hexadecimal digits, how much of it a message
-- shows, and soft errors. test/t/golden.t tests which bytes each way of input takes.
BEGIN;
SELECT plan(90);

CREATE TABLE type AS
SELECT 'bloomfilter' AS type, bloom_agg(i)::text AS good FROM generate_series(1, 5) i
UNION ALL SELECT 'bloomcounter', bloom_counter_agg(i)::text FROM generate_series(1, 5) i
UNION ALL SELECT 'bloomquery', bloom_query(ARRAY['alice', 'bob'])::text;

CREATE TABLE bad_text (id serial, type text, what text, t text);
INSERT INTO bad_text (type, what, t)
SELECT type, what, t FROM type,
    LATERAL (VALUES ('nothing', ''), ('no prefix', substr(good, 3)), ('half a prefix', '\'),
                    ('another prefix', '0x' || substr(good, 3)),
                    ('an odd number of digits', left(good, -1)), ('a digit too many', good || '0'),
                    ('a letter that is no digit', left(good, -1) || 'g'),
                    ('a space before', ' ' || good), ('a space after', good || ' '),
                    ('a space inside', left(good, 10) || ' ' || substr(good, 11)),
                    ('a newline after', good || E'\n'), ('a sign', left(good, -2) || '+1'),
                    ('two prefixes', '\x' || good),
                    ('a word', 'alice'), ('a number', '42'), ('escaped bytea', '\001\000'),
                    ('a character of two bytes', left(good, -2) || 'é'),
                    ('a digit of another script', left(good, -2) || '１')) v (what, t);
CREATE FUNCTION pg_temp.by_input(type text, t text, OUT state text, OUT says text) LANGUAGE plpgsql AS $$
DECLARE
    message text;
    detail text;
    hint text;
BEGIN
    EXECUTE format('SELECT %L::%s', t, type);
EXCEPTION WHEN others THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
        hint = PG_EXCEPTION_HINT;
    says := concat_ws(' ', message, detail, hint);
END
$$;
SELECT is(state, '22P02', type || ' from text: ' || what) FROM bad_text, pg_temp.by_input(type, t) ORDER BY id;

-- No message has more than 64 bytes of the input, or a part of a character.
SELECT ok(state LIKE '22P0_' AND 3 * length(regexp_replace(says, '[^☃]', '', 'g')) <= 64
    AND octet_length(says) < 1000, type || ', little of it in the message: ' || what)
FROM (VALUES ('snowmen', repeat('☃', 1000000)), ('snowmen in place of digits', '\x' || repeat('☃', 1000000)),
     ('snowmen after many digits', '\x' || repeat('01', 100000) || repeat('☃', 1000)),
     ('one snowman', '\x☃'), ('a name', repeat('alice☃', 100))) v (what, t), type, pg_temp.by_input(type, t);
SELECT ok(state LIKE '22P0_' AND says !~ '([0-9a-f]{2}){65}' AND octet_length(says) < 1000,
    type || ', few digits in the message: ' || what)
FROM type, LATERAL (VALUES ('zeros', '\x' || repeat('00', 1000000)),
     ('a long payload', left(good, 2 + 2 * 28) || repeat('ab', 1000000)),
     ('an odd number', '\x' || repeat('a', 1000001))) v (what, t), pg_temp.by_input(type, t);

-- From PostgreSQL 16 on, input errors can be soft.
CREATE FUNCTION pg_temp.soft(type text, t text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    valid bool;
BEGIN
    IF current_setting('server_version_num')::int < 160000 THEN
        RETURN skip('no soft errors before PostgreSQL 16');
    END IF;
    EXECUTE 'SELECT pg_input_is_valid($1, $2)' INTO valid USING t, type;
    RETURN is(valid, false, type || ', a soft error for ' || left(t, 20));
END
$$;
SELECT pg_temp.soft(type, t) FROM type, unnest(ARRAY['alice', '\x00', '\x0g',
    '\x01000106140000000ad7233c00000000000000000002000000000001']) t;

SELECT * FROM finish();
ROLLBACK;
