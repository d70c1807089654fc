-- Counters: elements of every type, errors, bytes, estimates, stored values, and that no
-- function changes an argument. Expected values come from counts in SQL, from theory, or
-- from the same elements in a filter.
BEGIN;
SELECT plan(720);

SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0;

CREATE DOMAIN price AS numeric(12, 2);
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE COLLATION nd (PROVIDER = icu, LOCALE = 'und', DETERMINISTIC = false);

-- Elements

-- 1000 distinct elements of every type, or as many as it has.
CREATE TABLE kind (n serial, name text, element text, distinct_elements int DEFAULT 1000);
INSERT INTO kind (name, element, distinct_elements) VALUES
    ('boolean', 'i % 2 = 0', 2),
    ('enum', '(enum_range(NULL::mood))[1 + i % 3]', 3);
INSERT INTO kind (name, element) VALUES
    ('smallint', 'i::smallint'), ('integer', 'i * 21474'), ('bigint', 'i * bigint ''92233720368547'''),
    ('real', '(i / 7.0)::real'), ('double precision', 'sqrt(i::float8)'),
    ('numeric', '(i || ''e'' || i % 40 - 20)::numeric'),
    ('domain over numeric', '(i / 4.0)::price'), ('text', '''word '' || i || repeat(''ä'', i % 40)'),
    ('varchar', '(''word '' || i)::varchar(20)'), ('char(n)', 'i::text::char(12)'), ('name', '(''n'' || i)::name'),
    ('bytea', 'substr(sha256(int4send(i)), 1, 8 + i % 25)'), ('uuid', 'md5(i::text)::uuid'),
    ('date', 'date ''1800-01-01'' + i'), ('time', 'time ''00:00'' + i * interval ''80 s'''),
    ('timetz', '((time ''00:00'' + i * interval ''80 s'')::text || ''+'' || i % 14)::timetz'),
    ('timestamp', 'timestamp ''1900-01-01'' + i * interval ''1 day 0.000001 s'''),
    ('timestamptz', 'timestamptz ''1900-01-01'' + i * interval ''1 day 0.000001 s'''),
    ('interval', 'i * interval ''1 month'' - i * interval ''29 days 1 second'''),
    ('inet', 'CASE WHEN i % 2 = 0 THEN inet ''10.0.0.0/8'' ELSE inet ''2001:db8::/32'' END + i'),
    ('cidr', '(''10.'' || i / 65536 || ''.'' || i / 256 % 256 || ''.'' || i % 256)::cidr'),
    ('macaddr', 'lpad(to_hex(i * bigint ''2814749767''), 12, ''0'')::macaddr'),
    ('macaddr8', 'lpad(to_hex(i * bigint ''92233720368547''), 16, ''0'')::macaddr8');

-- Counts 3000 rows, each element at least three times, and gives what is wrong.
CREATE FUNCTION pg_temp.faults(element text, start bloomcounter) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    faults text;
BEGIN
    EXECUTE format('
        CREATE TEMP TABLE element AS SELECT i, (%s) AS x FROM generate_series(1, 1000) i', element);
    CREATE TEMP TABLE often AS SELECT x, 3 * count(*) AS n FROM element GROUP BY x;
    SELECT concat_ws(', ',
            CASE WHEN bool_or(bloom_count(c, x) < least(n, 65535)) THEN 'below the count' END,
            CASE WHEN get_byte(c::bytea, 2) & 1 = 1 AND bool_or(bloom_count(c, x) <> n) THEN 'not the count' END,
            CASE WHEN NOT bool_and(c @> x AND x <@ c AND bloom_contains(c, x) AND bloom_contained(x,
                c)) THEN 'lost' END,
            CASE WHEN bool_or(bloom_count(bloom_raise(c, x, 60000), x) < 60000) THEN 'not raised' END,
            CASE WHEN bool_or(bloom_remove(bloom_add(c, x, 7), x, 7)::bytea <> c::bytea) THEN 'not removed' END,
            CASE WHEN bool_and(c::bloomfilter::bytea = f::bytea) IS NOT TRUE THEN 'other elements than in a filter' END)
        INTO faults
    FROM (SELECT bloom_counter_agg(x, start) AS c FROM element, generate_series(1, 3)) s,
         (SELECT bloom_agg(x, start::bloomfilter) AS f FROM element) t, often GROUP BY c;
    DROP TABLE element, often;
    RETURN faults;
END
$$;

SELECT is(pg_temp.faults(element, bloom_create_counter(items, 0.01, 16, layout, 5)), '',
    format('%s, %s, %s', name, layout, CASE items WHEN 100 THEN 'many' ELSE 'few' END || ' elements'))
FROM kind, unnest('{blocked,classic}'::text[]) layout, unnest('{100,100000}'::int[]) items ORDER BY n, layout, items;

-- Equal values of one class are one element.
CREATE FUNCTION pg_temp.both(a text, b text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    n int;
BEGIN
    EXECUTE format('SELECT bloom_count(bloom_add(bloom_add(bloom_create_counter(10), %1$s), %2$s), %2$s)', a, b) INTO n;
    RETURN n;
END
$$;
SELECT is(pg_temp.both(a, b), n, format('%s and %s: %s', a, b, n))
FROM (VALUES ('42::int2', '42::int8', 2), ('0.5::float4', '0.5::float8', 2), ('''-0''::float8', '0::float8', 2),
             ('1.0::numeric', '1.00::numeric', 2), ('interval ''1 month''', 'interval ''30 days''', 2),
             ('''sad''::mood', '''sad''::text', 2), ('''a''::text', '''a ''::text', 1),
             ('''a''::char(1)', '''a''::char(9)', 2),
             ('''ab''::name', '''ab''::varchar', 2), ('inet ''10.1.2.3''', 'cidr ''10.1.2.3/32''', 2),
             ('0.1::float4', '0.1::float8', 1), ('''NaN''::float4', '''NaN''::float8', 2)) v (a, b, n);
SELECT is(bloom_count(c, 'ab'::varchar) || ' ' || bloom_count(c, 'ab  '::text) || ' ' || bloom_count(c, 'ab'::name),
    '4 4 4',
    'a counter of char(n) reads strings without trailing blanks')
FROM bloom_add(bloom_create_counter(10), 'ab'::char(7), 4) c;

-- Errors

CREATE TABLE c AS
SELECT bloom_create_counter(100) AS empty, bloom_add(bloom_create_counter(100), 1, 3) AS sparse,
       bloom_add(bloom_create_counter(100, 0.01, 8), 1, 3) AS sparse8,
       bloom_add(bloom_create_counter(100, 0.01, 16), 1, 3) AS sparse16,
       (SELECT bloom_counter_agg(i, 100) FROM generate_series(1, 100) i) AS dense,
       (SELECT bloom_counter_agg(i, bloom_create_counter(100, 0.01, 8)) FROM generate_series(1, 300) i) AS dense8,
       (SELECT bloom_counter_agg(i, bloom_create_counter(100, 0.01, 16)) FROM generate_series(1, 300) i) AS dense16,
       (SELECT bloom_counter_agg(i) FROM generate_series(1, 0) i) AS unsized,
       bloom_raise(bloom_create_counter(100), 1, 3) AS levels,
       (SELECT bloom_level_agg(i, 3, 100) FROM generate_series(1, 100) i) AS dense_levels,
       bloom_add(bloom_create_counter(100), 'a'::text, 3) AS texts;
SELECT is(format('%s %s %s %s %s %s', get_byte(sparse::bytea, 2), get_byte(dense::bytea, 2), get_byte(dense8::bytea,
    2),
        get_byte(dense16::bytea, 2), get_byte(levels::bytea, 2), get_byte(dense_levels::bytea, 2)),
            '5 4 12 20 37 36',
    'the flags of sparse, dense, 8 bits, 16 bits, levels') FROM c;

CREATE TABLE refused (n serial, state text, query text);
-- times, level and by outside 1 .. the limit of the width.
INSERT INTO refused (state, query)
SELECT '22003', format('SELECT %s(%s, %s(%s)::int) FROM c', fn, counter, element, number)
FROM (VALUES ('bloom_add', '1, '), ('bloom_remove', '1, '), ('bloom_raise', '1, '), ('bloom_decay', ''),
             ('bloom_at_least', '')) f (fn, element),
     (VALUES ('sparse', 15), ('dense', 15), ('sparse8', 255), ('dense8', 255), ('sparse16', 65535),
     ('dense16', 65535),
             ('empty', 15), ('unsized', 15), ('levels', 15)) v (counter, top),
     unnest(ARRAY[0, -1, top + 1, 2147483647, -2147483648]) number
WHERE NOT (counter IN ('unsized', 'levels', 'empty') AND fn IN ('bloom_add', 'bloom_remove', 'bloom_raise'));
INSERT INTO refused (state, query)
SELECT '22004', format('SELECT %s(%s, 1, NULL) FROM c', fn, counter)
FROM unnest('{bloom_add,bloom_remove,bloom_raise}'::text[]) fn, unnest('{sparse,dense,empty}'::text[]) counter;
-- What a counter proves absent.
INSERT INTO refused (state, query) VALUES
    ('22023', 'SELECT bloom_remove(sparse, 2) FROM c'), ('22023', 'SELECT bloom_remove(sparse, 1, 4) FROM c'),
    ('22023', 'SELECT bloom_remove(dense, -1) FROM c'), ('22023', 'SELECT bloom_remove(dense, 1, 14) FROM c'),
    ('22023', 'SELECT bloom_remove(dense8, 1, 255) FROM c'),
    ('22023', 'SELECT bloom_remove(dense16, 1, 65535) FROM c'),
    ('22023', 'SELECT bloom_remove(empty, 1) FROM c'), ('22023', 'SELECT bloom_remove(unsized, 1) FROM c'),
    ('22023', 'SELECT bloom_remove(bloom_add(empty, 1, 14), 1, 15) FROM c'),
    ('22023', 'SELECT bloom_remove(bloom_remove(sparse, 1, 3), 1) FROM c'),
    -- From levels nothing is removed.
    ('22023', 'SELECT bloom_remove(levels, 1) FROM c'), ('22023', 'SELECT bloom_remove(dense_levels, 1) FROM c'),
    ('22023', 'SELECT bloom_remove(bloom_add(levels, 2), 2) FROM c'),
    ('22023', 'SELECT bloom_remove(bloom_decay(dense), 1) FROM c'),
    ('22023', 'SELECT bloom_remove(bloom_decay(sparse), 1) FROM c'),
    ('22023', 'SELECT bloom_remove(sparse | sparse, 1) FROM c'),
    ('22023', 'SELECT bloom_remove(dense & dense, 1) FROM c'),
    ('22023', 'SELECT bloom_remove(sparse + levels, 1) FROM c'),
    ('22023', 'SELECT levels - sparse FROM c'), ('22023', 'SELECT sparse - levels FROM c'),
    ('22023', 'SELECT dense - dense_levels FROM c'), ('22023', 'SELECT dense_levels - dense FROM c'),
    ('22023', 'SELECT dense_levels - levels FROM c'), ('22023', 'SELECT levels - levels FROM c'),
    ('22023', 'SELECT empty - levels FROM c'),
    ('22023', 'SELECT bloom_total(levels) FROM c'), ('22023', 'SELECT bloom_total(dense_levels) FROM c'),
    -- a - b where b does not fit.
    ('22023', 'SELECT sparse - bloom_add(sparse, 1) FROM c'),
    ('22023', 'SELECT sparse - bloom_add(empty, 2) FROM c'),
    ('22023', 'SELECT dense - bloom_add(empty, -1) FROM c'), ('22023', 'SELECT dense - (dense + dense) FROM c'),
    ('22023', 'SELECT sparse - dense FROM c'), ('22023', 'SELECT empty - sparse FROM c'),
    ('22023', 'SELECT empty - dense FROM c'), ('22023', 'SELECT bloom_difference(dense, dense + sparse) FROM c'),
    ('22023', 'SELECT bloom_add(empty, 1, 14) - bloom_add(empty, 1, 15) FROM c'),
    -- Without a size.
    ('22023', 'SELECT bloom_add(unsized, 1) FROM c'), ('22023', 'SELECT bloom_raise(unsized, 1, 1) FROM c'),
    -- Parameters of a new counter.
    ('22023', 'SELECT bloom_create_counter(0)'), ('22023', 'SELECT bloom_create_counter(''NaN'')'),
    ('22023', 'SELECT bloom_create_counter(10, 0.6)'), ('22023', 'SELECT bloom_create_counter(10, 1e-10)'),
    ('22023', 'SELECT bloom_create_counter(10, 0.01, 0)'), ('22023', 'SELECT bloom_create_counter(10, 0.01, 5)'),
    ('22023', 'SELECT bloom_create_counter(10, 0.01, 32)'), ('22023', 'SELECT bloom_create_counter(10, 0.01, -4)'),
    ('22023', 'SELECT bloom_create_counter(10, 0.01, 4, ''round'')'),
    ('22023', 'SELECT bloom_counter_bytes(0)'), ('22023', 'SELECT bloom_counter_bytes(10, 0.01, 2)'),
    ('54000', 'SELECT bloom_create_counter(55e6)'), ('54000', 'SELECT bloom_create_counter(28e6, 0.01, 8)'),
    ('54000', 'SELECT bloom_create_counter(14e6, 0.01, 16)'),
    ('54000', 'SELECT bloom_create_counter(''Infinity'')'),
    ('54000', 'SELECT bloom_create_counter(60e6, 0.01, 4, ''classic'')'),
    ('54000', 'SELECT bloom_counter_bytes(55e6)');
-- The wrong class.
INSERT INTO refused (state, query)
SELECT '42804', format(query, counter, element)
FROM (VALUES ('SELECT bloom_add(%s, %s) FROM c'), ('SELECT bloom_remove(%s, %s) FROM c'),
             ('SELECT bloom_raise(%s, %s, 1) FROM c'), ('SELECT bloom_count(%s, %s) FROM c'),
             ('SELECT %s @> %s FROM c'), ('SELECT %2$s <@ %1$s FROM c'), ('SELECT bloom_contains(%s, %s) FROM c'),
             ('SELECT bloom_contained(%2$s, %1$s) FROM c')) q (query),
     (VALUES ('sparse', '''1''::text'), ('dense', '1.0'), ('levels', '1::float8'), ('texts', '1'),
             ('texts', '''a''::char(3)'), ('dense_levels', 'true')) v (counter, element)
WHERE NOT (query ~ 'remove' AND counter ~ 'levels');
INSERT INTO refused (state, query)
SELECT '42804', format('SELECT %s %s texts FROM c', counter, sign)
FROM unnest('{sparse,dense}'::text[]) counter, unnest('{+,-,|,&}'::text[]) sign;
-- Types that cannot be hashed by value.
INSERT INTO refused (state, query)
SELECT '0A000', format(query, element)
FROM (VALUES ('SELECT bloom_add(empty, %s) FROM c'), ('SELECT bloom_remove(empty, %s) FROM c'),
             ('SELECT bloom_raise(empty, %s, 1) FROM c'), ('SELECT bloom_count(sparse, %s) FROM c'),
             ('SELECT sparse @> %s FROM c'), ('SELECT %s <@ dense FROM c'), ('SELECT bloom_counter_agg(%s) FROM c'),
             ('SELECT bloom_level_agg(%s, 1) FROM c'), ('SELECT bloom_counter_agg(%s, empty) FROM c')) q (query),
     (VALUES ('point ''(1,2)'''), ('ARRAY[1, 2]'), ('jsonb ''{}'''), ('1::oid'), ('bloom_create_counter(1)'),
             ('''a''::text COLLATE nd')) v (element);
INSERT INTO refused (state, query)
SELECT '42P22', query || ' (VALUES (''a'' COLLATE "C", ''b'' COLLATE "POSIX")) v (x, y)'
FROM (VALUES ('SELECT bloom_add(empty, x || y) FROM c,'), ('SELECT bloom_counter_agg(x || y) FROM')) q (query);
-- Input.
INSERT INTO refused (state, query) VALUES
    ('22P02', 'SELECT ''abc''::bloomcounter'), ('22P02', 'SELECT ''''::bloomcounter'),
    ('22P02', 'SELECT ''\x0''::bloomcounter'),
    ('22P03', 'SELECT ''\x00''::bloomcounter'), ('22P03', 'SELECT ''\x00''::bytea::bloomcounter'),
    ('22P03', 'SELECT bloom_create(10)::bytea::bloomcounter'),
    ('22P03', 'SELECT bloom_create_counter(10)::bytea::bloomfilter'),
    ('22P03', 'SELECT bloom_add(bloom_create(1, 0.1, ''classic''), 1)::text::bloomcounter'),
    ('22P03', 'SELECT dense::text::bloomfilter FROM c'),
    ('42804', 'INSERT INTO c (empty) VALUES (bloom_create(10))'),
    ('42804', 'INSERT INTO c (empty) VALUES (''\x00''::bytea)');
SELECT throws_ok(query, state, NULL, query) FROM refused ORDER BY n;

-- What the same functions take, at the limits.
SELECT lives_ok(query, query)
FROM (VALUES ('SELECT bloom_create_counter(54e6)'), ('SELECT bloom_create_counter(27e6, 0.01, 8)'),
             ('SELECT bloom_create_counter(13.5e6, 0.01, 16)'), ('SELECT bloom_counter_bytes(54e6)'),
             ('SELECT bloom_create_counter(1, 1e-9, 16, ''CLASSIC'', -9223372036854775808)')) v (query);
SELECT is(bloom_count(bloom_add(counter, 1, top), 1), top, what || ': added as often as it counts')
FROM c, LATERAL (VALUES ('4 bits', empty, 15), ('8 bits', sparse8, 255), ('16 bits', sparse16, 65535),
                        ('4 bits, dense', dense, 15), ('8 bits, dense', dense8, 255),
                        ('16 bits, dense', dense16, 65535))
                            v (what, counter, top);
SELECT is(bloom_remove(bloom_add(counter, 1, top), 1, top)::bytea, bloom_add(counter, 1, top)::bytea,
    what || ': the limit is sticky')
FROM c, LATERAL (VALUES ('4 bits', empty, 15), ('8 bits', sparse8, 255), ('16 bits', sparse16, 65535))
    v (what, counter, top);
SELECT is(bloom_count(bloom_decay(bloom_add(counter, 1, top)), 1), top - 1, what || ': but it decays')
FROM c, LATERAL (VALUES ('4 bits', empty, 15), ('8 bits', sparse8, 255), ('16 bits', sparse16, 65535),
                        ('4 bits, dense', dense, 15)) v (what, counter, top);
SELECT is(bloom_decay(counter, top)::bytea, empty::bytea,
    'a sparse counter without elements is canonical: ' || what)
FROM c, LATERAL (VALUES ('counts', bloom_add(empty, 1, 15), 15), ('levels', levels, 3),
('empty', empty, 1)) v (what, counter, top);
SELECT is(bloom_remove(sparse, 1, 3)::bytea, empty::bytea, 'the last element leaves nothing') FROM c;
SELECT is((sparse - sparse)::bytea, empty::bytea, 'a - a leaves nothing') FROM c;
SELECT is((sparse & bloom_add(empty, 2))::bytea, empty::bytea, 'nor does an intersection without common elements')
FROM c;

-- NULL and empty arguments.
SELECT is(bloom_add(counter, NULL::int)::bytea, counter::bytea, what || ': bloom_add of NULL') FROM c,
    LATERAL (VALUES ('sparse', sparse), ('dense', dense), ('levels', levels), ('unsized', unsized))
        v (what, counter);
SELECT is(bloom_remove(counter, NULL::int)::bytea, counter::bytea, what || ': bloom_remove of NULL') FROM c,
    LATERAL (VALUES ('sparse', sparse), ('dense', dense), ('levels', levels), ('unsized', unsized))
        v (what, counter);
SELECT is(bloom_raise(counter, NULL::int, 1)::bytea, counter::bytea, what || ': bloom_raise of NULL') FROM c,
    LATERAL (VALUES ('sparse', sparse), ('dense', dense), ('levels', levels), ('unsized', unsized))
        v (what, counter);
SELECT ok(answer IS NULL, what)
FROM c, LATERAL (VALUES
    ('bloom_add to NULL', bloom_add(NULL::bloomcounter, 1)::text),
    ('bloom_remove from NULL', bloom_remove(NULL::bloomcounter, 1)::text),
    ('bloom_raise of NULL', bloom_raise(NULL::bloomcounter, 1, 1)::text),
    ('bloom_decay of NULL', bloom_decay(NULL::bloomcounter)::text),
    ('bloom_decay by NULL', bloom_decay(dense, NULL)::text),
    ('bloom_at_least of NULL', bloom_at_least(dense, NULL)::text),
    ('bloom_count of NULL', bloom_count(dense, NULL::int)::text), ('@> NULL', (dense @> NULL::int)::text),
    ('NULL <@', (NULL::int <@ dense)::text), ('+ NULL', (dense + NULL)::text), ('NULL -', (NULL - dense)::text),
    ('| NULL', (dense | NULL)::text), ('NULL &', (NULL & dense)::text), ('# NULL', (# NULL::bloomcounter)::text),
    ('bloom_create_counter of NULL', bloom_create_counter(NULL)::text)) v (what, answer);
SELECT is(concat_ws(' ', bloom_count(counter, 1), bloom_count(counter, 'a'::text), counter @> 1, # counter,
        bloom_total(counter), bloom_fpp(counter),
        bloom_at_least(counter, 3)::bytea = (counter::bloomfilter)::bytea), '0 0 f 0 0 0 t', what || ': holds nothing')
FROM c, LATERAL (VALUES ('empty', empty), ('unsized', unsized)) v (what, counter);
SELECT is(bloom_create_counter(1000)::bloomfilter::bytea, bloom_create(1000)::bytea,
    'an empty counter is an empty filter');
SELECT is(unsized::bloomfilter::bytea, (SELECT bloom_agg(i)::bytea FROM generate_series(1, 0) i),
    'also without a size') FROM c;

-- bloom_info and estimates

CREATE TABLE info AS
SELECT what, n, t, c, i.*
FROM (VALUES ('blocked, 4 bits', 700, 3, bloom_create_counter(1000)),
             ('blocked, 8 bits', 1500, 20, bloom_create_counter(1000, 0.01, 8)),
             ('classic, 16 bits', 1000, 300, bloom_create_counter(1000, 0.1, 16, 'classic', 7)),
             ('overfull', 300, 2, bloom_create_counter(100)),
             ('many', 40000, 2, bloom_create_counter(30000, 0.01, 8)),
             ('sparse', 40, 14, bloom_create_counter(1000, 0.01, 4)),
             ('sparse classic, 16 bits', 40, 14, bloom_create_counter(1000, 0.01, 16, 'classic', -1)))
                 v (what, n, t, e),
     LATERAL (SELECT bloom_counter_agg(x, e) AS c FROM generate_series(1, n) x, generate_series(0, x % t)
              OFFSET 0) b,
     LATERAL bloom_info(c) i;
-- The numbers in the payload of a dense counter.
CREATE FUNCTION pg_temp.numbers(b bytea) RETURNS SETOF int LANGUAGE sql AS $$
    SELECT CASE get_byte(b, 2) & 24
        WHEN 0 THEN get_byte(b, 28 + i / 2) >> (i % 2 * 4) & 15
        WHEN 8 THEN get_byte(b, 28 + i)
        ELSE get_byte(b, 28 + 2 * i) + 256 * get_byte(b, 29 + 2 * i) END
    FROM generate_series(0, (length(b) - 28) * (CASE get_byte(b, 2) & 24 WHEN 0 THEN 4 WHEN 8 THEN 2 ELSE 1 END) / 2
        - 1) i
$$;
SELECT is(row(i.layout, i.element_type, i.positions, i.hashes, i.cardinality, i.capacity, i.requested_rate,
    i.current_rate, i.overfull, i.seed)::text,
    row(f.layout, f.element_type, f.bits, f.hashes, f.cardinality, f.capacity, f.requested_rate, f.current_rate,
        f.overfull, f.seed)::text,
    what || ': bloom_info as that of the filter')
FROM info i, bloom_info(c::bloomfilter) f ORDER BY what;
SELECT is(row(positions_set, i.fill, i.full_blocks)::text, row(f.bits_set, f.fill, f.full_blocks)::text,
    what || ': positions set as bits of the filter')
FROM info i, LATERAL (SELECT * FROM bloom_info(c::bloomfilter)) f WHERE i.representation = 'dense' ORDER BY what;
SELECT ok(positions_set = count(*) FILTER (WHERE v > 0) AND saturated = count(*) FILTER (WHERE v = 2 ^ counter_bits - 1)
          AND abs(total / (sum(v) / (b * (1 - (1 - 1 / b) ^ hashes))) - 1) < 1e-9,
    what || ': positions set and saturated, and the total, from the bytes')
FROM info, LATERAL (SELECT CASE layout WHEN 'blocked' THEN 512 ELSE positions END::float8) s (b),
    pg_temp.numbers(c::bytea) v
WHERE representation = 'dense' GROUP BY what, positions_set, saturated, total, b, hashes ORDER BY what;
SELECT is(format('%s %s %s %s %s %s', positions_set, saturated, fill, full_blocks, cardinality, total),
    format('    %s %s', n, (SELECT sum(least(1 + x % t, 2 ^ counter_bits - 1)) FROM generate_series(1, n) x)),
        what || ': nothing about positions, exact numbers')
FROM info WHERE representation = 'sparse' ORDER BY what;
SELECT is(array_agg(what ORDER BY what), '{sparse,"sparse classic, 16 bits"}', 'two of these are sparse') FROM info
    WHERE representation = 'sparse';
SELECT is(bytes, length(c::bytea) + 4::bigint, what || ': bytes') FROM info ORDER BY what;
SELECT is(row(contents, counter_bits, cardinality, total)::text, row('counts', substring(what || ' 4 bits',
    '(\d+) bits')::int, # c, bloom_total(c))::text,
    what || ': contents, width, cardinality, total') FROM info WHERE what <> 'many' ORDER BY what;
SELECT is(format('%s %s %s', contents, representation, coalesce(total::text, 'NULL')), format('levels %s NULL', r),
    'bloom_info of levels, ' || r)
FROM c, LATERAL (VALUES ('sparse', levels), ('dense', dense_levels)) v (r, x), bloom_info(x);
SELECT is(format('%s %s %s', contents, representation, total), 'counts sparse 0', 'bloom_info of an empty counter')
FROM c, bloom_info(empty);
SELECT is(format('%s %s %s %s', positions IS NULL, capacity IS NULL, element_type IS NULL, counter_bits), 't t t 4',
    'bloom_info without a size')
FROM c, bloom_info(unsized);
SELECT is(format('%s %s %s %s %s', positions_set, fill, full_blocks, cardinality, overfull), '512 1 1 Infinity t',
    'bloom_info of a counter without a 0')
FROM (SELECT bloom_counter_agg(i, 1) FROM generate_series(1, 3000) i) s (c), bloom_info(c);
-- Payload and header as stored: the filter's bits times the width.
SELECT is(bloom_counter_bytes(n, p, w, shape), bytes, format('bloom_counter_bytes(%s, %s, %s, %s)', n, p, w, shape))
FROM (VALUES (500), (3000)) a (n), (VALUES (0.01), (1e-6)) r (p), (VALUES (4), (8), (16)) b (w),
    (VALUES ('blocked'), ('classic')) l (shape),
     LATERAL (SELECT bloom_counter_agg(x, bloom_create_counter(n, p, w, shape)) AS c FROM generate_series(1,
         10 * n) x OFFSET 0) s, bloom_info(c) i
ORDER BY n, p, w, shape;

-- The standard deviation of # for n elements; test/pgtap/estimates.sql has the same for filters.
CREATE FUNCTION pg_temp.sigma(n float8, m float8, k float8, layout text) RETURNS float8 LANGUAGE sql AS $$
    SELECT sqrt(m * z + m * (b - 1) * same + m * (m - b) * other - (m * z) ^ 2) / (m * z * -ln(1 - q / nb))
    FROM (SELECT CASE layout WHEN 'blocked' THEN 512.0 ELSE m END) s (b),
         LATERAL (SELECT m / b, 1 - (1 - 1 / b) ^ k) t (nb, q),
         LATERAL (SELECT (1 - q / nb) ^ n,
                         (1 - (1 - (1 - 2 / b) ^ k) / nb) ^ n,
                         CASE WHEN nb > 1 THEN (1 - 2 * q / nb) ^ n ELSE 0 END) u (z, same, other)
$$;
-- Of the number of different positions that k throws hit, among b.
CREATE FUNCTION pg_temp.variance(k float8, b float8) RETURNS float8 LANGUAGE sql AS $$
    SELECT b * (1 - 1 / b) ^ k + b * (b - 1) * (1 - 2 / b) ^ k - b ^ 2 * (1 - 1 / b) ^ (2 * k)
$$;
SELECT cmp_ok(abs((# c) - n), '<=', 4 * pg_temp.sigma(n, positions, hashes, layout),
    what || ': the number of elements')
FROM info WHERE representation = 'dense' ORDER BY what;
-- An element that is there t times brings t times its different positions. Nothing is
-- saturated at 8 and 16 bits.
SELECT is(saturated, 0::bigint, what || ': no number is saturated') FROM info WHERE counter_bits > 4
    AND representation = 'dense' ORDER BY what;
SELECT cmp_ok(abs(bloom_total(c) - s.total), '<=', 4 * sqrt(s.squares * pg_temp.variance(hashes,
    b)) / (b * (1 - (1 - 1 / b) ^ hashes)),
    what || ': the number of elements with repetitions')
FROM info, LATERAL (SELECT CASE layout WHEN 'blocked' THEN 512 ELSE positions END::float8) l (b),
     LATERAL (SELECT sum(1 + x % t)::float8 AS total,
         sum((1 + x % t) ^ 2)::float8 AS squares FROM generate_series(1, n) x) s
WHERE counter_bits > 4 AND representation = 'dense' ORDER BY what;

-- Bytes

CREATE TABLE shape AS
SELECT row_number() OVER () AS n, s.* FROM c, LATERAL (VALUES ('empty', empty), ('unsized', unsized),
('sparse', sparse), ('dense', dense),
    ('8 bits, sparse', sparse8), ('8 bits, dense', dense8), ('16 bits, sparse', sparse16),
    ('16 bits, dense', dense16), ('levels', levels),
    ('dense levels', dense_levels), ('texts', texts)) s (what, c);
INSERT INTO shape SELECT 100 + row_number() OVER (), 'info: ' || what, c FROM info;
SELECT is(c::text::bloomcounter::bytea, c::bytea, what || ': text') FROM shape ORDER BY n;
SELECT is(c::bytea::bloomcounter::text, c::text, what || ': bytea') FROM shape ORDER BY n;
SELECT is(upper(substr(c::text, 3)), upper(encode(c::bytea, 'hex')), what || ': text shows the bytes')
FROM shape ORDER BY n;
SELECT ok(bloom_counter_from_bytea(bloom_to_bytea(c)) = c AND ('\x' || upper(substr(c::text, 3)))::bloomcounter = c,
    what || ': the functions, and upper case')
FROM shape ORDER BY n;
CREATE TABLE received (LIKE shape);
DO $$
BEGIN
    COPY shape TO PROGRAM 'cat >bloomtype.$PPID' (FORMAT binary);
    COPY received FROM PROGRAM 'cat bloomtype.$PPID; rm bloomtype.$PPID' (FORMAT binary);
END
$$;
SELECT is(count(*), (SELECT count(*) FROM shape), 'binary COPY') FROM shape s JOIN received r USING (n, what)
    WHERE s.c::bytea = r.c::bytea;

-- Stored values

CREATE TABLE made AS
SELECT id, n, what, bloom_counter_agg(id * 100000 + i % n, e)::bytea AS b
FROM (VALUES (1, 5, 'a few hashes', bloom_create_counter(1000)),
(2, 60, 'a block or two', bloom_create_counter(60)),
             (3, 100, 'hashes', bloom_create_counter(10000)), (4, 1000, 'some blocks', bloom_create_counter(1000)),
             (5, 3000, 'many blocks', bloom_create_counter(3000)),
             (6, 20000, 'very many blocks', bloom_create_counter(20000)),
             (7, 3000, 'classic', bloom_create_counter(3000, 0.01, 4, 'classic')),
             (8, 20000, 'many hashes', bloom_create_counter(200000)),
             (9, 20000, '8 bits', bloom_create_counter(20000, 0.01, 8)),
             (10, 3000, '16 bits', bloom_create_counter(3000, 0.01, 16))) v (id, n, what, e),
     LATERAL generate_series(1, 2 * n + 1) i
GROUP BY id, n, what;
INSERT INTO made SELECT 11, 3000, 'levels', bloom_decay(bloom_raise(b::bloomcounter, 600001, 9))::bytea FROM made
    WHERE id = 6;
INSERT INTO made SELECT 12, 20000, 'no number set', substr(b, 1, 28) || decode(repeat('00', length(b) - 28), 'hex')
FROM made WHERE id = 6;
CREATE TABLE external (id int, c bloomcounter);
CREATE TABLE extended (id int, c bloomcounter);
ALTER TABLE extended ALTER c SET STORAGE extended;
CREATE TABLE main (id int, c bloomcounter);
ALTER TABLE main ALTER c SET STORAGE main;
INSERT INTO external SELECT id, b::bloomcounter FROM made ORDER BY id;
INSERT INTO extended SELECT id, c FROM external ORDER BY id;
INSERT INTO main SELECT id, c FROM external ORDER BY id;
CREATE VIEW stored AS
SELECT 'external' AS storage, * FROM external UNION ALL SELECT 'extended', * FROM extended UNION ALL SELECT 'main',
    * FROM main;
SELECT ok((SELECT pg_column_size(c) < 50000 FROM extended WHERE id = 10)
    AND (SELECT pg_column_size(c) < 5000 FROM main WHERE id = 12)
          AND (SELECT pg_column_size(c) > 90000 FROM external WHERE id = 12)
              AND (SELECT pg_column_size(c) < 127 FROM main WHERE id = 1),
    'compressed in extended and main storage, as it is in external storage, and one with a short header');
SELECT is(array_agg(id ORDER BY id) FILTER (WHERE c::bytea <> b), NULL,
    storage || ': the bytes are what was stored')
FROM stored JOIN made USING (id) GROUP BY storage ORDER BY storage;
CREATE TABLE probe AS
SELECT id * 100000 + i AS x FROM made, generate_series(0, 4) i UNION ALL SELECT -i FROM generate_series(1, 60) i;
CREATE TABLE want AS
SELECT id, x, c @> x AS hit, bloom_count(c, x) AS n FROM made, LATERAL (SELECT b::bloomcounter AS c OFFSET 0) s,
    probe;
SELECT is(count(*) FILTER (WHERE n > 0), 50::bigint, 'members are found in counters in memory') FROM want
    WHERE x / 100000 = id AND id < 11;
SELECT is(count(*) FILTER (WHERE hit <> (n > 0)), 0::bigint, 'where @> says what bloom_count says') FROM want;
SELECT is((SELECT count(*) FROM want JOIN stored s USING (id) WHERE s.storage = t
           AND ((s.c @> x, x <@ s.c, bloom_count(s.c, x)) IS DISTINCT FROM (hit, hit, n))), 0::bigint,
               t || ': every probe answers the same')
FROM unnest('{external,extended,main}'::text[]) t;
SELECT is((SELECT count(*) FROM (SELECT p.x, s.id, s.c @> p.x AS hit, bloom_count(s.c, p.x) AS n FROM probe p
               CROSS JOIN LATERAL (SELECT * FROM stored WHERE storage = t AND id > p.x - 10000000 OFFSET 0) s) a
           JOIN want w USING (id, x) WHERE (a.hit, a.n) IS DISTINCT FROM (w.hit, w.n)), 0::bigint,
               t || ': every counter for each element')
FROM unnest('{external,extended,main}'::text[]) t;
SELECT is((SELECT count(*) FROM (SELECT w.*, s.c @> w.x AS hit_now, bloom_count(s.c, w.x) AS n_now
           FROM want w JOIN stored s ON s.storage = t AND s.id = w.id ORDER BY md5(w.id || ' ' || w.x)) a
           WHERE (hit_now, n_now) IS DISTINCT FROM (hit, n)), 0::bigint, t || ': shuffled')
FROM unnest('{external,extended,main}'::text[]) t;

-- Every function gives the same on a stored value and on its bytes in memory.
CREATE FUNCTION pg_temp.tried(call text, c bloomcounter) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
    before bytea := c::bytea;
BEGIN
    BEGIN
        EXECUTE format('SELECT (%s)::text', call) USING c INTO result;
    EXCEPTION WHEN others THEN
        result := SQLSTATE;
    END;
    RETURN CASE WHEN c::bytea = before THEN md5(result) ELSE 'changed its argument' END;
END
$$;
CREATE TABLE call AS SELECT * FROM (VALUES
    ('bloom_sum_agg_add($1, $1)'), ('bloom_sum_agg_add($1, bloom_add($1, 3))'), ('bloom_sum_agg_final($1)'),
    ('bloom_union_agg_add($1, $1)'), ('bloom_union_agg_add($1, bloom_add($1, 3, 9))'), ('bloom_union_agg_final($1)'),
    ('$1'), ('bloom_to_bytea($1)'), ('bloom_to_filter($1)'), ('bloom_add($1, 1)'), ('bloom_add($1, 600001)'),
    ('bloom_add($1, 600001, 15)'), ('bloom_remove($1, 600001)'), ('bloom_remove($1, -7)'),
    ('bloom_raise($1, 600001, 9)'), ('bloom_raise($1, 5, 15)'), ('bloom_decay($1)'), ('bloom_decay($1, 15)'),
    ('bloom_count($1, 600001)'), ('$1 @> 600001'), ('600001 <@ $1'), ('bloom_contains($1, -7)'),
    ('bloom_at_least($1, 2)'), ('bloom_at_least($1, 15)'), ('$1 + $1'), ('$1 - $1'), ('$1 | $1'), ('$1 & $1'),
    ('$1 = $1'), ('$1 < $1'), ('bloom_cmp($1, $1)'), ('bloom_hash($1)'), ('bloom_hash_extended($1, 7)'), ('# $1'),
    ('bloom_cardinality($1)'), ('bloom_total($1)'), ('bloom_fpp($1)'), ('bloom_info($1)'), ('$1 + bloom_add($1, 7)'),
    ('bloom_add($1, 7) - $1'), ('(SELECT bloom_counter_agg(i, $1) FROM generate_series(1, 3) i)'),
    ('(SELECT bloom_level_agg(i, 3, $1) FROM generate_series(1, 3) i)'),
    ('(SELECT bloom_sum_agg(x) FROM (VALUES ($1), ($1)) v (x))'),
    ('(SELECT bloom_union_agg(x) FROM (VALUES ($1), (bloom_add($1, 3))) v (x))')) v (call);
CREATE TABLE tried AS SELECT id, call, pg_temp.tried(call, (SELECT b::bloomcounter)) AS result FROM made, call;
SELECT is(array_agg(call || ' ' || id) FILTER (WHERE result = 'changed its argument'), NULL,
    'no function changes its argument in memory') FROM tried;
SELECT is(array_agg(call || ' ' || id) FILTER (WHERE result <> s.again), NULL,
    storage || ': every function gives what it gives in memory')
FROM (SELECT storage, id, call, pg_temp.tried(call, c) AS again FROM stored, call) s JOIN tried USING (id,
    call) GROUP BY storage ORDER BY storage;
-- The stored value itself as an argument.
CREATE FUNCTION pg_temp.from_column(call text, t text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
    number int;
    results text := '';
BEGIN
    FOR number IN SELECT id FROM made ORDER BY id LOOP
        BEGIN
            EXECUTE format('SELECT md5((%s)::text) FROM %I WHERE id = %s', replace(call, '$1', t || '.c'), t,
                number) INTO result;
        EXCEPTION WHEN others THEN
            result := md5(SQLSTATE);
        END;
        results := results || ' ' || result;
    END LOOP;
    RETURN results;
END
$$;
SELECT is(array_agg(call) FILTER (WHERE pg_temp.from_column(call, t) <> w.results), NULL,
    t || ': every function gives it on the column, too')
FROM unnest('{external,extended,main}'::text[]) t,
(SELECT call, string_agg(' ' || result, '' ORDER BY id) AS results FROM tried WHERE call !~ 'SELECT' GROUP BY call) w
GROUP BY t ORDER BY t;
SELECT is(array_agg(id ORDER BY id) FILTER (WHERE c::bytea <> b), NULL,
    storage || ': the bytes are still what was stored')
FROM stored JOIN made USING (id) GROUP BY storage ORDER BY storage;
SELECT is((SELECT bloom_sum_agg(c)::bytea FROM stored WHERE id = 6),
    (SELECT (b::bloomcounter + b::bloomcounter + b::bloomcounter)::bytea FROM made WHERE id = 6),
    'bloom_sum_agg of stored counters');

-- A stored counter that is replaced, changed or rolled back.
CREATE FUNCTION pg_temp.wrong_answers() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    wrong int := 0;
    m record;
BEGIN
    CREATE TABLE one (c bloomcounter);
    FOR round IN 1..3 LOOP
        FOR m IN SELECT * FROM made WHERE id < 11 ORDER BY md5(round || ' ' || id) LOOP
            DELETE FROM one;
            INSERT INTO one VALUES (m.b::bloomcounter);
            wrong := wrong + (SELECT count(*) FROM one, want WHERE want.id = m.id AND (c @> x, bloom_count(c,
                x)) IS DISTINCT FROM (hit, n));
            UPDATE one SET c = bloom_add(c, -1000, 2);
            wrong := wrong + (SELECT count(*) FROM one WHERE bloom_count(c, -1000) < 2);
            BEGIN
                UPDATE one SET c = bloom_create_counter(10);
                wrong := wrong + (SELECT count(*) FROM one WHERE c @> (m.id * 100000 + 1));
                RAISE division_by_zero;
            EXCEPTION WHEN division_by_zero THEN
            END;
            UPDATE one SET c = bloom_remove(c, -1000, 2);
            wrong := wrong + (SELECT count(*) FROM one, want WHERE want.id = m.id AND (c @> x, bloom_count(c,
                x)) IS DISTINCT FROM (hit, n));
        END LOOP;
    END LOOP;
    RETURN wrong;
END
$$;
SELECT is(pg_temp.wrong_answers(), 0, 'replaced, changed or rolled back, a stored counter gives its own answers');

-- Order, equality and hash are those of the bytes.
CREATE TABLE ordered AS
SELECT i, bloom_counter_agg(x % (i % 37 + 1), bloom_create_counter(20 + i % 3, 0.01, 4 << (i % 3))) AS c
FROM generate_series(1, 300) i, generate_series(1, i) x GROUP BY i;
SELECT is(array_agg(i ORDER BY c, i), array_agg(i ORDER BY c::bytea, i),
    'counters are ordered as their bytes') FROM ordered;
SELECT is(count(DISTINCT c), count(DISTINCT c::bytea), 'DISTINCT by bytes') FROM ordered;
SELECT is((SELECT count(*) FROM (SELECT c FROM ordered GROUP BY c) s), count(DISTINCT c::bytea),
    'GROUP BY by bytes') FROM ordered;
SELECT is((SELECT count(*) FROM ordered a JOIN ordered b USING (c)), count(*), 'joins by bytes')
FROM ordered a JOIN ordered b ON a.c::bytea = b.c::bytea;
SELECT is(count(*) FILTER (WHERE row(a.c = b.c, a.c <> b.c, a.c < b.c, a.c <= b.c, a.c > b.c, a.c >= b.c,
            sign(bloom_cmp(a.c, b.c)))
        IS DISTINCT FROM row(x = y, x <> y, x < y, x <= y, x > y, x >= y, (x > y)::int - (x < y)::int::float8)),
    0::bigint, 'the operators compare bytes')
FROM ordered a, ordered b, LATERAL (SELECT a.c::bytea, b.c::bytea) v (x, y) WHERE a.i % 7 = 0;

-- The planner expects of a counter what it expects of the filter.
CREATE TABLE number AS SELECT i FROM generate_series(1, 100000) i;
ANALYZE number;
CREATE FUNCTION pg_temp.estimated(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO STRICT plan;
    RETURN plan->0->'Plan'->>'Plan Rows';
END
$$;
SELECT is(pg_temp.estimated(format('SELECT FROM number WHERE %L::bloomcounter @> i', c)),
    pg_temp.estimated(format('SELECT FROM number WHERE %L::bloomfilter @> i', c::bloomfilter)),
    n || ' elements: rows expected')
FROM (VALUES (0), (100), (1000), (5000)) v (n), LATERAL (SELECT bloom_counter_agg(i, bloom_create_counter(1000))
    FROM generate_series(1, n) i) s (c)
WHERE c IS NOT NULL;

SELECT is(bloom_count(bloom_remove(counter => bloom_add(counter => bloom_create_counter(expected_items => 10,
        false_positive_rate => 0.02, counter_bits => 8, layout => 'classic', seed => 4), element => 1, times => 5),
    element => 1, times => 2), 1), 3, 'named arguments of bloom_create_counter, bloom_add and bloom_remove');
SELECT is(bloom_count(bloom_decay(counter => bloom_raise(counter => bloom_create_counter(10), element => 1, level => 5),
    by => 2), 1), 3, 'of bloom_raise and bloom_decay');
CREATE DOMAIN visits AS bloomcounter;
SELECT is(bloom_count(bloom_add(bloom_create_counter(10)::visits, 1) + bloom_add(bloom_create_counter(10), 1)::visits,
    1), 2, 'a domain over counters');

-- Partial states that saw only nulls carry a counter that is given, and raise to it.
CREATE TABLE part (p int, x int, l int) PARTITION BY LIST (p);
CREATE TABLE part1 PARTITION OF part FOR VALUES IN (1);
CREATE TABLE part2 PARTITION OF part FOR VALUES IN (2);
CREATE TABLE part3 PARTITION OF part FOR VALUES IN (3);
INSERT INTO part VALUES (1, NULL, 1), (2, 7, 1), (2, 3, 9), (3, NULL, 1);
CREATE TABLE given AS SELECT n, (SELECT bloom_counter_agg(i % 50, n) FROM generate_series(1, 250) i) AS c
FROM unnest(ARRAY[50, 1000]) AS n;
SET LOCAL enable_partitionwise_aggregate = on;
SELECT is(array_agg(bloom_count(s, 7) || ' ' || bloom_count(s, 3) || ' ' || contents), '{5 9 levels,5 9 levels}',
    'partitions raise a counter that is given')
FROM given, LATERAL (SELECT bloom_level_agg(x, l, c) AS s FROM part) q, LATERAL bloom_info(s);
DELETE FROM part WHERE p = 2;
SELECT is(array_agg(s = c), '{t,t}', 'partitions without elements return it')
FROM given, LATERAL (SELECT bloom_level_agg(x, l, c) AS s FROM part) q;

SELECT * FROM finish();
ROLLBACK;
