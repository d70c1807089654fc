#!/usr/bin/python3 -B
"""Which indexes answer for which rows: sets of other options, types and collations than they were made with, partial
sets, trees whose leaves differ, rows that are in no heap, temporary tables and parallel workers. And that pg_amcheck
passes over them.

Each test says which precaution it fails without. A set must never deny a row that the session sees, and must deny what
no table has.
"""

import re
import shutil
import subprocess

from bloomset_checks import (RARE, USE_SETS, by_index, check, contains, denied, denied_by_filters, denied_by_index,
                             finds_all, make, numbers, settled)
from session import CHEAP_WORKERS, NO_WORKERS, Session, ask, each, in_thread, result_of, run, wait_until_blocked
from tap import ok, same, skip

Session.settings = "SET client_min_messages = error; SET lock_timeout = '10s';"


# Options and types

def test_options_after_build():
    """Fails if anything but the build reads the options: the set was made by those of then."""
    make("optional", numbers(1, 500), options="expected_items = 100, seed = 1, false_positive_rate = 0.01")
    asked = "SELECT requested_rate::numeric FROM bloomset_info('optional_k'::regclass)"
    same(ask(asked), ["0.01"], "the rate asked")
    changes = "SET (seed = 2)", "SET (false_positive_rate = 1e-6)", "SET (expected_items = 1e5)", "RESET (seed)"
    with Session() as old:
        old.ask(contains("optional", 1))
        for statement in changes:
            ask(f"ALTER INDEX optional_k {statement}")
            ask("INSERT INTO optional SELECT max(k) + i FROM optional, generate_series(1, 300) AS i GROUP BY i")
            with Session() as new:
                finds_all(old, "optional", f"ALTER INDEX {statement}, an old session")
                finds_all(new, "optional", f"ALTER INDEX {statement}, a new session")
        same(ask(asked), ["0.01"], "the rate asked is that of the build")
        seeds = "SELECT DISTINCT (bloom_info(filter)).seed FROM bloomset_filters('optional', 'k')"
        same(ask(seeds), ["1"], "so is the seed")
        ask("REINDEX INDEX optional_k")
        same(ask(asked), ["0.000001"], "after REINDEX it is the new one")
        same(ask(seeds), ["0"], "so is the seed")
        finds_all(old, "optional", "after REINDEX")


def test_reserve():
    """Fails if a slip of the pen in expected_items fills the disk. What writes is cancelled at once."""
    ask(f"CREATE TABLE slip (k bigint); CREATE TABLE empty (k bigint); INSERT INTO slip {numbers(1, 50)}")
    create = "CREATE INDEX ON {} USING bloomset (k) WITH (expected_items = {})"
    with Session("SET client_min_messages = notice; SET statement_timeout = '2s'") as session:
        same(session.attempt(create.format("slip", "1e11"))[1], "54000", "an index for 1e11 values of 50 rows is refused")
        for word in "121 GB", "16 kB", "100000000000", "64 times", "at most 810000000":
            ok(word in session.error, f"the message has: {word}", session.error)
        for items, state in ("1e9", "54000"), ("2e6", "00000"):
            same(session.attempt(create.format("slip", items))[1], state, f"{items} values: {state}")
        session.ask("ALTER INDEX slip_k_idx SET (expected_items = 1e11)")
        same(session.attempt("REINDEX INDEX slip_k_idx")[1], "54000", "REINDEX is refused, too")
        same(session.ask(contains("slip", 50)), ["t"], "and the old index is there")
        session.ask(create.format("empty", "2e6"))
        same(session.notices, [], "an index of 3 MB is not worth a notice")
        session.connection.add_notice_handler(lambda _: session.connection.cancel())
        same(session.attempt(create.format("empty", "1e11"))[1], "57014", "for an empty table nobody knows")
        same(session.notices, ['bloomset index "empty_k_idx1" takes 121 GB'], "so a notice names the size")


LEAF = """
CREATE TABLE mixed_{p} (x text, k bigint, p int);
ALTER TABLE mixed_{p} DROP x;
INSERT INTO mixed_{p} SELECT {p} * 1000 + i, {p} FROM generate_series(1, 100 * {p}) AS i;
CREATE INDEX ON mixed_{p} USING bloomset (k)
    WITH (seed = {seed}, false_positive_rate = 1e-{digits}, expected_items = {items});
ALTER TABLE mixed ATTACH PARTITION mixed_{p} FOR VALUES IN ({p});
"""


def test_leaves_of_other_options():
    """Fails if a leaf is asked with the class, seed or size of another."""
    each("CREATE TABLE mixed (p int, k bigint) PARTITION BY LIST (p)",
         f"CREATE INDEX mixed_k ON mixed USING bloomset (k) WITH ({RARE}, seed = 1)",
         *[LEAF.format(p=p, seed=7 * p - 20, digits=2 + p, items=10**p) for p in range(1, 6)])  # fmt: skip
    with Session() as session:
        attached = session.ask("SELECT count(*) FROM pg_inherits WHERE inhparent = 'mixed_k'::regclass")
        same(attached, ["5"], "the sets of other options are attached")
        finds_all(session, "mixed", "leaves of other options")
        same(session.ask(denied_by_index("mixed_k", "mixed")), [], "leaves of other options: by the partitioned index")
        ok(settled(session, contains("mixed", 500000)), "an absent value is denied")
        same(session.ask("SELECT bloomset_partitions('mixed', 'k', 3005)"), ["mixed_3"], "one leaf has a value")
        session.ask("INSERT INTO mixed SELECT 1 + i % 5, i FROM generate_series(10001, 12000) AS i")
        finds_all(session, "mixed", "leaves of other options, after INSERT")
        session.ask("ALTER TABLE mixed DETACH PARTITION mixed_3; INSERT INTO mixed_3 VALUES (77777, 3)")
        same(session.ask(denied("mixed_3")), [], "a detached leaf keeps its set")
        same(session.ask(contains("mixed", 77777)), ["f"], "which the tree no longer asks")


TYPES = [
    ("varchar(20)", "text"), ("text", "varchar"), ("varchar", "varchar(30)"), ("varchar(20)", "shortish"),
    ("char(8)", "text"), ("text", "char(12)"), ("varchar(9)", "char(12)"), ("char(8)", "varchar(10)"),
    ("name", "text"), ("text", "name"), ("cidr", "inet"), ("macaddr", "macaddr8"), ("bytea", "bytea"),
    ("smallint", "integer"), ("integer", "bigint"), ("bigint", "numeric"), ("integer", "real"), ("real", "float8"),
    ("numeric(9,2)", "numeric"), ("numeric(9,2)", "numeric(12,4)"), ("integer", "whole"), ("whole", "bigint"),
    ("timestamp", "timestamptz"), ("timestamptz", "timestamp"), ("timestamp(3)", "timestamp"), ("date", "timestamp"),
    ("time(2)", "time"),
]  # fmt: skip
# A value made from i; of all other types it is i.
VALUE_OF = {
    "varchar": "'v ' || i", "text": "'v ' || i || '  '", "char": "'c' || i", "name": "'n' || i",
    "cidr": "'10.0.' || i || '.0/24'", "macaddr": "'08002b' || lpad(to_hex(i), 6, '0')", "bytea": "int4send(i)",
    "timestamp": "timestamp '2024-01-01 00:00' + i * interval '1 hour'", "date": "date '2024-01-01' + i",
    "timestamptz": "timestamptz '2024-01-01 00:00' + i * interval '1 hour'",
    "time": "time '00:00' + i * interval '1 second'",
}  # fmt: skip


def test_changed_types():
    """Fails if ALTER TYPE keeps the file of an index although the new type's values hash otherwise."""
    ask("CREATE DOMAIN whole AS integer; CREATE DOMAIN shortish AS varchar(40)")
    file = "SELECT pg_relation_filenode('typed_k'::regclass)"
    for before, after in TYPES:
        value = VALUE_OF.get(before.split("(")[0], "i")
        fill = f"INSERT INTO typed SELECT ({value})::{before}{{}} FROM generate_series"
        with Session("SET TimeZone = 'UTC';") as session:
            session.each("DROP TABLE IF EXISTS typed", f"CREATE TABLE typed (k {before})",
                         fill.format("") + "(1, 60) AS i",
                         f"CREATE INDEX typed_k ON typed USING bloomset (k) WITH ({RARE})")  # fmt: skip
            same(session.ask(denied("typed")), [], f"{before}: nothing is missed")
            old = session.ask(file)
            session.ask(f"ALTER TABLE typed ALTER k TYPE {after} USING k::{after}")
            name = f"{before} to {after}, {'the same' if session.ask(file) == old else 'another'} file"
            same(session.ask(denied("typed")), [], f"{name}: nothing is missed")
            same(session.ask(denied_by_filters("typed")), [], f"{name}: by filters")
            session.ask(fill.format(f"::{after}") + "(61, 99) AS i")
            same(session.ask(denied("typed")), [], f"{name}, after INSERT: nothing is missed")
            same(session.attempt(check("typed_k"))[1], "00000", f"{name}: bloomset_check")


CARELESS = "CREATE COLLATION careless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"


def test_collations():
    """Fails if the collation of the index or of the column is not looked at, when a set is made."""
    with Session() as session:
        if session.attempt(CARELESS)[1] != "00000":
            return skip("nondeterministic collations", "the server has no ICU")
        session.ask("CREATE TABLE careless (s text COLLATE careless); CREATE TABLE careful (s text)")
        for table, column in ("careless", "s"), ("careless", 's COLLATE "C"'), ("careless", "(s || 'x')"), \
                ("careful", "s COLLATE careless"), ("careful", "(s COLLATE careless)"):  # fmt: skip
            _, state = session.attempt(f"CREATE INDEX ON {table} USING bloomset ({column})")
            same(state, "0A000", f"a set on {column} of the {table} table is refused")
        for definition in "s", 's COLLATE "C"', 's COLLATE "POSIX"':
            change_collation(session, definition)
    return None


def change_collation(session, definition):
    """Fails if the column's collation is not looked at when a set is asked. An index with a collation of its own may
    stay when the column's changes."""
    session.each("DROP TABLE IF EXISTS changed", "CREATE TABLE changed (s text)", "INSERT INTO changed VALUES ('a')",
                 f"CREATE INDEX changed_s ON changed USING bloomset ({definition}) WITH ({RARE})")  # fmt: skip
    same(session.ask(contains("changed", "'a'", "s")), ["t"], f"{definition}: found")
    _, state = session.attempt("ALTER TABLE changed ALTER s TYPE text COLLATE careless")
    if state != "00000":
        ok(state == "0A000", f"{definition}: the collation cannot be changed: {state}", session.error)
        return
    equal = "SELECT count(*) FROM changed WHERE s = 'A'"
    same(session.ask(equal), ["1"], f"{definition}: under the new collation the value equals 'A'")
    same(session.ask(USE_SETS + equal), ["1"], f"{definition}: the scan finds it")
    lines, state = session.attempt(contains("changed", "'A'", "s"))
    ok(lines == ["t"] or state in ("0A000", "55000"), f"{definition}: 'A' is maybe, or an error", lines, state)


# Which index, which rows

def test_which_index():
    """Fails if a partial set or one of an expression answers for the column."""
    ask(f"""CREATE TABLE chosen (a int, k bigint, b text);
        INSERT INTO chosen SELECT i, i, i FROM generate_series(1, 100) AS i;
        CREATE INDEX chosen_part ON chosen USING bloomset (k) WITH ({RARE}) WHERE a <= 50;
        CREATE INDEX chosen_expr ON chosen USING bloomset ((k + 1000)) WITH ({RARE});
        CREATE INDEX chosen_a ON chosen USING bloomset (a) WITH ({RARE})""")
    with Session() as session:
        same(session.attempt(contains("chosen", 77))[1], "55000", "a partial set and one of an expression do not count")
        same(session.ask(by_index("chosen_part", 77)), ["f"], "asked by index, a partial set knows its rows")
        same(session.ask(denied_by_index("chosen_part", "chosen", "k", "a <= 50")), [], "all of them")
        session.ask("UPDATE chosen SET a = 1 WHERE k = 77")
        same(session.ask(by_index("chosen_part", 77)), ["t"], "also one that came by an update of another column")
        same(session.ask(denied_by_index("chosen_expr", "chosen", "(k + 1000)")), [], "one of an expression has all")
        session.ask(f"CREATE INDEX chosen_k ON chosen USING bloomset (k) WITH ({RARE})")
        finds_all(session, "chosen", "with a set of the column beside them")
        ok(settled(session, contains("chosen", 1077)), "which alone answers")


def test_several_sets():
    """Fails if not every set of a column is asked."""
    with Session() as session:
        session.ask(f"""CREATE TABLE twice (k bigint); INSERT INTO twice {numbers(1, 3000)};
            CREATE INDEX ON twice USING bloomset (k) WITH (false_positive_rate = 0.5);
            CREATE INDEX ON twice USING bloomset (k) WITH ({RARE})""")
        maybe = "SELECT count(*) FROM generate_series(5001, 6000) AS i WHERE bloomset_contains('twice', 'k', i)"
        ok(settled(session, maybe, ["0"]), "of two sets, any no is enough")
        finds_all(session, "twice", "two sets")


def test_columns_by_name():
    """Fails if the columns of a child are taken by number, or a leaf without a set counts as empty."""
    ask(f"""CREATE TABLE father (a int, k bigint, b text);
        CREATE INDEX ON father USING bloomset (k) WITH ({RARE});
        CREATE INDEX ON father USING bloomset (a) WITH ({RARE});
        CREATE TABLE son (k bigint, more bigint, b text, a int);
        ALTER TABLE son INHERIT father;
        INSERT INTO son (a, k, more) VALUES (8000, 9000, 7000)""")
    with Session() as session:
        same(session.ask(contains("father", 123456)), ["t"], "a child without a set answers maybe")
        session.each(*[f"CREATE INDEX ON son USING bloomset ({column}) WITH ({RARE})" for column in ("a", "more")])
        same(session.ask(contains("father", 123456)), ["t"], "so does one with sets of other columns")
        session.ask(f"CREATE INDEX ON son USING bloomset (k) WITH ({RARE})")
        ok(settled(session, contains("father", 123456)), "with a set of the column it answers")
        finds_all(session, "father", "a child with columns in another order")
        same(session.ask(contains("father", 7000)), ["f"], "not by the column that has the number of the parent's")
        answers = [session.ask(contains("father", value, "a")) for value in (8000, 9000)]
        same(answers, [["t"], ["f"]], "also for another column")


def test_relations():
    """Fails if a relation that is no table, or has no set, is denied."""
    make("here", numbers(1, 10))
    ask("CREATE VIEW viewed AS SELECT * FROM here; CREATE SEQUENCE counted; CREATE TABLE bare (k bigint); "
        "CREATE TABLE bare_tree (k bigint) PARTITION BY LIST (k)")  # fmt: skip
    with Session() as session:
        for relation, column in ("viewed", "k"), ("counted", "last_value"), ("here_k", "k"):
            same(session.attempt(contains(relation, 1, column))[1], "42809", f"{relation} is no table")
        for relation in "bare", "bare_tree":
            same(session.attempt(contains(relation, 1))[1], "55000", f"{relation} has no set")


def test_foreign_rows():
    """Fails if rows that are in no heap of this server are denied."""
    make("near", numbers(1, 10))
    with Session() as session:
        session.ask("CREATE FOREIGN DATA WRAPPER nowhere; CREATE SERVER bloomtype_nowhere FOREIGN DATA WRAPPER nowhere")
        try:
            session.ask(f"""CREATE FOREIGN TABLE away (k bigint) SERVER bloomtype_nowhere;
                CREATE TABLE wide (k bigint, p int) PARTITION BY LIST (p);
                CREATE TABLE wide_1 PARTITION OF wide FOR VALUES IN (1);
                CREATE INDEX wide_k ON wide USING bloomset (k) WITH ({RARE});
                INSERT INTO wide VALUES (1, 1)""")
            same(session.attempt(contains("away", 1))[1], "42809", "a foreign table is no table")
            ok(settled(session, contains("wide", 5)), "without a foreign partition")
            session.ask("CREATE FOREIGN TABLE wide_2 PARTITION OF wide FOR VALUES IN (2) SERVER bloomtype_nowhere")
            same(session.ask(contains("wide", 5)), ["t"], "a foreign partition answers maybe")
            same(session.ask("SELECT bloomset_partitions('wide', 'k', 5)"), ["wide_2"], "and is among the partitions")
            same(session.attempt("SELECT * FROM bloomset_filters('wide', 'k')")[1], "55000", "and has no filters")
            session.ask("ALTER FOREIGN TABLE away INHERIT near")
            same(session.ask(contains("near", 500)), ["t"], "a foreign child answers maybe")
        finally:
            session.ask("DROP FOREIGN DATA WRAPPER nowhere CASCADE")
        same(session.ask(contains("near", 500)), ["f"], "without it the set denies")


def test_access_methods():
    """Fails if a table may have another access method than heap."""
    make("heaped", numbers(1, 10))
    with Session() as session:
        session.ask("CREATE ACCESS METHOD pile TYPE TABLE HANDLER heap_tableam_handler")
        try:
            session.ask("CREATE TABLE piled (k bigint) USING pile; INSERT INTO piled VALUES (1)")
            _, state = session.attempt("CREATE INDEX ON piled USING bloomset (k)")
            same(state, "0A000", "a set of a table of another access method is refused")
            state = session.attempt("ALTER TABLE heaped SET ACCESS METHOD pile")[1]
            same(state, "0A000", "a table with a set cannot become one")
        finally:
            session.ask("DROP ACCESS METHOD pile CASCADE")
        finds_all(session, "heaped", "the table stays")


def test_detach_pending():
    """Fails if the leaves are those of the newest catalog: an old snapshot reads a partition that is being detached."""
    ask(f"""CREATE TABLE leaving (k bigint, p int) PARTITION BY LIST (p);
        CREATE TABLE leaving_1 PARTITION OF leaving FOR VALUES IN (1);
        CREATE TABLE leaving_2 PARTITION OF leaving FOR VALUES IN (2);
        CREATE INDEX leaving_k ON leaving USING bloomset (k) WITH ({RARE});
        INSERT INTO leaving VALUES (1, 1), (2, 2)""")
    with Session() as old, Session() as fetching, Session() as owner:
        fetching.each("BEGIN", "DECLARE c CURSOR FOR SELECT k FROM leaving WHERE k = 2")
        old.each("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM leaving")
        detaching = in_thread(owner.attempt, "ALTER TABLE leaving DETACH PARTITION leaving_2 CONCURRENTLY")
        wait_until_blocked(owner)
        same(fetching.ask("FETCH c"), ["2"], "an older cursor reads the partition")
        same(fetching.ask(contains("leaving", 2)), ["t"], "beside which a newer statement hears of the partition")
        fetching.ask("COMMIT")
        same(old.ask("SELECT k FROM leaving ORDER BY k"), ["1", "2"], "so does an old snapshot")
        finds_all(old, "leaving", "a partition that is being detached")
        same(old.ask(denied_by_index("leaving_k", "leaving")), [], "a partition that is being detached: by index")
        old.ask("COMMIT")
        same(result_of(detaching)[1], "00000", "the partition is detached")
        ok(settled(old, contains("leaving", 2)), "then the tree denies its value")
        same(old.ask(contains("leaving_2", 2)), ["t"], "which the table itself still has")


# Temporary tables and workers

def force_workers(session):
    """Lets workers run every query that may run in parallel."""
    session.ask(CHEAP_WORKERS + "SET max_parallel_workers_per_gather = 2; SELECT set_config(name, 'on', false) "
                "FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')")  # fmt: skip


def workers_of(session, query):
    plan = session.explain(query, ", ANALYZE, TIMING OFF")
    return sum(node.get("Workers Launched", 0) for node in plan)


def test_temporary_tables():
    """Fails if a worker reads a temporary set, whose newest pages only the leader has."""
    with Session(NO_WORKERS) as session:
        session.each("CREATE TEMP TABLE fleeting (k bigint)",
                     f"CREATE INDEX fleeting_k ON fleeting USING bloomset (k) WITH ({RARE}, expected_items = 10)",
                     f"INSERT INTO fleeting {numbers(1, 500)}")  # fmt: skip
        finds_all(session, "fleeting", "a temporary table")
        same(session.ask(contains("fleeting", 5000)), ["f"], "a temporary set denies")
        same(session.attempt(check("fleeting_k"))[1], "00000", "bloomset_check of a temporary set")
        force_workers(session)
        for query in contains("fleeting", 77), by_index("fleeting_k", 77), \
                "SELECT count(*) = 1 FROM bloomset_partitions('fleeting', 'k', 77)":  # fmt: skip
            workers = workers_of(session, query)
            same(session.ask(query), ["t"], f"in {workers} workers a temporary set does not deny: {query}")
        absent = contains("fleeting", 5000)
        same(session.ask(absent), ["t" if workers_of(session, absent) else "f"], "in a worker it says maybe")
        session.ask("SET max_parallel_workers_per_gather = 0")
        same(session.ask(absent), ["f"], "without one it denies")


def test_temporary_children():
    """Fails if a session reads temporary children of another one, or not its own."""
    make("mother")
    with Session(NO_WORKERS) as session, Session() as other:
        session.ask("CREATE TEMP TABLE child () INHERITS (mother); INSERT INTO child VALUES (7)")
        same(session.ask("SELECT k FROM mother"), ["7"], "a session sees the rows of its temporary child")
        same(session.ask(contains("mother", 7)), ["t"], "and finds them")
        same(session.ask(contains("mother", 8)), ["t"], "without a set the child answers maybe")
        same(other.ask("SELECT k FROM mother"), [], "another session does not see them")
        ok(settled(other, contains("mother", 8)), "nor does their lack of a set matter there")
        same(other.ask("SELECT count(*) FROM bloomset_filters('mother', 'k')"), ["1"], "nor to filters")
        same(other.ask("SELECT count(*) FROM bloomset_partitions('mother', 'k', 7)"), ["0"], "nor to partitions")
        session.ask(f"CREATE INDEX ON child USING bloomset (k) WITH ({RARE}); INSERT INTO child VALUES (9)")
        finds_all(session, "mother", "a temporary child with a set")
        same(session.ask(contains("mother", 8)), ["f"], "with a set it denies")


def test_workers():
    """Fails if a worker knows less than its leader: the rows and the indexes of the leader's transaction."""
    make("shared", numbers(1, 3000), options=f"{RARE}, expected_items = 100")
    with Session() as session:
        force_workers(session)
        query = "SELECT count(*) FROM shared WHERE NOT bloomset_contains('shared', 'k', k)"
        if not workers_of(session, query):
            return skip("workers", "none was launched")
        same(session.ask(query), ["0"], "workers find all")
        absent = "SELECT count(*) FROM shared WHERE bloomset_contains('shared', 'k', k + 1000000)"
        same(session.ask(absent), ["0"], "and deny what is absent")
        session.each("BEGIN", f"INSERT INTO shared {numbers(10000, 14000)}")
        same(session.ask(query), ["0"], "workers find what their transaction inserted")
        session.each("REINDEX INDEX shared_k", f"INSERT INTO shared {numbers(20000, 24000)}")
        same(session.ask(query), ["0"], "and what came after it rebuilt the index")
        session.each("ALTER INDEX shared_k SET (seed = 5)", "DROP INDEX shared_k",
                     f"CREATE INDEX shared_k2 ON shared USING bloomset (k) WITH ({RARE})",
                     "INSERT INTO shared VALUES (30000)")  # fmt: skip
        same(session.ask(query), ["0"], "and in an index that it made")
        session.ask("ROLLBACK")
        same(session.ask(query), ["0"], "and after it was rolled back")
        session.each("BEGIN ISOLATION LEVEL REPEATABLE READ", query)
        each("DELETE FROM shared WHERE k = 5", "INSERT INTO shared VALUES (40000)")
        same(session.ask(query), ["0"], "in an old snapshot, too")
        session.ask("COMMIT")
    return None


# Tools

def test_pg_amcheck():
    """Fails if pg_amcheck takes a set for an index that it can check, or finds fault with a table that has one."""
    if not shutil.which("pg_amcheck") or not ask("SELECT FROM pg_available_extensions WHERE name = 'amcheck'"):
        return skip("pg_amcheck", "it is not installed")
    make("sound", numbers(1, 500))
    ask(f"""INSERT INTO sound {numbers(501, 3000)};
        CREATE TABLE sound_tree (p int, k bigint PRIMARY KEY) PARTITION BY RANGE (k);
        CREATE TABLE sound_leaf PARTITION OF sound_tree FOR VALUES FROM (1) TO (1000);
        CREATE INDEX sound_tree_k ON sound_tree USING bloomset (k); INSERT INTO sound_tree (k) {numbers(1, 900)};
        CREATE UNLOGGED TABLE sound_unlogged AS {numbers(1, 500)};
        CREATE INDEX sound_unlogged_k ON sound_unlogged USING bloomset (i); CREATE EXTENSION amcheck""")
    same(ask("SELECT generations > 1 FROM bloomset_info('sound_k'::regclass)"), ["t"], "a set has grown")
    try:
        command = "pg_amcheck", "--verbose", "--heapallindexed", "--rootdescend"
        got = subprocess.run(command, capture_output=True, encoding="utf-8")
    finally:
        ask("DROP EXTENSION amcheck")
    said = got.stdout + got.stderr
    ok(got.returncode == 0 and "error" not in said, "pg_amcheck finds no fault", said)
    checked = set(re.findall(r"checking (?:heap table|btree index) \S*\b(sound\w*)", said))
    same(checked, {"sound", "sound_leaf", "sound_leaf_pkey", "sound_unlogged"}, "it reads tables and B-trees, and no set")
    return None


run(test_options_after_build, test_reserve, test_leaves_of_other_options, test_changed_types, test_collations, test_which_index,
    test_several_sets, test_columns_by_name, test_relations, test_foreign_rows, test_access_methods,
    test_detach_pending, test_temporary_tables, test_temporary_children, test_workers, test_pg_amcheck)  # fmt: skip
