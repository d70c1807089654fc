-- Sizes against an independent computation of the expected rate, as doc/format.md
-- defines it: k follows from the rate and the layout, m is the least that keeps it.
BEGIN;
SELECT plan(117);

CREATE TABLE capacity AS
SELECT * FROM unnest('{1,2,3,7,10,50,100,1000,10000,100000,1000000,10000000}'::bigint[]) WITH ORDINALITY c (n, place);

-- k, and m for each of the capacities above.
CREATE TABLE size (layout text, p float8, k int, m bigint[]);
INSERT INTO size VALUES
    ('blocked', 0.5, 1, '{512,512,512,512,512,512,512,1536,14848,144384,1442816,14427136}'::bigint[]),
    ('blocked', 0.25, 2, '{512,512,512,512,512,512,512,3072,29184,289280,2889728,28894720}'::bigint[]),
    ('blocked', 0.1, 3, '{512,512,512,512,512,512,512,5120,48640,483840,4835840,48357888}'::bigint[]),
    ('blocked', 0.05, 4, '{512,512,512,512,512,512,1024,6656,63488,632320,6319104,63187968}'::bigint[]),
    ('blocked', 0.01, 6, '{512,512,512,512,512,512,1024,10240,99328,992256,9918464,99180032}'::bigint[]),
    ('blocked', 0.003, 8, '{512,512,512,512,512,1024,1536,12800,128000,1276928,12764672,127646720}'::bigint[]),
    ('blocked', 0.001, 9, '{512,512,512,512,512,1024,1536,15872,155648,1554944,15545856,155455488}'::bigint[]),
    ('blocked', 0.0001, 12, '{512,512,512,512,512,1536,2560,22016,220672,2203136,22030336,220302336}'::bigint[]),
    ('blocked', 1e-5, 14, '{512,512,512,512,512,1536,3072,29696,296960,2967040,29670400,296702976}'::bigint[]),
    ('blocked', 1e-6, 16, '{512,512,512,512,512,2048,4096,38912,388608,3882496,38824960,388248064}'::bigint[]),
    ('blocked', 1e-9, 22, '{512,512,512,512,512,4096,7680,79872,801792,8017408,80176640,801768448}'::bigint[]),
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

-- What the whole value takes, with its header of 32 bytes.
SELECT is((SELECT array_agg(bloom_bytes(n, p, layout) ORDER BY place) FROM capacity),
    (SELECT array_agg(32 + b / 8 ORDER BY place) FROM unnest(m) WITH ORDINALITY s (b, place)),
    format('bytes, %s, p = %s', layout, p))
FROM size ORDER BY layout, p;

-- By default blocked, 1 %.
SELECT is(bloom_create(777), bloom_create(777, 0.01, 'blocked', 0), 'the defaults of bloom_create');
SELECT is(bloom_bytes(777), bloom_bytes(777, 0.01, 'blocked'), 'the defaults of bloom_bytes');
SELECT is((SELECT bloom_agg(i, 777) FROM generate_series(1, 777) i),
    (SELECT bloom_agg(i, bloom_create(777)) FROM generate_series(1, 777) i), 'bloom_agg takes the same defaults');

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

-- A filter that sizes itself: the most elements that so many blocks can hold, and
-- one more, which doubles them.
CREATE TABLE self_sized (p float8, n int, nblocks bigint);
INSERT INTO self_sized VALUES
    (0.1, 106, 1),
    (0.1, 212, 2),
    (0.1, 423, 4),
    (0.1, 1694, 16),
    (0.1, 27105, 256),
    (0.01, 53, 1),
    (0.01, 104, 2),
    (0.01, 207, 4),
    (0.01, 827, 16),
    (0.01, 13217, 256),
    (0.01, 211450, 4096),
    (0.001, 35, 1),
    (0.001, 68, 2),
    (0.001, 134, 4),
    (0.001, 529, 16),
    (0.001, 8433, 256),
    (0.001, 134906, 4096),
    (1e-6, 17, 1),
    (1e-6, 30, 2),
    (1e-6, 56, 4),
    (1e-6, 214, 16),
    (1e-6, 3379, 256),
    (1e-6, 54019, 4096);

SELECT is((SELECT (bloom_info(bloom_agg(i, NULL, p))).bits FROM generate_series(1, n) i), nblocks * 512,
    format('%s elements at p = %s take %s blocks', n, p, nblocks))
FROM self_sized ORDER BY p, n;
SELECT is((SELECT (bloom_info(bloom_agg(i, NULL, p))).bits FROM generate_series(0, n) i), nblocks * 1024,
    format('%s elements at p = %s take %s blocks', n + 1, p, nblocks * 2))
FROM self_sized ORDER BY p, n;

SELECT * FROM finish();
ROLLBACK;
