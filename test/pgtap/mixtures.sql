-- Aggregates that a superuser puts together from our support functions and those of
-- others: from every function of ours and every one of the server's aggregates whose
-- state is internal, in every place that takes it and in every kind of plan. One of
-- ours that is called there raises an error; where none is, nothing happens. No
-- function ever reads a state that another kind made.
BEGIN;
SELECT plan(15);

CREATE TABLE input AS SELECT x FROM generate_series(1, 40) x;
CREATE TABLE parts (x int) PARTITION BY LIST (x);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts SELECT x FROM generate_series(1, 2) x, generate_series(1, 1000);
ANALYZE input, parts;

-- What there is to choose from; a family is what belongs together.
CREATE TABLE family AS
SELECT DISTINCT ON (aggtransfn, aggserialfn, proargtypes::text, ours)
    proname AS name,
    EXISTS (SELECT FROM pg_depend d, pg_extension e WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid
            AND d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND extname = 'bloomtype') AS ours,
    string_to_array(proargtypes::text, ' ')::oid[]::regtype[] AS arguments, aggkind = 'o' AS ordered,
    aggfinalextra AS extra, aggtransfn AS transition, aggfinalfn AS final, aggcombinefn AS combine,
    aggserialfn AS serialize,
    aggdeserialfn AS deserialize, aggmtransfn AS moving, aggminvtransfn AS inverse, aggmfinalfn AS moving_final
FROM pg_aggregate JOIN pg_proc p ON p.oid = aggfnoid
WHERE aggtranstype = 'internal'::regtype AND (aggkind = 'n' OR proname = 'mode')
  AND proname NOT LIKE '%unique%' -- these refuse equal keys, which are here
  AND pronamespace IN ('pg_catalog'::regnamespace, (SELECT extnamespace FROM pg_extension WHERE extname = 'bloomtype'));
-- What takes internal, wherever it comes from, may be called as a final function.
INSERT INTO family (name, ours, arguments, final)
SELECT proname, true, '{}', p.oid FROM pg_proc p
WHERE p.oid = (SELECT typreceive FROM pg_type WHERE typname = 'bloomfilter');

CREATE FUNCTION pg_temp.kind(f family) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN f.ours THEN substring(f.name FROM 'union|intersect|agg|recv') ELSE f.name || f.arguments::text END
$$;

-- An argument of each type, made of x.
CREATE TABLE argument (type regtype, call text);
INSERT INTO argument VALUES
    ('bigint', 'x::bigint'), ('integer', 'x'), ('smallint', 'x::smallint'), ('numeric', 'x::numeric'),
    ('text', 'x::text'), ('bytea', 'x::text::bytea'), ('anyelement', 'x::bigint'), ('anynonarray', 'x::bigint'),
    ('anyarray', 'ARRAY[x]'), ('"any"', 'x'), ('double precision', '0.01::float8'),
    ('interval', 'x * interval ''1 s'''),
    ('bloomfilter', 'bloom_add(bloom_create(10), x)'), ('anyrange', 'int4range(x, x + 1)'),
    ('anymultirange', 'int4multirange(int4range(x, x + 1))');

CREATE FUNCTION pg_temp.arguments_of(f family) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(CASE WHEN f.name = 'bloom_agg' AND type = 'bigint'::regtype AND n > 1 THEN '100'
        ELSE call END, ', ' ORDER BY n)
    FROM unnest(f.arguments) WITH ORDINALITY a (type, n) LEFT JOIN argument USING (type)
$$;

CREATE FUNCTION pg_temp.plain_name(function regproc) RETURNS text LANGUAGE sql AS $$
    SELECT format('%I.%I', nspname, proname) FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
        WHERE p.oid = function
$$;

SELECT is(array_agg(DISTINCT type::text), NULL, 'there is a value of every type that an aggregate takes')
FROM family, unnest(arguments) type WHERE type NOT IN (SELECT a.type FROM argument a);

-- Each mixture of two families: bit by bit, from which of them the functions come.
CREATE SCHEMA mixtures;
CREATE TABLE mixture AS
SELECT DISTINCT ON (definition)
    concat_ws(' ', a.name, b.name, mask::bit(4)) AS what, t.ours AS transition, f.ours AS final, c.ours AS combine,
    s.ours AS serialize, c.combine <> 0 AND s.serialize <> 0 AS parallel,
    format('(%s%s) (SFUNC = %s, STYPE = internal, FINALFUNC = %s%s%s%s, PARALLEL = SAFE)',
           CASE WHEN t.ordered THEN 'ORDER BY ' END, array_to_string(t.arguments, ', '),
           pg_temp.plain_name(t.transition), pg_temp.plain_name(f.final),
           CASE WHEN f.extra THEN ', FINALFUNC_EXTRA' END,
           ', COMBINEFUNC = ' || pg_temp.plain_name(nullif(c.combine, 0)),
           ', SERIALFUNC = ' || pg_temp.plain_name(nullif(s.serialize, 0)) ||
               ', DESERIALFUNC = ' || pg_temp.plain_name(nullif(s.deserialize, 0))) AS definition,
    CASE WHEN t.ordered THEN '() WITHIN GROUP (ORDER BY x)' ELSE format('(%s)', pg_temp.arguments_of(t)) END AS called
FROM family a JOIN family b ON pg_temp.kind(a) < pg_temp.kind(b) AND (a.ours OR b.ours), generate_series(1, 14) mask,
    LATERAL (SELECT (CASE WHEN mask & 1 > 0 THEN a ELSE b END).*) t,
    LATERAL (SELECT (CASE WHEN mask & 2 > 0 THEN a ELSE b END).*) f,
    LATERAL (SELECT (CASE WHEN mask & 4 > 0 THEN a ELSE b END).*) c,
    LATERAL (SELECT (CASE WHEN mask & 8 > 0 THEN a ELSE b END).*) s
WHERE t.transition <> 0 AND f.final <> 0
  AND (t.name <> f.name OR c.combine <> 0 AND c.name <> t.name OR s.serialize <> 0 AND s.name <> t.name);
-- The same for frames that move, of which none of ours has support functions.
CREATE TABLE moving_mixture AS
SELECT concat_ws(' ', o.name, m.name, mask::bit(3)) AS what,
    format('(%s) (SFUNC = %s, STYPE = internal, FINALFUNC = %s, MSFUNC = %s, MINVFUNC = %s, MFINALFUNC = %s, MSTYPE = internal)',
           array_to_string(m.arguments, ', '), pg_temp.plain_name(m.transition), pg_temp.plain_name(m.final),
           pg_temp.plain_name(CASE WHEN mask & 1 > 0 THEN o.transition ELSE m.moving END),
           pg_temp.plain_name(CASE WHEN mask & 2 > 0 THEN o.transition ELSE m.inverse END),
           pg_temp.plain_name(CASE WHEN mask & 4 > 0 THEN o.final ELSE m.moving_final END)) AS definition,
    format('(%s)', pg_temp.arguments_of(m)) AS called
FROM family m, family o, generate_series(1, 6) mask
WHERE m.moving <> 0 AND o.ours AND o.transition::regprocedure::text ~ 'internal,anycompatible\)$';

-- Creates an aggregate and calls it. An empty string if PostgreSQL does not let it be
-- created, else what came of it.
CREATE FUNCTION pg_temp.outcome(definition text, called text, source text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    came text := 'fine';
BEGIN
    BEGIN
        EXECUTE 'CREATE AGGREGATE mixtures.mixture ' || definition;
    EXCEPTION WHEN others THEN
        RETURN '';
    END;
    BEGIN
        EXECUTE format('SELECT count(s::text) FROM (SELECT mixtures.mixture%s %s) s', called, source);
    EXCEPTION WHEN others THEN
        came := SQLSTATE;
    END;
    DROP ROUTINE mixtures.mixture;
    RETURN came;
END
$$;

CREATE FUNCTION pg_temp.plan_has(query text, VARIADIC parts text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    shown text;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO shown;
    RETURN ok((SELECT bool_and(strpos(shown, format('"%s"', part)) > 0) FROM unnest(parts) part),
        'the plan has ' || array_to_string(parts, ', '));
END
$$;

-- One of ours refuses, in whichever place it is, and none of the others is disturbed.
CREATE FUNCTION pg_temp.judge(what text, called bool, outcome text) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN outcome NOT IN ('', CASE WHEN called THEN '42P13' ELSE 'fine' END)
        THEN concat_ws(': ', what, outcome) END
$$;

SET LOCAL max_parallel_workers_per_gather = 0;
CREATE TABLE serial AS
SELECT pg_temp.judge(what, transition OR final, outcome) AS wrong, outcome
FROM mixture, pg_temp.outcome(definition, called, 'FROM input') outcome;
SELECT is(array_agg(wrong) FILTER (WHERE wrong <> ''), NULL, format('%s mixtures in a serial plan', count(*)))
FROM serial WHERE outcome <> '';
SELECT cmp_ok(count(*), '>', 300::bigint, 'most of which can be created') FROM serial WHERE outcome <> '';

CREATE TABLE window_frame AS
SELECT pg_temp.judge(what, transition OR final, outcome) AS wrong, outcome
FROM mixture, pg_temp.outcome(definition, called, 'OVER (ORDER BY x) FROM input') outcome
WHERE called NOT LIKE '%WITHIN%';
SELECT is(array_agg(wrong) FILTER (WHERE wrong <> ''), NULL, format('%s mixtures as window functions', count(*)))
FROM window_frame WHERE outcome <> '';
CREATE TABLE moving_frame AS
SELECT pg_temp.judge(what, true, outcome) AS wrong, outcome
FROM moving_mixture,
    pg_temp.outcome(definition, called, 'OVER (ORDER BY x ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM input')
    AS outcome;
SELECT is(array_agg(wrong) FILTER (WHERE wrong <> ''), NULL, format('%s mixtures with a frame that moves', count(*)))
FROM moving_frame WHERE outcome <> '';
SELECT cmp_ok(count(*), '>', 10::bigint, 'many of which can be created') FROM moving_frame WHERE outcome <> '';

-- Partial states, within one process.
SET LOCAL enable_partitionwise_aggregate = on;
SET LOCAL enable_sort = off;
SELECT pg_temp.plan_has('SELECT sum(x::bigint) FROM parts GROUP BY x / 10', 'Append', 'Partial', 'Finalize');
CREATE TABLE combined AS
SELECT pg_temp.judge(what, transition OR final OR parallel AND (combine OR serialize), outcome) AS wrong, outcome
FROM mixture, pg_temp.outcome(definition, called, 'FROM parts GROUP BY x / 10') outcome
WHERE called NOT LIKE '%WITHIN%';
SELECT is(array_agg(wrong) FILTER (WHERE wrong <> ''), NULL, format('%s mixtures whose states are combined', count(*)))
FROM combined WHERE outcome <> '';

-- And between processes.
SET LOCAL max_parallel_workers_per_gather = 1;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
ALTER TABLE parts_1 SET (parallel_workers = 1);
SELECT pg_temp.plan_has('SELECT sum(x::bigint) FROM parts_1', 'Gather', 'Partial', 'Finalize');
CREATE TABLE sent AS
SELECT pg_temp.judge(what, transition OR final OR parallel AND (combine OR serialize), outcome) AS wrong, outcome
FROM mixture, pg_temp.outcome(definition, called, 'FROM parts_1') outcome
WHERE parallel AND called NOT LIKE '%WITHIN%'
    AND (NOT (transition OR final) OR what ~ '^(sum|avg)|(sum|avg) [01]*$|bloom.*bloom');
SELECT is(array_agg(wrong) FILTER (WHERE wrong <> ''), NULL, format('%s mixtures whose states are sent', count(*)))
FROM sent WHERE outcome <> '';

-- Aggregates with the same transition function share one state: what refuses must
-- look at all of them, not only at the first.
CREATE AGGREGATE mixtures.foreign_final (anynonarray) (SFUNC = bloom_agg_add, STYPE = internal,
    FINALFUNC = array_agg_finalfn, FINALFUNC_EXTRA);
SELECT throws_ok(format('SELECT %s FROM input', calls), '42P13', NULL,
    'a state is not shared with strangers: ' || calls)
FROM (VALUES ('bloom_agg(x), mixtures.foreign_final(x)'), ('mixtures.foreign_final(x), bloom_agg(x)'),
    ('bloom_agg(x) OVER (), mixtures.foreign_final(x) OVER ()')) v (calls);
SELECT ok((SELECT bloom_agg(x) FROM input) @> ALL (SELECT x FROM input) AND # bloom_agg(x, 1000) = 40 AND sum(x) = 820,
    'other aggregates in the same query do no harm') FROM input;
-- A function that has settings of its own is still ours.
ALTER FUNCTION bloom_agg_final(internal) SET work_mem = '1MB';
SELECT ok(# bloom_agg(x, 1000) = 40, 'a support function may have settings') FROM input;

SELECT * FROM finish();
ROLLBACK;
