-- The bytes, against vectors computed from doc/format.md alone: canonical bytes,
-- hash, header, sparse and dense payload. They never change. A failure here means
-- that older stored filters are no longer read correctly.
BEGIN;
SELECT plan(71);

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');

CREATE FUNCTION pg_temp.of_one(element text, seed bigint) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
    f bytea;
BEGIN
    EXECUTE format('SELECT bloom_add(bloom_create(1000, 0.01, ''blocked'', $1), %s)::bytea', element)
        INTO STRICT f USING seed;
    RETURN f;
END
$$;

-- Class and hash of elements that are not in test/golden/vectors.json. The payload of
-- a sparse filter is the hash itself.
CREATE TABLE vector (n int, element text, class int, hash bytea, hash_seeded bytea);
INSERT INTO vector VALUES
    (1, '0.00010::numeric', 1700, '\x7be65b70f83e68dd'::bytea, '\x80a36e99cfac7ca2'::bytea),
    (2, '1e40::numeric', 1700, '\xe39980e9a18536be'::bytea, '\x0d8baf60e8580206'::bytea),
    (3, '12345678.000012340::numeric', 1700, '\x66d3a7bf99a2f694'::bytea, '\xfded62be9ef99326'::bytea),
    (4, '''Käse 😀''::varchar', 25, '\xbb1762cce9c94292'::bytea, '\xb74c142c6ba1019b'::bytea),
    (5, '''ab ''::char(9)', 1042, '\x614ad092ca08f765'::bytea, '\x83acb8c298f61f6b'::bytea),
    (6, 'repeat(''0123456789'', 10)', 25, '\xfaff5a31967b0ef8'::bytea, '\x8ec09401d7f50b94'::bytea),
    (7, '''\x00ff''::bytea', 17, '\x7d1d13039a7dd9e0'::bytea, '\xa598c2cd3fe1d1ad'::bytea),
    (8, 'sha512(''a'')', 17, '\xcfb3874c93c7b1d2'::bytea, '\xda6b3c8df293a880'::bytea),
    (9, '''12:34:56.789''::time', 1083, '\x9330c5db3809f180'::bytea, '\x625b3e2d6ced0845'::bytea),
    (10, '''12:00:00+02''::timetz', 1266, '\x9fcb3bf8d82ae1b2'::bytea, '\x10e9e5005cbe9346'::bytea),
    (11, '''2024-02-29 12:00:00.5''::timestamp', 1114, '\xd40f0f23e08903bb'::bytea, '\x558d99fe2cfe92cb'::bytea),
    (12, '''2024-02-29 12:00:00+02''::timestamptz', 1184, '\x38eb1260826fede6'::bytea, '\x7ea89fbbe0ea5fc9'::bytea),
    (13, '''1900-01-01 00:00:00.000001+00''::timestamptz', 1184, '\xa331f2e9bd589406'::bytea,
        '\x2b66aee4046f4882'::bytea),
    (14, '''1 year 2 days 25:00''::interval', 1186, '\x8dcdfab205c956f7'::bytea, '\x287373fd392cf35e'::bytea),
    (15, '''178956970 years''::interval', 1186, '\x461a03f96e1990dc'::bytea, '\x034e0c2b4fdfbe7b'::bytea),
    (16, '''2147483647 mons 2147483647 days 48:00''::interval', 1186, '\xea3aa8da1b2eb903'::bytea,
        '\xfcb2d7675172e8c4'::bytea),
    (17, '''10.1.2.3''::inet', 869, '\x668096f8e0de3e91'::bytea, '\xe11c111b6778cc8c'::bytea),
    (18, '''10.1.2.3/24''::inet', 869, '\x848310a832601033'::bytea, '\x601032d31dae1883'::bytea),
    (19, '''10.1.0.0/16''::cidr', 869, '\x3283f9fb65ba6294'::bytea, '\xf6a58732c96979d9'::bytea);

SELECT is(
    substr(pg_temp.of_one(element, 0), 5, 4) || substr(pg_temp.of_one(element, 0), 29),
    set_byte(set_byte('\x00000000', 0, class % 256), 1, class / 256) || hash,
    element || ': class and hash')
FROM vector ORDER BY n;

SELECT is(substr(pg_temp.of_one(element, -1234567890123456789), 29), hash_seeded, element || ': hash with a seed')
FROM vector ORDER BY n;

-- Whole filters of the integers 1 .. elements, sparse and dense, as md5.
SELECT is(
    (SELECT md5(bloom_agg(i, bloom_create(v.n, v.p, v.layout, v.seed))::bytea)
     FROM generate_series(1, v.elements) i),
    v.md5, format('%s of %s integers, %s, p = %s, seed %s', v.elements, v.n, v.layout, v.p, v.seed))
FROM (VALUES
    (1000, 0.01, 'blocked', 0, 1000, 'ea442eaf6ca7b51dfdb22d601e1b073e'),
    (1000, 0.01, 'classic', 0, 1000, 'a7331d5afca8143fa566701354713dcd'),
    (1000, 0.01, 'blocked', -1, 1000, '975550a117bd01f5aad9d6f62a55cabc'),
    (1000, 0.001, 'classic', -1234567890123456789, 1000, 'f90bde316b847f787b5f04450ea641b4'),
    (1000, 1e-6, 'blocked', 7, 900, 'c62dad570f9d59b6181f7a2a9de6fb89'),
    (1, 0.01, 'classic', 0, 1, 'b24a712b4e96f1523ee75c2030cbf79d'),
    (1, 0.5, 'classic', 0, 1, 'd1f9c558e1bb0673b8bb735fc98146dd'),
    (3, 1.000000e-09, 'classic', 0, 3, 'ef1a10719ebc1084048dfe4238a466f6'),
    (20000, 0.1, 'blocked', 5, 20000, 'c4d7808ccfbc304d9b595da7a5bd2372'),
    (333, 0.05, 'blocked', 0, 333, '8ef61fb34c4c9fa7a096909af764059d'),
    (333, 0.05, 'classic', 1, 999, '6894105279869c2f2e2d0dd348ce6d64'),
    (1000, 0.01, 'blocked', 0, 158, '8e8401a5a4619f755981e40134c6be08'),
    (1000, 0.01, 'blocked', 0, 159, 'fbe7afae5f8cb9a7fcf350139d83fe32'),
    (1000, 0.01, 'blocked', 0, 160, 'fa38bea849ac95b3c232ef8613ea2290'),
    (1000, 0.01, 'classic', 0, 149, '615dbf7e00c7671791c6729ca4205eaf'),
    (1000, 0.01, 'classic', 0, 150, 'a160034f766b2c9d90ea764e5e4623b1')
) v (n, p, layout, seed, elements, md5);

-- Filters that size themselves, of the texts 'word 1' .. 'word elements', as md5.
SELECT is(
    (SELECT md5(bloom_agg('word ' || i, NULL, v.p)::bytea) FROM generate_series(1, v.elements) i),
    v.md5, format('%s words, self-sized, p = %s', v.elements, v.p))
FROM (VALUES
    (0.01, 1, '4cfde7cfedbf7f06aa5f656f7c7e8e03'),
    (0.01, 51, '4e911367def7e108203a5dc901621edc'),
    (0.01, 52, 'c9b3fc6803aebdf85bacbd384cbd9fac'),
    (0.01, 10000, '6b6d690694c0e3b05b369b2bacb07e85'),
    (0.001, 8431, '010df0a133d1fbeeb867590b604977cd'),
    (0.001, 8432, '395d86161943cf456255b16f9a4ce711'),
    (0.1, 3, '0b1385991db8192342e09b45df991e7b'),
    (1e-6, 500, 'b0dbcd4750c9957c13331965f684fbec')
) v (p, elements, md5);

-- Small filters, byte by byte.
SELECT is(
    (SELECT bloom_agg(i)::text FROM generate_series(1, 3) i),
    '\x01000106140000000ad7233c000000000000000000020000000000004148eca76d16b8879599a4a217cb299fb02de844403ec7ea',
    'the integers 1 .. 3 in text');
SELECT is((SELECT bloom_agg(i)::bytea FROM generate_series(1, 3) i),
    (SELECT bloom_agg(i) FROM generate_series(1, 3) i)::text::bytea,
    'bytea holds the bytes that text shows');
SELECT is(bloom_create(1000)::bytea, '\x01000106000000000ad7233c00000000000000000028000000000000'::bytea,
    'an empty filter with a size is a header');
SELECT is(bloom_create(1000, 0.001, 'classic', -2)::bytea,
    '\x0101010a000000006f12833afeffffffffffffff4038000000000000'::bytea,
    'an empty classic filter with a seed is a header');
SELECT is(format('%s, %s, %s, %s', length(b), get_byte(b, 2), substr(b, 5, 4), substr(b, 21)),
    '28, 1, \x00000000, \x0000000000000000', 'over no rows, ' || how || ': sparse, no class, m = 0')
FROM (SELECT 'self-sized', bloom_agg(i)::bytea FROM generate_series(1, 0) i
      UNION ALL SELECT 'sized', bloom_agg(i, 1000)::bytea FROM generate_series(1, 0) i) v (how, b);
SELECT is(length((SELECT bloom_agg(i, 1000000)::bytea FROM generate_series(1, 10) i)), 28 + 80,
    'ten elements cost 8 bytes each, whatever room there is');
SELECT is(length((SELECT bloom_agg(i, 10000)::bytea FROM generate_series(1, 10000) i)), 28 + 99328/8,
    'a full filter costs its bits');

-- Requested rates are rounded to single precision before any use.
SELECT is(bloom_create(12345, 0.01::real)::bytea, bloom_create(12345, 0.01)::bytea,
    'a rate and its single-precision rounding give one filter');

SELECT * FROM finish();
ROLLBACK;
