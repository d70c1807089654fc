-- The states of the aggregates: hostile serialized states, and states that are filters,
-- in aggregates that a user creates.
BEGIN;
SELECT plan(29);

-- The states that bloom_agg's deserialize function accepts go to its combine, final and
-- serialize functions. They have type internal, which SQL cannot pass on, so the functions
-- are declared once more with bigint in its place.
CREATE SCHEMA states;
CREATE FUNCTION pg_temp.execute(command text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE command; END $$;
SELECT pg_temp.execute(format($$
    CREATE FUNCTION states.deserialize(bytea) RETURNS bigint LANGUAGE C STRICT AS %1$L, 'bloomfilter_agg_deserialize';
    CREATE FUNCTION states.combine(bigint, bigint) RETURNS bigint LANGUAGE C AS %1$L, 'bloomfilter_agg_combine';
    CREATE FUNCTION states.final(bigint) RETURNS bloomfilter LANGUAGE C AS %1$L, 'bloomfilter_agg_final';
    CREATE FUNCTION states.serialize(bigint) RETURNS bytea LANGUAGE C STRICT AS %1$L, 'bloomfilter_agg_serialize';
    CREATE AGGREGATE states.read(bytea) (SFUNC = byteacat, STYPE = bytea, FINALFUNC = states.deserialize);
    CREATE AGGREGATE states.finish(bigint) (SFUNC = states.combine, STYPE = bigint, FINALFUNC = states.final);
    CREATE AGGREGATE states.send(bigint) (SFUNC = states.combine, STYPE = bigint, FINALFUNC = states.serialize);
    $$, probin)) FROM pg_proc WHERE oid = 'bloom_agg_final(internal)'::regprocedure;

-- Valid states of each kind.
CREATE AGGREGATE states.build(int) (SFUNC = bloom_agg_add, STYPE = internal, FINALFUNC = bloom_agg_serialize);
CREATE AGGREGATE states.build(int, float8) (SFUNC = bloom_agg_add, STYPE = internal, FINALFUNC = bloom_agg_serialize);
CREATE TABLE honest AS
SELECT 'own size' AS name, states.build(x) AS state, bloom_agg(x)::bytea AS f FROM generate_series(1, 20) x
UNION ALL SELECT 'sized', states.build(x, 10000), bloom_agg(x, 10000)::bytea FROM generate_series(1, 20) x
UNION ALL SELECT 'dense', states.build(x, 40), bloom_agg(x, 40)::bytea FROM generate_series(1, 20) x;

-- 'accepted', 'refused', or what is wrong.
CREATE FUNCTION pg_temp.outcome(state bytea, expected bytea) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    f bloomfilter;
    again bloomfilter;
    sent bytea;
BEGIN
    SELECT states.finish(s) INTO f FROM (SELECT states.read(state) AS s) v;
    SELECT states.send(s) INTO sent FROM (SELECT states.read(state) AS s) v;
    SELECT states.finish(s) INTO again FROM (SELECT states.read(sent) AS s) v;
    RETURN CASE WHEN f::bytea::bloomfilter <> f OR again <> f OR f::bytea <> expected THEN 'not as expected'
        ELSE 'accepted' END;
EXCEPTION WHEN invalid_binary_representation OR datatype_mismatch OR invalid_parameter_value THEN
    RETURN 'refused';
WHEN others THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END
$$;
SELECT is(pg_temp.outcome(state, f), 'accepted', 'a serialized state reads back: ' || name) FROM honest ORDER BY name;

CREATE TABLE hostile AS
SELECT DISTINCT state FROM honest
UNION SELECT set_byte(state, i, change # get_byte(state, i))
    FROM honest, unnest(ARRAY[1, 4, 255]) change, generate_series(0, least(length(state), 120) - 1) i
UNION SELECT substr(state, 1, i) FROM honest, generate_series(0, least(length(state), 120)) i
UNION SELECT state || state FROM honest
UNION SELECT state || '\x00' FROM honest
UNION SELECT int8send(9223372036854775807) || state FROM honest
UNION SELECT a.state || b.state FROM honest a, honest b
UNION SELECT f FROM honest
UNION SELECT decode(md5(i::text) || md5((i + 1)::text), 'hex') FROM generate_series(1, 100) i;
CREATE TABLE outcome AS
SELECT outcome, count(*), min(left(state::text, 200)) AS example
FROM hostile, pg_temp.outcome(state, NULL) outcome GROUP BY outcome;
SELECT is(array_agg(concat_ws(' ', outcome, example)) FILTER (WHERE outcome NOT IN ('accepted', 'refused')),
    NULL, format('%s hostile states are refused, or accepted as valid ones', sum(count))) FROM outcome;
SELECT cmp_ok(count, '>', CASE outcome WHEN 'refused' THEN 100 ELSE 20 END::bigint, format('%s states %s', count, outcome))
FROM outcome ORDER BY outcome;

-- The states of the other aggregates are filters, so every user can create aggregates of them.
CREATE TABLE filter AS
SELECT n, n % 3 AS g, bloom_agg(n * 1000 + x, 200) AS f
FROM generate_series(1, 30) n, LATERAL generate_series(1, CASE WHEN n % 2 = 0 THEN n ELSE 100 + n END) x GROUP BY n;
CREATE AGGREGATE states.unfinished(bloomfilter) (SFUNC = bloom_union_agg_add, STYPE = bloomfilter);
SELECT is(states.unfinished(f), bloom_union_agg(f), 'a union without a final function') FROM filter;
SELECT ok(count(*) = 690 AND bool_and(u @> n * 1000 + x), 'its result can be probed again and again')
FROM (SELECT states.unfinished(f) AS u FROM filter) u, filter, generate_series(1, 30) x WHERE n % 2 = 1 OR x <= n;
SELECT is(states.unfinished(u), (SELECT bloom_union_agg(f) FROM filter), 'and is the input of the same aggregate')
FROM (SELECT states.unfinished(f) AS u FROM filter GROUP BY g) u;
SELECT is(array_agg(u ORDER BY n), (SELECT array_agg((SELECT bloom_union_agg(f) FROM filter WHERE n <= o.n) ORDER BY n) FROM filter o),
    'a window that grows') FROM (SELECT n, states.unfinished(f) OVER (ORDER BY n) AS u FROM filter) w;
SELECT is(count(*), 30::bigint, 'a window that moves')
FROM (SELECT n, bloom_union_agg(f) OVER w AS u, bloom_intersect_agg(f) OVER w AS i FROM filter
    WINDOW w AS (ORDER BY n ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)) w
WHERE (u, i) IS NOT DISTINCT FROM (SELECT ROW (bloom_union_agg(f), bloom_intersect_agg(f)) FROM filter
    WHERE filter.n BETWEEN w.n - 2 AND w.n);

CREATE FUNCTION pg_temp.initial(name text, sfunc text, initial bloomfilter) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE AGGREGATE states.%I(bloomfilter) (SFUNC = %I, STYPE = bloomfilter, INITCOND = %L)', name, sfunc, initial);
END
$$;
SELECT pg_temp.initial('unite', 'bloom_union_agg_add', (SELECT bloom_agg(x, 200) FROM generate_series(1, 90) x));
SELECT pg_temp.initial('intersect', 'bloom_intersect_agg_add', (SELECT bloom_agg(x, 200) FROM generate_series(1, 190) x));
SELECT is(states.unite(f), (SELECT bloom_agg(x, 200) FROM generate_series(1, 90) x) | bloom_union_agg(f),
    'the initial state of a union is the same for every group: ' || g) FROM filter GROUP BY g ORDER BY g;
SELECT ok(bool_and(i = (SELECT bloom_agg(x, 200) FROM generate_series(1, 190) x) & rest), 'and that of an intersection')
FROM (SELECT states.intersect(f) AS i, bloom_intersect_agg(f) AS rest FROM filter WHERE n % 2 = 1 GROUP BY g) g;

-- An intersection changes nothing but its state in place.
CREATE TABLE first AS SELECT bloom_agg(x, 200) AS f FROM generate_series(1, 190) x;
ALTER TABLE first ALTER f SET STORAGE PLAIN;
UPDATE first SET f = f::bytea::bloomfilter;
SELECT ok((SELECT bloom_intersect_agg(f) = a.f & b.f FROM (SELECT b.f UNION ALL SELECT a.f) v (f)) AND a.f = c.f,
    'an intersection changes no argument')
FROM (SELECT f FROM first) a, (SELECT bloom_agg(x, 200) AS f FROM generate_series(100, 290) x) b,
    (SELECT bloom_agg(x, 200) AS f FROM generate_series(1, 190) x) c;

-- The operators | and & are the reference for what follows.
CREATE AGGREGATE states.united(bloomfilter) (SFUNC = bloom_union, STYPE = bloomfilter);
CREATE AGGREGATE states.common(bloomfilter) (SFUNC = bloom_intersection, STYPE = bloomfilter);

-- Every form of a value in every order: short header, compressed, out of line, plain; sparse, dense,
-- full, without elements, without a size.
CREATE TABLE held (plain bloomfilter, main bloomfilter, external bloomfilter);
ALTER TABLE held ALTER plain SET STORAGE PLAIN, ALTER main SET STORAGE MAIN, ALTER external SET STORAGE EXTERNAL;
INSERT INTO held SELECT f, f, f FROM (SELECT bloom_agg(x, 2000) AS f FROM generate_series(1, 3) x
    UNION ALL SELECT bloom_agg(x, 2000) FROM generate_series(1, 1000) x
    UNION ALL SELECT bloom_agg(x, 2000) FROM generate_series(1, 100000) x
    UNION ALL SELECT bloom_create(2000)) made;
INSERT INTO held (main) SELECT bloom_agg(x) FROM generate_series(1, 0) x
UNION ALL SELECT bloom_agg(x, NULL, 0.2) FROM generate_series(1, 0) x;
CREATE TABLE form AS SELECT ROW_NUMBER() OVER () AS id, f::bytea::bloomfilter AS f
FROM held, LATERAL (VALUES (plain), (main), (external)) v (f) WHERE f IS NOT NULL;
CREATE VIEW stored_form AS SELECT ROW_NUMBER() OVER () AS id, f
FROM held, LATERAL (VALUES (plain), (main), (external)) v (f) WHERE f IS NOT NULL;
SELECT ok(min(pg_column_size(main)) < 126 AND count(pg_column_compression(main)) = 1
    AND max(pg_column_size(external)) > 2000 AND pg_relation_size(max(reltoastrelid)) > 0,
    'values with a short header, compressed, in line and out of line')
FROM held, pg_class WHERE pg_class.oid = 'held'::regclass;
SELECT is(array_agg(format('%s %s %s', a.id, b.id, c.id)) FILTER (WHERE (u::bytea, i::bytea) <> ((a.f | b.f | c.f)::bytea, (a.f & b.f & c.f)::bytea)),
    NULL, format('%s orders of three stored forms', count(*)))
FROM stored_form a, stored_form b, stored_form c,
    LATERAL (SELECT bloom_union_agg(f) AS u, bloom_intersect_agg(f) AS i FROM (VALUES (a.f), (b.f), (c.f)) v (f)) aggregated;
SELECT results_eq('SELECT id, f::bytea FROM stored_form ORDER BY id', 'SELECT id, f::bytea FROM form ORDER BY id', 'which stay as they are');

-- Grouping sets share the arguments of a row, and each has its states.
CREATE FUNCTION pg_temp.strategy(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    explained json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO explained;
    RETURN explained->0->'Plan'->>'Strategy';
END
$$;
CREATE VIEW grouped AS SELECT g, n % 2 AS parity, n,
    states.united(f) AS u, bloom_union_agg(f) AS u1, states.unfinished(f) AS u2,
    states.united(f) | (SELECT bloom_agg(x, 200) FROM generate_series(1, 90) x) AS v, states.unite(f) AS v1,
    states.common(f | shared) AS i, bloom_intersect_agg(f | shared) AS i1
FROM filter, (SELECT bloom_agg(x, 200) AS shared FROM generate_series(1, 190) x) s GROUP BY GROUPING SETS ((g), (n % 2), (n), (), ());
PREPARE different AS SELECT * FROM grouped WHERE u::bytea <> u1::bytea OR u::bytea <> u2::bytea OR v::bytea <> v1::bytea OR i::bytea <> i1::bytea;
SELECT is(count(*), 37::bigint, 'grouping sets') FROM grouped;
SELECT is(pg_temp.strategy('SELECT * FROM grouped'), 'Mixed', 'grouping sets, hashed and sorted');
SELECT is_empty('different', 'have states of their own');
SET LOCAL enable_hashagg = off;
SELECT is(pg_temp.strategy('SELECT * FROM grouped'), 'Sorted', 'grouping sets, sorted');
SELECT is_empty('different', 'have states of their own');
RESET enable_hashagg;

-- DISTINCT and ORDER BY hand over what a sort returns.
SELECT is_empty($$ SELECT g FROM filter, generate_series(1, 3) GROUP BY ROLLUP (g)
    HAVING bloom_union_agg(DISTINCT f) <> states.united(f) OR bloom_intersect_agg(DISTINCT f) <> states.common(f)
        OR bloom_union_agg(f ORDER BY n DESC) <> states.united(f) OR bloom_intersect_agg(f ORDER BY n DESC) <> states.common(f) $$,
    'DISTINCT and ORDER BY');

-- Aggregates that share a state finish it one after the other, and a window goes on after that.
SELECT is_empty($$ SELECT n FROM (SELECT n, bloom_union_agg(f) OVER w AS u, states.unfinished(f) OVER w AS v, states.united(f) OVER w AS want
        FROM filter WINDOW w AS (PARTITION BY g ORDER BY n)) s
    WHERE u::bytea <> want::bytea OR v::bytea <> want::bytea $$, 'aggregates with one state, over a window');

-- A result that is an expanded object from PostgreSQL 16 on, outside the aggregate.
CREATE FUNCTION pg_temp.change_variable() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    u bloomfilter;
    before bloomfilter;
BEGIN
    SELECT states.unfinished(f) INTO u FROM filter;
    before := u;
    FOR i IN 1..3 LOOP
        u := bloom_add(u, -i) | before;
    END LOOP;
    RETURN u @> -1 AND u @> -3 AND before::bytea = (SELECT states.united(f)::bytea FROM filter);
END
$$;
SELECT ok(pg_temp.change_variable(), 'a PL/pgSQL variable with a result can be changed');
CREATE TABLE result (g int, f bloomfilter);
INSERT INTO result SELECT g, states.unfinished(f) FROM filter GROUP BY g;
SELECT results_eq('SELECT g, f FROM result ORDER BY g', 'SELECT g, states.united(f) FROM filter GROUP BY g ORDER BY g', 'a result is stored');
SELECT is_empty($$ SELECT o.g FROM (SELECT g, states.unfinished(f) AS u FROM filter GROUP BY g) o,
        LATERAL (SELECT bloom_union_agg(f.f | o.u) AS again FROM filter f WHERE f.g = o.g OFFSET 0) i WHERE i.again <> o.u $$,
    'a result is a parameter of a nested loop');

SELECT * FROM finish();
ROLLBACK;
