-- The extension does not change queries without its types. Our operators share names
-- with others, and an untyped literal fits any of them. So this test parses every
-- form of such a query without the extension, then with it, and compares the parse
-- trees.
BEGIN;
SET LOCAL client_min_messages = warning;
SELECT * FROM no_plan();

CREATE TEMP VIEW member AS
SELECT classid, objid FROM pg_depend
WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomtype');

-- If all types are known, our operators and functions are no candidates without a filter or counter.
SELECT is(array_agg(oid::regoperator), NULL, 'every operator has a type of the extension on one side')
FROM member JOIN pg_operator ON classid = 'pg_operator'::regclass AND objid = oid
WHERE NOT '{bloomfilter,bloomcounter}'::regtype[] && ARRAY[oprleft, oprright]::regtype[];

CREATE TEMP TABLE functions AS
SELECT DISTINCT proname FROM member JOIN pg_proc ON classid = 'pg_proc'::regclass AND objid = oid;
CREATE TEMP TABLE operators AS
SELECT DISTINCT oprname, oprkind FROM member JOIN pg_operator ON classid = 'pg_operator'::regclass AND objid = oid;
DROP EXTENSION bloomtype;
SELECT is(array_agg(oid::regprocedure), NULL, 'no function shares its name with others')
FROM functions JOIN pg_proc USING (proname);

CREATE DOMAIN whole AS integer;
CREATE DOMAIN network AS inet;
CREATE DOMAIN tags AS text[];
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE pair AS (a integer, b text);
CREATE TYPE textrange AS RANGE (subtype = text);

-- Every type that a column can have, except the row types of relations.
CREATE TEMP VIEW typed AS
SELECT 'NULL::' || t.oid::regtype AS literal
FROM pg_type t LEFT JOIN pg_type element ON element.typarray = t.oid
LEFT JOIN pg_class ON pg_class.oid IN (t.typrelid, element.typrelid)
WHERE t.typtype <> 'p' AND (relkind IS NULL OR relkind = 'c');

CREATE TEMP VIEW forms AS
SELECT oprname AS name, format(form, oprname, literal) AS expression
FROM operators, typed, unnest(CASE oprkind
	WHEN 'b' THEN ARRAY['%2$s %1$s NULL', 'NULL %1$s %2$s', '%2$s %1$s ANY (NULL)', 'NULL %1$s ANY (ARRAY[%2$s])']
	ELSE ARRAY['%1$s %2$s'] END) AS form
UNION ALL
SELECT oprname, CASE oprkind WHEN 'b' THEN 'NULL ' ELSE '' END || oprname || ' NULL' FROM operators;

-- The parse tree, which names operator, types and casts, or the SQLSTATE. The error
-- undoes the view.
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

CREATE TEMP TABLE core AS SELECT name, expression, meaning(expression) AS without FROM forms;
SELECT cmp_ok(count(*) FILTER (WHERE without ~ 'OPEXPR'), '>', 1000::bigint, 'queries that use operators were parsed')
FROM core;
CREATE EXTENSION bloomtype;
-- Without the operator (undefined_function) there is no query to change.
SELECT is(array_agg(expression ORDER BY expression) FILTER (WHERE meaning(expression) <> without AND without <> '42883'), NULL,
	name || ' leaves the queries of other types alone')
FROM core GROUP BY name ORDER BY name;

-- The test must notice a difference: only point has this infix operator.
CREATE OPERATOR ?- (LEFTARG = bloomfilter, RIGHTARG = bloomfilter, FUNCTION = bloom_superset);
SELECT is(meaning('NULL ?- NULL'), '42725', 'a second operator of a name makes untyped literals ambiguous');
DROP EXTENSION bloomtype CASCADE;

-- The same with extensions that have operators of these names.
SELECT format('CREATE EXTENSION %I', name) FROM pg_available_extensions
WHERE name IN ('citext', 'cube', 'hstore', 'intarray', 'isn', 'ltree', 'pg_trgm', 'seg') \gexec
CREATE TEMP TABLE contrib AS SELECT name, expression, meaning(expression) AS without FROM forms;
CREATE EXTENSION bloomtype;
SELECT is(array_agg(expression ORDER BY expression) FILTER (WHERE meaning(expression) <> without AND without <> '42883'), NULL,
	name || ' leaves the queries of other extensions alone')
FROM contrib GROUP BY name ORDER BY name;

SELECT * FROM finish();
ROLLBACK;
