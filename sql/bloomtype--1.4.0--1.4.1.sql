/* bloomtype: Bloom filters for PostgreSQL */

\echo Use "ALTER EXTENSION bloomtype UPDATE" to load this file. \quit

/*
 * Only plans call this function to some purpose. The name of a filter is a constant: EXPLAIN of PostgreSQL 17 and later
 * has no place for the former parameter. It is untyped there, so the function takes what an untyped constant can become.
 */
DROP FUNCTION bloom_join_filter(internal, VARIADIC "any");
CREATE FUNCTION bloom_join_filter(filter cstring, VARIADIC keys "any") RETURNS boolean
	AS 'MODULE_PATHNAME', 'join_filter_probe' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_join_filter(cstring, "any") IS
	'may a hash join find a match for these keys? False is certain, true is probable';

/*
 * What to remove before the extension. These functions read catalogs only, so they also answer where the library is
 * missing. PostgreSQL resolves the names in their bodies now, and with this search_path writes the schema of every name.
 */

/*
 * Not everyone may call pg_show_all_file_settings(). Who may not passes null, and the body does not run. The views
 * pg_file_settings, pg_settings and pg_roles are not pinned: the extension would depend on them.
 */
CREATE FUNCTION bloom_file_settings(
	permitted boolean,
	OUT name text, OUT setting text, OUT file text, OUT line integer
) RETURNS SETOF record
	LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 10 SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	SELECT f.name, f.setting, f.sourcefile, f.sourceline FROM pg_catalog.pg_show_all_file_settings() AS f
	WHERE permitted;
END;
COMMENT ON FUNCTION bloom_file_settings(boolean) IS
	'settings in configuration files, for bloom_dependents()';

CREATE FUNCTION bloom_dependents(
	OUT kind text, OUT object text, OUT effect text, OUT statement text
) RETURNS SETOF record
	LANGUAGE sql STABLE STRICT PARALLEL SAFE COST 100000 ROWS 100 SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	WITH RECURSIVE
	reads_files (permitted) AS (
		SELECT pg_catalog.has_function_privilege('pg_catalog.pg_show_all_file_settings()', 'EXECUTE')
	),
	/* command: what changes the setting there, or null */
	source (place, name, setting, command, otherwise) AS (
		SELECT CASE WHEN s.setrole = 0 AND s.setdatabase = 0 THEN 'all roles'
				ELSE concat_ws(' in ', 'role ' || quote_ident(r.name), 'database ' || quote_ident(d.datname)) END,
			split_part(c.config, '=', 1), substr(c.config, strpos(c.config, '=') + 1),
			CASE WHEN s.setrole = 0 AND s.setdatabase = 0 THEN 'ALTER ROLE ALL'
				WHEN s.setrole = 0 THEN format('ALTER DATABASE %I', d.datname)
				ELSE concat_ws(' IN DATABASE ', format('ALTER ROLE %I', r.name), quote_ident(d.datname)) END, NULL
		FROM pg_catalog.pg_db_role_setting AS s LEFT JOIN pg_catalog.pg_database AS d ON d.oid = s.setdatabase,
			LATERAL (SELECT CASE WHEN s.setrole <> 0 THEN pg_get_userbyid(s.setrole) END) AS r (name),
			LATERAL unnest(s.setconfig) AS c (config)
		UNION ALL
		SELECT format('%s, line %s', f.file, f.line), lower(f.name), f.setting,
			CASE WHEN f.file LIKE '%/postgresql.auto.conf' THEN 'ALTER SYSTEM' END, '-- edit the file'
		FROM reads_files, LATERAL bloom_file_settings(nullif(reads_files.permitted, false)) AS f
		UNION ALL
		SELECT coalesce(g.sourcefile || ', line ' || g.sourceline, 'the ' || g.source), g.name, g.setting, NULL,
			CASE g.source WHEN 'configuration file' THEN '-- edit the file' ELSE '-- start the server without it' END
		FROM pg_catalog.pg_show_all_settings() AS g, reads_files
		WHERE g.source IN ('command line', 'environment variable')
			OR g.source = 'configuration file' AND NOT reads_files.permitted
	),
	library (place, name, command, otherwise, libraries, others) AS (
		SELECT s.place, s.name, s.command, s.otherwise, count(*) FILTER (WHERE l.ours),
			string_agg(quote_literal(l.file), ', ' ORDER BY l.n) FILTER (WHERE NOT l.ours)
		FROM source AS s, LATERAL (
			SELECT f.file, m.n, f.file ~ '(^|/)bloomtype(\.so|\.dylib|\.dll)?$'
			FROM regexp_matches(s.setting, '"(?:[^"]|"")*"|[^,[:space:]]+', 'g') WITH ORDINALITY AS m (part, n),
				LATERAL (SELECT CASE WHEN m.part[1] LIKE '"%'
					THEN replace(substr(m.part[1], 2, length(m.part[1]) - 2), '""', '"') ELSE m.part[1] END) AS f (file)
		) AS l (file, n, ours)
		WHERE s.name ~ '^(session|local|shared)_preload_libraries$'
		GROUP BY s.place, s.name, s.command, s.otherwise, s.setting
	),
	setting (place, name, effect, statement) AS (
		SELECT l.place, l.name, CASE WHEN l.name LIKE 'shared%' THEN 'without the library, the server does not start'
				ELSE 'without the library, no session starts' END,
			coalesce(l.command || CASE WHEN l.others IS NULL THEN format(' RESET %s', l.name)
				ELSE format(' SET %s = %s', l.name, l.others) END, l.otherwise)
		FROM library AS l WHERE l.libraries > 0
		UNION ALL
		SELECT s.place, s.name, 'without the library, does nothing',
			coalesce(format('%s RESET %s', s.command, s.name), s.otherwise)
		FROM source AS s WHERE s.name LIKE 'bloomtype.%'
	),
	extension (oid) AS (
		SELECT e.oid FROM pg_catalog.pg_extension AS e WHERE e.extname = 'bloomtype'
	),
	/* All that DROP EXTENSION ... CASCADE drops: what depends on it, and what an object that is dropped is a part of. */
	dropped (classid, objid, objsubid) AS (
		SELECT 'pg_catalog.pg_extension'::regclass::oid, e.oid, 0 FROM extension AS e
		UNION
		SELECT n.classid, n.objid, n.objsubid
		FROM dropped AS s, LATERAL (
			SELECT d.classid, d.objid, d.objsubid FROM pg_catalog.pg_depend AS d
			WHERE d.refclassid = s.classid AND d.refobjid = s.objid AND (s.objsubid = 0 OR d.refobjsubid = s.objsubid)
			UNION ALL
			SELECT d.refclassid, d.refobjid, d.refobjsubid FROM pg_catalog.pg_depend AS d
			WHERE d.classid = s.classid AND d.objid = s.objid AND (s.objsubid = 0 OR d.objsubid = s.objsubid)
				AND d.deptype IN ('i', 'e')
		) AS n
	),
	/* Parts of what another statement drops. OR keeps the planner from joining, for which it expects too few rows. */
	parts (classid, objid, objsubid) AS (
		SELECT d.classid, d.objid, d.objsubid
		FROM dropped AS s JOIN pg_catalog.pg_depend AS d
			ON d.classid = s.classid AND d.objid = s.objid AND d.objsubid = s.objsubid
		WHERE d.deptype IN ('i', 'e', 'P', 'S', 'a')
			AND ((d.refclassid, d.refobjid, 0) IN (SELECT w.classid, w.objid, w.objsubid FROM dropped AS w)
				OR (d.deptype <> 'a' OR d.classid = 'pg_catalog.pg_attrdef'::regclass)
					AND (d.refclassid, d.refobjid, d.refobjsubid) IN (SELECT w.classid, w.objid, w.objsubid FROM dropped AS w))
	),
	remaining (classid, objid, objsubid) AS (
		SELECT s.classid, s.objid, s.objsubid FROM dropped AS s
		WHERE NOT (s.classid = 'pg_catalog.pg_extension'::regclass AND s.objid IN (SELECT e.oid FROM extension AS e))
			AND NOT (s.objsubid <> 0 AND (s.classid, s.objid, 0) IN (SELECT w.classid, w.objid, w.objsubid FROM dropped AS w))
			AND (s.classid, s.objid, s.objsubid) NOT IN (SELECT p.classid, p.objid, p.objsubid FROM parts AS p)
	),
	relation (oid, kind, relkind, type, of_type, name) AS NOT MATERIALIZED (
		SELECT c.oid, CASE c.relkind WHEN 'i' THEN 'index' WHEN 'I' THEN 'index' WHEN 'v' THEN 'view'
				WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' WHEN 'c' THEN 'type' WHEN 'S' THEN 'sequence' ELSE 'table' END,
			c.relkind, c.reltype, c.reloftype, c.oid::regclass::text
		FROM pg_catalog.pg_class AS c
	),
	/*
	 * Columns come after what uses them, and types last. Otherwise what was created later comes first, because it may
	 * use what was created earlier. What partitions and children inherit goes with that of the parent, and a column of a
	 * typed table with the attribute of its type.
	 */
	found (step, kind, object, effect, statement, number) AS (
		SELECT 1, c.kind, c.name, CASE WHEN c.relkind IN ('r', 'p', 'm') THEN 'dropped with its rows' ELSE 'dropped' END,
			format('DROP %s %s', upper(c.kind), c.name), r.objid
		FROM remaining AS r JOIN relation AS c ON c.oid = r.objid
		WHERE r.classid = 'pg_catalog.pg_class'::regclass AND r.objsubid = 0
		UNION ALL
		SELECT CASE WHEN a.attgenerated = '' THEN 2 ELSE 1 END, CASE c.kind WHEN 'type' THEN 'attribute' ELSE 'column' END,
			c.name || '.' || quote_ident(a.attname), 'dropped with its values',
			CASE WHEN c.kind <> 'type' THEN format('ALTER %s %s DROP COLUMN %I', upper(c.kind), c.name, a.attname)
				WHEN EXISTS (SELECT FROM pg_catalog.pg_attribute AS u JOIN pg_catalog.pg_type AS t ON t.oid = c.type
					WHERE u.atttypid IN (t.oid, t.typarray)) THEN '-- drop the columns of this type, or the extension with CASCADE'
				ELSE format('ALTER TYPE %s DROP ATTRIBUTE %I', c.name, a.attname)
					|| CASE WHEN c.type IN (SELECT o.of_type FROM relation AS o) THEN ' CASCADE' ELSE '' END END,
			coalesce(d.oid, r.objid)
		FROM remaining AS r JOIN relation AS c ON c.oid = r.objid
			JOIN pg_catalog.pg_attribute AS a ON a.attrelid = r.objid AND a.attnum = r.objsubid
			LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.attgenerated <> ''
		WHERE r.classid = 'pg_catalog.pg_class'::regclass AND r.objsubid <> 0 AND a.attinhcount = 0 AND c.of_type = 0
		UNION ALL
		SELECT 1, 'default', c.name || '.' || quote_ident(a.attname), 'dropped',
			format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', c.name, a.attname), r.objid
		FROM remaining AS r JOIN pg_catalog.pg_attrdef AS d ON d.oid = r.objid JOIN relation AS c ON c.oid = d.adrelid
			JOIN pg_catalog.pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
		WHERE r.classid = 'pg_catalog.pg_attrdef'::regclass
		UNION ALL
		SELECT 1, 'constraint', concat_ws('.', coalesce(c.name, k.contypid::regtype::text), quote_ident(k.conname)), 'dropped',
			format('ALTER %s DROP CONSTRAINT %I', CASE WHEN k.conrelid = 0 THEN 'DOMAIN ' || k.contypid::regtype
				ELSE 'TABLE ' || c.name END, k.conname), r.objid
		FROM remaining AS r JOIN pg_catalog.pg_constraint AS k ON k.oid = r.objid LEFT JOIN relation AS c ON c.oid = k.conrelid
		WHERE r.classid = 'pg_catalog.pg_constraint'::regclass AND k.coninhcount = 0 AND k.conparentid = 0
			AND k.contype <> 'n'
		UNION ALL
		SELECT 1, x.kind, c.name || '.' || quote_ident(x.name), 'dropped', format('DROP %s %I ON %s', upper(x.kind), x.name, c.name),
			r.objid
		FROM remaining AS r JOIN LATERAL (
				SELECT 'trigger', t.tgname, t.tgrelid FROM pg_catalog.pg_trigger AS t
				WHERE r.classid = 'pg_catalog.pg_trigger'::regclass AND t.oid = r.objid AND t.tgparentid = 0
				UNION ALL
				SELECT 'policy', p.polname, p.polrelid FROM pg_catalog.pg_policy AS p
				WHERE r.classid = 'pg_catalog.pg_policy'::regclass AND p.oid = r.objid
				UNION ALL
				SELECT 'rule', w.rulename, w.ev_class FROM pg_catalog.pg_rewrite AS w
				WHERE r.classid = 'pg_catalog.pg_rewrite'::regclass AND w.oid = r.objid
			) AS x (kind, name, relation) ON true JOIN relation AS c ON c.oid = x.relation
		UNION ALL
		SELECT 1, 'publication', format('%I of %s', p.pubname, c.name), 'the table leaves it',
			format('ALTER PUBLICATION %I DROP TABLE %s', p.pubname, c.name), r.objid
		FROM remaining AS r JOIN pg_catalog.pg_publication_rel AS m ON m.oid = r.objid
			JOIN pg_catalog.pg_publication AS p ON p.oid = m.prpubid JOIN relation AS c ON c.oid = m.prrelid
		WHERE r.classid = 'pg_catalog.pg_publication_rel'::regclass
		UNION ALL
		SELECT CASE WHEN i.type = 'extension' THEN 0 WHEN r.classid = 'pg_catalog.pg_type'::regclass THEN 3 ELSE 1 END,
			CASE i.type WHEN 'statistics object' THEN 'statistics' ELSE i.type END, i.identity, 'dropped',
			format('DROP %s %s', CASE WHEN r.classid = 'pg_catalog.pg_proc'::regclass THEN 'ROUTINE'
				WHEN i.type = 'statistics object' THEN 'STATISTICS' WHEN t.typtype = 'd' THEN 'DOMAIN' ELSE upper(i.type) END, i.identity),
			r.objid
		FROM remaining AS r LEFT JOIN pg_catalog.pg_type AS t ON r.classid = 'pg_catalog.pg_type'::regclass AND t.oid = r.objid,
			LATERAL pg_catalog.pg_identify_object(r.classid, r.objid, r.objsubid) AS i
		WHERE r.classid NOT IN ('pg_catalog.pg_class'::regclass, 'pg_catalog.pg_attrdef'::regclass,
				'pg_catalog.pg_constraint'::regclass, 'pg_catalog.pg_trigger'::regclass, 'pg_catalog.pg_policy'::regclass,
				'pg_catalog.pg_rewrite'::regclass, 'pg_catalog.pg_publication_rel'::regclass,
				'pg_catalog.pg_amop'::regclass, 'pg_catalog.pg_amproc'::regclass)
			AND i.identity IS NOT NULL
	)
	SELECT a.kind, a.object, a.effect, a.statement
	FROM (
		SELECT CASE WHEN s.name LIKE 'bloomtype.%' THEN -1 ELSE -2 END, 'setting', s.name || ' of ' || s.place, s.effect,
			s.statement, 0::oid
		FROM setting AS s
		UNION ALL
		SELECT f.step, f.kind, f.object, f.effect, f.statement, f.number FROM found AS f
	) AS a (step, kind, object, effect, statement, number)
	ORDER BY a.step, a.number DESC, a.object COLLATE "C";
END;
COMMENT ON FUNCTION bloom_dependents() IS
	'what to remove before DROP EXTENSION bloomtype and its library: settings, and all that CASCADE would drop';

-- The sets of a column, one by one.

CREATE FUNCTION bloomset_info(
	relation regclass, "column" name,
	OUT partition regclass, OUT index regclass,
	OUT elements bigint, OUT capacity bigint, OUT generations integer, OUT requested_rate real,
	OUT current_rate float8, OUT bytes bigint, OUT reindex_pays boolean
) RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'bloomset_info_of_leaves' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 1000 ROWS 10;
COMMENT ON FUNCTION bloomset_info(regclass, name) IS
	'size, contents and false-positive rate of the bloomset indexes of a column, one row for each table and index';

-- Imports and look-ups by the bloomsets of a table.

CREATE FUNCTION bloomset_new(relation regclass, "column" name, elements anycompatiblearray)
	RETURNS SETOF anycompatible
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 1000 ROWS 1000;
COMMENT ON FUNCTION bloomset_new(regclass, name, anycompatiblearray) IS
	'the distinct elements that no row of a table has, by its bloomset indexes; for imports, which wait for each other';

CREATE FUNCTION bloomset_find("row" anyelement, "column" name, value anycompatible)
	RETURNS SETOF anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000 ROWS 10;
COMMENT ON FUNCTION bloomset_find(anyelement, name, anycompatible) IS
	'the rows of a table that have a value, from the partitions that may have it by their bloomset indexes';
