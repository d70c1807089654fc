-- Hostile bytes: every way of input refuses what the format forbids, and reads the
-- rest back byte for byte. A validator that is written from doc/format.md decides
-- here which is which.
BEGIN;
SELECT plan(245);

CREATE FUNCTION pg_temp.le(b bytea) RETURNS numeric LANGUAGE sql AS $$
    SELECT sum(get_byte(b, i) * 256::numeric ^ i) FROM generate_series(0, length(b) - 1) i
$$;

CREATE FUNCTION pg_temp.reverse(b bytea) RETURNS bytea LANGUAGE sql AS $$
    SELECT string_agg(substr(b, i, 1), ''::bytea ORDER BY i DESC) FROM generate_series(1, length(b)) i
$$;

CREATE FUNCTION pg_temp.allowed(b bytea) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
    layout int;
    sparse bool;
    class numeric;
    p numeric;
    m numeric;
    payload bytea;
    n int;
BEGIN
    IF length(b) < 28 OR get_byte(b, 0) <> 1 OR get_byte(b, 1) > 1 OR get_byte(b, 2) > 1
        OR get_byte(b, 3) NOT BETWEEN 1 AND 32 THEN
        RETURN false;
    END IF;
    layout := get_byte(b, 1);
    sparse := get_byte(b, 2) = 1;
    class := pg_temp.le(substr(b, 5, 4));
    -- Positive floats are ordered as their bits: more than +0 and less than 1.0.
    p := pg_temp.le(substr(b, 9, 4));
    m := pg_temp.le(substr(b, 21, 8));
    payload := substr(b, 29);
    IF class NOT IN (0, 20, 701, 1700, 25, 17, 2950, 16, 1082, 1083, 1266, 1114, 1184, 1186, 869, 829, 774, 1042) THEN
        RETURN false;
    END IF;
    IF p <= 0 OR p >= x'3f800000'::int THEN
        RETURN false;
    END IF;
    IF m = 0 THEN
        RETURN layout = 0 AND sparse AND class = 0 AND length(payload) = 0;
    END IF;
    IF m > 2147483648 OR m % (CASE layout WHEN 0 THEN 512 ELSE 64 END) <> 0 THEN
        RETURN false;
    END IF;
    IF NOT sparse THEN
        RETURN length(payload) = m / 8 AND class <> 0;
    END IF;
    n := length(payload) / 8;
    IF length(payload) % 8 <> 0 OR 8 * n >= m / 8 OR (n > 0 AND class = 0) THEN
        RETURN false;
    END IF;
    FOR i IN 2..n LOOP
        IF pg_temp.reverse(substr(payload, 8 * i - 15, 8)) >= pg_temp.reverse(substr(payload, 8 * i - 7, 8)) THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END
$$;

-- What the type does with bytes, by cast and as text: 'same' if they come back,
-- otherwise the SQLSTATE.
CREATE FUNCTION pg_temp.by_cast(b bytea) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE WHEN b::bloomfilter::bytea = b THEN 'same' ELSE 'changed' END;
EXCEPTION WHEN others THEN
    RETURN SQLSTATE;
END
$$;
CREATE FUNCTION pg_temp.by_text(b bytea) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE WHEN ('\x' || encode(b, 'hex'))::bloomfilter::text = '\x' || encode(b, 'hex') THEN 'same'
                ELSE 'changed' END;
EXCEPTION WHEN others THEN
    RETURN SQLSTATE;
END
$$;
-- Through recv: in a binary COPY a bytea looks like a filter of the same bytes. Both
-- shells are children of this backend, so $PPID names the same file. They run in the
-- data directory, because the server's user cannot write to every TMPDIR.
CREATE TABLE wire (b bytea);
CREATE TABLE received (f bloomfilter);
CREATE FUNCTION pg_temp.by_recv(b bytea) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    TRUNCATE wire, received;
    INSERT INTO wire VALUES (b);
    COPY wire TO PROGRAM 'cat >bloomtype.$PPID' (FORMAT binary);
    COPY received FROM PROGRAM 'cat bloomtype.$PPID; rm bloomtype.$PPID' (FORMAT binary);
    RETURN (SELECT CASE WHEN bloomfilter_send(f) = b THEN 'same' ELSE 'changed' END FROM received);
EXCEPTION WHEN others THEN
    RETURN SQLSTATE;
END
$$;

CREATE TABLE base (id serial, name text, b bytea);
INSERT INTO base (name, b)
SELECT 'sparse', bloom_agg(i, 1000)::bytea FROM generate_series(1, 5) i
UNION ALL SELECT 'sparse classic', bloom_agg(i, bloom_create(1000, 0.01, 'classic', 7))::bytea
    FROM generate_series(1, 5) i
UNION ALL SELECT 'dense', bloom_agg('x' || i)::bytea FROM generate_series(1, 50) i
UNION ALL SELECT 'dense classic', bloom_agg(i, bloom_create(50, 0.01, 'classic'))::bytea FROM generate_series(1, 50) i
UNION ALL SELECT 'empty', bloom_create(1000)::bytea
UNION ALL SELECT 'empty without a size', bloom_agg(i)::bytea FROM generate_series(1, 0) i;

SELECT is(pg_temp.by_cast(b) || pg_temp.by_text(b) || pg_temp.by_recv(b) || pg_temp.allowed(b), 'samesamesametrue',
    name || ': a valid filter comes back')
FROM base ORDER BY id;

-- Rule by rule.
CREATE TABLE rule (id serial, what text, b bytea);
CREATE FUNCTION pg_temp.base(which text) RETURNS bytea LANGUAGE sql AS $$ SELECT b FROM base WHERE name = which $$;
CREATE FUNCTION pg_temp.put(which text, place int, new bytea) RETURNS bytea LANGUAGE sql AS
$$ SELECT overlay(pg_temp.base(which) PLACING new FROM place + 1 FOR length(new)) $$;
INSERT INTO rule (what, b) VALUES
    ('no bytes at all', ''),
    ('one byte', '\x01'),
    ('a header cut off by one byte', substr(pg_temp.base('empty'), 1, 27)),
    ('version 0', pg_temp.put('sparse', 0, '\x00')),
    ('version 2', pg_temp.put('dense', 0, '\x02')),
    ('version 255', pg_temp.put('dense', 0, '\xff')),
    ('layout 2', pg_temp.put('dense', 1, '\x02')),
    ('layout 128', pg_temp.put('sparse classic', 1, '\x80')),
    ('flag 2, dense', pg_temp.put('dense', 2, '\x02')),
    ('flag 2, sparse', pg_temp.put('sparse', 2, '\x03')),
    ('flag 2 as an aggregate sets it', pg_temp.put('empty without a size', 2, '\x03')),
    ('flag 4', pg_temp.put('dense', 2, '\x04')),
    ('flag 128', pg_temp.put('sparse', 2, '\x81')),
    ('k = 0', pg_temp.put('dense', 3, '\x00')),
    ('k = 33', pg_temp.put('dense', 3, '\x21')),
    ('k = 255', pg_temp.put('sparse', 3, '\xff')),
    ('k = 0 in an empty filter', pg_temp.put('empty without a size', 3, '\x00')),
    ('class 23, integer, which is stored as 20', pg_temp.put('dense', 4, '\x17000000')),
    ('class 21', pg_temp.put('dense', 4, '\x15000000')),
    ('class 700', pg_temp.put('dense', 4, '\xbc020000')),
    ('class 1043', pg_temp.put('sparse', 4, '\x13040000')),
    ('class 114, json', pg_temp.put('sparse', 4, '\x72000000')),
    ('class of 20 and 65536', pg_temp.put('sparse', 4, '\x14000100')),
    ('class 4294967295', pg_temp.put('dense', 4, '\xffffffff')),
    ('class 0 with hashes', pg_temp.put('sparse', 4, '\x00000000')),
    ('class 0 with bits', pg_temp.put('dense', 4, '\x00000000')),
    ('class 20 in the empty filter without a size', pg_temp.put('empty without a size', 4, '\x14000000')),
    ('an unknown class in an empty filter', pg_temp.put('empty', 4, '\x01000000')),
    ('p = 0', pg_temp.put('dense', 8, '\x00000000')),
    ('p = -0', pg_temp.put('dense', 8, '\x00000080')),
    ('p = 1', pg_temp.put('dense', 8, '\x0000803f')),
    ('p = 2', pg_temp.put('sparse', 8, '\x00000040')),
    ('p = -0.01', pg_temp.put('sparse', 8, '\x0ad723bc')),
    ('p = NaN', pg_temp.put('sparse', 8, '\x0000c07f')),
    ('p = -NaN', pg_temp.put('sparse', 8, '\x0000c0ff')),
    ('p = Infinity', pg_temp.put('sparse', 8, '\x0000807f')),
    ('p = -Infinity', pg_temp.put('empty', 8, '\x000080ff')),
    ('p = NaN in the empty filter', pg_temp.put('empty without a size', 8, '\x0100807f')),
    ('m = 0 with hashes', pg_temp.put('sparse', 20, '\x0000000000000000')),
    ('m = 0 with bits', pg_temp.put('dense', 20, '\x0000000000000000')),
    ('m = 0, dense, nothing else', pg_temp.put('empty without a size', 2, '\x00')),
    ('m = 511', pg_temp.put('dense', 20, '\xff01000000000000')),
    ('m = 64, blocked', pg_temp.put('empty', 20, '\x4000000000000000')),
    ('m = 10240 + 64, blocked', pg_temp.put('sparse', 20, '\x4028000000000000')),
    ('m = 32, classic', pg_temp.put('sparse classic', 20, '\x2000000000000000')),
    ('m = 9601, classic', pg_temp.put('sparse classic', 20, '\x8125000000000000')),
    ('m = 2^31 + 512', pg_temp.put('sparse', 20, '\x0002008000000000')),
    ('m = 2^31 + 64, classic', pg_temp.put('sparse classic', 20, '\x4000008000000000')),
    ('m = 2^31 + 512, dense', pg_temp.put('dense', 20, '\x0002008000000000')),
    ('m = 2^32 + 512, which 32 bits take for 512', pg_temp.put('dense', 20, '\x0002000001000000')),
    ('m = 2^35 + 512, whose bytes 32 bits take for 64', pg_temp.put('dense', 20, '\x0002000008000000')),
    ('m = 2^63', pg_temp.put('sparse', 20, '\x0000000000000080')),
    ('m = 2^64 - 512', pg_temp.put('sparse', 20, '\x00feffffffffffff')),
    ('m = 2^64 - 512, dense', pg_temp.put('dense', 20, '\x00feffffffffffff')),
    ('m = 2^31, dense, without the bits', pg_temp.put('dense', 20, '\x0000008000000000')),
    ('m one block more than there is', pg_temp.put('dense', 20, '\x0004000000000000')),
    ('a byte too many, dense', pg_temp.base('dense') || '\x00'::bytea),
    ('a byte too few, dense', substr(pg_temp.base('dense'), 1, length(pg_temp.base('dense')) - 1)),
    ('no bits', substr(pg_temp.base('dense'), 1, 28)),
    ('a block too many', pg_temp.base('dense') || substr(pg_temp.base('dense'), 29)),
    ('a word too few, classic', substr(pg_temp.base('dense classic'), 1, length(pg_temp.base('dense classic')) - 8)),
    ('a byte too many, sparse', pg_temp.base('sparse') || '\xff'::bytea),
    ('a byte too few, sparse', substr(pg_temp.base('sparse'), 1, length(pg_temp.base('sparse')) - 1)),
    ('a byte after the empty filter', pg_temp.base('empty') || '\x00'::bytea),
    ('a byte after the empty filter without a size', pg_temp.base('empty without a size') || '\x00'::bytea),
    ('a hash in the empty filter without a size',
        pg_temp.base('empty without a size') || '\x0100000000000000'::bytea),
    ('a hash twice', pg_temp.base('sparse') || substr(pg_temp.base('sparse'), 61, 8)),
    ('hashes descending',
        substr(pg_temp.base('sparse'), 1, 28) || substr(pg_temp.base('sparse'), 37, 8)
            || substr(pg_temp.base('sparse'), 29, 8)),
    ('hashes ascending only as signed numbers',
        substr(pg_temp.base('sparse'), 1, 28) || '\x0000000000000080'::bytea || '\x0100000000000000'::bytea),
    ('hashes ascending only as bytes',
        substr(pg_temp.base('sparse'), 1, 28) || '\x0002000000000000'::bytea || '\x0100000000000000'::bytea),
    ('as many hashes as take the room of the bits',
        pg_temp.put('sparse', 20, '\x0002000000000000') || '\xfdffffffffffffff'::bytea || '\xfeffffffffffffff'::bytea
            || '\xffffffffffffffff'::bytea),
    ('dense bytes marked sparse', pg_temp.put('dense', 2, '\x01')),
    ('sparse bytes marked dense', pg_temp.put('sparse', 2, '\x00'));

SELECT is(array_agg(what) FILTER (WHERE pg_temp.allowed(b)), NULL, 'the validator of this test forbids each of these')
FROM rule;
SELECT is(pg_temp.by_cast(b), '22P03', 'cast from bytea: ' || what) FROM rule ORDER BY id;
-- As text, the digits are valid and the bytes are not.
SELECT ok(pg_temp.by_text(b) IN ('22P02', '22P03'), 'text: ' || what) FROM rule ORDER BY id;
SELECT is(array_agg(what || ': ' || r) FILTER (WHERE r <> '22P03'), NULL, 'recv refuses every one of these')
FROM rule, LATERAL (SELECT pg_temp.by_recv(b) OFFSET 0) v (r);

-- Allowed, although no function of the extension makes some of them.
CREATE TABLE allowed (id serial, what text, b bytea);
INSERT INTO allowed (what, b) VALUES
    ('k = 1', pg_temp.put('dense', 3, '\x01')),
    ('k = 32', pg_temp.put('dense', 3, '\x20')),
    ('the least p', pg_temp.put('dense', 8, '\x01000000')),
    ('the greatest p', pg_temp.put('sparse', 8, '\xffff7f3f')),
    ('p over 0.5', pg_temp.put('sparse', 8, '\x0000403f')),
    ('any seed', pg_temp.put('sparse', 12, '\xffffffffffffffff')),
    ('m = 2^31', pg_temp.put('sparse', 20, '\x0000008000000000')),
    ('m = 2^31, classic, empty', overlay(pg_temp.put('empty', 1, '\x01') PLACING '\x0000008000000000' FROM 21 FOR 8)),
    ('m = 64, classic, empty', overlay(pg_temp.put('empty', 1, '\x01') PLACING '\x4000000000000000' FROM 21 FOR 8)),
    ('no bit set', overlay(pg_temp.base('dense') PLACING decode(repeat('00', 64), 'hex') FROM 29 FOR 64)),
    ('every bit set', overlay(pg_temp.base('dense') PLACING decode(repeat('ff', 64), 'hex') FROM 29 FOR 64)),
    ('the hashes 0 and 2^64 - 1',
        substr(pg_temp.base('sparse'), 1, 28) || '\x0000000000000000'::bytea || '\xffffffffffffffff'::bytea),
    ('one hash less than the bits would take',
        pg_temp.put('sparse', 20, '\x0002000000000000') || '\xfeffffffffffffff'::bytea
            || '\xffffffffffffffff'::bytea);
INSERT INTO allowed (what, b)
SELECT 'class ' || c,
    overlay(pg_temp.base('sparse') PLACING set_byte(set_byte('\x00000000', 0, c % 256), 1, c / 256) FROM 5 FOR 4)
FROM unnest(ARRAY[20, 701, 1700, 25, 17, 2950, 16, 1082, 1083, 1266, 1114, 1184, 1186, 869, 829, 774, 1042]) c;

SELECT is(pg_temp.by_cast(b) || pg_temp.by_text(b) || pg_temp.by_recv(b) || pg_temp.allowed(b), 'samesamesametrue',
    'allowed: ' || what)
FROM allowed ORDER BY id;
-- Accepted filters can be used without a crash or a hang.
SELECT lives_ok(format('SELECT # f, bloom_fpp(f), bloom_info(f), f | f, f & f, f @>= f, bloom_jaccard(f, f) FROM (SELECT %L::bytea::bloomfilter AS f) s', b),
    'can be used: ' || what)
FROM allowed WHERE what !~ 'class ' ORDER BY id;

-- Every value of every header byte of every base.
SELECT is(count(*) FILTER (WHERE pg_temp.by_cast(x) <> CASE WHEN pg_temp.allowed(x) THEN 'same' ELSE '22P03' END),
    0::bigint,
    name || ': every value of every header byte is judged right')
FROM base, generate_series(0, 27) place, generate_series(0, 255) value,
LATERAL (SELECT set_byte(b, place, value) OFFSET 0) v (x)
GROUP BY id, name ORDER BY id;
-- Truncated to every length.
SELECT is(array_agg(l) FILTER (WHERE pg_temp.by_cast(x) <> CASE WHEN pg_temp.allowed(x) THEN 'same' ELSE '22P03' END),
    NULL,
    name || ': every length is judged right')
FROM base, LATERAL generate_series(0, length(b)) l, LATERAL (SELECT substr(b, 1, l) OFFSET 0) v (x)
GROUP BY id, name ORDER BY id;
-- Three bytes changed at random, one of them in the header.
SELECT setseed(0.25);
SELECT is(count(*) FILTER (WHERE pg_temp.by_text(x) NOT IN ('22P02', '22P03') AND NOT pg_temp.allowed(x)
                           OR pg_temp.by_text(x) <> 'same' AND pg_temp.allowed(x)), 0::bigint,
    name || ': random changes are judged right')
FROM base, generate_series(1, 1500) i,
     LATERAL (SELECT CASE WHEN i % 3 = 0 THEN b || substr(sha256(int4send(i)), 1, i % 17) ELSE b END
              OFFSET 0) g (grown),
     LATERAL (SELECT set_byte(set_byte(set_byte(grown, (random() * (length(grown) - 1))::int, (random() * 255)::int),
                                       (random() * (length(grown) - 1))::int, (random() * 255)::int),
                              (random() * 27)::int, (random() * random() * 255)::int) OFFSET 0) v (x)
GROUP BY id, name ORDER BY id;

-- Text that is not hexadecimal.
CREATE TABLE bad_text (id serial, what text, t text);
INSERT INTO bad_text (what, t)
SELECT what, t FROM (SELECT bloom_agg(i)::text AS good FROM generate_series(1, 5) i) f,
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
CREATE FUNCTION pg_temp.by_input(t text, OUT state text, OUT says text) LANGUAGE plpgsql AS $$
DECLARE
    message text;
    detail text;
    hint text;
BEGIN
    PERFORM t::bloomfilter;
EXCEPTION WHEN others THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
        hint = PG_EXCEPTION_HINT;
    says := concat_ws(' ', message, detail, hint);
END
$$;
SELECT is(state, '22P02', 'text: ' || what) FROM bad_text, pg_temp.by_input(t) ORDER BY id;

-- No message has more than 64 bytes of the input, or a part of a character.
SELECT ok(state LIKE '22P0_' AND 3 * length(regexp_replace(says, '[^☃]', '', 'g')) <= 64
    AND octet_length(says) < 1000, 'little of it in the message: ' || what)
FROM (VALUES ('snowmen', repeat('☃', 1000000)), ('snowmen in place of digits', '\x' || repeat('☃', 1000000)),
     ('snowmen after many digits', '\x' || repeat('01', 100000) || repeat('☃', 1000)),
             ('one snowman', '\x☃'), ('a name', repeat('alice☃', 100))) v (what, t), pg_temp.by_input(t);
SELECT ok(state LIKE '22P0_' AND says !~ '([0-9a-f]{2}){65}' AND octet_length(says) < 1000,
    'few digits in the message: ' || what)
FROM (VALUES ('zeros', '\x' || repeat('00', 1000000)),
     ('a long payload', '\x01000106140000000ad7233c00000000000000000002000000000000' || repeat('ab', 1000000)),
     ('an odd number', '\x' || repeat('a', 1000001))) v (what, t), pg_temp.by_input(t);

-- From PostgreSQL 16 on, input errors can be soft.
CREATE FUNCTION pg_temp.soft(t text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    valid bool;
BEGIN
    IF current_setting('server_version_num')::int < 160000 THEN
        RETURN skip('no soft errors before PostgreSQL 16');
    END IF;
    EXECUTE 'SELECT pg_input_is_valid($1, ''bloomfilter'')' INTO valid USING t;
    RETURN is(valid, false, 'a soft error for ' || left(t, 20));
END
$$;
SELECT pg_temp.soft(t) FROM unnest(ARRAY['alice', '\x00', '\x0g',
    '\x01000106140000000ad7233c00000000000000000002000000000001']) t;

SELECT * FROM finish();
ROLLBACK;
