#!/usr/bin/python3 -B
# needs: the installation of PostgreSQL, to which it adds a version
"""ALTER EXTENSION bloomtype UPDATE, from each earlier version to the newest, at once and version by version.

CREATE EXTENSION runs the same update scripts in an empty database, so an update can only differ where objects are in
use. Objects of every kind that can depend on the extension are made before the update. After it they are there, depend
on the same members and give the same answers. The catalog is that of a new installation: every row that belongs to
the extension, with names in place of OIDs, its comments, its privileges and its dependencies. An ordinary user can
create and update the extension. (version.t holds the scripts of released versions to their digests, and catalog.sql
says what the catalog must be.)

To prove that the test sees mistakes, it changes one thing of each kind in the catalog, and updates to a version "next"
by scripts with a mistake, which it puts beside the installed ones and removes. Everything else happens in transactions
that are rolled back. Connects as libpq does, as a superuser.
"""

import contextlib
import os
import re

from session import psycopg
from tap import clean_up_when_terminated, done, note, ok, part, same, skip

# ---------------------------------------------------------------------------------------------------
# The catalog
# ---------------------------------------------------------------------------------------------------

CATALOGS = [
    "pg_extension", "pg_type", "pg_proc", "pg_aggregate", "pg_operator", "pg_cast", "pg_am", "pg_opfamily", "pg_opclass",
    "pg_amop", "pg_amproc",
]  # fmt: skip

# The extension, its members, and what the server made for a member: array types, and the entries of operator
# families. Objects of users depend on members in other ways.
MEMBERS = """
    WITH RECURSIVE member (classid, objid) AS (
        SELECT tableoid, oid FROM pg_extension WHERE extname = 'bloomtype'
        UNION
        SELECT d.classid, d.objid
        FROM member JOIN pg_depend d ON d.refclassid = member.classid AND d.refobjid = member.objid
        WHERE d.deptype IN ('e', 'i', 'a')
    )"""

IDENTITY = "(pg_identify_object({0}, {1}, 0)).identity"

# What belongs to an object outside its own row.
AROUND = """
    jsonb_build_object(
        'comments', (SELECT jsonb_object_agg(objsubid, description) FROM pg_description
            WHERE classoid = member.classid AND objoid = member.objid),
        'initial privileges', (SELECT jsonb_object_agg(objsubid, ARRAY(SELECT unnest(initprivs)::text ORDER BY 1))
            FROM pg_init_privs WHERE classoid = member.classid AND objoid = member.objid),
        'depends on', ARRAY(SELECT r.type || ' ' || r.identity || ' (' || d.deptype::text || ')'
            FROM pg_depend d, pg_identify_object(refclassid, refobjid, refobjsubid) r
            WHERE d.classid = member.classid AND d.objid = member.objid ORDER BY 1))"""


def columns(db, catalog):
    """Name and type of each column of a catalog, the catalog that its OIDs refer to, and whether it is an array."""
    return db.execute("""
        SELECT attname::text, atttypid::regtype::text, pktable::regclass::text, is_array
        FROM pg_attribute
            LEFT JOIN pg_get_catalog_foreign_keys() ON fktable = attrelid AND fkcols = ARRAY[attname::text]
        WHERE attrelid = %s::regclass AND attnum > 0 AND attname <> 'oid'""", [catalog]).fetchall()  # fmt: skip


def by_name(name, kind, refers_to, is_array):
    """An expression for a column that means the same in every database, or None: the column itself does."""
    if refers_to and is_array:
        identity = IDENTITY.format(f"'{refers_to}'::regclass", "o")
        return f"ARRAY(SELECT {identity} FROM unnest(c.{name}::oid[]) WITH ORDINALITY AS u (o, n) ORDER BY n)"
    if refers_to:
        return IDENTITY.format(f"'{refers_to}'::regclass", f"c.{name}::oid")
    if name == "prosqlbody":
        return "pg_get_function_sqlbody(c.oid)"
    if kind == "pg_node_tree":
        return f"pg_get_expr(c.{name}, 0)"
    if kind == "aclitem[]":
        return f"ARRAY(SELECT unnest(c.{name})::text ORDER BY 1)"
    return None


def catalog_query(db):
    """A query for all that belongs to the extension: catalog, name, and the columns as JSON."""
    queries = []
    for catalog in CATALOGS:
        pairs = [(column[0], by_name(*column)) for column in columns(db, catalog)]
        names = ", ".join(f"'{name}', {expression}" for name, expression in pairs if expression)
        owner, key = ("pg_proc", "aggfnoid") if catalog == "pg_aggregate" else (catalog, "oid")
        queries.append(f"""
            SELECT '{catalog}', {IDENTITY.format("member.classid", "member.objid")},
                to_jsonb(c) - 'oid' || jsonb_build_object({names}) || {AROUND}
            FROM member JOIN {catalog} c ON member.classid = '{owner}'::regclass AND member.objid = c.{key}::oid""")
    return MEMBERS + " UNION ALL ".join(queries)


def catalog_of(db, query):
    db.execute("SET LOCAL search_path = pg_catalog")
    return {(catalog, name): row for catalog, name, row in db.execute(query)}


def differences(got, fresh):
    found = [f"{' '.join(key)} is missing" for key in fresh.keys() - got.keys()]
    found += [f"{' '.join(key)} is not in a new installation" for key in got.keys() - fresh.keys()]
    for key in got.keys() & fresh.keys():
        found += [f"{' '.join(key)}: {column} is {got[key][column]!r}, new {fresh[key][column]!r}"
                  for column in fresh[key] if got[key][column] != fresh[key][column]]  # fmt: skip
    return sorted(found)


def check_the_comparison_itself(db, query):
    """No kind of object is left out, and no column is compared by number."""
    unknown = db.execute(MEMBERS + """
        SELECT DISTINCT classid::regclass::text FROM member WHERE NOT classid::regclass::text = ANY (%s)""",
        [CATALOGS]).fetchall()  # fmt: skip
    same(unknown, [], "the comparison knows every catalog that has rows of the extension")
    kinds = db.execute(MEMBERS + "SELECT DISTINCT typtype::text FROM member JOIN pg_type ON oid = objid").fetchall()
    same(kinds, [("b",)], "all types are base types, which have no rows in other catalogs")
    left = [f"{catalog}.{name}" for catalog in CATALOGS for name, kind, refers_to, _ in columns(db, catalog)
            if re.match("oid|reg", kind) and not refers_to]  # fmt: skip
    same(left, [], "the comparison has a name for every OID")
    same({catalog for catalog, _ in catalog_of(db, query)}, set(CATALOGS), "the extension has rows in each of them")


# ---------------------------------------------------------------------------------------------------
# What depends on the extension: kind, how it is made, and a query about it
# ---------------------------------------------------------------------------------------------------

FILTER_DEPENDENTS = [
    ("table with default",
     "CREATE TABLE kept (id int PRIMARY KEY, f bloomfilter NOT NULL DEFAULT bloom_create(20));"
     "INSERT INTO kept"
     " SELECT g, bloom_agg(i, 20) FROM generate_series(1, 9) AS g, generate_series(g, g + 9) AS i GROUP BY g;"
     "INSERT INTO kept VALUES (10)",
     "SELECT id, f FROM kept ORDER BY id"),
    ("array column", "CREATE TABLE arrays AS SELECT array_agg(f ORDER BY id) AS filters FROM kept",
     "SELECT filters, 5 <@ ANY (filters) FROM arrays"),
    ("btree index", "CREATE UNIQUE INDEX btree ON kept (f)", "SELECT id FROM kept ORDER BY f LIMIT 3"),
    ("hash index", "CREATE INDEX hash ON kept USING hash (f)", "SELECT id FROM kept WHERE f = bloom_create(20)"),
    ("index on an expression", "CREATE INDEX expression ON kept ((# f)) WHERE NOT f @> 5",
     "SELECT id FROM kept WHERE # f > 9 AND NOT f @> 5 ORDER BY id"),
    ("foreign key",
     "CREATE TABLE refers (f bloomfilter REFERENCES kept (f)); INSERT INTO refers SELECT f FROM kept WHERE id < 9",
     "SELECT count(*) FROM refers JOIN kept USING (f)"),
    ("exclusion constraint", "CREATE TABLE excluded (f bloomfilter, EXCLUDE USING hash (f WITH =))",
     "INSERT INTO excluded SELECT f FROM kept ON CONFLICT DO NOTHING RETURNING f"),
    ("view", "CREATE VIEW seen AS SELECT id, f @> 5 AS five, # f AS n FROM kept", "SELECT * FROM seen ORDER BY id"),
    ("view with aggregates",
     "CREATE VIEW united AS"
     " SELECT bloom_union_agg(f) AS u, bloom_intersect_agg(f) AS i, bloom_agg(id, 20) AS a FROM kept",
     "SELECT * FROM united"),
    ("materialized view", "CREATE MATERIALIZED VIEW snapshot AS SELECT id, f::bytea AS bytes FROM kept",
     "SELECT * FROM snapshot ORDER BY id"),
    ("SQL function",
     "CREATE FUNCTION holds(f bloomfilter, v int) RETURNS boolean LANGUAGE sql BEGIN ATOMIC SELECT f @> v; END",
     "SELECT id, holds(f, 7) FROM kept ORDER BY id"),
    ("PL/pgSQL function",
     "CREATE FUNCTION grow(f bloomfilter = bloom_create(20)) RETURNS bloomfilter LANGUAGE plpgsql"
     " AS 'BEGIN RETURN bloom_add(f, 77); END'",
     "SELECT grow(), grow(f) FROM kept ORDER BY id"),
    ("operator", "CREATE OPERATOR ?> (LEFTARG = bloomfilter, RIGHTARG = int, FUNCTION = holds)",
     "SELECT f ?> 7 FROM kept ORDER BY id"),
    ("aggregate", "CREATE AGGREGATE all_of(bloomfilter) (SFUNC = bloom_union, STYPE = bloomfilter)",
     "SELECT all_of(f) FROM kept"),
    ("domain", "CREATE DOMAIN small AS bloomfilter CHECK ((bloom_info(VALUE)).bits <= 1000)",
     "SELECT f::small FROM kept ORDER BY id"),
    ("composite type", "CREATE TYPE pair AS (id int, f bloomfilter);"
     "CREATE TABLE pairs AS SELECT ROW(id, f)::pair AS p FROM kept", "SELECT (p).f FROM pairs ORDER BY (p).id"),
    ("range type", "CREATE TYPE span AS RANGE (SUBTYPE = bloomfilter)",
     "SELECT count(*) FROM kept WHERE f <@ span(bloom_create(20), NULL)"),
    ("check constraint", "ALTER TABLE kept ADD CHECK (bloom_fpp(f) <= 0.5)",
     "INSERT INTO kept VALUES (11, bloom_create(100)) RETURNING f"),
    ("generated column", "ALTER TABLE kept ADD n float8 GENERATED ALWAYS AS (bloom_cardinality(f)) STORED",
     "UPDATE kept SET f = bloom_add(f, 500) WHERE id = 10 RETURNING n"),
    ("table partitioned by hash of a filter",
     "CREATE TABLE by_hash (f bloomfilter) PARTITION BY HASH (f);"
     "CREATE TABLE even PARTITION OF by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 0);"
     "CREATE TABLE odd PARTITION OF by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 1);"
     "INSERT INTO by_hash SELECT f FROM kept",
     "SELECT tableoid::regclass::text, f FROM by_hash ORDER BY f"),
    ("table partitioned by ranges of filters",
     "CREATE TABLE by_range (f bloomfilter) PARTITION BY RANGE (f);"
     "CREATE TABLE lower PARTITION OF by_range FOR VALUES FROM (MINVALUE) TO (bloom_create(20));"
     "CREATE TABLE upper PARTITION OF by_range FOR VALUES FROM (bloom_create(20)) TO (MAXVALUE);"
     "INSERT INTO by_range SELECT f FROM kept",
     "SELECT tableoid::regclass::text, f FROM by_range ORDER BY f"),
    ("row-level security policy", "CREATE POLICY members ON kept USING (f @> 5)",
     "SELECT polname::text, pg_get_expr(polqual, polrelid) FROM pg_policy WHERE polrelid = 'kept'::regclass"),
    ("trigger", "CREATE TRIGGER changed BEFORE UPDATE ON kept FOR EACH ROW WHEN (NEW.f IS DISTINCT FROM OLD.f)"
     " EXECUTE FUNCTION suppress_redundant_updates_trigger()",
     "UPDATE kept SET f = bloom_add(f, 501) WHERE id = 9 RETURNING f"),
    ("rule", "CREATE RULE unknown AS ON INSERT TO refers WHERE NEW.f = bloom_create(0) DO INSTEAD NOTHING",
     "SELECT pg_get_ruledef(oid) FROM pg_rewrite WHERE rulename = 'unknown'"),
    ("statistics", "CREATE STATISTICS numbers ON (bloom_cardinality(f)), (bloom_fpp(f)) FROM kept; ANALYZE kept",
     "SELECT count(*) FROM pg_stats_ext_exprs WHERE statistics_name = 'numbers'"),
    ("prepared statement", "PREPARE five AS SELECT id FROM kept WHERE f @> 5 ORDER BY id", "EXECUTE five"),
]  # fmt: skip

COUNTER_DEPENDENTS = [
    ("table of counters with default",
     "CREATE TABLE counted (id int PRIMARY KEY, c bloomcounter NOT NULL DEFAULT bloom_create_counter(20));"
     "INSERT INTO counted"
     " SELECT g, bloom_counter_agg(i, 20) FROM generate_series(1, 9) AS g, generate_series(g, g + 9) AS i GROUP BY g;"
     "INSERT INTO counted VALUES (10)",
     "SELECT id, c FROM counted ORDER BY id"),
    ("array of counters", "CREATE TABLE counter_arrays AS SELECT array_agg(c ORDER BY id) AS counters FROM counted",
     "SELECT counters, 5 <@ ANY (counters) FROM counter_arrays"),
    ("btree index on counters", "CREATE UNIQUE INDEX counter_btree ON counted (c)",
     "SELECT id FROM counted ORDER BY c LIMIT 3"),
    ("hash index on counters", "CREATE INDEX counter_hash ON counted USING hash (c)",
     "SELECT id FROM counted WHERE c = bloom_create_counter(20)"),
    ("index on an expression of counters",
     "CREATE INDEX counter_expression ON counted (bloom_count(c, 7)) WHERE c @> 7",
     "SELECT id FROM counted WHERE bloom_count(c, 7) >= 1 AND c @> 7 ORDER BY id"),
    ("view of counters",
     "CREATE VIEW operated AS SELECT id, c @> 5 AS five, # c AS n, c + c AS sum, (c + c) - c AS rest, c | c AS greater,"
     " c & c AS lesser, c = c AS same, c::bloomfilter AS f, bloom_at_least(c, 1) AS once FROM counted",
     "SELECT * FROM operated ORDER BY id"),
    ("view with aggregates of counters",
     "CREATE VIEW summed AS"
     " SELECT bloom_sum_agg(c) AS s, bloom_union_agg(c) AS u, bloom_counter_agg(id, 20) AS a,"
     " bloom_level_agg(id, 3, 20) AS l FROM counted",
     "SELECT * FROM summed"),
    ("materialized view of counters", "CREATE MATERIALIZED VIEW counter_bytes AS SELECT id, c::bytea AS b FROM counted",
     "SELECT *, b::bloomcounter FROM counter_bytes ORDER BY id"),
    ("SQL function of counters",
     "CREATE FUNCTION times(c bloomcounter, v int) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT bloom_count(c, v); END",
     "SELECT id, times(c, 7) FROM counted ORDER BY id"),
    ("PL/pgSQL function of counters",
     "CREATE FUNCTION once_more(c bloomcounter = bloom_create_counter(20)) RETURNS bloomcounter LANGUAGE plpgsql"
     " AS 'BEGIN RETURN bloom_remove(bloom_add(c, 77, 2), 77); END'",
     "SELECT once_more(), once_more(c) FROM counted ORDER BY id"),
    ("operator of counters", "CREATE OPERATOR ?# (LEFTARG = bloomcounter, RIGHTARG = int, FUNCTION = times)",
     "SELECT c ?# 7 FROM counted ORDER BY id"),
    ("aggregate of counters", "CREATE AGGREGATE total_of(bloomcounter) (SFUNC = bloom_sum, STYPE = bloomcounter)",
     "SELECT total_of(c) FROM counted"),
    ("cast of counters", "CREATE CAST (bloomcounter AS float8) WITH FUNCTION bloom_total(bloomcounter)",
     "SELECT c::float8 FROM counted ORDER BY id"),
    ("domain over counters", "CREATE DOMAIN small_counter AS bloomcounter"
     " CHECK ((bloom_info(VALUE)).positions <= 1000)",
     "SELECT c::small_counter FROM counted ORDER BY id"),
    ("check constraint on counters", "ALTER TABLE counted ADD CHECK (bloom_fpp(c) <= 0.5)",
     "INSERT INTO counted VALUES (11, bloom_create_counter(100)) RETURNING c"),
    ("column generated from counters",
     "ALTER TABLE counted ADD n float8 GENERATED ALWAYS AS (bloom_cardinality(c)) STORED",
     "UPDATE counted SET c = bloom_add(c, 500) WHERE id = 10 RETURNING n"),
    ("table partitioned by hash of a counter",
     "CREATE TABLE counters_by_hash (c bloomcounter) PARTITION BY HASH (c);"
     "CREATE TABLE even_counters PARTITION OF counters_by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 0);"
     "CREATE TABLE odd_counters PARTITION OF counters_by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 1);"
     "INSERT INTO counters_by_hash SELECT c FROM counted",
     "SELECT tableoid::regclass::text, c FROM counters_by_hash ORDER BY c"),
    ("table partitioned by ranges of counters",
     "CREATE TABLE counters_by_range (c bloomcounter) PARTITION BY RANGE (c);"
     "CREATE TABLE lower_counters PARTITION OF counters_by_range FOR VALUES FROM (MINVALUE)"
     " TO (bloom_create_counter(20));"
     "CREATE TABLE upper_counters PARTITION OF counters_by_range FOR VALUES FROM (bloom_create_counter(20))"
     " TO (MAXVALUE);"
     "INSERT INTO counters_by_range SELECT c FROM counted",
     "SELECT tableoid::regclass::text, c FROM counters_by_range ORDER BY c"),
    ("prepared statement about counters", "PREPARE five_times AS SELECT id FROM counted WHERE bloom_count(c, 5) > 0"
     " ORDER BY id", "EXECUTE five_times"),
]  # fmt: skip

# A column of each type that bloomset has an operator class for.
SETS = {
    "boolean": "true", "bytea": "'a'", "smallint": "1", "integer": "1", "bigint": "1", "real": "1",
    "double precision": "1", "numeric": "1", "text": "'a'", "name": "'a'", "char(3)": "'a'",
    "uuid": "'00000000-0000-0000-0000-000000000000'", "date": "'2026-01-01'", "time": "'12:00'", "timetz": "'12:00+00'",
    "timestamp": "'2026-01-01'", "timestamptz": "'2026-01-01+00'", "interval": "'1 day'", "inet": "'::1'",
    "macaddr": "'08:00:2b:01:02:03'", "macaddr8": "'08:00:2b:01:02:03:04:05'",
}  # fmt: skip
SET_DEPENDENTS = [
    ("bloomset indexes",
     f"CREATE TABLE sets ({', '.join(f'c{n} {t}' for n, t in enumerate(SETS))});"
     f"INSERT INTO sets VALUES ({', '.join(SETS.values())});"
     + "".join(f"CREATE INDEX ON sets USING bloomset (c{n});" for n in range(len(SETS))),
     "SELECT " + ", ".join(f"bloomset_contains('sets', 'c{n}', c{n})" for n in range(len(SETS))) + " FROM sets"),
    ("view of bloomset functions",
     "CREATE VIEW asked AS SELECT bloomset_contains('sets', 'c3', 2) AS two, (bloomset_info('sets_c3_idx')).elements",
     "SELECT * FROM asked"),
]  # fmt: skip

SLICES_DEPENDENTS = [
    ("table of queries", "CREATE TABLE queries AS SELECT g AS id, bloom_query(ARRAY[g, g + 1], 1) AS q FROM generate_series(1, 9) AS g",
     "SELECT id, f <-> q FROM kept JOIN queries USING (id) WHERE f @@ q ORDER BY id"),
    ("array of queries", "CREATE TABLE query_arrays AS SELECT array_agg(q ORDER BY id) AS qs FROM queries",
     "SELECT * FROM query_arrays"),
    ("bloomslices index", "CREATE INDEX slices ON kept USING bloomslices (f)",
     "SELECT id FROM kept WHERE f @> 5 ORDER BY id"),
    ("view of bloomslices functions", "CREATE VIEW sliced AS SELECT bits, hashes FROM bloomslices_info('slices')",
     "SELECT * FROM sliced"),
]  # fmt: skip

# The first version that has what each list depends on.
DEPENDENTS = {"1.0.0": FILTER_DEPENDENTS, "1.1.0": COUNTER_DEPENDENTS, "1.2.0": SET_DEPENDENTS,
              "1.3.0": SLICES_DEPENDENTS}  # fmt: skip


def number(version):
    return [int(part) for part in version.split(".")]


def dependents(version):
    return [dependent for since, these in DEPENDENTS.items() if number(since) <= number(version)
            for dependent in these]  # fmt: skip


ANSWERS_DO_NOT_STAY = "SAVEPOINT answers", "ROLLBACK TO answers"


def create_dependents(db, version):
    db.execute("CREATE SCHEMA mine; SET LOCAL search_path = mine, elsewhere; DEALLOCATE ALL")
    for _, create, _ in dependents(version):
        db.execute(create)


def answers(db, version):
    db.execute(ANSWERS_DO_NOT_STAY[0])
    got = {kind: db.execute(query).fetchall() for kind, _, query in dependents(version)}
    db.execute(ANSWERS_DO_NOT_STAY[1])
    return got


def uses(db):
    """What in schema mine depends on which member."""
    return db.execute(MEMBERS + """
        SELECT pg_describe_object(d.classid, d.objid, d.objsubid), d.deptype::text,
            pg_describe_object(refclassid, refobjid, refobjsubid)
        FROM pg_depend d JOIN member ON d.refclassid = member.classid AND d.refobjid = member.objid
        WHERE (d.classid, d.objid) NOT IN (SELECT classid, objid FROM member) ORDER BY 1, 2, 3""").fetchall()


def unused(db):
    """Types and operator classes that nothing in schema mine depends on."""
    return db.execute(MEMBERS + """
        SELECT pg_describe_object(classid, objid, 0) FROM member
        WHERE classid IN ('pg_type'::regclass, 'pg_opclass'::regclass) AND NOT EXISTS (
            SELECT FROM pg_depend d WHERE d.refclassid = member.classid AND d.refobjid = member.objid
                AND (d.classid, d.objid) NOT IN (SELECT classid, objid FROM member))""").fetchall()


# ---------------------------------------------------------------------------------------------------
# Updates
# ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def rolled_back(db):
    """A transaction that begins without the extension and leaves nothing."""
    with db.transaction(force_rollback=True):
        db.execute("DROP EXTENSION IF EXISTS bloomtype CASCADE; CREATE SCHEMA elsewhere")
        yield


def install(db, version):
    db.execute(f"CREATE EXTENSION bloomtype SCHEMA elsewhere VERSION '{version}'")


def update(db, version):
    db.execute(f"ALTER EXTENSION bloomtype UPDATE TO '{version}'")


def fresh_catalog(db, query, version):
    with rolled_back(db):
        install(db, version)
        return catalog_of(db, query)


def faults_of_update(db, query, path):
    """What is wrong after updates along a path of versions, with objects of every kind in use."""
    first = path[0]
    fresh = fresh_catalog(db, query, path[-1])
    with rolled_back(db):
        try:
            install(db, first)
            create_dependents(db, first)
            before, used = answers(db, first), uses(db)
            faults = [f"nothing depends on {name}" for name, in unused(db)]
            faults += [f"{kind}: no answer before the update" for kind in before if not before[kind]]
            for version in path[1:]:
                update(db, version)
            after = answers(db, first)
            faults += [f"{kind}: {after[kind]} after the update, {before[kind]} before" for kind in before
                       if after[kind] != before[kind]]  # fmt: skip
            faults += [f"{use} before the update, not after" for use in used if use not in uses(db)]
            return faults + differences(catalog_of(db, query), fresh)
        except psycopg.Error as error:
            return [f"error: {error}"]


def check_update(db, query, path):
    same(faults_of_update(db, query, path), [],
         f"{' to '.join(path)}: {len(dependents(path[0]))} kinds of objects, their dependencies, the catalog")


def in_other_schemas(rows):
    """Members that an installation in schema elsewhere puts into another."""
    return [key for key, row in rows.items() for column, value in row.items()
            if column.endswith("namespace") and value != "elsewhere"]  # fmt: skip


def check_schema(db, query, version):
    same(in_other_schemas(fresh_catalog(db, query, version)), [], f"{version}: every object is in the schema asked for")


def check_ordinary_user(db, query, path):
    """The extension is trusted: whoever may create it may update it, also what changes a system catalog."""
    fresh = fresh_catalog(db, query, path[-1])
    with rolled_back(db):
        db.execute("CREATE ROLE bloom_somebody; GRANT ALL ON SCHEMA elsewhere TO bloom_somebody;"
                   f'GRANT CREATE ON DATABASE "{db.info.dbname}" TO bloom_somebody; SET LOCAL ROLE bloom_somebody')
        install(db, path[0])
        for version in path[1:]:
            update(db, version)
        db.execute("RESET ROLE")
        found = [difference for difference in differences(catalog_of(db, query), fresh) if "extowner" not in difference]
        same(found, [], f"{' to '.join(path)} by an ordinary user: the catalog of a superuser's installation")


# ---------------------------------------------------------------------------------------------------
# bloom_dependents(): its statements, in its order, remove all that CASCADE would drop
# ---------------------------------------------------------------------------------------------------

ELSEWHERE = [
    ("foreign key on a filter", "CREATE TABLE \"odd Name\" (\"odd Column\" bloomfilter PRIMARY KEY,"
     " again bloomfilter REFERENCES \"odd Name\", CONSTRAINT \"odd Check\" CHECK (\"odd Column\" = again))"),
    ("default and constraint of other columns",
     "CREATE TABLE sized (n float8 DEFAULT bloom_bytes(10), u float8 CHECK (u < bloom_bytes(9)))"),
    ("domain constraint", "CREATE DOMAIN length AS int CHECK (VALUE < bloom_bytes(10))"),
    ("columns of partitions",
     "CREATE TABLE parts (id int, f bloomfilter CHECK (bloom_fpp(f) < 1)) PARTITION BY RANGE (id);"
     "CREATE TABLE part_1 PARTITION OF parts DEFAULT; CREATE INDEX ON parts USING bloomslices (f);"
     "CREATE INDEX ON parts USING bloomset (id); CREATE TRIGGER parts_trigger BEFORE UPDATE ON parts FOR EACH ROW"
     " WHEN (NEW.f = OLD.f) EXECUTE FUNCTION suppress_redundant_updates_trigger()"),
    ("children", "CREATE TABLE parent (f bloomfilter); CREATE TABLE child (g bloomcounter) INHERITS (parent)"),
    ("table of a type", "CREATE TYPE shape AS (f bloomfilter); CREATE TABLE shapes OF shape"),
    ("foreign table", "CREATE FOREIGN DATA WRAPPER nothing; CREATE SERVER none FOREIGN DATA WRAPPER nothing;"
     "CREATE FOREIGN TABLE far (f bloomfilter, id int) SERVER none"),
    ("column of a domain", "CREATE TABLE small_ones (id int, s small, a small[])"),
    ("view of a view", "CREATE VIEW again AS SELECT five FROM seen; CREATE MATERIALIZED VIEW once AS TABLE again;"
     "CREATE INDEX ON once (five)"),
    ("function that returns a view's row",
     "CREATE FUNCTION first_seen() RETURNS seen LANGUAGE sql BEGIN ATOMIC SELECT * FROM seen LIMIT 1; END"),
    ("operator class", "CREATE OPERATOR CLASS mine FOR TYPE bloomfilter USING hash AS OPERATOR 1 =,"
     " FUNCTION 1 bloom_hash(bloomfilter)"),
    ("access method", "CREATE ACCESS METHOD my_set TYPE INDEX HANDLER bloomset_handler"),
    ("publication", "CREATE TABLE published (id int PRIMARY KEY, f bloomfilter);"
     "CREATE PUBLICATION selected FOR TABLE published (id, f)"),
    ("function that goes with the extension", "CREATE FUNCTION goes() RETURNS int LANGUAGE sql RETURN 1;"
     "ALTER FUNCTION goes() DEPENDS ON EXTENSION bloomtype"),
]  # fmt: skip
KINDS = {
    "access method", "aggregate", "attribute", "cast", "column", "constraint", "default", "function", "index",
    "materialized view", "operator", "operator class", "policy", "publication", "rule", "statistics", "table", "trigger",
    "type", "view",
}  # fmt: skip
# Of an attribute of a type that columns have.
IN_USE = "-- drop the columns of this type, or the extension with CASCADE"


def listed(db):
    return db.execute("SELECT kind, object, effect, statement FROM elsewhere.bloom_dependents() WHERE kind <> 'setting'"
                      ).fetchall()  # fmt: skip


def check_list_of_dependents(db, version):
    with rolled_back(db):
        install(db, version)
        same(listed(db), [], "bloom_dependents() lists nothing if nothing depends on the extension")
        create_dependents(db, version)
        for _, create in ELSEWHERE:
            db.execute(create)
        db.execute("SET LOCAL search_path = mine")
        rows = listed(db)
        same({kind for kind, *_ in rows}, KINDS, f"it lists {len(rows)} objects, of every kind")
        for row in rows:
            note(" | ".join(row))
        failed = []
        for kind, name, _, statement in rows:
            if statement == IN_USE:
                statement = f"DROP TABLE mine.pairs; ALTER TYPE {name.replace('.f', '')} DROP ATTRIBUTE f"
            try:
                with db.transaction():
                    db.execute(statement)
            except psycopg.Error as error:
                failed.append(f"{kind} {name}: {statement}: {error}")
        same(failed, [], "each statement runs in the order of the list")
        same(listed(db), [], "then it lists nothing")
        db.execute("DROP EXTENSION bloomtype")
        ok(True, "then DROP EXTENSION needs no CASCADE")
        same(db.execute("SELECT count(*) FROM parts, sized, published, shapes").fetchone(), (0,),
             "the tables are still there")  # fmt: skip


# ---------------------------------------------------------------------------------------------------
# Differences of the catalog: a change, and what the comparison reports
# ---------------------------------------------------------------------------------------------------


def dropped(what, cascade=""):
    return f"ALTER EXTENSION bloomtype DROP {what}; DROP {what} {cascade}"


def catalog_change(change):
    return f"SET LOCAL allow_system_table_mods = on; {change}"


TWO = r"\(elsewhere.bloomfilter,elsewhere.bloomfilter\)"

CHANGES = [
    ("function", dropped("FUNCTION bloom_jaccard(bloomfilter, bloomfilter)"),
     rf"pg_proc elsewhere.bloom_jaccard{TWO} is missing"),
    ("aggregate", dropped("AGGREGATE bloom_intersect_agg(bloomfilter)", "CASCADE"),
     r"pg_aggregate elsewhere.bloom_intersect_agg\(elsewhere.bloomfilter\) is missing"),
    ("operator", dropped("OPERATOR # (NONE, bloomfilter)", "CASCADE"),
     r"pg_operator elsewhere.#\(NONE,elsewhere.bloomfilter\) is missing"),
    ("cast", dropped("CAST (bloomfilter AS bytea)", "CASCADE"),
     r"pg_cast \(elsewhere.bloomfilter AS .*bytea\) is missing"),
    ("operator class", dropped("OPERATOR CLASS bloomfilter_ops USING hash", "CASCADE"),
     "pg_opclass elsewhere.bloomfilter_ops USING hash is missing"),
    ("operator family", "ALTER EXTENSION bloomtype DROP OPERATOR CLASS bloomfilter_ops USING hash;"
     + dropped("OPERATOR FAMILY bloomfilter_ops USING hash", "CASCADE"),
     "pg_opfamily elsewhere.bloomfilter_ops USING hash is missing"),
    ("type", "ALTER TYPE bloomfilter RENAME TO bloomfilter_old", "pg_type elsewhere.bloomfilter is missing"),
    ("operator of an operator class",
     catalog_change("DELETE FROM pg_amop WHERE amopopr = '<(bloomfilter, bloomfilter)'::regoperator"),
     r"pg_amop operator 1 \(.*\) of elsewhere.bloomfilter_ops USING btree is missing"),
    ("support function of an operator class",
     "ALTER OPERATOR FAMILY bloomfilter_ops USING btree DROP FUNCTION 2 (bloomfilter)",
     r"pg_amproc function 2 \(.*\) of elsewhere.bloomfilter_ops USING btree is missing"),
    ("membership", "ALTER EXTENSION bloomtype DROP FUNCTION bloom_fpp(bloomfilter)",
     r"pg_proc elsewhere.bloom_fpp\(elsewhere.bloomfilter\) is missing"),
    ("removal", "CREATE FUNCTION bloom_old() RETURNS int LANGUAGE sql RETURN 1;"
     "ALTER EXTENSION bloomtype ADD FUNCTION bloom_old()",
     r"pg_proc elsewhere.bloom_old\(\) is not in a new installation"),
    ("dependency",
     catalog_change("DELETE FROM pg_depend WHERE classid = 'pg_cast'::regclass AND refobjid = 'bloomfilter'::regtype"),
     r"pg_cast \(elsewhere.bloomfilter AS .*bytea\): depends on is "),
    ("comment on a function", "COMMENT ON FUNCTION bloom_fpp(bloomfilter) IS NULL",
     r"pg_proc elsewhere.bloom_fpp\(.*\): comments is None"),
    ("comment on the extension", "COMMENT ON EXTENSION bloomtype IS 'x'", "pg_extension bloomtype: comments is "),
    ("C symbol", "CREATE OR REPLACE FUNCTION bloom_fpp(bloomfilter) RETURNS float8 AS"
     " '$libdir/bloomtype', 'bloomfilter_cardinality' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100",
     "pg_proc .*bloom_fpp.*: prosrc is 'bloomfilter_cardinality'"),
    ("default of a parameter", "DO $$ BEGIN EXECUTE replace(pg_get_functiondef("
     "'bloom_create'::regproc), '0.01', '0.02'); END $$",
     "pg_proc .*bloom_create.*: proargdefaults is .0.02, "),
    ("privileges", "REVOKE EXECUTE ON FUNCTION bloom_fpp(bloomfilter) FROM PUBLIC",
     "pg_proc .*bloom_fpp.*: proacl is "),
    ("initial privileges", catalog_change("INSERT INTO pg_init_privs VALUES ('bloomfilter'::regtype,"
     "'pg_type'::regclass, 0, 'e', ARRAY[('=U/' || current_user)::aclitem])"),
     "pg_type elsewhere.bloomfilter: initial privileges is "),
    ("owner", "CREATE ROLE bloom_somebody; ALTER FUNCTION bloom_fpp(bloomfilter) OWNER TO bloom_somebody",
     "pg_proc .*bloom_fpp.*: proowner is 'bloom_somebody'"),
    ("mirror image", catalog_change("UPDATE pg_operator SET oprcom = 0 WHERE oid = '<(bloomfilter, bloomfilter)'::"
     "regoperator"), r"pg_operator elsewhere.<\(.*: oprcom is None"),
    ("state space of an aggregate", catalog_change("UPDATE pg_aggregate SET aggtransspace = 1 WHERE aggfnoid = "
     "'bloom_union_agg(bloomfilter)'::regprocedure"), "pg_aggregate .*bloom_union_agg.*: aggtransspace is 1"),
    ("preferred type", catalog_change("UPDATE pg_type SET typispreferred = false WHERE oid = 'bloomfilter'::regtype"),
     "pg_type elsewhere.bloomfilter: typispreferred is False"),
]  # fmt: skip


def reports(found, pattern):
    return any(re.match(pattern, fault) for fault in found)


def check_comparison(db, query, version):
    fresh = fresh_catalog(db, query, version)
    for name, change, pattern in CHANGES:
        with rolled_back(db):
            install(db, version)
            db.execute("SET LOCAL search_path = elsewhere")
            db.execute(change)
            found = differences(catalog_of(db, query), fresh)
            ok(reports(found, pattern), f"the comparison reports a changed {name}", *found)


# ---------------------------------------------------------------------------------------------------
# Update scripts to a version "next" that work in an empty database: what the test reports of each
# ---------------------------------------------------------------------------------------------------

FPP = ("CREATE FUNCTION bloom_fpp(bloomfilter) RETURNS float8 AS 'MODULE_PATHNAME', 'bloomfilter_fpp'"
       " LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;")  # fmt: skip

SCRIPTS = [
    ("no mistake", "CREATE FUNCTION bloom_more() RETURNS int LANGUAGE sql IMMUTABLE RETURN 2;", None),
    ("function that is dropped and created again", f"DROP FUNCTION bloom_fpp(bloomfilter); {FPP}",
     "error: cannot drop function .*bloom_fpp.* because other objects depend on it"),
    ("function that is dropped with what uses it", f"DROP FUNCTION bloom_fpp(bloomfilter) CASCADE; {FPP}",
     r"\('constraint kept_f_check .* before the update, not after"),
    ("operator that is dropped with what uses it", "DROP OPERATOR # (NONE, bloomfilter) CASCADE;",
     "error: operator does not exist: # "),
    ("function that answers otherwise", "CREATE OR REPLACE FUNCTION bloom_cardinality(bloomfilter) RETURNS float8"
     " AS 'MODULE_PATHNAME', 'bloomfilter_fpp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;",
     "generated column: .* after the update, "),
    ("change that depends on what is in use", "DO $$ BEGIN IF to_regclass('mine.kept') IS NULL THEN"
     " ALTER FUNCTION bloom_fpp(bloomfilter) COST 7; END IF; END $$;", "pg_proc .*bloom_fpp.*: procost is 100"),
    ("setting that outlives the script", "SET search_path = public;", "error: .* does not exist"),
]  # fmt: skip


def check_mistakes(db, query, first, newest):
    share = db.execute("SELECT setting FROM pg_config WHERE name = 'SHAREDIR'").fetchone()[0]
    path = os.path.join(share, "extension", f"bloomtype--{newest}--next.sql")
    if not os.access(os.path.dirname(path), os.W_OK):
        skip("updates to a version next", "the server's directory of extensions cannot be written to")
        return
    try:
        for name, script, pattern in SCRIPTS:
            with open(path, "w", encoding="utf-8") as file:
                file.write(script)
            os.chmod(path, 0o644)
            faults = faults_of_update(db, query, [first, "next"])
            ok(reports(faults, pattern) if pattern else not faults, f"{first} to next: {name}", *faults)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)


# ---------------------------------------------------------------------------------------------------


def versions(db):
    """The installed versions that can be created, oldest first."""
    found = db.execute("SELECT version FROM pg_available_extension_versions WHERE name = 'bloomtype'")
    return sorted((row[0] for row in found), key=number)


def main():
    clean_up_when_terminated()
    with psycopg.connect(autocommit=True) as db:
        db.add_notice_handler(lambda _: None)
        query = catalog_query(db)
        there = versions(db)
        note(f"installed: {', '.join(there)}")
        same(db.execute("SELECT default_version FROM pg_available_extensions WHERE name = 'bloomtype'").fetchone()[0],
             there[-1], "the newest version is the default")  # fmt: skip
        part(check_the_comparison_itself, db, query)
        part(check_schema, db, query, there[-1])
        part(check_ordinary_user, db, query, [there[-1]])
        for first, *later in (there[start:] for start in range(len(there) - 1)):
            part(check_ordinary_user, db, query, [first, later[-1]])
            part(check_update, db, query, [first, later[-1]])
            if len(later) > 1:
                part(check_update, db, query, [first, *later])
        part(check_list_of_dependents, db, there[-1])
        part(check_comparison, db, query, there[-1])
        part(check_mistakes, db, query, there[0], there[-1])
    done()


main()
