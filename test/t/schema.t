#!/usr/bin/python3 -B
"""The extension in other schemas and moved between them, beside hostile look-alikes, created by users who are not
superusers, dropped, dumped and restored.

Works in databases and with a role that it makes. Needs pg_dump, pg_restore and psql.
"""

import contextlib
import os
import re
import subprocess
import tempfile

from session import Session, psycopg
from tap import clean_up_when_terminated, done, ok, part, same

NAME = f"bloomtype_schema_{os.getpid()}"
ROLE = f"{NAME}_user"


def run(*command, **how):
    return subprocess.run(command, capture_output=True, encoding="utf-8", **how)


def ask(script, database=NAME, role=None):
    """The lines of a script, which is one transaction."""
    with Session(f"SET SESSION AUTHORIZATION {role}" if role else "", dbname=database) as session:
        return session.ask(script)


def refused(script, state, name, **how):
    try:
        ask(script, **how)
        ok(False, name, "no error")
    except psycopg.Error as problem:
        ok(problem.sqlstate in state.split("|"), name, problem)


@contextlib.contextmanager
def fresh_database(suffix="", owner=None):
    name = NAME + suffix
    ask(f"CREATE DATABASE {name} TEMPLATE template0" + (f" OWNER {owner}" if owner else ""), "postgres")
    try:
        yield name
    finally:
        ask(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", "postgres")


def snapshot(database=NAME):
    """All rows of all catalogs, but for statistics."""
    tables = ask("""SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'
        AND NOT relisshared AND relname NOT IN ('pg_class', 'pg_statistic', 'pg_largeobject') ORDER BY 1;""", database)
    tables.append("(SELECT oid, relname, relnamespace, relkind, relowner, relacl, reloptions FROM pg_class)")
    queries = [
        f"SELECT '{table.strip('()')[:30]}', md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM {table} t;"
        for table in tables
    ]
    return ask("\n".join(queries), database)


MEMBERS = """SELECT classid, objid FROM pg_depend, pg_extension e WHERE deptype = 'e' AND extname = 'bloomtype'
    AND refclassid = 'pg_extension'::regclass AND refobjid = e.oid"""

# Objects that the members need besides each other, PostgreSQL and their schema: none.
NEEDED = f"""
WITH member AS ({MEMBERS}), own AS (SELECT * FROM member
    UNION SELECT d.classid, d.objid FROM pg_depend d JOIN member m ON d.refclassid = m.classid AND d.refobjid = m.objid
        AND d.deptype IN ('i', 'a'))
SELECT DISTINCT pg_describe_object(d.refclassid, d.refobjid, 0)
FROM pg_depend d JOIN own ON d.classid = own.classid AND d.objid = own.objid
WHERE deptype <> 'e' AND (refclassid, refobjid) NOT IN (SELECT * FROM own)
    AND (refclassid, refobjid) <> ('pg_namespace'::regclass,
        (SELECT extnamespace FROM pg_extension WHERE extname = 'bloomtype'));
"""

DEFINITIONS = f"""
SET search_path = pg_catalog;
WITH member AS ({MEMBERS})
SELECT regexp_replace(CASE WHEN prokind = 'f' THEN pg_get_functiondef(p.oid)
    ELSE p.oid::regprocedure::text || a::text END, '\n', ' ', 'g')
FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND p.oid = objid
    LEFT JOIN (SELECT aggfnoid, aggtransfn::text, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn,
        aggtranstype::regtype,
        aggtransspace FROM pg_aggregate) a ON a.aggfnoid = p.oid
UNION ALL SELECT concat_ws(' ', o.oid::regoperator, oprcode, oprcom::regoperator, oprnegate::regoperator, oprrest,
    oprjoin, oprcanhash, oprcanmerge)
FROM member JOIN pg_operator o ON classid = 'pg_operator'::regclass AND o.oid = objid
UNION ALL SELECT concat_ws(' ', castsource::regtype, casttarget::regtype, castfunc::regprocedure, castcontext)
FROM member JOIN pg_cast c ON classid = 'pg_cast'::regclass AND c.oid = objid
UNION ALL SELECT concat_ws(' ', t.oid::regtype, typinput, typoutput, typreceive, typsend, typstorage, typalign,
    typelem::regtype)
FROM member JOIN pg_type t ON classid = 'pg_type'::regclass AND t.oid = objid
ORDER BY 1;
"""


def definitions(schema, database=NAME):
    """The members' definitions, as if they were in no schema."""
    plain = [line.replace(quoted(schema) + ".", "").replace(f"{schema}.", "") for line in ask(DEFINITIONS, database)]
    return [line.replace("__bloomfilter", "_bloomfilter") for line in sorted(plain)]


# Everything that can depend on the extension, and questions to it. S stands for the extension's schema.
OBJECTS = """
CREATE TABLE {at}.t (id int, f S.bloomfilter DEFAULT S.bloom_create(1000),
    n float8 GENERATED ALWAYS AS (round(S.bloom_cardinality(f))) STORED, CHECK (NOT f OPERATOR(S.@>) 13));
INSERT INTO {at}.t
    SELECT g, S.bloom_agg(x, 1000) FROM generate_series(1, 40) g, generate_series(14, 14 + 20 * g) x GROUP BY g;
INSERT INTO {at}.t VALUES (0);
CREATE INDEX ON {at}.t ((S.bloom_cardinality(f)));
CREATE INDEX ON {at}.t USING hash (f);
CREATE INDEX ON {at}.t (id) WHERE f OPERATOR(S.@>) 100;
CREATE VIEW {at}.v AS SELECT S.bloom_union_agg(f) AS u, S.bloom_intersect_agg(f) FILTER (WHERE id > 0) AS i,
    sum(OPERATOR(S.#) f)::bigint AS s FROM {at}.t;
CREATE MATERIALIZED VIEW {at}.m AS SELECT f, count(*) FROM {at}.t GROUP BY f;
CREATE FUNCTION {at}.has(f S.bloomfilter, x int) RETURNS bool LANGUAGE sql IMMUTABLE RETURN f OPERATOR(S.@>) x;
CREATE TYPE {at}.pair AS (f S.bloomfilter, x int);
CREATE DOMAIN {at}.filled AS S.bloomfilter CHECK (S.bloom_cardinality(VALUE) > 0);
CREATE TABLE {at}.big AS SELECT x FROM generate_series(1, 20000) x;
ANALYZE {at}.big;
"""
QUESTIONS = """
SELECT md5(u::text), md5(i::text), s FROM {at}.v;
REFRESH MATERIALIZED VIEW {at}.m;
SELECT count(*), md5(string_agg(f::text, '' ORDER BY f::text)) FROM {at}.m;
INSERT INTO {at}.t (id) VALUES (-1);
SELECT id, n, {at}.has(f, 14) FROM {at}.t WHERE id < 4 ORDER BY id;
DELETE FROM {at}.t WHERE id = -1;
SELECT count(*) FROM {at}.t a JOIN {at}.t b ON a.f OPERATOR(S.=) b.f;
SELECT count(*) FROM {at}.t WHERE {at}.has(f, 200);
SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT S.bloom_agg(x) FROM {at}.big;
SELECT md5(S.bloom_agg(x)::text), md5(S.bloom_agg(x, 30000)::text), md5(S.bloom_agg(x, 30000, 0.1)::text) FROM {at}.big;
SELECT md5(S.bloom_agg(x, f)::text) FROM {at}.big, (SELECT f FROM {at}.t WHERE id = 1) s;
PREPARE ask (int) AS SELECT count(*) FROM {at}.t WHERE f OPERATOR(S.@>) $1;
EXECUTE ask(14); EXECUTE ask(300); EXECUTE ask(NULL);
SELECT ('\\x' || encode(f::bytea, 'hex'))::S.bloomfilter OPERATOR(S.=) f, S.bloom_fpp(f) < 0.02,
    (S.bloom_info(f)).element_type FROM {at}.t WHERE id = 9;
SELECT S.bloom_jaccard(a.f, b.f) > 0.2, a.f OPERATOR(S.@>=) b.f, a.f OPERATOR(S.|) b.f OPERATOR(S.@>=) a.f
FROM {at}.t a, {at}.t b WHERE a.id = 3 AND b.id = 12;
"""


def quoted(schema):
    return '"' + schema.replace('"', '""') + '"'


def within(text, schema, at="work"):
    return re.sub(r"\bS\.", lambda _: quoted(schema) + ".", text).format(at=at)


def create(schema, database=NAME, role=None, path=""):
    ask(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}; {path} CREATE EXTENSION bloomtype SCHEMA {quoted(schema)};",
         database, role)  # fmt: skip


def test_schemas():
    """The same answers from whatever schema, and after a move."""
    answers = {}
    for schema in "public", "Odd \"Schema\"":
        with fresh_database():
            before = snapshot()
            create(schema)
            needs = ask(NEEDED)
            same(needs, [], f"the extension needs nothing but PostgreSQL and its schema, {schema}")
            ask("CREATE SCHEMA work; SET search_path = pg_catalog;\n" + within(OBJECTS, schema))
            answers[schema] = ask("SET search_path = pg_catalog;\n" + within(QUESTIONS, schema))
            try:
                with Session("SET search_path = pg_catalog", dbname=NAME) as session:
                    held = session.each(
                        "PREPARE held (int) AS SELECT count(*) FROM work.t WHERE work.has(f, $1)", "EXECUTE held(14)",
                        "CREATE SCHEMA moved; ALTER EXTENSION bloomtype SET SCHEMA moved",
                        "EXECUTE held(14)", "EXECUTE held(300)",
                    )  # fmt: skip
                same(sum(held, []), ["40", "40", "26"], f"a prepared statement lives through a move from {schema}")
                answers[schema + ", moved"] = ask("SET search_path = pg_catalog;\n" + within(QUESTIONS, "moved"))
                refused("DROP SCHEMA moved;", "2BP01", f"DROP SCHEMA refuses while columns are filters, {schema}")
            except psycopg.Error as problem:
                ok(False, f"the extension moves from {schema}", problem)
            refused("DROP EXTENSION bloomtype;", "2BP01", f"so does DROP EXTENSION, {schema}")
            ask("DROP EXTENSION bloomtype CASCADE;")
            left = ask("SELECT attname FROM pg_attribute "
                       "WHERE attrelid = 'work.t'::regclass AND attnum > 0 AND NOT attisdropped;")  # fmt: skip
            same(left, ["id"], f"CASCADE drops what depends on it, {schema}")
            ask("DROP SCHEMA IF EXISTS moved; DROP SCHEMA work CASCADE;")
            if schema != "public":
                ask(f"DROP SCHEMA {quoted(schema)};")
            same(before, snapshot(), f"DROP EXTENSION leaves nothing behind, {schema}")
    plans = ["Gather" in "".join(rows) and "Partial" in "".join(rows) for rows in answers.values()]
    ok(all(plans) and len(plans) == 4, "all of them aggregate in parallel", answers)
    first = answers["public"]
    ok(len(first) > 20 and all(rows == first for rows in answers.values()),
       "the answers are the same from every schema", answers)  # fmt: skip


def test_dump():
    """A database with the extension in another schema, dumped and restored."""
    with fresh_database(), fresh_database("_copy") as copy, tempfile.TemporaryDirectory() as directory:
        create("filters")
        ask("CREATE SCHEMA work;\n" + within(OBJECTS, "filters"))
        expected = ask(within(QUESTIONS, "filters"))
        for form in "plain", "custom":
            path = f"{directory}/{form}"
            dumped = run("pg_dump", f"--format={form}", "-f", path, NAME)
            tool = ("pg_restore", "--exit-on-error", path)
            if form == "plain":
                tool = ("psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-f", path)
            restored = run(*tool, "-d", copy)
            ok(dumped.returncode == restored.returncode == 0, f"{form} dump and restore",
               dumped.stderr, restored.stderr)  # fmt: skip
            same(ask(within(QUESTIONS, "filters"), copy), expected, f"{form} dump: the same answers")
            same(definitions("filters", copy), definitions("filters"), f"{form} dump: the same extension")
            ask("DROP SCHEMA work CASCADE; DROP EXTENSION bloomtype; DROP SCHEMA filters;", copy)


COMPARING = """
CREATE TABLE stored (id int, f bloomfilter, c bloomcounter);
CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO public.firing VALUES (tg_name); RETURN NULL; END $$;
CREATE TABLE firing (name text);
CREATE TRIGGER bytes AFTER UPDATE ON stored FOR EACH ROW
    WHEN (old.f::bytea IS DISTINCT FROM new.f::bytea) EXECUTE FUNCTION fired();
CREATE TRIGGER counter AFTER UPDATE ON stored FOR EACH ROW
    WHEN (old.c::bytea IS DISTINCT FROM new.c::bytea) EXECUTE FUNCTION fired();
CREATE TRIGGER equal AFTER UPDATE ON stored FOR EACH ROW
    WHEN (NOT coalesce(old.f = new.f, old.f IS NULL AND new.f IS NULL)) EXECUTE FUNCTION fired();
CREATE TRIGGER whole AFTER UPDATE ON stored FOR EACH ROW
    WHEN (old.* IS DISTINCT FROM new.*) EXECUTE FUNCTION fired();
CREATE VIEW good AS SELECT DISTINCT f FROM stored AS s
    WHERE f IN (SELECT f FROM stored) OR f IN (s.f, s.f) GROUP BY f HAVING f = ANY (array_agg(f)) UNION SELECT f FROM stored;
"""
NOT_RESTORED = {
    "IS DISTINCT FROM": """CREATE TRIGGER bad AFTER UPDATE ON stored FOR EACH ROW
        WHEN (old.f IS DISTINCT FROM new.f) EXECUTE FUNCTION fired()""",
    "NULLIF": "CREATE VIEW bad AS SELECT nullif(f, f) FROM stored",
    "CASE": "CREATE VIEW bad AS SELECT CASE f WHEN f THEN 1 END FROM stored",
    "USING": "CREATE VIEW bad AS SELECT f FROM stored AS a JOIN stored AS b USING (f)",
    "IN of a row": "CREATE VIEW bad AS SELECT id FROM stored WHERE (f, id) IN (SELECT f, id FROM stored)",
}


def test_dump_of_comparisons():
    """What reference.md says of comparisons that a dump cannot tell, and of what to write instead."""
    with fresh_database(), fresh_database("_copy") as copy:
        create("public")
        ask(COMPARING)

        def restore():
            dump = run("pg_dump", NAME).stdout
            ask("DROP SCHEMA public CASCADE; CREATE SCHEMA public;", copy)
            return run("psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-d", copy, input=dump)

        for name, statement in NOT_RESTORED.items():
            ask(statement)
            restored = restore()
            ok(restored.returncode and "operator does not exist" in restored.stderr, f"{name}: not restored", restored.stderr)
            ask("DROP TRIGGER IF EXISTS bad ON stored; DROP VIEW IF EXISTS bad")
        restored = restore()
        same((restored.returncode, restored.stderr), (0, ""), "the others are restored")
        ask("INSERT INTO stored SELECT 1, bloom_agg(i), bloom_counter_agg(i) FROM generate_series(1, 5) AS i;", copy)
        changes = {
            "f = f": "", "id = 2": "whole", "f = bloom_add(f, 7)": "bytes equal whole", "f = NULL": "bytes equal whole",
            "f = nullif(f, f)": "", "c = bloom_add(c, 7)": "counter whole", "c = NULL": "counter whole",
        }  # fmt: skip
        for change, fired in changes.items():
            with Session(dbname=copy) as session:
                session.each("TRUNCATE firing", f"UPDATE stored SET {change}")
                names = session.ask("SELECT name FROM firing ORDER BY name")
            same(" ".join(names), fired, f"restored triggers on {change}")


# Look-alikes, which an ordinary user can create, of everything that the extension's script mentions. Calling one is an
# error that says so.
TRAPS = """
CREATE FUNCTION trap.caught(text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE 'caught by %', $1; END $$;
DO $do$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY '{float8,int8,int4,int2,bigint,integer,smallint,text,bytea,bool,boolean,oid,regtype,
        cstring,record,real,internal,anyelement,anycompatible,_bloomfilter}'::text[] LOOP
        EXECUTE format('CREATE TYPE trap.%I AS (caught pg_catalog.text)', name);
    END LOOP;
    FOREACH name IN ARRAY @functions@ ||
        '{eqsel,eqjoinsel,neqsel,neqjoinsel,contsel,contjoinsel,bloomfilter,bytea,float8}'::text[] LOOP
        EXECUTE format('CREATE FUNCTION trap.%1$I(pg_catalog.text) RETURNS pg_catalog.text '
            'LANGUAGE plpgsql AS $$ BEGIN PERFORM trap.caught(%1$L); END $$', name);
        EXECUTE format('CREATE FUNCTION trap.%1$I(pg_catalog.text, pg_catalog.text) RETURNS pg_catalog.bool '
            'LANGUAGE plpgsql AS $$ BEGIN PERFORM trap.caught(%1$L); END $$', name);
        EXECUTE format('CREATE FUNCTION trap.%1$I(VARIADIC pg_catalog.anyarray) RETURNS pg_catalog.bool '
            'LANGUAGE plpgsql AS $$ BEGIN PERFORM trap.caught(%1$L); END $$', name);
    END LOOP;
    CREATE FUNCTION trap.same(anycompatible, anycompatible) RETURNS bool LANGUAGE plpgsql AS
        $$ BEGIN PERFORM trap.caught('an operator'); END $$;
    CREATE FUNCTION trap.same(trap.text, trap.text) RETURNS bool LANGUAGE plpgsql AS
        $$ BEGIN PERFORM trap.caught('an operator'); END $$;
    CREATE FUNCTION trap.one(anyelement) RETURNS bool LANGUAGE plpgsql AS
        $$ BEGIN PERFORM trap.caught('an operator'); END $$;
    FOREACH name IN ARRAY '{@>,<@,|,&,@>=,<=@,=,<>}'::text[] LOOP
        EXECUTE format('CREATE OPERATOR trap.%s (LEFTARG = anycompatible, RIGHTARG = anycompatible, '
            'FUNCTION = trap.same)', name);
        EXECUTE format('CREATE OPERATOR trap.%s (LEFTARG = trap.text, RIGHTARG = trap.text, '
            'FUNCTION = trap.same)', name);
    END LOOP;
    CREATE OPERATOR trap.# (RIGHTARG = anyelement, FUNCTION = trap.one);
END
$do$;
"""
UNTRAP = f"""
DO $do$
DECLARE
    function regprocedure;
BEGIN
    FOR function IN SELECT oid FROM pg_proc WHERE pronamespace = 'trap'::regnamespace
        AND oid NOT IN (SELECT objid FROM ({MEMBERS}) m WHERE classid = 'pg_proc'::regclass) LOOP
        EXECUTE format('DROP FUNCTION %s CASCADE', function);
    END LOOP;
END
$do$;
"""


def test_traps():
    """The extension uses no object that is in its schema or path before it, whoever creates the extension."""
    with fresh_database():
        create("filters")
        clean = definitions("filters")
        names = ask(f"SELECT DISTINCT proname FROM ({MEMBERS}) m "
                    "JOIN pg_proc p ON p.oid = objid AND classid = 'pg_proc'::regclass;")  # fmt: skip
        ask("""CREATE DOMAIN public.caught AS text;
            CREATE FUNCTION filters.more(public.caught) RETURNS int LANGUAGE sql RETURN 1;
            ALTER EXTENSION bloomtype ADD FUNCTION filters.more(public.caught);""")
        same(ask(NEEDED), ["type caught"], "a dependency on a look-alike would be noticed")
    traps = TRAPS.replace("@functions@", "'{" + ",".join(names) + "}'::text[]")
    ok(len(clean) > 60 and len(names) > 30, "there are members to look at", clean)
    for role in None, ROLE:
        who = "a superuser" if role is None else "an ordinary user"
        for schema in "trap", "filters":
            where = f"{'among' if schema == 'trap' else 'beside'} look-alikes, created by {who}"
            with fresh_database():
                ask(f"GRANT CREATE ON DATABASE {NAME} TO {ROLE}; CREATE SCHEMA trap AUTHORIZATION {ROLE};")
                ask(traps, role=ROLE)
                try:
                    create(schema, role=role, path="SET search_path = trap, pg_catalog;")
                except psycopg.Error as problem:
                    ok(False, f"CREATE EXTENSION {where}", problem)
                    continue
                same(ask(NEEDED), [], f"nothing of them is needed: {where}")
                same(definitions(schema), clean, f"all members are the same as elsewhere: {where}")
                if schema == "trap":  # whoever calls functions there by name may be caught, as with any schema
                    ask(UNTRAP)
                ask("CREATE SCHEMA work; SET search_path = pg_catalog;" + within(OBJECTS, schema))
                expected = ask("SET search_path = pg_catalog;" + within(QUESTIONS, schema))
                questions = re.sub("::(text|bytea)", r"::pg_catalog.\1", within(QUESTIONS, schema))
                same(ask("SET search_path = trap, pg_catalog;" + questions), expected, f"they work: {where}")


CLASHES = (
    ("TYPE trap.bloomfilter AS (caught text)", "42710"),
    ("DOMAIN trap.bloomfilter AS text", "42710"),
    ("FUNCTION trap.bloom_bytes(float8, float8, text) RETURNS bigint LANGUAGE sql RETURN 1", "42723"),
    ("PROCEDURE trap.bloom_create(float8, float8, text, bigint) LANGUAGE sql AS ''", "42723"),
)


def test_clashes():
    """An object in the way of one of the extension's is an error."""
    with fresh_database():
        ask(f"GRANT CREATE ON DATABASE {NAME} TO {ROLE}; CREATE SCHEMA trap AUTHORIZATION {ROLE};")
        before = snapshot()
        for clash, state in CLASHES:
            ask(f"CREATE {clash};", role=ROLE)
            for role in None, ROLE:
                refused("CREATE EXTENSION bloomtype SCHEMA trap;", state,
                        f"an object in the way is an error: {clash}", role=role)  # fmt: skip
            ask("DROP " + re.match(r"\w+ [\w.]+", clash)[0] + ";")
        same(snapshot(), before, "and the failures leave nothing")


REFUSED_TO_OWNER = (
    ("ALTER EXTENSION bloomtype DROP FUNCTION bloom_agg_final(internal)", "42501"),
    ("ALTER EXTENSION bloomtype UPDATE TO '0.9.0'", "22023"),
    (f"ALTER FUNCTION bloom_cardinality(bloomfilter) OWNER TO {ROLE}", "42501"),
    ("ALTER FUNCTION bloom_cardinality(bloomfilter) SET search_path = work", "42501"),
    ("CREATE OR REPLACE FUNCTION bloom_cardinality(bloomfilter) RETURNS float8 LANGUAGE sql RETURN 1", "42501"),
    ("CREATE FUNCTION own(internal) RETURNS bloomfilter LANGUAGE C "
     "AS 'bloomtype', 'bloomfilter_agg_final'", "42501"),
    ("CREATE AGGREGATE own(int) "
     "(SFUNC = bloom_agg_add, STYPE = internal, FINALFUNC = bloom_agg_final)", "42P13"),
    ("CREATE AGGREGATE own(internal) (SFUNC = bloom_agg_combine, STYPE = internal)", "42P13"),
    ("ALTER TYPE bloomfilter SET (STORAGE = main)", "42501"),
    ("ALTER OPERATOR @> (bloomfilter, anycompatible) SET (RESTRICT = NONE)", "42501"),
    ("CREATE OPERATOR CLASS own FOR TYPE bloomfilter USING hash AS OPERATOR 1 =", "42501"),
    ("DROP FUNCTION bloom_cardinality(bloomfilter)", "2BP01"),
    ("DROP TYPE bloomfilter", "2BP01"),
    ("SELECT bloom_agg_final(NULL)", "42883|0A000"),
    ("SELECT bloom_agg_final('a'::internal)", "42846|0A000"),
)


def test_ordinary_user():
    """A user with CREATE on the database may create the extension, and gains no power by it."""
    with fresh_database(), fresh_database("_copy", ROLE) as copy, tempfile.TemporaryDirectory() as directory:
        ask(f"REVOKE CREATE ON DATABASE {NAME} FROM PUBLIC; CREATE SCHEMA work AUTHORIZATION {ROLE};")
        before = snapshot()
        refused("CREATE EXTENSION bloomtype SCHEMA work;", "42501",
                "CREATE EXTENSION needs CREATE on the database", role=ROLE)  # fmt: skip
        same(snapshot(), before, "and the failure leaves nothing")
        ask(f"GRANT CREATE ON DATABASE {NAME} TO {ROLE};")
        ask("CREATE EXTENSION bloomtype SCHEMA work;", role=ROLE)
        owners = ask(f"SELECT DISTINCT rolsuper FROM ({MEMBERS}) m, pg_proc p, pg_roles r "
                     "WHERE p.oid = objid AND classid = 'pg_proc'::regclass AND r.oid = proowner;")  # fmt: skip
        same(owners, ["t"], "functions in C stay a superuser's")
        for command, state in REFUSED_TO_OWNER:
            refused(f"SET search_path = work; {command};", state, f"refused to its owner: {command}", role=ROLE)
        ask("SET search_path = pg_catalog;" + within(OBJECTS, "work"), role=ROLE)
        expected = ask(within(QUESTIONS, "work"), role=ROLE)
        ask("CREATE SCHEMA elsewhere;", role=ROLE)
        refused("ALTER EXTENSION bloomtype SET SCHEMA elsewhere;", "42501",
                "members that are a superuser's do not move", role=ROLE)  # fmt: skip
        ask("ALTER EXTENSION bloomtype SET SCHEMA elsewhere;")
        same(ask(within(QUESTIONS, "elsewhere"), role=ROLE), expected, "unless a superuser moves them")
        path = f"{directory}/dump"
        dumped = run("pg_dump", "--no-owner", "--format=custom", "-f", path, NAME)
        environment = {**os.environ, "PGOPTIONS": f"-c session_authorization={ROLE}"}
        ask("DROP SCHEMA public;", copy)
        ask(f"CREATE SCHEMA public AUTHORIZATION {ROLE};", copy)
        restored = run("pg_restore", "--exit-on-error", "--no-owner", f"--role={ROLE}", "-d", copy, path,
                       env=environment)  # fmt: skip
        ok(dumped.returncode == restored.returncode == 0, "restored by an ordinary user",
           dumped.stderr, restored.stderr)  # fmt: skip
        same(ask(within(QUESTIONS, "elsewhere"), copy), expected, "the same answers from the restored database")
        ask("DROP EXTENSION bloomtype CASCADE;", role=ROLE)
        same(ask("SELECT count(*) FROM pg_proc WHERE proname ~ '^bloom';"), ["0"], "the owner may drop it")


def main():
    clean_up_when_terminated()
    ask(f"CREATE ROLE {ROLE} LOGIN;", "postgres")
    try:
        for function in test_schemas, test_dump, test_dump_of_comparisons, test_traps, test_clashes, test_ordinary_user:
            part(function)
    finally:
        ask(f"DROP ROLE {ROLE};", "postgres")
    done()


if __name__ == "__main__":
    main()
