-- Union, intersection, containment and comparison.
CREATE FUNCTION pg_temp.filter(low int, high int, n bigint DEFAULT 1000, p float8 DEFAULT 0.01) RETURNS bloomfilter
LANGUAGE sql AS $$ SELECT bloom_agg(x, n, p) FROM generate_series(low, high) x $$;
CREATE TEMP TABLE v AS SELECT
	pg_temp.filter(1, 600) AS a,
	pg_temp.filter(401, 1000) AS b,
	pg_temp.filter(1, 5) AS few,
	pg_temp.filter(4, 8) AS others,
	(SELECT bloom_agg(x) FROM generate_series(1, 0) x) AS nothing;

SELECT a | b = pg_temp.filter(1, 1000) AS lossless, bloom_union(a, b) = a | b AS function FROM v;
SELECT (a & b) @> ALL (ARRAY[401, 500, 600]) AS common, bloom_intersection(a, b) = a & b AS function,
	few & others = pg_temp.filter(4, 5) AS exact
FROM v;
SELECT a | nothing = a AS identity, nothing | a = a AS either_side, bloom_create(1000) | few = few AS empty,
	(# (a & nothing)) = 0 AS none, a & few = few AS sparse_dense
FROM v;
SELECT (a | b) @>= a AS holds, few <=@ a AS commuted, few @>= a AS too_few FROM v;
-- a dense filter may have no bit set: then every filter contains it
SELECT p.layout, count(*) > 0 AS some, bool_and(nothing @>= none) AS "unsized", bool_and(bloom_create(1, 0.3, p.layout) @>= none)
	AS "sized", bool_and(none @>= nothing) AS back, bool_or(nothing @>= f) AS with_bits
FROM (SELECT layout, f, f & g AS none, v.nothing
	FROM v, (VALUES ('classic'), ('blocked')) AS l (layout), generate_series(1, 20) AS s,
		LATERAL (SELECT bloom_agg(s * 100 + x, bloom_create(1, 0.3, layout)) AS f, bloom_agg(-s * 100 - x,
			bloom_create(1, 0.3, layout)) AS g FROM generate_series(1, CASE layout WHEN 'blocked' THEN 8 ELSE 1 END) AS x)
			AS pairs) AS p, bloom_info(none) AS i
WHERE i.representation = 'dense' AND i.bits_set = 0 GROUP BY p.layout ORDER BY p.layout;
SELECT a = a AS equal, a = b AS other, a <> b AS different FROM v;
-- the order is that of the bytes
SELECT bloom_cmp(a, b) = byteacmp(a::bytea, b::bytea) AS cmp, (a < b) = (a::bytea < b::bytea) AS less,
	(a > b) = (a::bytea > b::bytea) AS greater, a <= a AS at_most, a >= a AS at_least
FROM v;

-- sizes must be equal, those of sparse filters, too
CREATE TEMP TABLE sizes AS
	SELECT n, (SELECT bloom_agg(x) FROM generate_series(1, n) x) AS f FROM (VALUES (5), (100), (1000)) AS v (n);
SELECT s.f | l.f FROM sizes s, sizes l WHERE s.n = 100 AND l.n = 1000;
SELECT s.f & l.f FROM sizes s, sizes l WHERE s.n = 1000 AND l.n = 5;
SELECT few @>= bloom_create(100) FROM v;
SELECT few <=@ bloom_create(100) FROM v;
SELECT bloom_union_agg(f) FROM sizes;
SELECT bloom_intersect_agg(f) FROM sizes;
-- a dense filter without a bit adds nothing to a sparse one, but the union is dense
SELECT representation, bloom_union(few, none) = none | few AS commutes, few | none @> ALL (ARRAY[1, 2, 3, 4, 5]) AS kept
FROM v, CAST((set_byte(substr(few::bytea, 1, 28), 2, 0) || decode(repeat('00', 1280), 'hex'))::bloomfilter AS bloomfilter) AS none,
	bloom_info(few | none);

-- the errors name the reason
SELECT a | pg_temp.filter(1, 10, 1100) FROM v;
SELECT a | pg_temp.filter(1, 10, 1000, 0.001) FROM v;
SELECT a & bloom_create(1000, 0.01, 'blocked', 1) FROM v;
SELECT a & bloom_add(bloom_create(1000), 'x') FROM v;
SELECT a @>= bloom_create(1000, 0.01, 'classic') FROM v;
SELECT bloom_create(1000, 0.01, 'classic') | bloom_create(2000, 0.01, 'classic');
SELECT bloom_jaccard(a, bloom_create(1000, 0.001)) FROM v;

-- by hashing and by sorting
WITH several AS (SELECT a AS f FROM v UNION ALL SELECT a FROM v UNION ALL SELECT b FROM v)
SELECT (SELECT count(*) FROM (SELECT f FROM several GROUP BY f) AS g) AS hashed, count(DISTINCT f) AS sorted FROM several;
