-- Union, intersection, containment and fold. Union is exact, the others never lose
-- an element.
BEGIN;
SELECT plan(309);

SET LOCAL jit = off;

CREATE FUNCTION pg_temp.ints(a int, b int, e bloomfilter) RETURNS bloomfilter LANGUAGE sql AS
$$ SELECT bloom_agg(i, e) FROM generate_series(a, b) i $$;

-- How many of a .. b are missed.
CREATE FUNCTION pg_temp.missed(f bloomfilter, a int, b int) RETURNS bigint LANGUAGE sql AS
$$ SELECT count(*) FROM generate_series(a, b) i WHERE (f @> i) IS NOT TRUE $$;

CREATE FUNCTION pg_temp.representation(f bloomfilter) RETURNS text LANGUAGE sql AS
$$ SELECT CASE get_byte(f::bytea, 2) WHEN 0 THEN 'dense' WHEN 1 THEN 'sparse' END $$;

CREATE TABLE maker (layout text, e bloomfilter);
INSERT INTO maker VALUES
    ('blocked', bloom_create(1000)),
    ('blocked, seed', bloom_create(1000, 0.001, 'blocked', -3)),
    ('classic', bloom_create(1000, 0.01, 'classic')),
    ('classic, one word', bloom_create(1, 0.01, 'classic'));

-- Union is lossless: at equal m it has the bytes of one aggregate over both sets.
-- The ranges are chosen to unite sparse with sparse (to sparse and to dense),
-- sparse with dense, and dense with dense, disjoint and overlapping.
CREATE TABLE range (a int, b int, c int, d int);
INSERT INTO range VALUES (1, 10, 11, 20), (1, 10, 5, 15), (1, 100, 101, 200), (1, 10, 11, 1000), (1, 1000, 501, 1500),
    (1, 1000, 1, 1000), (1, 150, 10, 20), (1, 2000, 5000, 9000);

SELECT is((pg_temp.ints(a, b, e) | pg_temp.ints(c, d, e))::bytea,
    (SELECT bloom_agg(i, e)::bytea FROM generate_series(least(a, c), greatest(b, d)) i
     WHERE i BETWEEN a AND b OR i BETWEEN c AND d),
    format('%s: union of %s .. %s and %s .. %s is lossless', layout, a, b, c, d))
FROM maker, range ORDER BY layout, a, b, c, d;

SELECT is((pg_temp.ints(a, b, e) | pg_temp.ints(c, d, e))::bytea,
    (pg_temp.ints(c, d, e) | pg_temp.ints(a, b, e))::bytea,
    format('%s: union of %s .. %s and %s .. %s commutes', layout, a, b, c, d))
FROM maker, range ORDER BY layout, a, b, c, d;

SELECT is((pg_temp.ints(a, b, e) & pg_temp.ints(c, d, e))::bytea,
    (pg_temp.ints(c, d, e) & pg_temp.ints(a, b, e))::bytea,
    format('%s: intersection of %s .. %s and %s .. %s commutes', layout, a, b, c, d))
FROM maker, range ORDER BY layout, a, b, c, d;

SELECT is(pg_temp.missed(pg_temp.ints(a, b, e) & pg_temp.ints(c, d, e), greatest(a, c), least(b, d)), 0::bigint,
    format('%s: intersection of %s .. %s and %s .. %s holds what is in both', layout, a, b, c, d))
FROM maker, range ORDER BY layout, a, b, c, d;

-- Three sets, whose unions are sparse, dense or mixed.
CREATE TABLE triple AS
SELECT layout, n, pg_temp.ints(1, n, e) AS f, pg_temp.ints(n / 2, n + n / 2, e) AS g,
       pg_temp.ints(3 * n, 4 * n, e) AS h
FROM maker, (VALUES (10), (60), (100), (800)) v (n);

SELECT is(array_agg(n ORDER BY n) FILTER (WHERE ((f | g) | h)::bytea = (f | (g | h))::bytea), '{10,60,100,800}',
    layout || ': union associates')
FROM triple GROUP BY layout ORDER BY layout;
SELECT is(array_agg(n ORDER BY n) FILTER (WHERE ((f & g) & h)::bytea = (f & (g & h))::bytea), '{10,60,100,800}',
    layout || ': intersection associates')
FROM triple GROUP BY layout ORDER BY layout;
SELECT is(array_agg(n ORDER BY n) FILTER (WHERE (f | f)::bytea = f::bytea AND (f & f)::bytea = f::bytea
                                          AND ((f | g) | g)::bytea = (f | g)::bytea), '{10,60,100,800}',
    layout || ': union and intersection are idempotent')
FROM triple GROUP BY layout ORDER BY layout;
SELECT is(array_agg(n ORDER BY n) FILTER (WHERE (f & (f | g))::bytea = f::bytea AND (f | (f & g))::bytea = f::bytea),
    '{10,60,100,800}', layout || ': each absorbs the other')
FROM triple GROUP BY layout ORDER BY layout;
SELECT is(array_agg(n ORDER BY n) FILTER (WHERE bloom_union(f, g)::bytea = (f | g)::bytea
                                          AND bloom_intersection(f, g)::bytea = (f & g)::bytea), '{10,60,100,800}',
    layout || ': the operators are the functions')
FROM triple GROUP BY layout ORDER BY layout;

-- An intersection holds no more than either side does.
SELECT is(
    (SELECT count(*) FROM generate_series(-20000, 20000) i WHERE ((f & g) @> i) <> (f @> i AND g @> i)), 0::bigint,
    format('%s, %s: intersection contains what both contain and nothing else', layout, n))
FROM triple WHERE layout IN ('blocked', 'classic') ORDER BY layout, n;

-- Representations: sparse while the hashes take less room than the bits.
SELECT is(pg_temp.representation(f), want, format('%s: %s', what, want))
FROM (
    SELECT 1, 'union of small sets', pg_temp.ints(1, 10, e) | pg_temp.ints(11, 20, e), 'sparse' FROM maker
    WHERE layout = 'blocked'
    UNION ALL
    SELECT 2, 'union of small sets that is not small', pg_temp.ints(1, 100, e) | pg_temp.ints(101, 200, e), 'dense'
    FROM maker WHERE layout = 'blocked'
    UNION ALL
    SELECT 3, 'intersection with a small set', pg_temp.ints(1, 1000, e) & pg_temp.ints(1, 10, e), 'sparse' FROM maker
    WHERE layout = 'blocked'
    UNION ALL
    SELECT 4, 'intersection of large sets, disjoint', pg_temp.ints(1, 1000, e) & pg_temp.ints(5001, 6000, e), 'dense'
    FROM maker WHERE layout = 'blocked'
) v (n, what, f, want) ORDER BY n;

-- An intersection of sparse filters is exact.
SELECT is(# (pg_temp.ints(1, 100, e) & pg_temp.ints(51, 150, e)), 50::float8,
    layout || ': intersection of sparse filters is exact')
FROM maker WHERE layout IN ('blocked', 'classic') ORDER BY layout;
SELECT is((pg_temp.ints(1, 100, e) & pg_temp.ints(51, 150, e))::bytea, pg_temp.ints(51, 100, e)::bytea,
    layout || ': intersection of sparse filters has the bytes of the common elements')
FROM maker WHERE layout IN ('blocked', 'classic') ORDER BY layout;

-- Different sizes, where block counts divide one another: filters combine once they have one size.
CREATE TABLE sized AS
SELECT n, bloom_agg(i) AS f FROM (VALUES (1), (20), (300), (5000), (70000)) v (n), generate_series(1, n) i GROUP BY n;

SELECT cmp_ok(count(DISTINCT (bloom_info(f)).bits), '=', 4::bigint, 'filters that size themselves have several sizes')
FROM sized;

SELECT is((bloom_fold(b.f, a.f) | a.f)::bytea, (SELECT bloom_agg(i, a.f)::bytea FROM generate_series(1, b.n) i),
    format('%s elements folded to the size of %s are as built there', b.n, a.n))
FROM sized a JOIN sized b ON a.n < b.n ORDER BY a.n, b.n;
SELECT ok(bloom_fold(b.f, a.f) @>= a.f AND a.f <=@ bloom_fold(b.f, a.f)
    AND pg_temp.missed(bloom_fold(b.f, a.f) & a.f, 1, a.n) = 0,
    format('%s elements, folded, may hold %s of them', b.n, a.n))
FROM sized a JOIN sized b ON a.n < b.n ORDER BY a.n, b.n;

CREATE FUNCTION pg_temp.with_blocks(e bloomfilter, n bigint) RETURNS bloomfilter LANGUAGE sql AS $$
    SELECT overlay(e::bytea PLACING reverse_bytes FROM 21 FOR 8)::bloomfilter
    FROM (SELECT string_agg(substr(int8send(n * 512), i, 1), '' ORDER BY i DESC)
         FROM generate_series(1, 8) i) r (reverse_bytes)
$$;

-- One set, one value: a filter folded to the size and rate of another equals the filter built at that size, wherever
-- its bits fold or its hashes are known. Otherwise folding is an error.
CREATE TABLE shape AS
SELECT b, pg_temp.with_blocks(bloom_create(1, rate), b) AS e
FROM (VALUES (1, 0.01), (2, 0.012), (3, 0.01), (4, 0.01), (6, 0.011), (24, 0.01), (100, 0.01)) v (b, rate);
CREATE TABLE brought AS
SELECT n, f.b AS from_b, l.b AS to_b, built.f, l.e,
       pg_temp.representation(built.f) = 'sparse' OR f.b % l.b = 0 AS possible
FROM (VALUES (0), (1), (7), (8), (40), (500)) v (n), shape f, shape l,
     LATERAL (SELECT bloom_agg(nullif(i, 0), f.e) AS f FROM generate_series(0, n) i) built;
SELECT is(count(*) FILTER (WHERE bloom_fold(f, e)::bytea
                               <> (SELECT bloom_agg(nullif(i, 0), e)::bytea FROM generate_series(0, n) i)), 0::bigint,
    format('%s elements at another size: %s folds equal what is built there', n, count(*)))
FROM brought WHERE possible GROUP BY n ORDER BY n;
SELECT throws_ok(format('SELECT bloom_fold(f, e) FROM brought WHERE (n, from_b, to_b) = (%s, %s, %s)', n, from_b, to_b),
    '22023', NULL, format('%s elements, dense, do not go from %s blocks to %s', n, from_b, to_b))
FROM brought WHERE NOT possible AND n = 500 ORDER BY from_b, to_b;

-- The empty filter without a size is the identity of union and empties an intersection.
CREATE TABLE empty AS SELECT bloom_agg(i) AS e FROM generate_series(1, 0) i;
CREATE TABLE any_filter (what text, f bloomfilter);
INSERT INTO any_filter
SELECT 'sparse', bloom_agg(i, 1000) FROM generate_series(1, 3) i
UNION ALL SELECT 'dense', bloom_agg(i, 1000) FROM generate_series(1, 1000) i
UNION ALL SELECT 'classic', bloom_agg(i, bloom_create(10, 0.2, 'classic', 9)) FROM generate_series(1, 10) i
UNION ALL SELECT 'text', bloom_agg(i::text) FROM generate_series(1, 10) i
UNION ALL SELECT 'empty with a size', bloom_create(100, 0.001);

SELECT is((f | e)::bytea, f::bytea, what || ' | empty') FROM any_filter, empty ORDER BY what;
SELECT is((e | f)::bytea, f::bytea, 'empty | ' || what) FROM any_filter, empty ORDER BY what;
SELECT is(# (f & e), 0::float8, what || ' & empty') FROM any_filter, empty ORDER BY what;
SELECT is(# (e & f), 0::float8, 'empty & ' || what) FROM any_filter, empty ORDER BY what;
SELECT ok((f & e) = (e & f) AND (f & e) <> e AND (f | (f & e)) = f, 'f & empty has the size of f: ' || what)
FROM any_filter, empty ORDER BY what;
SELECT ok(f @>= e AND e <=@ f, what || ' holds all of the empty filter') FROM any_filter, empty ORDER BY what;
SELECT ok(NOT e @>= f AND NOT f <=@ e, 'the empty filter does not hold all of ' || what)
FROM any_filter, empty WHERE what <> 'empty with a size' ORDER BY what;
SELECT is(count(*), 0::bigint, 'the empty filter contains nothing of any class')
FROM empty WHERE e @> 1 OR e @> 'a' OR e @> 1.5 OR e @> date '2000-01-01' OR e @> true OR 1 <@ e
     OR bloom_contains(e, '');
SELECT ok((e | e) = e AND e @>= e AND NOT e @> 1, 'two empty filters give an empty one') FROM empty;

-- The lower of the two requested rates, here of two blocked filters with equal k.
SELECT is(round((bloom_info(a | b)).requested_rate::numeric, 4), 0.0100,
    'a union has the lower of the requested rates')
FROM (SELECT pg_temp.with_blocks(bloom_create(1, 0.011), 4), pg_temp.with_blocks(bloom_create(1, 0.01), 4)) v (a, b);

-- May a hold all of b? Never false for a subset, whatever the representations.
CREATE TABLE subset AS
SELECT layout, n, every, pg_temp.ints(1, n, e) AS whole,
       (SELECT bloom_agg(i, e) FROM generate_series(1, n) i WHERE i % every = 0) AS part
FROM maker, (VALUES (10), (158), (160), (1000), (3000)) a (n), (VALUES (1), (2), (3), (7)) b (every);

SELECT is(count(*) FILTER (WHERE (whole @>= part) IS NOT TRUE OR (part <=@ whole) IS NOT TRUE
                           OR (whole @>= (whole & part)) IS NOT TRUE OR ((part | whole) @>= whole) IS NOT TRUE),
                               0::bigint,
    layout || ': @>= and <=@ hold for every subset') FROM subset GROUP BY layout ORDER BY layout;
SELECT ok(NOT pg_temp.ints(1, 900, e) @>= pg_temp.ints(851, 950, e)
    AND NOT pg_temp.ints(851, 950, e) <=@ pg_temp.ints(1, 900, e),
    layout || ': @>= sees that fifty elements are missing')
FROM maker WHERE layout NOT LIKE '%word' ORDER BY layout;
SELECT ok(NOT pg_temp.ints(1, 10, e) @>= pg_temp.ints(10, 11, e), layout || ': @>= is exact between sparse filters')
FROM maker WHERE layout NOT LIKE '%word' ORDER BY layout;

-- Fold: it loses no element, keeps the requested rate, and no smaller form keeps it.
CREATE TABLE folded AS
SELECT n, p, f, bloom_fold(f, p) AS g
FROM (SELECT 3000 AS n, bloom_agg(i, NULL, 0.0001) AS f FROM generate_series(1, 3000) i
      UNION ALL SELECT 400, bloom_agg(i, pg_temp.with_blocks(bloom_create(1, 0.0001), 360))
          FROM generate_series(1, 400) i
      UNION ALL SELECT 6000, bloom_agg(i, pg_temp.with_blocks(bloom_create(1, 0.0001), 360))
          FROM generate_series(1, 6000) i) v,
     (VALUES (0.001), (0.01), (0.1), (0.4)) r (p);

SELECT is(pg_temp.missed(g, 1, n), 0::bigint, format('%s elements folded to p = %s are all there', n, p)) FROM folded
ORDER BY n, p;
SELECT ok(bloom_fpp(g) <= p AND length(g::bytea) <= length(f::bytea),
    format('%s elements folded to p = %s keep it', n, p))
FROM folded ORDER BY n, p;
SELECT ok(length(g::bytea) < length(f::bytea), format('%s elements folded to p = %s take less', n, p)) FROM folded
WHERE p = 0.1 ORDER BY n;
-- Folding is exact: the bits are those that the elements set in a filter of that size.
SELECT is(substr(g::bytea, 29),
    (SELECT substr(bloom_agg(i, pg_temp.with_blocks(bloom_create(1, 0.0001), (bloom_info(g)).bits / 512))::bytea, 29)
        FROM generate_series(1, n) i),
    format('%s elements folded to p = %s have the bits of a filter of that size', n, p))
FROM folded ORDER BY n, p;
-- These are dense at every size, so that their bits tell the rate.
SELECT is(
    (SELECT array_agg(d) FROM generate_series(1, (bloom_info(g)).bits / 512 - 1) d
     WHERE (bloom_info(f)).bits / 512 % d = 0
       AND (SELECT bloom_fpp(bloom_agg(i, pg_temp.with_blocks(bloom_create(1, 0.0001), d)))
           FROM generate_series(1, n) i) <= p),
    NULL, format('%s elements folded to p = %s: no smaller form has that rate', n, p))
FROM folded WHERE n > 400 ORDER BY n, p;

SELECT * FROM finish();
ROLLBACK;
