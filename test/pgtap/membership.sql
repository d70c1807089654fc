-- No false negative: every element of a filter is found in it, for every class of
-- elements, in both layouts and both representations, after fold and union, and
-- after a filter leaves the database and comes back.
BEGIN;
SELECT plan(89);

SET LOCAL jit = off;

CREATE DOMAIN price AS numeric(12, 2);
DO $$
BEGIN
    EXECUTE (SELECT format('CREATE TYPE label AS ENUM (%s)', string_agg(format('%L', 'label ' || i), ', '))
             FROM generate_series(0, 4999) i);
END
$$;

-- The expression of element number i, of 1 .. 100000, and the number of distinct
-- elements, which is lower if the type has fewer values.
CREATE TABLE kind (id serial, name text, element text, distinct_elements bigint DEFAULT 100000);
INSERT INTO kind (name, element, distinct_elements) VALUES
    ('smallint', '(i % 65536 - 32768)::smallint', 65536),
    ('boolean', 'i % 2 = 0', 2),
    ('enum', '(''label '' || i % 5000)::label', 5000);
INSERT INTO kind (name, element) VALUES
    ('integer', 'i * 21474 - 1073741824'),
    ('bigint', 'i * bigint ''92233720368547'' - bigint ''4611686018427387904'''),
    ('real', '(i / 7.0)::real'),
    ('double precision', 'sqrt(i::float8)'),
    ('numeric', '((2 * i - 100001) || ''e'' || i % 40 - 20)::numeric'),
    ('domain over numeric', '(i / 4.0)::price'),
    ('text', '''word '' || i || repeat(''ä'', i % 40)'),
    ('varchar', '(''word '' || i)::varchar(20)'),
    ('char(n)', 'i::text::char(12)'),
    ('name', '(''n'' || i)::name'),
    ('bytea', 'substr(sha256(int4send(i)), 1, 4 + i % 29)'),
    ('uuid', 'md5(i::text)::uuid'),
    ('date', 'date ''1800-01-01'' + i'),
    ('time', 'time ''00:00'' + i * interval ''0.8 s'''),
    ('timetz', '((time ''00:00'' + i * interval ''0.8 s'')::text || ''+'' || i % 14)::timetz'),
    ('timestamp', 'timestamp ''1900-01-01'' + i * interval ''1 day 0.000001 s'''),
    ('timestamptz', 'timestamptz ''1900-01-01'' + i * interval ''1 day 0.000001 s'''),
    ('interval', 'i * interval ''1 month'' - i * interval ''29 days 1 second'''),
    ('inet', 'CASE WHEN i % 2 = 0 THEN inet ''10.0.0.0/8'' ELSE inet ''2001:db8::/32'' END + i'),
    ('cidr', '(''10.'' || i / 65536 || ''.'' || i / 256 % 256 || ''.'' || i % 256)::cidr'),
    ('macaddr', 'lpad(to_hex(i * bigint ''2814749767''), 12, ''0'')::macaddr'),
    ('macaddr8', 'lpad(to_hex(i * bigint ''92233720368547''), 16, ''0'')::macaddr8');

CREATE TABLE build (id serial, name text, filter text);
INSERT INTO build (name, filter) VALUES
    ('blocked', 'bloom_agg(x, 100000)'),
    ('classic', 'bloom_agg(x, bloom_create(100000, 0.01, ''classic''))'),
    ('self-sized', 'bloom_agg(x)'),
    ('sparse', 'bloom_agg(x, 1000000)'),
    ('sparse classic', 'bloom_agg(x, bloom_create(1000000, 0.01, ''classic'', -1))');
-- Far more elements than the capacity.
INSERT INTO build (name, filter) VALUES
    ('overfull', 'bloom_agg(x, 1000)'),
    ('overfull classic', 'bloom_agg(x, bloom_create(1000, 0.01, ''classic''))');
-- Folded, and united from parts of different sizes.
INSERT INTO build (name, filter) VALUES
    ('folded', 'bloom_fold(bloom_agg(x, NULL, 0.0001), 0.05)'),
    ('united', 'bloom_agg(x) FILTER (WHERE i % 100 = 0)
        | bloom_fold(bloom_agg(x) FILTER (WHERE i % 100 > 0), bloom_agg(x) FILTER (WHERE i % 100 = 0))');

-- The number of elements that each filter misses: as built, back from text, back
-- from bytea, through <@ and through bloom_contains.
CREATE TABLE tried (
    kind int, build text,
    built bigint, from_text bigint, from_bytea bigint, contained bigint, contains bigint,
    f bloomfilter
);
CREATE TABLE copied (LIKE tried);
CREATE TABLE counted (kind int, elements bigint);

CREATE FUNCTION pg_temp.try_all() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    k kind;
    b build;
BEGIN
    FOR k IN SELECT * FROM kind ORDER BY id LOOP
        EXECUTE format('CREATE TEMP TABLE e ON COMMIT DROP AS SELECT i, %s AS x FROM generate_series(1, 100000) i',
                       k.element);
        EXECUTE 'INSERT INTO counted SELECT $1, count(DISTINCT x) FROM e' USING k.id;
        FOR b IN SELECT * FROM build ORDER BY id LOOP
            EXECUTE format('
                WITH a AS MATERIALIZED (SELECT %s AS f FROM e),
                     t AS MATERIALIZED (SELECT f::text::bloomfilter AS f FROM a),
                     b AS MATERIALIZED (SELECT f::bytea::bloomfilter AS f FROM a)
                INSERT INTO tried
                SELECT $1, $2,
                       (SELECT count(*) FROM a, e WHERE (f @> x) IS NOT TRUE),
                       (SELECT count(*) FROM t, e WHERE (f @> x) IS NOT TRUE),
                       (SELECT count(*) FROM b, e WHERE (f @> x) IS NOT TRUE),
                       (SELECT count(*) FROM a, e WHERE (x <@ f) IS NOT TRUE),
                       (SELECT count(*) FROM a, e WHERE bloom_contains(f, x) IS NOT TRUE),
                       (SELECT f FROM a)', b.filter)
                USING k.id, b.name;
        END LOOP;
        DROP TABLE e;
    END LOOP;
END
$$;
SELECT pg_temp.try_all();

SELECT is(c.elements, k.distinct_elements, k.name || ': distinct elements')
FROM kind k LEFT JOIN counted c ON c.kind = k.id ORDER BY k.id;

SELECT is(
    (SELECT array_agg(t.build ORDER BY t.build) FROM tried t
     WHERE t.kind = k.id AND t.built + t.from_text + t.from_bytea + t.contained + t.contains = 0),
    (SELECT array_agg(name ORDER BY name) FROM build),
    k.name || ': every element is found, as built and back from text and bytea')
FROM kind k ORDER BY k.id;

-- Binary COPY calls send and recv. Both shells are children of this backend, so
-- $PPID names the same file. They run in the data directory, because the server's
-- user cannot write to every TMPDIR.
COPY tried TO PROGRAM 'cat >bloomtype.$PPID' (FORMAT binary);
COPY copied FROM PROGRAM 'cat bloomtype.$PPID; rm bloomtype.$PPID' (FORMAT binary);

SELECT is(
    (SELECT array_agg(t.build ORDER BY t.build) FROM tried t JOIN copied c USING (kind, build)
     WHERE t.kind = k.id AND t.f::bytea = c.f::bytea AND bloomfilter_send(c.f) = t.f::bytea),
    (SELECT array_agg(name ORDER BY name) FROM build),
    k.name || ': binary copy brings back the same bytes')
FROM kind k ORDER BY k.id;

-- Filters out of line are read through TOAST.
SELECT is(
    (SELECT count(*) FROM generate_series(1, 100000, 37) i
     WHERE ((SELECT f FROM copied WHERE kind = k.id AND build = b.name) @> (i * 21474 - 1073741824)) IS NOT TRUE),
    0::bigint, 'every integer is found in a stored filter, ' || b.name)
FROM kind k, build b WHERE k.name = 'integer' ORDER BY b.id;

SELECT is(
    (SELECT count(*) FROM copied c WHERE c.kind = k.id
     AND (c.f @> ('word ' || i || repeat('ä', i % 40))) IS NOT TRUE),
    0::bigint, format('text %s is found in many stored filters', i))
FROM kind k, unnest(ARRAY[1, 38, 39, 40, 99999]) i WHERE k.name = 'text' ORDER BY i;

SELECT * FROM finish();
ROLLBACK;
