-- Sizes against an independent computation of the expected rate, as doc/format.md
-- defines it: k follows from the rate and the layout, m from k, the rate and n.
BEGIN;
SELECT plan(138);

CREATE TABLE capacity AS
SELECT * FROM unnest('{1,2,3,7,10,50,100,1000,10000,100000,1000000,10000000}'::bigint[]) WITH ORDINALITY c (n, place);

-- k, and m for each of the capacities above.
CREATE TABLE size (layout text, p float8, k int, m bigint[]);
INSERT INTO size VALUES
    ('blocked', 0.5, 1, '{512,512,512,512,512,512,512,1536,14848,145408,1458176,14548992}'::bigint[]),
    ('blocked', 0.25, 2, '{512,512,512,512,512,512,512,3072,29184,290816,2916352,29097984}'::bigint[]),
    ('blocked', 0.1, 3, '{512,512,512,512,512,512,512,5120,48640,487424,4849664,48758784}'::bigint[]),
    ('blocked', 0.05, 4, '{512,512,512,512,512,512,1024,6656,63488,638976,6356992,63438848}'::bigint[]),
    ('blocked', 0.01, 6, '{512,512,512,512,512,512,1024,10240,99328,999424,9961472,99614720}'::bigint[]),
    ('blocked', 0.003, 8, '{512,512,512,512,512,1024,1536,12800,128000,1277952,12845056,127926272}'::bigint[]),
    ('blocked', 0.001, 9, '{512,512,512,512,512,1024,2048,15872,155648,1556480,15597568,157286400}'::bigint[]),
    ('blocked', 0.0001, 12, '{512,512,512,512,512,1536,2560,22528,221184,2228224,22282240,222298112}'::bigint[]),
    ('blocked', 1e-5, 14, '{512,512,512,512,512,1536,3072,29696,299008,2981888,29884416,297795584}'::bigint[]),
    ('blocked', 1e-6, 16, '{512,512,512,512,512,2048,4096,38912,389120,3899392,39321600,390070272}'::bigint[]),
    ('blocked', 1e-9, 22, '{512,512,512,1024,1024,4096,8192,80896,802816,8060928,80740352,805306368}'::bigint[]),
    ('classic', 0.5, 1, '{64,64,64,64,64,128,192,1472,14464,144320,1442752,14427008}'::bigint[]),
    ('classic', 0.25, 2, '{64,64,64,64,64,192,320,2944,28864,288576,2885440,28853952}'::bigint[]),
    ('classic', 0.1, 3, '{64,64,64,64,64,256,512,4864,48128,480896,4808384,48083328}'::bigint[]),
    ('classic', 0.05, 4, '{64,64,64,64,64,320,640,6272,62528,624704,6247040,62469824}'::bigint[]),
    ('classic', 0.01, 7, '{64,64,64,128,128,512,1024,9600,95936,959360,9592960,95929600}'::bigint[]),
    ('classic', 0.003, 8, '{64,64,64,128,128,640,1216,12160,121024,1209920,12099136,120991168}'::bigint[]),
    ('classic', 0.001, 10, '{64,64,64,128,192,768,1472,14400,143808,1437824,14377664,143776448}'::bigint[]),
    ('classic', 0.0001, 13, '{64,64,64,192,256,1024,1984,19200,191744,1917312,19172992,191729600}'::bigint[]),
    ('classic', 1e-5, 17, '{64,64,128,192,256,1216,2432,24000,239680,2396672,23966592,239665920}'::bigint[]),
    ('classic', 1e-6, 20, '{64,64,128,256,320,1472,2944,28800,287616,2875584,28755328,287552832}'::bigint[]),
    ('classic', 1e-9, 30, '{64,128,192,320,448,2176,4352,43200,431360,4313344,43132928,431329216}'::bigint[]);

SELECT is((SELECT array_agg((bloom_info(bloom_create(n, p, layout))).bits ORDER BY n) FROM capacity), m,
    format('m, %s, p = %s', layout, p))
FROM size ORDER BY layout, p;

SELECT is((SELECT array_agg(DISTINCT (bloom_info(bloom_create(n, p, layout))).hashes) FROM capacity), ARRAY[k],
    format('k, %s, p = %s', layout, p))
FROM size ORDER BY layout, p;

-- The size of the whole value, with its header of 32 bytes.
SELECT is((SELECT array_agg(bloom_bytes(n, p, layout) ORDER BY place) FROM capacity),
    (SELECT array_agg(32 + b / 8 ORDER BY place) FROM unnest(m) WITH ORDINALITY s (b, place)),
    format('bytes, %s, p = %s', layout, p))
FROM size ORDER BY layout, p;

-- The defaults: blocked, 1 %.
SELECT is(bloom_create(777), bloom_create(777, 0.01, 'blocked', 0), 'the defaults of bloom_create');
SELECT is(bloom_bytes(777), bloom_bytes(777, 0.01, 'blocked'), 'the defaults of bloom_bytes');
SELECT is((SELECT bloom_agg(i, 777) FROM generate_series(1, 777) i),
    (SELECT bloom_agg(i, bloom_create(777)) FROM generate_series(1, 777) i), 'bloom_agg takes the same defaults');

-- The expected number of elements is a float8, so that any type of number works. A
-- fraction is rounded up.
SELECT is((SELECT bloom_agg(1, n) FROM (SELECT 777) v (n)), (SELECT bloom_agg(1, 777::float8)), 'integer');
SELECT is((SELECT bloom_agg(1, 777::bigint)), (SELECT bloom_agg(1, 777)), 'bigint');
SELECT is((SELECT bloom_agg(1, 777::smallint)), (SELECT bloom_agg(1, 777)), 'smallint');
SELECT is((SELECT bloom_agg(1, 777.0)), (SELECT bloom_agg(1, 777)), 'numeric');
SELECT is((SELECT bloom_agg(1, 777::real, 0.1)), (SELECT bloom_agg(1, 777, 0.1)), 'real');
SELECT is((SELECT bloom_agg(1, 1e6)), (SELECT bloom_agg(1, 1000000)), '1e6');
SELECT is((SELECT bloom_agg(1, '777')), (SELECT bloom_agg(1, 777)), 'untyped, beside a number');
SELECT is((SELECT bloom_agg('a'::text, '777', '0.1')), (SELECT bloom_agg('a'::text, 777, 0.1)),
    'untyped, beside a text, with a rate');
SELECT is((SELECT bloom_agg(1, NULL)), (SELECT bloom_agg(1)), 'NULL: sized by itself');
SELECT is((SELECT bloom_agg('a'::text, NULL::float8)), (SELECT bloom_agg('a'::text)), 'NULL, of text');
SELECT throws_ok('SELECT bloom_agg(''a''::text, ''777'')', '42725', NULL,
    'untyped, beside a text: number or filter?');
SELECT throws_ok('SELECT bloom_agg(1, ''777''::text)', '42883', NULL, 'a text is not a number');
SELECT is(bloom_create(reltuples), bloom_create(1e6), 'reltuples') FROM (SELECT 1e6::real) v (reltuples);
SELECT is(bloom_bytes('1e6'), bloom_bytes(1000000), 'bloom_bytes of 1e6');
PREPARE untyped AS SELECT bloom_agg(i, $1) FROM generate_series(1, 3) i;
SELECT is((SELECT parameter_types FROM pg_prepared_statements WHERE name = 'untyped'), '{float8}'::regtype[],
    'an untyped parameter beside a number is a float8');
SELECT is(bloom_create(n), bloom_create(ceil(n)), format('%s is rounded up', n))
FROM unnest('{1.0000001,51.5,6555.0000001}'::float8[]) n;
SELECT is((bloom_info(bloom_create(n))).bits, m, format('%s elements', n))
FROM (VALUES (6555, 65024::bigint), (6555.01, 65536)) v (n, m);

-- From 65 blocks on twice the elements take exactly twice the blocks, and any
-- filter of 8 kB or more folds by halves.
SELECT is(array_agg(format('%s, %s', n, p)), NULL, 'twice the elements, twice the blocks')
FROM (SELECT n * 997 AS n, p, (bloom_info(bloom_create(n * 997, p))).bits AS m,
             (bloom_info(bloom_create(2 * n * 997, p))).bits AS twice
      FROM generate_series(1, 500) n, unnest('{0.3,0.01,1e-6}'::float8[]) p) s
WHERE m > 64 * 512 AND twice <> 2 * m OR m >= 128 * 512 AND m / 512 % 2 <> 0;

-- Where k changes. The bounds are given to six digits.
CREATE TABLE bound AS
SELECT k::int + 1 AS k, p FROM unnest('{0.38141,0.183453,0.0890054,0.0428406,0.0203097,0.00943578,0.00427845,0.00188661,0.000806525,0.000333382,0.00013295,5.10606e-05,1.88604e-05,6.69393e-06,2.28177e-06,7.46925e-07,2.3487e-07,7.09883e-08,2.06434e-08,5.78309e-09,1.56304e-09}'::float8[]) WITH ORDINALITY b (p, k);

SELECT is(
    (SELECT array_agg((bloom_info(bloom_create(10, p * 0.99999))).hashes
        - (bloom_info(bloom_create(10, p * 1.00001))).hashes
                      ORDER BY k) FROM bound WHERE p * 0.99999 >= 1e-9),
    (SELECT array_agg(1 ORDER BY k) FROM bound), 'blocked: k goes up by one below every bound');
SELECT is(
    (SELECT array_agg((bloom_info(bloom_create(10, 2 ^ (0.499 - k), 'classic'))).hashes * 100
                      + (bloom_info(bloom_create(10, 2 ^ (-0.499 - k), 'classic'))).hashes ORDER BY k)
     FROM generate_series(2, 29) k),
    (SELECT array_agg(k * 101 ORDER BY k) FROM generate_series(2, 29) k), 'classic: k is -log2 p, rounded');

-- Filters that size themselves: the most elements that a number of blocks can hold,
-- and one more, which doubles the blocks.
CREATE TABLE self_sized (p float8, n int, nblocks bigint);
INSERT INTO self_sized VALUES
    (0.1, 105, 1),
    (0.1, 211, 2),
    (0.1, 423, 4),
    (0.1, 1693, 16),
    (0.1, 27103, 256),
    (0.01, 51, 1),
    (0.01, 103, 2),
    (0.01, 206, 4),
    (0.01, 825, 16),
    (0.01, 13214, 256),
    (0.01, 211428, 4096),
    (0.001, 32, 1),
    (0.001, 65, 2),
    (0.001, 131, 4),
    (0.001, 526, 16),
    (0.001, 8431, 256),
    (0.001, 134900, 4096),
    (1e-6, 13, 1),
    (1e-6, 26, 2),
    (1e-6, 52, 4),
    (1e-6, 210, 16),
    (1e-6, 3375, 256),
    (1e-6, 54015, 4096);

SELECT is((SELECT (bloom_info(bloom_agg(i, NULL, p))).bits FROM generate_series(1, n) i), nblocks * 512,
    format('%s elements at p = %s take %s blocks', n, p, nblocks))
FROM self_sized ORDER BY p, n;
SELECT is((SELECT (bloom_info(bloom_agg(i, NULL, p))).bits FROM generate_series(0, n) i), nblocks * 1024,
    format('%s elements at p = %s take %s blocks', n + 1, p, nblocks * 2))
FROM self_sized ORDER BY p, n;

SELECT * FROM finish();
ROLLBACK;
