-- An untyped argument means what it meant in 1.0.0, which had no counters: a filter,
-- also where a function, aggregate or operator has a form for each type.
BEGIN;
SET LOCAL client_min_messages = warning;
SELECT * FROM no_plan();

-- As drivers do, with parameters whose types the server infers.
PREPARE add AS SELECT bloom_add($1, 5);
PREPARE add_untyped AS SELECT bloom_add($1, $2);
PREPARE add_literal AS SELECT bloom_add($1, 'a');
PREPARE contains AS SELECT bloom_contains($1, 5);
PREPARE contains_untyped AS SELECT bloom_contains($1, $2);
PREPARE contained AS SELECT bloom_contained(5, $1);
PREPARE fpp AS SELECT bloom_fpp($1);
PREPARE info AS SELECT (bloom_info($1)).*;
PREPARE cardinality AS SELECT bloom_cardinality($1);
PREPARE "union" AS SELECT bloom_union($1, $2);
PREPARE union_of_one AS SELECT bloom_union($1, bloom_create(1));
PREPARE intersection AS SELECT bloom_intersection($1, $2);
PREPARE to_bytea AS SELECT bloom_to_bytea($1);
PREPARE union_agg AS SELECT bloom_union_agg($1);
PREPARE eq AS SELECT bloom_eq($1, $2);
PREPARE hash AS SELECT bloom_hash($1);
PREPARE operator_of_one AS SELECT $1 | bloom_create(1);
SELECT is(parameter_types, CASE name
		WHEN 'add_untyped' THEN '{bloomfilter,text}' WHEN 'contains_untyped' THEN '{bloomfilter,text}'
		WHEN 'union' THEN '{bloomfilter,bloomfilter}' WHEN 'intersection' THEN '{bloomfilter,bloomfilter}'
		WHEN 'eq' THEN '{bloomfilter,bloomfilter}' ELSE '{bloomfilter}' END::regtype[], statement)
FROM pg_prepared_statements ORDER BY name;
PREPARE counter_add AS SELECT bloom_add($1, 5, 2);
PREPARE counter_operator AS SELECT $1 | bloom_create_counter(1);
SELECT is(parameter_types, '{bloomcounter}', statement)
FROM pg_prepared_statements WHERE name LIKE 'counter%' ORDER BY name;
DEALLOCATE ALL;

SELECT is(bloom_add('\x01000106000000000ad7233c00000000000000000002000000000000', 5), bloom_add(bloom_create(20), 5),
	'a literal is a filter');

-- Every call that 1.0.0 allows, with each argument untyped or not. The parse tree names
-- function, types and casts.
CREATE FUNCTION meaning(expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	tree text;
BEGIN
	EXECUTE 'CREATE TEMP VIEW probe AS SELECT ' || expression || ' AS x';
	SELECT substring(ev_action, ':targetList.*') INTO tree FROM pg_rewrite WHERE ev_class = 'probe'::regclass;
	RAISE SQLSTATE 'PARSD';
EXCEPTION
	WHEN SQLSTATE 'PARSD' THEN RETURN tree;
	WHEN others THEN RETURN SQLSTATE;
END
$$;

DROP EXTENSION bloomtype;
CREATE EXTENSION bloomtype VERSION '1.0.0';
CREATE TEMP VIEW member AS
SELECT classid, objid FROM pg_depend
WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomtype');

-- Lists of arguments, separated by commas.
CREATE FUNCTION arguments(types oid[]) RETURNS SETOF text LANGUAGE sql AS $$
	WITH RECURSIVE lists (list) AS (
		SELECT '{}'::text[]
		UNION ALL
		SELECT list || argument
		FROM lists, unnest(ARRAY['NULL', 'NULL::' || CASE types[1 + cardinality(list)]
			WHEN 'anycompatible'::regtype THEN 'integer' ELSE types[1 + cardinality(list)]::regtype::text END]) argument
		WHERE cardinality(list) < cardinality(types))
	SELECT array_to_string(list, ', ') FROM lists WHERE cardinality(list) = cardinality(types)
$$;
CREATE TEMP TABLE before AS
SELECT expression, meaning(expression) AS tree FROM (
	SELECT format('%s(%s)', proname, arguments((string_to_array(proargtypes::text, ' ')::oid[])[:n]))
	FROM member JOIN pg_proc ON classid = 'pg_proc'::regclass AND objid = oid,
		generate_series(pronargs - pronargdefaults, pronargs::int) n
	WHERE NOT 'internal'::regtype = ANY (proargtypes)
	UNION
	SELECT CASE oprkind WHEN 'l' THEN oprname || ' ' || list ELSE replace(list, ',', ' ' || oprname) END
	FROM member JOIN pg_operator ON classid = 'pg_operator'::regclass AND objid = oid,
		arguments(array_remove(ARRAY[oprleft, oprright], 0::oid)) list) s (expression);
SELECT cmp_ok(count(*) FILTER (WHERE tree ~ 'EXPR|AGGREF' AND expression ~ 'NULL(,|\)|$| )'), '>', 100::bigint,
	'calls with untyped arguments were parsed') FROM before;
ALTER EXTENSION bloomtype UPDATE;
SELECT is(array_agg(expression) FILTER (WHERE meaning(expression) <> tree), NULL,
	'each call means the same in the newest version') FROM before;

-- The test must notice a difference.
CREATE FUNCTION bloom_fpp(text) RETURNS float8 LANGUAGE sql RETURN 1;
SELECT is(array_agg(expression), '{bloom_fpp(NULL)}', 'another form of a function changes the call')
FROM before WHERE meaning(expression) <> tree;

SELECT * FROM finish();
ROLLBACK;
