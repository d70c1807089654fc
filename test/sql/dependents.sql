-- What bloom_dependents() lists; test/t/upgrade.t tries every kind of object.
CREATE TABLE users (id bigint, name text, joined date DEFAULT current_date);
CREATE INDEX users_name_set ON users USING bloomset (name);
CREATE TABLE segments (id int, seen bloomfilter NOT NULL DEFAULT bloom_create(100));
CREATE INDEX segments_seen ON segments USING bloomslices (seen);
CREATE TABLE days (day date, c bloomcounter) PARTITION BY RANGE (day);
CREATE TABLE days_1 PARTITION OF days DEFAULT;
CREATE DOMAIN small AS bloomfilter CHECK ((bloom_info(VALUE)).bits <= 1000);
CREATE TYPE pair AS (id int, f small);
CREATE VIEW seen_seven AS SELECT id FROM segments WHERE seen @> 7;
CREATE MATERIALIZED VIEW fill AS SELECT id, # seen AS n FROM segments;
CREATE FUNCTION holds(f bloomfilter, key int) RETURNS boolean LANGUAGE sql BEGIN ATOMIC SELECT f @> key; END;
SELECT kind, object, effect, statement FROM bloom_dependents() WHERE kind <> 'setting';

-- settings: of all that the server has, those of this test
CREATE ROLE regress_bloom_report;
CREATE ROLE "regress_bloom Odd";
ALTER ROLE regress_bloom_report SET session_preload_libraries = 'bloomtype';
ALTER ROLE regress_bloom_report SET bloomtype.join_filters = on;
ALTER ROLE "regress_bloom Odd" SET session_preload_libraries = 'auto_explain', '$libdir/bloomtype.so', 'a "b", c';
ALTER ROLE "regress_bloom Odd" SET local_preload_libraries = 'bloomtype_like', 'other';
DO $$ BEGIN
	EXECUTE format('ALTER ROLE regress_bloom_report IN DATABASE %I SET session_preload_libraries = bloomtype',
		current_database());
END $$;
SELECT kind, replace(object, 'database ' || quote_ident(current_database()), 'database X') AS object, effect,
	replace(statement, 'DATABASE ' || quote_ident(current_database()), 'DATABASE X') AS statement
FROM bloom_dependents() WHERE object ~ 'regress_bloom';
DO $$
DECLARE
	statement text;
BEGIN
	FOR statement IN SELECT d.statement FROM bloom_dependents() AS d WHERE object ~ 'regress_bloom' LOOP
		EXECUTE statement;
	END LOOP;
END $$;
SELECT setconfig FROM pg_db_role_setting WHERE setrole = '"regress_bloom Odd"'::regrole;
SELECT object FROM bloom_dependents() WHERE object ~ 'regress_bloom';

-- anyone may call it; only some may read the configuration files
SET ROLE regress_bloom_report;
SELECT count(*) FROM bloom_dependents() WHERE kind <> 'setting';
SELECT count(*) FROM bloom_file_settings(NULL);
\set VERBOSITY terse
SELECT count(*) FROM bloom_file_settings(true);
\set VERBOSITY default
RESET ROLE;
SELECT count(*) > 0 AS files FROM bloom_file_settings(true);
DROP ROLE regress_bloom_report, "regress_bloom Odd";
-- the extension may be in any schema
CREATE SCHEMA elsewhere;
ALTER EXTENSION bloomtype SET SCHEMA elsewhere;
SELECT object FROM elsewhere.bloom_dependents() WHERE kind = 'function';
ALTER EXTENSION bloomtype SET SCHEMA public;
DROP FUNCTION holds;
DROP MATERIALIZED VIEW fill;
DROP VIEW seen_seven;
DROP TYPE pair;
DROP DOMAIN small;
DROP TABLE users, segments, days;
DROP SCHEMA elsewhere;
SELECT * FROM bloom_dependents() WHERE kind <> 'setting';
