-- Who may ask a bloomset: those who may read the column, and whom no row security applies to.
BEGIN;
SET LOCAL client_min_messages = warning;
SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SELECT * FROM no_plan();

\ir lib/answer.sql
CREATE FUNCTION pg_temp.answer_as(role name, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', role);
    EXECUTE query INTO result;
    RESET ROLE;
    RETURN result;
EXCEPTION WHEN others THEN
    RETURN SQLSTATE;
END
$$;

CREATE ROLE bloomset_owner;
CREATE ROLE bloomset_reader;
CREATE ROLE bloomset_column_reader;
CREATE ROLE bloomset_stranger;
CREATE ROLE bloomset_bypass BYPASSRLS;
CREATE TABLE secret (name text, salary int) PARTITION BY RANGE (salary);
CREATE TABLE secret_1 PARTITION OF secret FOR VALUES FROM (0) TO (1000);
CREATE INDEX secret_name ON secret USING bloomset (name) WITH (false_positive_rate = 1e-7);
CREATE INDEX secret_salary ON secret USING bloomset (salary) WITH (false_positive_rate = 1e-7);
CREATE INDEX secret_lower ON secret USING bloomset (lower(name)) WITH (false_positive_rate = 1e-7);
INSERT INTO secret SELECT 'name' || i, i FROM generate_series(1, 100) i;
ALTER TABLE secret OWNER TO bloomset_owner;
ALTER TABLE secret_1 OWNER TO bloomset_owner;
GRANT SELECT ON secret TO bloomset_reader, bloomset_bypass;
GRANT SELECT (name) ON secret TO bloomset_column_reader;

CREATE TABLE request (n serial, query text, of_name bool);
INSERT INTO request (query, of_name) VALUES
    ('SELECT bloomset_contains(''secret'', ''name'', ''name7'')', true),
    ('SELECT bloomset_contains(''secret_name'', ''name7'')', true),
    ('SELECT count(*) = 1 FROM bloomset_partitions(''secret'', ''name'', ''name7'')', true),
    ('SELECT count(*) > 0 FROM bloomset_filters(''secret'', ''name'')', true),
    ('SELECT bloomset_contains(''secret'', ''salary'', 7)', false),
    ('SELECT bloomset_contains(''secret_salary'', 7)', false),
    ('SELECT count(*) = 1 FROM bloomset_partitions(''secret'', ''salary'', 7)', false),
    ('SELECT count(*) > 0 FROM bloomset_filters(''secret'', ''salary'')', false),
    ('SELECT bloomset_contains(''secret_lower'', ''name7'')', false),
    ('SELECT count(*) = 1 FROM bloomset_find(NULL::secret, ''name'', ''name7'')', false),
    ('SELECT array_agg(n) = ''{name777}'' FROM bloomset_new(''secret'', ''name'', ''{name7,name777}''::text[]) n', true),
    ('SELECT array_agg(n) = ''{777}'' FROM bloomset_new(''secret'', ''salary'', ''{7,777}''::int[]) n', false),
    ('SELECT min(generations) > 0 FROM bloomset_info(''secret'', ''name'')', true),
    ('SELECT min(generations) > 0 FROM bloomset_info(''secret'', ''salary'')', false),
    ('SELECT generations > 0 FROM bloomset_info(''secret_name'')', true),
    ('SELECT generations > 0 FROM bloomset_info(''secret_salary'')', false);

-- SELECT

SELECT unnest(ARRAY[
    is(pg_temp.answer_as('bloomset_stranger', query), '42501', 'no SELECT: ' || query),
    is(pg_temp.answer_as('bloomset_reader', query), 'true', 'SELECT on the table: ' || query),
    is(pg_temp.answer_as('bloomset_owner', query), 'true', 'the owner: ' || query),
    is(pg_temp.answer_as('bloomset_column_reader', query), CASE WHEN of_name THEN 'true' ELSE '42501' END,
        'SELECT on a column: ' || query)])
FROM request ORDER BY n;
SELECT is(pg_temp.answer_as('bloomset_reader', 'SELECT bloomset_contains(''secret_1'', ''name'', ''name7'')'), '42501',
    'SELECT on the parent is none on the partition');
SELECT is(pg_temp.answer_as('bloomset_stranger', 'SELECT bloomset_contains(''secret'', ''name'', NULL)'), NULL,
    'NULL tells nothing');
-- An error must not tell who lacks SELECT which columns and sets there are.
SELECT is(pg_temp.answer_as('bloomset_stranger', 'SELECT bloomset_contains(''secret'', ''name'', 7)'), '42501',
    'no SELECT comes before the wrong class');

-- Row security

ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secret USING (name = current_user);
SELECT unnest(ARRAY[
    is(pg_temp.answer_as('bloomset_reader', query), '42501', 'row security: ' || query),
    is(pg_temp.answer_as('bloomset_column_reader', query), '42501', 'row security, one column: ' || query),
    is(pg_temp.answer_as('bloomset_bypass', query), 'true', 'BYPASSRLS: ' || query),
    is(pg_temp.answer_as('bloomset_owner', query), 'true', 'row security and the owner: ' || query)])
FROM request WHERE query !~ 'info' ORDER BY n;
ALTER TABLE secret FORCE ROW LEVEL SECURITY;
SELECT unnest(ARRAY[
    is(pg_temp.answer_as('bloomset_owner', query), '42501', 'row security that is forced: ' || query),
    is(pg_temp.answer(query), 'true', 'but not on superusers: ' || query)])
FROM request WHERE query !~ 'info' ORDER BY n;
ALTER TABLE secret NO FORCE ROW LEVEL SECURITY;
ALTER TABLE secret DISABLE ROW LEVEL SECURITY;
-- As in queries, that of the named table counts.
ALTER TABLE secret_1 ENABLE ROW LEVEL SECURITY;
SELECT is(pg_temp.answer_as('bloomset_reader', query), 'true', 'row security of a partition: ' || query)
FROM request ORDER BY n;
ALTER TABLE secret_1 FORCE ROW LEVEL SECURITY;
SELECT is(pg_temp.answer_as(role, query), 'true', 'and if it is forced, ' || role || ': ' || query)
FROM request, unnest('{bloomset_reader,bloomset_owner}'::name[]) role ORDER BY n;
ALTER TABLE secret_1 NO FORCE ROW LEVEL SECURITY;
ALTER TABLE secret_1 DISABLE ROW LEVEL SECURITY;
-- Functions in a partition's constraints, as in its indexes, are called as in a query: not as its owner.
CREATE FUNCTION who() RETURNS integer LANGUAGE plpgsql IMMUTABLE AS
    $$ BEGIN PERFORM set_config('test.who', current_user, false); RETURN 1; END $$;
ALTER TABLE secret_1 ADD CONSTRAINT who CHECK (salary >= who());
SET LOCAL constraint_exclusion = on;
CREATE FUNCTION pg_temp.called_as(role name, query text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('test.who', '', false), pg_temp.answer_as(role, query);
    RETURN current_setting('test.who');
END $$;
SELECT is(pg_temp.called_as('bloomset_reader', query), 'bloomset_reader', 'a constraint is evaluated as the caller: ' || query)
FROM request WHERE query ~ '_find' ORDER BY n;
RESET constraint_exclusion;
ALTER TABLE secret_1 DROP CONSTRAINT who;
-- As in queries, no privileges on partitions are needed: foreign ones, and in schemas that the caller may not use.
CREATE SCHEMA bloomset_hidden;
ALTER TABLE secret_1 SET SCHEMA bloomset_hidden;
SELECT is(pg_temp.answer_as('bloomset_reader', query), 'true', 'a partition in a hidden schema: ' || query) FROM request
WHERE query ~ '_(find|new)' ORDER BY n;
ALTER TABLE bloomset_hidden.secret_1 SET SCHEMA public;
CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
DO $$
DECLARE
    file text := current_setting('data_directory') || '/bloomset_permissions.csv';
BEGIN
    EXECUTE format('COPY (SELECT ''name7'', 5000) TO %L CSV', file);
    EXECUTE format('CREATE FOREIGN TABLE secret_f PARTITION OF secret FOR VALUES FROM (5000) TO (6000)
        SERVER files OPTIONS (filename %L, format ''csv'')', file);
END
$$;
SELECT is(pg_temp.answer_as('bloomset_reader', replace(query, '= 1 ', '= 2 ')), 'true', 'a foreign partition: ' || query)
FROM request WHERE query ~ '_(find|new)' ORDER BY n;
DROP FOREIGN TABLE secret_f;

-- One call, while rights and roles change

-- The function is made anew, since an error in an expression ends what PL/pgSQL keeps of it.
CREATE FUNCTION pg_temp.asked_after(changes text[], role name) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    change text;
    answers text[];
BEGIN
    CREATE OR REPLACE FUNCTION pg_temp.ask() RETURNS text LANGUAGE plpgsql AS
    'BEGIN RETURN bloomset_contains(''secret'', ''name'', ''name7'')::text; END';
    FOREACH change IN ARRAY changes LOOP
        EXECUTE change;
        BEGIN
            EXECUTE format('SET LOCAL ROLE %I', role);
            answers := answers || pg_temp.ask();
            RESET ROLE;
        EXCEPTION WHEN insufficient_privilege THEN
            answers := answers || SQLSTATE::text;
        END;
    END LOOP;
    RETURN answers;
END
$$;
CREATE ROLE bloomset_group;
CREATE ROLE bloomset_member IN ROLE bloomset_group;
CREATE ROLE bloomset_superuser SUPERUSER;
GRANT SELECT ON secret TO bloomset_group;
SELECT is(pg_temp.asked_after(ARRAY['SELECT', 'SELECT', change, undo], role), '{true,true,42501,true}', change)
FROM (VALUES
    (1, 'bloomset_reader', 'REVOKE SELECT ON secret FROM bloomset_reader', 'GRANT SELECT ON secret TO bloomset_reader'),
    (2, 'bloomset_reader', 'ALTER TABLE secret ENABLE ROW LEVEL SECURITY', 'ALTER TABLE secret DISABLE ROW LEVEL SECURITY'),
    (3, 'bloomset_column_reader', 'REVOKE SELECT (name) ON secret FROM bloomset_column_reader',
        'GRANT SELECT (name) ON secret TO bloomset_column_reader'),
    (4, 'bloomset_owner', 'REVOKE SELECT ON secret FROM bloomset_owner', 'GRANT SELECT ON secret TO bloomset_owner'),
    (5, 'bloomset_owner', 'ALTER TABLE secret ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY',
        'ALTER TABLE secret DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY'),
    (6, 'bloomset_member', 'REVOKE SELECT ON secret FROM bloomset_group', 'GRANT SELECT ON secret TO bloomset_group'),
    (7, 'bloomset_member', 'REVOKE bloomset_group FROM bloomset_member', 'GRANT bloomset_group TO bloomset_member'),
    (8, 'bloomset_superuser', 'ALTER ROLE bloomset_superuser NOSUPERUSER', 'ALTER ROLE bloomset_superuser SUPERUSER'))
    v (n, role, change, undo)
ORDER BY n;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
SELECT is(pg_temp.asked_after(ARRAY['SELECT', 'SELECT', 'ALTER ROLE bloomset_bypass NOBYPASSRLS',
    'ALTER ROLE bloomset_bypass BYPASSRLS'], 'bloomset_bypass'), '{true,true,42501,true}', 'NOBYPASSRLS');
ALTER TABLE secret DISABLE ROW LEVEL SECURITY;
CREATE FUNCTION pg_temp.asked_by(roles name[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    role name;
    answers text[];
BEGIN
    FOREACH role IN ARRAY roles LOOP
        EXECUTE format('SET LOCAL ROLE %I', role);
        BEGIN
            answers := answers || bloomset_contains('secret', 'name', 'name7')::text;
        EXCEPTION WHEN insufficient_privilege THEN
            answers := answers || SQLSTATE::text;
        END;
        RESET ROLE;
    END LOOP;
    RETURN answers;
END
$$;
SELECT is(pg_temp.asked_by('{bloomset_owner,bloomset_stranger,bloomset_owner,bloomset_bypass,bloomset_reader}'),
    '{true,42501,true,true,true}', 'rights are those of the role that asks');

-- The planner asks only for those who may ask: a plan would tell of rows that a view hides

CREATE TABLE hidden (id int, name text) PARTITION BY RANGE (id);
CREATE TABLE hidden_1 (name text, id int);
ALTER TABLE hidden ATTACH PARTITION hidden_1 FOR VALUES FROM (0) TO (10000);
INSERT INTO hidden SELECT i, 'name' || i FROM generate_series(1000, 5999) i;
CREATE INDEX ON hidden USING bloomset (name) WITH (false_positive_rate = 1e-7);
CREATE INDEX ON hidden_1 USING bloomset (id) WITH (false_positive_rate = 1e-7) WHERE name >= 'name';
ANALYZE hidden;
CREATE VIEW shown WITH (security_barrier) AS SELECT * FROM hidden WHERE right(name, 4) < '1010';
GRANT SELECT ON shown TO bloomset_stranger, bloomset_reader, bloomset_column_reader;
GRANT SELECT ON hidden TO bloomset_reader;
GRANT SELECT (name) ON hidden TO bloomset_column_reader;
-- The plan without the constant, or 'set' if it scans a set.
CREATE FUNCTION pg_temp.plan_for(role name, query text, constant text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan text := pg_temp.answer_as(role, 'EXPLAIN (FORMAT json) ' || replace(query, '$', constant));
BEGIN
    RETURN CASE WHEN plan ~ 'Bitmap Index Scan' THEN 'set' ELSE replace(plan, constant, '') END;
END
$$;
CREATE TABLE shape (n serial, query text, present text, absent text);
INSERT INTO shape (query, present, absent) VALUES
    ('SELECT * FROM shown WHERE name = ''$''', 'name4000', 'name9999'),
    ('SELECT * FROM shown WHERE id = $ AND name >= ''name''', '4000', '9999');
SELECT unnest(ARRAY[
    is(pg_temp.plan_for('bloomset_stranger', query, present), pg_temp.plan_for('bloomset_stranger', query, absent),
        'without SELECT, a hidden value and an absent one have the same plan: ' || query),
    is(pg_temp.plan_for('bloomset_column_reader', query, absent) = 'set', n = 1, 'SELECT on a column: ' || query),
    is(pg_temp.plan_for('bloomset_reader', query, absent), 'set', 'SELECT on the table: ' || query),
    isnt(pg_temp.plan_for('bloomset_reader', query, present), 'set', 'a hidden value: ' || query)])
FROM shape ORDER BY n;
ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
CREATE POLICY first ON hidden USING (id < 1010);
SELECT is(pg_temp.plan_for(role, 'SELECT name FROM hidden WHERE name = ''$''', 'name4000'),
    pg_temp.plan_for(role, 'SELECT name FROM hidden WHERE name = ''$''', 'name9999'), 'row security: ' || role)
FROM unnest('{bloomset_reader,bloomset_column_reader}'::name[]) role;
-- The owner of the view bypasses it, so that the condition has no security level there.
SELECT is(pg_temp.plan_for(role, 'SELECT name FROM shown WHERE name = ''$''', 'name4000'),
    pg_temp.plan_for(role, 'SELECT name FROM shown WHERE name = ''$''', 'name9999'), 'row security, by a view: ' || role)
FROM unnest('{bloomset_reader,bloomset_column_reader}'::name[]) role;

-- bloomset_check, which runs the index's functions as the table's owner

CREATE FUNCTION as_owner(x text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF current_user <> 'bloomset_owner' THEN
        RAISE 'runs as %', current_user;
    END IF;
    RETURN x;
END
$$;
CREATE TABLE owned AS SELECT 'name' || i AS name FROM generate_series(1, 100) i;
ALTER TABLE owned OWNER TO bloomset_owner;
CREATE INDEX owned_name ON owned USING bloomset (as_owner(name)) WHERE as_owner(name) <> 'name1';
SELECT is(has_function_privilege('public', 'bloomset_check(regclass)', 'EXECUTE'), false,
    'bloomset_check is not for everyone');
SELECT is(pg_temp.answer('SELECT bloomset_check(''owned_name'')'), '', 'an expression runs as the owner');
SELECT is(pg_temp.answer_as('bloomset_owner', 'SELECT bloomset_check(''owned_name'')'), '42501', 'nor for owners');
GRANT EXECUTE ON FUNCTION bloomset_check(regclass) TO bloomset_owner;
SELECT is(pg_temp.answer_as('bloomset_owner', 'SELECT bloomset_check(''owned_name'')'), '', 'unless it is granted');
SELECT is(current_user, session_user, 'the role is as it was');

SELECT * FROM finish();
ROLLBACK;
