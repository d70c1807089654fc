-- Prepares the database for server_fuzzer: elements, seeds, and every call that the
-- catalog lists for the extension and a type, with placeholders for arguments.
-- psql variables "vectors_file": the path of test/golden/vectors.json;
-- "subject": the type, bloomfilter or bloomcounter.

\set ON_ERROR_STOP on
\set vectors `cat :'vectors_file'`
SET client_min_messages = warning;
CREATE EXTENSION bloomtype;
CREATE SCHEMA fuzz;
SET search_path = fuzz, public;
CREATE FUNCTION subject() RETURNS regtype LANGUAGE sql IMMUTABLE RETURN :'subject'::regtype;
SELECT subject() = 'bloomcounter'::regtype AS counters \gset

-- Elements: literals of every type that a filter takes, and of some that it refuses.

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);

CREATE TABLE element_type (type regtype PRIMARY KEY, class integer NOT NULL, literals text[]);

INSERT INTO element_type
SELECT t::regtype, c, v || ARRAY(SELECT replace(pattern, '#', i::text) FROM generate_series(10, 49) AS i)
FROM (VALUES
	('int2', 20, '{0,-1,32767,-32768}'::text[], '#'),
	('int4', 20, '{0,-1,2147483647,-2147483648}', '#'),
	('int8', 20, '{0,-1,9223372036854775807,-9223372036854775808}', '#'),
	('positive', 20, '{2147483647}', '#'),
	('float4', 701, '{0,-0,NaN,Infinity,-Infinity,1e-45,3.4e38}', '#.5'),
	('float8', 701, '{0,-0,NaN,Infinity,-Infinity,5e-324,1.7e308}', '#.5'),
	('numeric', 1700, '{0,0.000,NaN,Infinity,-Infinity,1e1000,1e-1000,-12.50}', '#.250'),
	('text', 25, '{"",alice,"東京"," a  "}', 'user#'),
	('varchar', 25, '{"",alice,"東京","a  "}', 'user#'),
	('bpchar', 1042, '{"",alice,"東京","a  "}', 'user#'),
	('name', 25, '{"",alice}', 'user#'),
	('mood', 25, '{sad,ok,happy}', 'ok'),
	('bytea', 17, '{"","\\x00","\\xffffffffffffffffff"}', 'element#'),
	('uuid', 2950, '{00000000-0000-0000-0000-000000000000}', 'ffffffff-ffff-ffff-ffff-ffffffff##'),
	('bool', 16, '{false}', 'true'),
	('date', 1082, '{infinity,-infinity,"4713-01-01 BC",5874897-12-31}', '20#-02-01'),
	('time', 1083, '{00:00,24:00}', '00:00:00.#'),
	('timetz', 1266, '{00:00+15:59,24:00-15:59}', '00:00:00.#+01'),
	('timestamp', 1114, '{infinity,-infinity,"4713-01-01 BC"}', '2000-01-01 00:00:00.#'),
	('timestamptz', 1184, '{infinity,-infinity,"4713-01-02 BC"}', '2000-01-01 00:00:00.#+01'),
	('interval', 1186, '{0,178000000 years,-178000000 years,1 month -30 days}', '# months -#.5 s'),
	('inet', 869, '{::/0,0.0.0.0/0,ffff::1/64}', '10.0.0.#/24'),
	('cidr', 869, '{::/0,0.0.0.0/0}', '10.0.#.0/24'),
	('macaddr', 829, '{ff:ff:ff:ff:ff:ff}', '00:00:00:00:00:#'),
	('macaddr8', 774, '{ff:ff:ff:ff:ff:ff:ff:ff}', '00:00:00:00:00:00:00:#'),
	('json', -1, '{"null",1}', '[#]'),
	('int4[]', -1, '{"{}"}', '{1,#}'),
	('point', -1, '{}', '(1,#)')
) AS type (t, c, v, pattern);

UPDATE element_type SET literals = literals || ARRAY[repeat('x', 100), repeat('Ä', 5000)]
WHERE type IN ('text'::regtype, 'varchar'::regtype);

-- Seeds: the golden vectors, and values that this server makes.

CREATE TABLE seed (id serial, bytes bytea NOT NULL, made_here boolean NOT NULL DEFAULT false);

INSERT INTO seed (bytes)
SELECT bytes
FROM jsonb_path_query(:'vectors', '$.*[*].bytes ? (@.type() == "string")') AS hex, decode(hex #>> '{}', 'hex') AS bytes
WHERE length(bytes) >= 28 AND (get_byte(bytes, 2) & 4 <> 0) = :'counters';

CREATE FUNCTION keep(:subject) RETURNS void LANGUAGE sql AS
	'INSERT INTO fuzz.seed (bytes, made_here) SELECT $1::bytea, true WHERE $1 IS NOT NULL';

-- What makes the seeds of each type of elements, or of integers alone.
\if :counters
CREATE TABLE maker (each_type, own_size, sized) AS VALUES
	(true, 'bloom_counter_agg(v)', 'bloom_counter_agg(v, bloom_create_counter(%s, %s, 4, %L, %s))'),
	(false, 'bloom_level_agg(v, 3)', 'bloom_level_agg(v, 7, bloom_create_counter(%s, %s, 8, %L, %s))'),
	(false, 'bloom_counter_agg(v)', 'bloom_counter_agg(v, bloom_create_counter(%s, %s, 16, %L, %s))');
\else
CREATE TABLE maker (each_type, own_size, sized) AS VALUES
	(true, 'bloom_agg(v)', 'bloom_agg(v, bloom_create(%s, %s, %L, %s))');
\endif
DO $$
DECLARE
	t record;
	m record;
	made text;
	layout text;
	rate float8;
	items bigint;
BEGIN
	FOR t IN SELECT * FROM fuzz.element_type WHERE class > 0 ORDER BY type::text COLLATE "C" LOOP
		EXECUTE format('CREATE TABLE fuzz.%I AS SELECT x::%s AS v FROM fuzz.element_type, unnest(literals) AS x,
				generate_series(1, 5) WHERE type = %s', 'elements_' || t.type::oid, t.type, t.type::oid);
		EXECUTE format('ANALYZE fuzz.%I', 'elements_' || t.type::oid);
		made := format('FROM fuzz.%I', 'elements_' || t.type::oid);
		FOR m IN SELECT * FROM fuzz.maker LOOP
			CONTINUE WHEN t.class <> 20 AND NOT m.each_type;
			EXECUTE format('SELECT fuzz.keep(%s) ', m.own_size) || made;
			FOREACH layout IN ARRAY '{blocked,classic}'::text[] LOOP
				FOREACH rate IN ARRAY '{0.3,0.01,1e-9}'::float8[] LOOP
					FOREACH items IN ARRAY '{1,20,500}'::bigint[] LOOP
						EXECUTE format(format('SELECT fuzz.keep(%s) ', m.sized), items, rate, layout, items / 20) || made;
					END LOOP;
				END LOOP;
			END LOOP;
		END LOOP;
	END LOOP;
END
$$;

\if :counters
-- Larger seeds, from 4 kB to 500 kB: sparse, full, overfull, saturated, empty.
WITH base AS MATERIALIZED (
	SELECT n, fill, bloom_create_counter(n, p, bits, layout, seed) AS c
	FROM (VALUES (800), (8000), (80000)) AS size (n),
		(VALUES (0.01, 4, 'blocked', 0), (0.01, 8, 'classic', 0), (1e-4, 16, 'blocked', -1))
			AS kind (p, bits, layout, seed),
		(VALUES (0.01), (0.5), (2.0)) AS f (fill)
	WHERE n * bits < 500000)
SELECT count(keep((SELECT bloom_counter_agg(i % n, base.c) FROM generate_series(1, (n * fill)::integer) AS i))),
	count(keep((SELECT bloom_level_agg(i, 1 + i % 15, base.c) FROM generate_series(1, (n * fill)::integer) AS i)))
FROM base;
INSERT INTO seed (bytes)
SELECT substr(bytes, 1, 28) || decode(repeat('ff', length(bytes) - 28), 'hex')
FROM seed WHERE length(bytes) BETWEEN 60 AND 200000 AND get_byte(bytes, 2) & 1 = 0 AND id % 7 = 0 ORDER BY id;
SELECT count(keep(bloom_create_counter(n, p, bits, layout, seed)))
FROM (VALUES (1::bigint), (1000), (100000)) AS size (n), (VALUES (0.01), (1e-9)) AS rate (p),
	(VALUES (4), (8), (16)) AS w (bits), (VALUES ('blocked'), ('classic')) AS kind (layout),
	(VALUES (0), (42)) AS s (seed);
SELECT count(keep(c))
FROM (SELECT bloom_sum_agg(NULL) AS c UNION ALL SELECT bloom_counter_agg(NULL::integer)) AS none;
\else
-- Larger seeds, from 1 kB to 1 MB: sparse, full, overfull, saturated, folded, empty.
WITH base AS MATERIALIZED (
	SELECT n, most, fill, bloom_create(n, p, layout, seed) AS f
	FROM (VALUES (800, 1), (8000, 2), (16000, 2), (80000, 2), (840000, 1)) AS size (n, most),
		(VALUES (0.01, 'blocked', 0), (0.01, 'classic', 0), (1e-4, 'blocked', -1)) AS kind (p, layout, seed),
		generate_series(1, 6) AS fill
	WHERE fill IN (1, 6) OR n < 10000)
SELECT count(keep((SELECT bloom_agg(i, base.f) FROM generate_series(1, n * most * fill / 12) AS i))) FROM base;
SELECT count(keep(bloom_fold(bloom_from_bytea(bytes), p)))
FROM (SELECT bytes FROM seed WHERE length(bytes) BETWEEN 2000 AND 200000 AND get_byte(bytes, 1) = 0
	  ORDER BY id LIMIT 40) AS s, (VALUES (0.05), (0.5)) AS rate (p);
INSERT INTO seed (bytes)
SELECT substr(bytes, 1, 28) || decode(repeat('ff', length(bytes) - 28), 'hex')
FROM seed WHERE length(bytes) BETWEEN 36 AND 200000 AND get_byte(bytes, 2) = 0 AND id % 7 = 0 ORDER BY id;
SELECT count(keep(bloom_create(n, p, layout, seed)))
FROM (VALUES (1::bigint), (1000), (100000)) AS size (n), (VALUES (0.01), (1e-9)) AS rate (p),
	(VALUES ('blocked'), ('classic')) AS kind (layout), (VALUES (0), (42)) AS s (seed);
SELECT count(keep(f)) FROM (SELECT bloom_union_agg(NULL) AS f UNION ALL SELECT bloom_agg(NULL::integer)) AS none;
\endif

-- Calls: every function, aggregate, operator and cast of the type.
--
-- In a call @F and @G stand for filters (or counters), @E for an element, @I, @P and @T for a
-- bigint, a float8 and a text, @f and @e for a filter and an element of a row.

CREATE VIEW member AS
SELECT classid, objid FROM pg_depend
WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
	AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomtype');

-- Does a function take the type, or make it of something else than the other one?
-- Functions that take a relation read its indexes, not values.
CREATE FUNCTION concerns_subject(types oid[], result oid) RETURNS boolean LANGUAGE sql RETURN
	CASE WHEN 'regclass'::regtype = ANY (types) THEN false
		WHEN types && '{bloomfilter,bloomcounter}'::regtype[]::oid[] THEN subject() = ANY (types)
		WHEN result IN ('bloomfilter'::regtype, 'bloomcounter'::regtype) THEN result = subject()
		ELSE true END;

-- The expression for argument n of the given types; swapped exchanges the filters.
-- The expected number of elements is large, and mostly has a fraction. Other integers
-- are mostly a number that fits into four bits.
CREATE FUNCTION argument(types oidvector, n integer, aggregate boolean, swapped boolean, names text[] DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	type regtype := types[n];
	filter regtype := fuzz.subject();
	before integer := (SELECT count(*) FROM generate_series(0, n - 1) AS i WHERE types[i] = filter);
	elements boolean := EXISTS (SELECT FROM unnest(types) AS t JOIN pg_type ON pg_type.oid = t
		WHERE typtype = 'p');
BEGIN
	IF type = filter AND aggregate AND NOT elements THEN
		RETURN '@f';
	ELSIF type = filter THEN
		RETURN CASE WHEN (before % 2 = 1) <> swapped THEN '@G' ELSE '@F' END;
	ELSIF type = 'anycompatiblearray'::regtype THEN
		RETURN 'ARRAY[@E, @E]';
	ELSIF type = 'bloomquery'::regtype THEN
		RETURN 'bloom_query(ARRAY[@E, @E], 1)';
	ELSIF type::text LIKE 'any%' THEN
		RETURN CASE WHEN aggregate THEN '@e' ELSE '@E' END;
	ELSIF names[n + 1] = 'expected_items' THEN
		RETURN '@I * @P';
	ELSIF names[n + 1] = 'counter_bits' THEN
		RETURN '(4 << abs(@I % 3)::integer)';
	END IF;
	RETURN CASE type::text
		WHEN 'bigint' THEN '@I'
		WHEN 'integer' THEN '(@I % 18)::integer'
		WHEN 'double precision' THEN '@P'
		WHEN 'real' THEN '@P::real'
		WHEN 'text' THEN '@T'
		WHEN 'bytea' THEN '@F::bytea'
		WHEN 'boolean' THEN '(@I > 0)'
	END;
END
$$;

-- The functions of the type, of aggregates and of estimators are called through the object
-- that they belong to, not by name. Sets of rows that no filter makes depend on the database.
CREATE VIEW uncalled_function AS
SELECT p.oid FROM pg_proc p
WHERE proretset AND NOT subject() = ANY (proargtypes::oid[])
UNION SELECT p.oid FROM pg_proc p
WHERE p.prorettype = 'internal'::regtype OR 'internal'::regtype = ANY (p.proargtypes::oid[])
	OR p.prorettype = 'cstring'::regtype OR 'cstring'::regtype = ANY (p.proargtypes::oid[])
UNION SELECT typsend FROM pg_type
UNION SELECT unnest(ARRAY[aggtransfn, aggfinalfn, aggcombinefn]) FROM pg_aggregate;

CREATE TABLE call (kind text NOT NULL, sql text NOT NULL, result regtype NOT NULL, filters integer NOT NULL);

INSERT INTO call
SELECT CASE prokind WHEN 'a' THEN 'aggregate' ELSE 'scalar' END,
	format('%s(%s)', p.oid::regproc, args), prorettype, filters
FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid,
	LATERAL (SELECT count(*) FROM unnest(proargtypes) AS t WHERE t = subject()) AS n (filters),
	LATERAL generate_series(0, (filters > 1 AND prokind = 'f')::integer) AS swapped,
	LATERAL (SELECT string_agg(coalesce(argument(proargtypes, i, prokind = 'a', swapped = 1, proargnames), '?'), ', ' ORDER BY i)
			 FROM generate_series(0, pronargs - 1) AS i) AS a (args)
WHERE p.oid NOT IN (SELECT oid FROM uncalled_function) AND concerns_subject(proargtypes, prorettype)
UNION ALL
SELECT 'scalar', format('(%s OPERATOR(%s.%s) %s)',
		CASE WHEN oprleft <> 0 THEN argument(format('%s %s', oprleft, oprright)::oidvector, 0, false, swapped = 1) END,
		oprnamespace::regnamespace, oprname,
		CASE WHEN oprleft <> 0 THEN argument(format('%s %s', oprleft, oprright)::oidvector, 1, false, swapped = 1)
			ELSE argument(oprright::text::oidvector, 0, false, false) END), oprresult, 2
FROM member JOIN pg_operator o ON classid = 'pg_operator'::regclass AND objid = o.oid,
	(VALUES (0)) AS as_it_is (swapped)
WHERE concerns_subject(ARRAY[oprleft, oprright], oprresult)
UNION ALL
SELECT 'scalar', format('(%s)::%s', argument(castsource::text::oidvector, 0, false, false),
		casttarget::regtype), casttarget, 1
FROM member JOIN pg_cast c ON classid = 'pg_cast'::regclass AND objid = c.oid
WHERE concerns_subject(ARRAY[castsource], casttarget)
UNION ALL
SELECT 'scalar', '@F::text', 'text'::regtype, 1;

-- Calls that a number or a word can make fail are a kind of their own, with those that
-- take something away from counters, or refuse some of their contents. So are calls
-- without a filter: they compute sizes, which takes long.
UPDATE call SET kind = 'sizing' WHERE sql !~ '@[FGf]' AND sql ~ '@[IPT]';
UPDATE call SET kind = 'number'
WHERE kind = 'scalar' AND sql ~ '@[IPT]|bloom_difference|OPERATOR\(\w+\.-\)|bloom_total';

-- Operators as conditions on a column of elements, which the planner estimates.
INSERT INTO call
SELECT 'predicate', replace(replace(sql, '@E', '@e'), '@G', '@f'), result, filters
FROM call WHERE kind = 'scalar' AND result = 'boolean'::regtype AND sql LIKE '(%';

-- Aggregates as window functions: the state continues after a result.
INSERT INTO call
SELECT 'window', sql || ' OVER w', result, filters FROM call WHERE kind = 'aggregate' AND sql !~ '@[A-Ze]';

DO $$
DECLARE
	unknown text := (SELECT string_agg(sql, ', ') FROM fuzz.call WHERE sql LIKE '%?%');
	missing text := (SELECT string_agg(p.oid::regprocedure::text, ', ')
		FROM fuzz.member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
		WHERE p.oid NOT IN (SELECT oid FROM fuzz.uncalled_function)
			AND fuzz.concerns_subject(proargtypes, prorettype)
			AND NOT EXISTS (SELECT FROM fuzz.call WHERE starts_with(sql, p.oid::regproc || '(')));
BEGIN
	IF unknown IS NOT NULL THEN
		RAISE 'server_fuzzer_setup.sql does not know how to make an argument of %', unknown;
	ELSIF missing IS NOT NULL THEN
		RAISE 'server_fuzzer_setup.sql misses %', missing;
	END IF;
END
$$;

-- Makes the results hashable. A resulting filter must pass the type's validation.
UPDATE call SET sql = CASE
	WHEN result IN ('bloomfilter'::regtype, 'bloomcounter'::regtype) THEN format('(%s)::bytea::%s', sql, result)
	WHEN result::text IN ('boolean', 'integer', 'bigint', 'double precision', 'real', 'text', 'bytea') THEN sql
	ELSE format('(%s)::text', sql) END
WHERE kind <> 'predicate';

-- Tables for accepted filters: out of line, compressed, inline. The padding moves
-- even small filters out of the row.

CREATE TABLE stored (id bigint NOT NULL, how text NOT NULL, f :subject, key text, pad text) PARTITION BY LIST (how);
CREATE UNLOGGED TABLE stored_external PARTITION OF stored FOR VALUES IN ('external')
	WITH (toast_tuple_target = 128, autovacuum_enabled = off);
CREATE UNLOGGED TABLE stored_compressed PARTITION OF stored FOR VALUES IN ('compressed')
	WITH (toast_tuple_target = 128, autovacuum_enabled = off);
CREATE UNLOGGED TABLE stored_inline PARTITION OF stored FOR VALUES IN ('inline')
	WITH (autovacuum_enabled = off);
ALTER TABLE stored_external ALTER f SET STORAGE external, ALTER pad SET STORAGE plain;
ALTER TABLE stored_compressed ALTER f SET STORAGE extended, ALTER pad SET STORAGE plain;
ALTER TABLE stored_inline ALTER f SET STORAGE main;
CREATE INDEX ON stored_external (id);
CREATE INDEX ON stored_compressed (id);
CREATE INDEX ON stored_inline (id);

-- Filters with statistics, for the planner.
CREATE TABLE filters AS SELECT bytes:: :subject AS f
FROM seed, generate_series(1, 1 + id % 3) WHERE made_here AND length(bytes) < 2000;
ANALYZE filters;

CREATE UNLOGGED TABLE copied (f :subject);
