#!/usr/bin/python3 -B
"""Where the extension is installed, by whom, and what stands around it: other schemas and moves between
them, hostile look-alikes, users that are no superusers, dropping, dump and restore.

    prove -v test/t/schema.t       connects as a superuser, as psql does

Works in databases and with a role of its own. Needs psql, createdb, dropdb, pg_dump and pg_restore.
"""

import os
import re
import subprocess
import tempfile

import harness
from harness import Failed, clean_up_when_terminated, done, ok, part, same

NAME = f"bloomtype_schema_{os.getpid()}"
ROLE = f"{NAME}_user"


def run(*command, **how):
    return subprocess.run(command, capture_output=True, encoding="utf-8", **how)


def psql(script, database=NAME, role=None):
    """The rows that a script returns."""
    return harness.psql((f"SET SESSION AUTHORIZATION {role};\n" if role else "") + script, "-v", "VERBOSITY=verbose",
                        "-d", database)  # fmt: skip


def refused(script, state, name, **how):
    try:
        psql(script, **how)
        ok(False, name, "no error")
    except Failed as problem:
        ok(re.search(f"ERROR:  ({state}):", str(problem)), name, problem)


class Database:
    """A fresh one, to be used with "with"."""

    def __init__(self, suffix="", owner=None):
        self.name, self.owner = NAME + suffix, owner

    def __enter__(self):
        done = run("createdb", *(("-O", self.owner) if self.owner else ()), "-T", "template0", self.name)
        if done.returncode != 0:
            raise Failed(done.stderr.strip())
        return self.name

    def __exit__(self, *_):
        run("dropdb", "--if-exists", "--force", self.name)


# ---------------------------------------------------------------------------------------------------
# What all of them look at
# ---------------------------------------------------------------------------------------------------


def snapshot(database=NAME):
    """All rows of all catalogs, but for statistics."""
    tables = psql("""SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'
        AND NOT relisshared AND relname NOT IN ('pg_class', 'pg_statistic', 'pg_largeobject') ORDER BY 1;""", database)
    tables.append("(SELECT oid, relname, relnamespace, relkind, relowner, relacl, reloptions FROM pg_class)")
    queries = [
        f"SELECT '{table.strip('()')[:30]}', md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM {table} t;"
        for table in tables
    ]
    return psql("\n".join(queries), database)


MEMBERS = """SELECT classid, objid FROM pg_depend, pg_extension e WHERE deptype = 'e' AND extname = 'bloomtype'
    AND refclassid = 'pg_extension'::regclass AND refobjid = e.oid"""

# What the members need that is neither one of them nor part of PostgreSQL: only their schema.
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
    plain = [line.replace(quoted(schema) + ".", "").replace(f"{schema}.", "") for line in psql(DEFINITIONS, database)]
    return [line.replace("__bloomfilter", "_bloomfilter") for line in sorted(plain)]


# A table with all that can depend on the extension, and what is asked of it; S stands for its schema.
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
    psql(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}; {path} CREATE EXTENSION bloomtype SCHEMA {quoted(schema)};",
         database, role)  # fmt: skip


# ---------------------------------------------------------------------------------------------------
# Tests
# ---------------------------------------------------------------------------------------------------


def test_schemas():
    """The same answers from whatever schema, and after a move."""
    answers = {}
    for schema in "public", "Odd \"Schema\"":
        with Database():
            before = snapshot()
            create(schema)
            needs = psql(NEEDED)
            same(needs, [], f"the extension needs nothing but PostgreSQL and its schema, {schema}")
            psql("CREATE SCHEMA work; SET search_path = pg_catalog;\n" + within(OBJECTS, schema))
            answers[schema] = psql("SET search_path = pg_catalog;\n" + within(QUESTIONS, schema))
            script = "PREPARE held (int) AS SELECT count(*) FROM work.t WHERE work.has(f, $1);\nEXECUTE held(14);\n"
            script += "CREATE SCHEMA moved; ALTER EXTENSION bloomtype SET SCHEMA moved;\n"
            script += "EXECUTE held(14); EXECUTE held(300);\n"
            try:
                held = psql("SET search_path = pg_catalog;\n" + script)
                same(held, ["40", "40", "26"], f"a prepared statement lives through a move from {schema}")
                answers[schema + ", moved"] = psql("SET search_path = pg_catalog;\n" + within(QUESTIONS, "moved"))
                refused("DROP SCHEMA moved;", "2BP01", f"DROP SCHEMA refuses while columns are filters, {schema}")
            except Failed as problem:
                ok(False, f"the extension moves from {schema}", problem)
            refused("DROP EXTENSION bloomtype;", "2BP01", f"so does DROP EXTENSION, {schema}")
            psql("DROP EXTENSION bloomtype CASCADE;")
            left = psql("SELECT attname FROM pg_attribute "
                        "WHERE attrelid = 'work.t'::regclass AND attnum > 0 AND NOT attisdropped;")  # fmt: skip
            same(left, ["id"], f"CASCADE drops what depends on it, {schema}")
            psql("DROP SCHEMA IF EXISTS moved; DROP SCHEMA work CASCADE;")
            if schema != "public":
                psql(f"DROP SCHEMA {quoted(schema)};")
            same(before, snapshot(), f"DROP EXTENSION leaves nothing behind, {schema}")
    plans = ["Gather" in "".join(rows) and "Partial" in "".join(rows) for rows in answers.values()]
    ok(all(plans) and len(plans) == 4, "all of them aggregate in parallel", answers)
    first = answers["public"]
    ok(len(first) > 20 and all(rows == first for rows in answers.values()),
       "the answers are the same from every schema", answers)  # fmt: skip


def test_dump():
    """A database with the extension in another schema, dumped and restored."""
    with Database(), Database("_copy") as copy, tempfile.TemporaryDirectory() as directory:
        create("filters")
        psql("CREATE SCHEMA work;\n" + within(OBJECTS, "filters"))
        expected = psql(within(QUESTIONS, "filters"))
        for form in "plain", "custom":
            path = f"{directory}/{form}"
            dumped = run("pg_dump", f"--format={form}", "-f", path, NAME)
            tool = ("pg_restore", "--exit-on-error", path)
            if form == "plain":
                tool = ("psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-f", path)
            restored = run(*tool, "-d", copy)
            ok(dumped.returncode == restored.returncode == 0, f"{form} dump and restore",
               dumped.stderr, restored.stderr)  # fmt: skip
            same(psql(within(QUESTIONS, "filters"), copy), expected, f"{form} dump: the same answers")
            same(definitions("filters", copy), definitions("filters"), f"{form} dump: the same extension")
            psql("DROP SCHEMA work CASCADE; DROP EXTENSION bloomtype; DROP SCHEMA filters;", copy)


# Look-alikes of all that the extension's script mentions, as an ordinary user can create them. Calling one
# is an error that says so.
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
    """Nothing that stands in the schema before the extension gets into it, whoever creates that."""
    with Database():
        create("filters")
        clean = definitions("filters")
        names = psql(f"SELECT DISTINCT proname FROM ({MEMBERS}) m "
                     "JOIN pg_proc p ON p.oid = objid AND classid = 'pg_proc'::regclass;")  # fmt: skip
        psql("""CREATE DOMAIN public.caught AS text;
            CREATE FUNCTION filters.more(public.caught) RETURNS int LANGUAGE sql RETURN 1;
            ALTER EXTENSION bloomtype ADD FUNCTION filters.more(public.caught);""")
        same(psql(NEEDED), ["type caught"], "what is caught would be noticed")
    traps = TRAPS.replace("@functions@", "'{" + ",".join(names) + "}'::text[]")
    ok(len(clean) > 60 and len(names) > 30, "there are members to look at", clean)
    for role in None, ROLE:
        who = "a superuser" if role is None else "an ordinary user"
        for schema in "trap", "filters":
            where = f"{'among' if schema == 'trap' else 'beside'} look-alikes, created by {who}"
            with Database():
                psql(f"GRANT CREATE ON DATABASE {NAME} TO {ROLE}; CREATE SCHEMA trap AUTHORIZATION {ROLE};")
                psql(traps, role=ROLE)
                try:
                    create(schema, role=role, path="SET search_path = trap, pg_catalog;")
                except Failed as problem:
                    ok(False, f"CREATE EXTENSION {where}", problem)
                    continue
                same(psql(NEEDED), [], f"nothing of them is needed: {where}")
                same(definitions(schema), clean, f"all members are what they are elsewhere: {where}")
                if schema == "trap":  # whoever calls functions there by name may be caught, as with any schema
                    psql(UNTRAP)
                psql("CREATE SCHEMA work; SET search_path = pg_catalog;" + within(OBJECTS, schema))
                expected = psql("SET search_path = pg_catalog;" + within(QUESTIONS, schema))
                questions = re.sub("::(text|bytea)", r"::pg_catalog.\1", within(QUESTIONS, schema))
                same(psql("SET search_path = trap, pg_catalog;" + questions), expected, f"they work: {where}")
    with Database():
        psql(f"GRANT CREATE ON DATABASE {NAME} TO {ROLE}; CREATE SCHEMA trap AUTHORIZATION {ROLE};")
        before = snapshot()
        for clash, state in (
            ("TYPE trap.bloomfilter AS (caught text)", "42710"),
            ("DOMAIN trap.bloomfilter AS text", "42710"),
            ("FUNCTION trap.bloom_bytes(float8, float8, text) RETURNS bigint LANGUAGE sql RETURN 1", "42723"),
            ("PROCEDURE trap.bloom_create(float8, float8, text, bigint) LANGUAGE sql AS ''", "42723"),
        ):
            psql(f"CREATE {clash};", role=ROLE)
            for role in None, ROLE:
                refused("CREATE EXTENSION bloomtype SCHEMA trap;", state,
                        f"what is in the way is an error: {clash}", role=role)  # fmt: skip
            psql("DROP " + re.match(r"\w+ [\w.]+", clash)[0] + ";")
        same(snapshot(), before, "and the failures leave nothing")


def test_ordinary_user():
    """Who may create objects in the database may create the extension, and gets no power by it."""
    with Database(), Database("_copy", ROLE) as copy, tempfile.TemporaryDirectory() as directory:
        psql(f"REVOKE CREATE ON DATABASE {NAME} FROM PUBLIC; CREATE SCHEMA work AUTHORIZATION {ROLE};")
        before = snapshot()
        refused("CREATE EXTENSION bloomtype SCHEMA work;", "42501",
                "CREATE EXTENSION needs CREATE on the database", role=ROLE)  # fmt: skip
        same(snapshot(), before, "and the failure leaves nothing")
        psql(f"GRANT CREATE ON DATABASE {NAME} TO {ROLE};")
        psql("CREATE EXTENSION bloomtype SCHEMA work;", role=ROLE)
        owners = psql(f"SELECT DISTINCT rolsuper FROM ({MEMBERS}) m, pg_proc p, pg_roles r "
                      "WHERE p.oid = objid AND classid = 'pg_proc'::regclass AND r.oid = proowner;")  # fmt: skip
        same(owners, ["t"], "functions in C stay a superuser's")
        for command, state in (
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
        ):
            refused(f"SET search_path = work; {command};", state, f"refused to its owner: {command}", role=ROLE)
        psql("SET search_path = pg_catalog;" + within(OBJECTS, "work"), role=ROLE)
        expected = psql(within(QUESTIONS, "work"), role=ROLE)
        psql("CREATE SCHEMA elsewhere;", role=ROLE)
        refused("ALTER EXTENSION bloomtype SET SCHEMA elsewhere;", "42501",
                "members that are a superuser's do not move", role=ROLE)  # fmt: skip
        psql("ALTER EXTENSION bloomtype SET SCHEMA elsewhere;")
        same(psql(within(QUESTIONS, "elsewhere"), role=ROLE), expected, "unless a superuser moves them")
        path = f"{directory}/dump"
        dumped = run("pg_dump", "--no-owner", "--format=custom", "-f", path, NAME)
        environment = {**os.environ, "PGOPTIONS": f"-c session_authorization={ROLE}"}
        psql("DROP SCHEMA public;", copy)
        psql(f"CREATE SCHEMA public AUTHORIZATION {ROLE};", copy)
        restored = run("pg_restore", "--exit-on-error", "--no-owner", f"--role={ROLE}", "-d", copy, path,
                       env=environment)  # fmt: skip
        ok(dumped.returncode == restored.returncode == 0, "restored by an ordinary user",
           dumped.stderr, restored.stderr)  # fmt: skip
        same(psql(within(QUESTIONS, "elsewhere"), copy), expected, "the same answers from what was restored")
        psql("DROP EXTENSION bloomtype CASCADE;", role=ROLE)
        same(psql("SELECT count(*) FROM pg_proc WHERE proname ~ '^bloom';"), ["0"], "the owner may drop it")


def main():
    clean_up_when_terminated()
    psql(f"CREATE ROLE {ROLE} LOGIN;", "postgres")
    try:
        for function in test_schemas, test_dump, test_traps, test_ordinary_user:
            part(function)
    finally:
        psql(f"DROP ROLE {ROLE};", "postgres")
    done()


if __name__ == "__main__":
    main()
