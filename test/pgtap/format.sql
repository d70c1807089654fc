-- The bytes, against vectors computed from doc/format.md alone: canonical bytes,
-- hash, header, sparse and dense payload. They never change. A failure here means
-- that older stored filters are no longer read correctly.
BEGIN;
SELECT plan(137);

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

-- Canonical bytes and hash. The payload of a sparse filter is the hash itself.
CREATE TABLE vector (n int, element text, class int, hash bytea, hash_seeded bytea);
INSERT INTO vector VALUES
    (1, '42::smallint', 20, '\x5343d1b66f8056b5'::bytea, '\x34756bdcef033fa3'::bytea),
    (2, '''-1''::integer', 20, '\xc9c673b7ad36d185'::bytea, '\xe7a4be2bd5e2927b'::bytea),
    (3, '''-9223372036854775808''::bigint', 20, '\xe04415f0ac5e423f'::bytea, '\x336042f6d517a38c'::bytea),
    (4, '0.1::real', 701, '\x176cc2cebb372c23'::bytea, '\x317e2f4942bb1fb0'::bytea),
    (5, '0.1::float8', 701, '\xd263baa81b2b4030'::bytea, '\xdeb6f8472bc158ab'::bytea),
    (6, '''-0''::float8', 701, '\xbb1bdbcacd6ac934'::bytea, '\x7615d660815b00c7'::bytea),
    (7, '''NaN''::real', 701, '\xac2a12ee9fb0ade9'::bytea, '\xe35633de552514f5'::bytea),
    (8, '''-Infinity''::float8', 701, '\xd2537bc8f03f8b32'::bytea, '\xebc102a95134c6e0'::bytea),
    (9, '''-12.50''::numeric', 1700, '\x6cc853f7b37bc662'::bytea, '\xcc38e4d99f7fd714'::bytea),
    (10, '1e2::numeric', 1700, '\x266c06e548314e55'::bytea, '\x764324ca52e74522'::bytea),
    (11, '''-0.00''::numeric', 1700, '\xecaf441208573463'::bytea, '\x86cbcbaac5a3fd40'::bytea),
    (12, '0.00010::numeric', 1700, '\x7be65b70f83e68dd'::bytea, '\x80a36e99cfac7ca2'::bytea),
    (13, '''NaN''::numeric', 1700, '\xb65d70338f38daba'::bytea, '\x8bf53dd2bc2051e9'::bytea),
    (14, '''-inf''::numeric', 1700, '\x242c013817e7a6c1'::bytea, '\x393d7e6ad2e8f4e6'::bytea),
    (15, '1e40::numeric', 1700, '\xe39980e9a18536be'::bytea, '\x0d8baf60e8580206'::bytea),
    (16, '12345678.000012340::numeric', 1700, '\x66d3a7bf99a2f694'::bytea, '\xfded62be9ef99326'::bytea),
    (17, '''''::text', 25, '\x99e9d85137db46ef'::bytea, '\x33929056a4f46fcd'::bytea),
    (18, '''alice''::text', 25, '\x49602e5f48eaa373'::bytea, '\xa6dc77dca46f9386'::bytea),
    (19, '''Käse 😀''::varchar', 25, '\xbb1762cce9c94292'::bytea, '\xb74c142c6ba1019b'::bytea),
    (20, '''ab ''::char(9)', 1042, '\x614ad092ca08f765'::bytea, '\x83acb8c298f61f6b'::bytea),
    (21, '''alice''::name', 25, '\x49602e5f48eaa373'::bytea, '\xa6dc77dca46f9386'::bytea),
    (22, '''happy''::mood', 25, '\x4be0114e51df0c27'::bytea, '\x5f6af332645a16b5'::bytea),
    (23, 'repeat(''0123456789'', 10)', 25, '\xfaff5a31967b0ef8'::bytea, '\x8ec09401d7f50b94'::bytea),
    (24, '''\x00ff''::bytea', 17, '\x7d1d13039a7dd9e0'::bytea, '\xa598c2cd3fe1d1ad'::bytea),
    (25, 'sha512(''a'')', 17, '\xcfb3874c93c7b1d2'::bytea, '\xda6b3c8df293a880'::bytea),
    (26, '''a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11''::uuid', 2950, '\x85f6114e6ae4e02b'::bytea,
        '\x733646e23d269c55'::bytea),
    (27, 'true', 16, '\x30e7211b8127418a'::bytea, '\x4307b5c3ecfc0818'::bytea),
    (28, 'false', 16, '\x682705db4aa834e9'::bytea, '\xa721586014f85fea'::bytea),
    (29, '''2024-02-29''::date', 1082, '\x27119b864a6f6066'::bytea, '\x195ff880468e697a'::bytea),
    (30, '''1999-12-31''::date', 1082, '\xc9c673b7ad36d185'::bytea, '\xe7a4be2bd5e2927b'::bytea),
    (31, '''infinity''::date', 1082, '\x7046afc3d7d5d353'::bytea, '\xdc0030930da14c4e'::bytea),
    (32, '''-infinity''::date', 1082, '\xa718b91b0ffefb0a'::bytea, '\xb5ae770641fb0413'::bytea),
    (33, '''24:00''::time', 1083, '\x89513943811cba82'::bytea, '\x4fd79a0415ebf1f0'::bytea),
    (34, '''12:34:56.789''::time', 1083, '\x9330c5db3809f180'::bytea, '\x625b3e2d6ced0845'::bytea),
    (35, '''12:00:00+02''::timetz', 1266, '\x9fcb3bf8d82ae1b2'::bytea, '\x10e9e5005cbe9346'::bytea),
    (36, '''12:00:00-05:30''::timetz', 1266, '\xea1378b614083a52'::bytea, '\x6a4ff91515ff608c'::bytea),
    (37, '''2024-02-29 12:00:00.5''::timestamp', 1114, '\xd40f0f23e08903bb'::bytea, '\x558d99fe2cfe92cb'::bytea),
    (38, '''infinity''::timestamp', 1114, '\x0c776e3660cc70ff'::bytea, '\x0547d35c868f4f17'::bytea),
    (39, '''-infinity''::timestamp', 1114, '\xe04415f0ac5e423f'::bytea, '\x336042f6d517a38c'::bytea),
    (40, '''2024-02-29 12:00:00+02''::timestamptz', 1184, '\x38eb1260826fede6'::bytea, '\x7ea89fbbe0ea5fc9'::bytea),
    (41, '''1900-01-01 00:00:00.000001+00''::timestamptz', 1184, '\xa331f2e9bd589406'::bytea,
        '\x2b66aee4046f4882'::bytea),
    (42, '''1 mon''::interval', 1186, '\xae7195a617327da5'::bytea, '\xb0fae4fa23b57264'::bytea),
    (43, '''-1 microsecond''::interval', 1186, '\xb8edb0e6bcad70be'::bytea, '\x56017aa70de5231e'::bytea),
    (44, '''1 year 2 days 25:00''::interval', 1186, '\x8dcdfab205c956f7'::bytea, '\x287373fd392cf35e'::bytea),
    (45, '''178956970 years''::interval', 1186, '\x461a03f96e1990dc'::bytea, '\x034e0c2b4fdfbe7b'::bytea),
    (46, '''2147483647 mons 2147483647 days 48:00''::interval', 1186, '\xea3aa8da1b2eb903'::bytea,
        '\xfcb2d7675172e8c4'::bytea),
    (47, '''10.1.2.3''::inet', 869, '\x668096f8e0de3e91'::bytea, '\xe11c111b6778cc8c'::bytea),
    (48, '''10.1.2.3/24''::inet', 869, '\x848310a832601033'::bytea, '\x601032d31dae1883'::bytea),
    (49, '''10.1.0.0/16''::cidr', 869, '\x3283f9fb65ba6294'::bytea, '\xf6a58732c96979d9'::bytea),
    (50, '''2001:db8::1/64''::inet', 869, '\xe32fae43cca86118'::bytea, '\x7df6fdacbedb6b58'::bytea),
    (51, '''08:00:2b:01:02:03''::macaddr', 829, '\x96740a21dd23903c'::bytea, '\x5ebdf4ce219c1ec4'::bytea),
    (52, '''08:00:2b:01:02:03:04:05''::macaddr8', 774, '\xc3d0f83e86d79b80'::bytea, '\xdf8a8a9b9fcb2739'::bytea);

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

-- Each byte of a small one.
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

-- Requested rates are rounded to single precision before anything is derived.
SELECT is(bloom_create(12345, 0.01::real)::bytea, bloom_create(12345, 0.01)::bytea,
    'a rate and its single-precision rounding give one filter');

SELECT * FROM finish();
ROLLBACK;
