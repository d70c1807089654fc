-- Union, intersection, containment and equality.
CREATE FUNCTION pg_temp.filter(low int, high int, n bigint DEFAULT 1000, p float8 DEFAULT 0.01) RETURNS bloomfilter
LANGUAGE sql AS $$ SELECT bloom_agg(x, n, p) FROM generate_series(low, high) x $$;
CREATE TEMP TABLE v AS SELECT
	pg_temp.filter(1, 600) AS a,
	pg_temp.filter(401, 1000) AS b,
	pg_temp.filter(1, 5) AS few,
	pg_temp.filter(4, 8) AS others,
	(SELECT bloom_agg(x) FROM generate_series(1, 0) x) AS nothing;

SELECT a | b = pg_temp.filter(1, 1000) AS lossless, a | b = b | a AS commutes, a | a = a AS idempotent,
	bloom_union(a, b) = a | b AS function, few | others = pg_temp.filter(1, 8) AS sparse, a | few = a AS absorbed
FROM v;
SELECT (a & b) @> ALL (ARRAY[401, 500, 600]) AS common, a & b = b & a AS commutes, a & a = a AS idempotent,
	bloom_intersection(a, b) = a & b AS function, few & others = pg_temp.filter(4, 5) AS sparse,
		a & few = few AS sparse_dense
FROM v;
SELECT a | nothing = a AS identity, nothing | a = a AS either_side, a & nothing = nothing AS none,
	nothing | nothing = nothing AS still_nothing
FROM v;
SELECT (a | b) @>= a AS holds, a @>= a AS itself, a @>= few AS sparse, few <=@ a AS commuted, a @>= (a | b) AS not_all,
	few @>= a AS too_few, a @>= nothing AS empty, nothing @>= a AS from_empty, few @>= (few & others) AS part
FROM v;
-- a dense filter may have no bit set: then all that it has are in any other
SELECT p.layout, count(*) > 0 AS some, bool_and(nothing @>= none) AS "unsized", bool_and(bloom_create(1, 0.3, p.layout) @>= none)
	AS "sized", bool_and(none @>= nothing) AS back, bool_or(nothing @>= f) AS with_bits
FROM (SELECT layout, f, f & g AS none, v.nothing
	FROM v, (VALUES ('classic'), ('blocked')) AS l (layout), generate_series(1, 20) AS s,
		LATERAL (SELECT bloom_agg(s * 100 + x, bloom_create(1, 0.3, layout)) AS f, bloom_agg(-s * 100 - x,
			bloom_create(1, 0.3, layout)) AS g FROM generate_series(1, CASE layout WHEN 'blocked' THEN 8 ELSE 1 END) AS x)
			AS pairs) AS p, bloom_info(none) AS i
WHERE i.representation = 'dense' AND i.bits_set = 0 GROUP BY p.layout ORDER BY p.layout;
SELECT a = a AS eq, a = b AS other, a <> b AS ne, a <> a AS same, a = bloom_create(1000) AS empty FROM v;
SELECT (NULL::bloomfilter | a) IS NULL AS "null" FROM v;

-- sizes must be equal, also of sparse filters
CREATE TEMP TABLE sizes AS
	SELECT n, (SELECT bloom_agg(x) FROM generate_series(1, n) x) AS f FROM (VALUES (5), (100), (1000)) AS v (n);
SELECT s.f | l.f FROM sizes s, sizes l WHERE s.n = 100 AND l.n = 1000;
SELECT s.f & l.f FROM sizes s, sizes l WHERE s.n = 1000 AND l.n = 5;
SELECT few @>= bloom_create(100) FROM v;
SELECT few <=@ bloom_create(100) FROM v;
SELECT bloom_union_agg(f) FROM sizes;
SELECT bloom_intersect_agg(f) FROM sizes;
-- a union that adds nothing is its argument: stored out of line, it is not written again
CREATE TEMP TABLE kept AS SELECT bloom_agg(x, 20000) AS f FROM generate_series(1, 20000) x;
CREATE FUNCTION pg_temp.chunks() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	toast text := (SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 'kept'::regclass);
	chunks text;
BEGIN
	EXECUTE format('SELECT string_agg(chunk_id || '' '' || xmin, '','' ORDER BY chunk_id, chunk_seq) FROM %s', toast)
		INTO chunks;
	RETURN chunks;
END
$$;
CREATE TEMP TABLE addition AS
	SELECT 'dense' AS what, bloom_agg(x, 20000) AS f FROM generate_series(101, 2000) x
	UNION ALL SELECT 'sparse', bloom_agg(x, 20000) FROM generate_series(1, 10) x
	UNION ALL SELECT 'empty', bloom_create(20000)
	UNION ALL SELECT 'empty, without a size', nothing FROM v
	UNION ALL SELECT 'of a higher rate', bloom_fold(bloom_agg(x, 20000), set_byte(bloom_create(20000)::bytea, 8, 16)::bloomfilter)
		FROM generate_series(1, 10) x;
DO $$
DECLARE
	before text := pg_temp.chunks();
	a record;
BEGIN
	FOR a IN SELECT * FROM addition LOOP
		UPDATE kept SET f = kept.f | a.f;
		ASSERT pg_temp.chunks() = before, a.what || ' on the right';
		UPDATE kept SET f = a.f | kept.f;
		ASSERT pg_temp.chunks() = before, a.what || ' on the left';
	END LOOP;
	UPDATE kept SET f = f | bloom_add(bloom_create(20000), -1);
	ASSERT pg_temp.chunks() <> before, 'an element more';
END
$$;
-- the bytes are those of any union: a dense filter without a bit adds none to a sparse one, but is dense
SELECT representation, bloom_union(few, none) = none | few AS commutes, few | none @> ALL (ARRAY[1, 2, 3, 4, 5]) AS kept
FROM v, CAST((set_byte(substr(few::bytea, 1, 28), 2, 0) || decode(repeat('00', 1280), 'hex'))::bloomfilter AS bloomfilter) AS none,
	bloom_info(few | none);
SELECT bloom_create(1000) | few = few AS class, few | bloom_create(1000) = few AS other_way FROM v;

-- what does not combine says why
SELECT a | pg_temp.filter(1, 10, 1100) FROM v;
SELECT a | pg_temp.filter(1, 10, 1000, 0.001) FROM v;
SELECT a & bloom_create(1000, 0.01, 'blocked', 1) FROM v;
SELECT a & bloom_add(bloom_create(1000), 'x') FROM v;
SELECT a @>= bloom_create(1000, 0.01, 'classic') FROM v;
SELECT bloom_create(1000, 0.01, 'classic') | bloom_create(2000, 0.01, 'classic');
SELECT bloom_jaccard(a, bloom_create(1000, 0.001)) FROM v;

-- equal filters are one to GROUP BY and EXCEPT
WITH several AS (SELECT a AS f FROM v UNION ALL SELECT a FROM v UNION ALL SELECT b FROM v)
SELECT (SELECT count(*) FROM several) AS rows, (SELECT count(*) FROM (SELECT f FROM several GROUP BY f) AS g) AS groups,
	(SELECT count(*) FROM (SELECT f FROM several EXCEPT SELECT b FROM v) AS e) AS others;
