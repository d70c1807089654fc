-- Which conditions on a filter the planner rewrites to filter @@ query for an index. Any access
-- method will do for that: this is an operator class for hash indexes, which only plans use.
BEGIN;
SELECT plan(50);

SET LOCAL jit = off;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;
SET LOCAL enable_material = off;
SET LOCAL max_parallel_workers_per_gather = 0;

CREATE OPERATOR CLASS query_ops FOR TYPE bloomfilter USING hash AS
    OPERATOR 1 @@ (bloomfilter, bloomquery), FUNCTION 1 bloom_hash(bloomfilter);
CREATE DOMAIN number AS int;
CREATE DOMAIN sort AS varchar(10);
CREATE DOMAIN seen AS bloomfilter;
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE COLLATION nondeterministic (PROVIDER = icu, LOCALE = 'und', DETERMINISTIC = false);
CREATE TABLE sets (id int, seen bloomfilter, kept seen, c bloomcounter, x int);
CREATE INDEX ON sets USING hash (seen query_ops);
CREATE INDEX ON sets USING hash (kept query_ops);
CREATE INDEX ON sets USING hash ((seen | kept) query_ops);
CREATE TABLE keys (
    x bigint, s smallint, n number, v varchar(5), t text, u text COLLATE nondeterministic, k char(3), m mood, a int[], j json);
INSERT INTO keys SELECT 1 FROM generate_series(1, 10);
ANALYZE keys;

-- The index condition of a query, or a null.
CREATE FUNCTION pg_temp.condition(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
    RETURN jsonb_path_query_first(plan::jsonb, 'strict $.**."Index Cond"') #>> '{}';
END $$;
CREATE FUNCTION pg_temp.becomes(condition text, want text) RETURNS text LANGUAGE sql
    RETURN is(pg_temp.condition('SELECT FROM sets WHERE ' || condition), want, condition);

SELECT pg_temp.becomes('seen @> 42', '(seen @@ bloom_query(42))');
SELECT pg_temp.becomes('42 <@ seen', '(seen @@ bloom_query(42))');
SELECT pg_temp.becomes('bloom_contains(seen, 42)', '(seen @@ bloom_query(42))');
SELECT pg_temp.becomes('bloom_contained(42, seen)', '(seen @@ bloom_query(42))');
SELECT pg_temp.becomes('seen @@ bloom_query(42)', '(seen @@ bloom_query(42))');
SELECT pg_temp.becomes('bloom_contains_any(seen, ARRAY[1, 2])', '(seen @@ bloom_query(''{1,2}''::integer[], 1))');
SELECT pg_temp.becomes('bloom_contains_all(seen, ARRAY[1, NULL])', '(seen @@ bloom_query(''{1,NULL}''::integer[]))');
SELECT pg_temp.becomes('bloom_contains_least(seen, ARRAY[1, 2], 2)', '(seen @@ bloom_query(''{1,2}''::integer[], 2))');
SELECT pg_temp.becomes('seen @> 1 AND seen @> 2', '((seen @@ bloom_query(1)) AND (seen @@ bloom_query(2)))');

-- keys of other types
SELECT pg_temp.becomes('seen @> ''alice''', '(seen @@ bloom_query(''alice''::text))');
SELECT pg_temp.becomes('seen @> ''alice''::varchar(9)', '(seen @@ bloom_query(''alice''::character varying(9)))');
SELECT pg_temp.becomes('seen @> ''alice''::sort', '(seen @@ bloom_query(''alice''::sort))');
SELECT pg_temp.becomes('seen @> ''al''::char(4)', '(seen @@ bloom_query(''al  ''::character(4)))');
SELECT pg_temp.becomes('seen @> ''sad''::mood', '(seen @@ bloom_query(''sad''::mood))');
SELECT pg_temp.becomes('seen @> 1::number', '(seen @@ bloom_query(''1''::number))');
SELECT pg_temp.becomes('bloom_contains_any(seen, ''{a}'')', '(seen @@ bloom_query(''{a}''::text[], 1))');
SELECT pg_temp.becomes('seen @> (SELECT max(x) FROM keys)', format('(seen @@ bloom_query(%s))', CASE
    WHEN version < 170000 THEN '$0' WHEN version < 190000 THEN '(InitPlan 1).col1' ELSE '(InitPlan expr_1).col1' END))
FROM CAST(current_setting('server_version_num') AS int) AS version;
SELECT pg_temp.becomes('seen @> (now() + interval ''1 day'')', '(seen @@ bloom_query((now() + ''1 day''::interval)))');

-- the filter is a domain's, or an expression
SELECT pg_temp.becomes('kept @> 42', '((kept)::bloomfilter @@ bloom_query(42))');
SELECT pg_temp.becomes('(seen | kept) @> 42', '((seen | (kept)::bloomfilter) @@ bloom_query(42))');

-- joins with the index inside
CREATE FUNCTION pg_temp.joins(condition text, want text) RETURNS text LANGUAGE sql
    RETURN is(pg_temp.condition('SELECT FROM keys k JOIN sets ON ' || condition), want, 'join: ' || condition);
SELECT pg_temp.joins('seen @> k.x', '(seen @@ bloom_query(k.x))');
SELECT pg_temp.joins('k.s <@ seen', '(seen @@ bloom_query(k.s))');
SELECT pg_temp.joins('seen @> k.n', '(seen @@ bloom_query(k.n))');
SELECT pg_temp.joins('seen @> k.v', '(seen @@ bloom_query(k.v))');
SELECT pg_temp.joins('seen @> k.t', '(seen @@ bloom_query(k.t))');
SELECT pg_temp.joins('seen @> k.k', '(seen @@ bloom_query(k.k))');
SELECT pg_temp.joins('seen @> k.m', '(seen @@ bloom_query(k.m))');
SELECT pg_temp.joins('bloom_contains_all(seen, k.a)', '(seen @@ bloom_query(k.a))');
SELECT pg_temp.joins('bloom_contains_any(seen, ARRAY[k.x, k.s + 1])', '(seen @@ bloom_query(ARRAY[k.x, ((k.s + 1))::bigint], 1))');
SELECT pg_temp.joins('bloom_contains_least(seen, k.a, k.s)', '(seen @@ bloom_query(k.a, (k.s)::integer))');
SELECT pg_temp.joins('seen @> (k.t COLLATE "C")', '(seen @@ bloom_query((k.t)::text))');

-- parameters of a generic plan
SET LOCAL plan_cache_mode = force_generic_plan;
PREPARE one (int) AS SELECT FROM sets WHERE seen @> $1;
PREPARE untyped AS SELECT FROM sets WHERE seen @> $1;
PREPARE several (int[], int) AS SELECT FROM sets WHERE bloom_contains_least(seen, $1, $2);
SELECT is(pg_temp.condition('EXECUTE one (1)'), '(seen @@ bloom_query($1))', 'parameter');
SELECT is(pg_temp.condition('EXECUTE untyped (''a'')'), '(seen @@ bloom_query($1))', 'untyped parameter');
SELECT is(pg_temp.condition('EXECUTE several (''{1}'', 1)'), '(seen @@ bloom_query($1, $2))', 'parameters');

-- what stays as it is
SELECT pg_temp.becomes('seen @> ''a'' COLLATE nondeterministic', NULL);
SELECT pg_temp.becomes('seen @> random()', NULL);
SELECT pg_temp.becomes('bloom_contains_least(seen, ARRAY[1], (2 * random())::int)', NULL);
SELECT pg_temp.becomes('bloom_contains_least(seen, ARRAY[1], -1)', NULL);
SELECT pg_temp.becomes('seen @> x', NULL);
SELECT pg_temp.becomes('seen @> json ''1''', NULL);
SELECT pg_temp.becomes('seen @> ARRAY[1]', NULL);
SELECT pg_temp.becomes('seen @> ANY (ARRAY[1, 2])', NULL);
SELECT pg_temp.becomes('bloom_hits(seen, ARRAY[1, 2]) >= 1', NULL);
SELECT pg_temp.becomes('c @> 1', NULL);
SELECT pg_temp.joins('seen @> k.u', NULL);
SELECT pg_temp.joins('bloom_contains_any(seen, ARRAY[k.x, sets.x])', NULL);

-- the extension's objects are found in its own schema
CREATE FUNCTION pg_temp.elsewhere() RETURNS text LANGUAGE sql SET search_path = pg_catalog
    RETURN pg_temp.condition('SELECT FROM public.sets WHERE seen OPERATOR(public.@>) 42');
SELECT is(pg_temp.elsewhere(), '(seen OPERATOR(public.@@) public.bloom_query(42))', 'another search_path');

-- and are functions that the user may execute
CREATE FUNCTION pg_temp.unchanged(change text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE change;
    SET LOCAL ROLE pg_monitor;
    RETURN NEXT is(pg_temp.condition('SELECT FROM sets WHERE seen @> 42'), NULL, change);
    RESET ROLE;
END $$;
GRANT SELECT ON sets TO pg_monitor;
SAVEPOINT functions;
SELECT pg_temp.unchanged('REVOKE EXECUTE ON FUNCTION bloom_query(anycompatible) FROM public');
ROLLBACK TO functions;
SELECT pg_temp.unchanged('REVOKE EXECUTE ON FUNCTION bloom_matches(bloomfilter, bloomquery) FROM public');
ROLLBACK TO functions;
ALTER FUNCTION bloom_query(anycompatible) RENAME TO renamed;
SELECT pg_temp.unchanged($$CREATE FUNCTION bloom_query(anycompatible) RETURNS bloomquery LANGUAGE sql
    AS 'SELECT NULL::bloomquery'$$);

SELECT * FROM finish();
ROLLBACK;
