#!/usr/bin/python3 -B
"""SERIALIZABLE transactions that read absence from a set: one that reads that a value is absent, and one that inserts
it, are never both committed if the first must then come before and after the second.

The precaution is a predicate lock on each index that says "no", as an index scan takes it. At REPEATABLE READ, and
where there is no cycle, all transactions commit.
"""

from bloomset_checks import RARE, USE_SETS, by_index, contains, make, make_calls, numbers, scan
from session import CHEAP_WORKERS, Session, ask, each, in_thread, result_of, run
from tap import same

Session.settings = "SET client_min_messages = error;"
WORKERS_ONLY = CHEAP_WORKERS + "SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = off;"

# Ways to read that a value is absent from a table: the query, and what it says then.
ABSENCE = {
    "contains": (contains("{t}", "{v}"), "f"),
    "contains by index": (by_index("{t}_k", "{v}"), "f"),
    "a function": ("SELECT ask_{t}({v})", "f"),
    "workers": (WORKERS_ONLY + "SELECT bool_or(bloomset_contains('{t}', 'k', {v})) FROM sundry", "f"),
    "partitions": ("SELECT count(*) FROM bloomset_partitions('{t}', 'k', {v})", "0"),
    "filters": ("SELECT bool_or(filter @> {v}::bigint) FROM bloomset_filters('{t}', 'k')", "f"),
    "a scan": (USE_SETS + scan("{t}", "{v}"), "0"),
}


def cross(kind, isolation, table, target, bits=False):
    """Two transactions each read that a value is absent from a table; then each inserts what the other has read into
    the target. With bits, these come into the set in between. Returns the SQLSTATEs."""
    with Session() as one, Session() as two:
        query, absent = ABSENCE[kind]
        for session, value in (one, 1), (two, 2):
            # A call in another transaction before: nothing of it may keep the next from being noticed.
            session.each(f"SELECT ask_{table}(-5)", f"BEGIN ISOLATION LEVEL {isolation}")
            same(session.ask(query.format(t=table, v=value))[-1], absent, f"{isolation}, {kind}: {value} is absent")
        if bits:
            ask(f"BEGIN; INSERT INTO {target} (k) VALUES (1), (2); ROLLBACK")
        states = {one: "00000", two: "00000"}
        insert = f"INSERT INTO {target} (k) VALUES "
        for session, statement in (one, insert + "(2)"), (two, insert + "(1)"), (one, "COMMIT"), (two, "COMMIT"):
            if states[session] == "00000":
                states[session] = session.attempt(statement)[1]
        return sorted(states.values())


def test_crosswise():
    """Fails if a reader leaves no predicate lock, or if an insert whose bits are set does not look for such locks."""
    ask("CREATE TABLE sundry AS SELECT i FROM generate_series(1, 1000) AS i; ANALYZE sundry")
    outcomes = {"SERIALIZABLE": (["00000", "40001"], "one of two is aborted"),
                "REPEATABLE READ": (["00000", "00000"], "both commit")}  # fmt: skip
    for bits in False, True:
        for kind in ABSENCE:
            for isolation, (states, what) in outcomes.items():
                ask("DROP TABLE IF EXISTS crossed")
                make("crossed", numbers(100, 110))
                make_calls("crossed")
                name = f"{isolation}, {kind}{', bits set meanwhile' if bits else ''}: {what}"
                same(cross(kind, isolation, "crossed", "crossed", bits), states, name)
    with Session(USE_SETS) as session:
        used = [node.get("Index Name") for node in session.explain(scan("crossed", 1))]
        same(used[-1], "crossed_k", "the scan was one by the set")


def test_trees():
    """Fails as the test before, for a leaf: the value comes into any of them."""
    ask(f"""CREATE TABLE leafy (k bigint, p int NOT NULL DEFAULT 2) PARTITION BY LIST (p);
        CREATE TABLE leafy_1 PARTITION OF leafy FOR VALUES IN (1);
        CREATE TABLE leafy_2 PARTITION OF leafy FOR VALUES IN (2);
        CREATE INDEX leafy_k ON leafy USING bloomset (k) WITH ({RARE});
        CREATE TABLE stem (k bigint);
        CREATE TABLE branch () INHERITS (stem);
        CREATE INDEX stem_k ON stem USING bloomset (k) WITH ({RARE});
        CREATE INDEX branch_k ON branch USING bloomset (k) WITH ({RARE})""")
    for table, target in ("leafy", "leafy"), ("stem", "branch"), ("stem", "stem"):
        make_calls(table)
        for kind in "contains", "partitions", "filters":
            ask(f"TRUNCATE {table}")
            same(cross(kind, "SERIALIZABLE", table, target), ["00000", "40001"],
                 f"{kind} of {table}, the value comes into {target}: one is aborted")  # fmt: skip


def test_with_a_table():
    """Fails as the first test, where only one of two dependencies goes through the set. The other is that the writer
    does not see the reader's row in the log; without that no transaction is aborted."""
    each("CREATE TABLE log (entry int)", "CREATE TABLE guarded (k bigint)",
         f"CREATE INDEX guarded_k ON guarded USING bloomset (k) WITH ({RARE})")  # fmt: skip
    for crosswise in True, False:
        for order in "reader first", "writer first":
            each("TRUNCATE log", "TRUNCATE guarded")
            with Session() as reader, Session() as writer:
                for session in reader, writer:
                    session.ask("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM pg_am")
                steps = [
                    (reader, contains("guarded", 1)), (reader, "INSERT INTO log VALUES (1)"),
                    (writer, "SELECT count(*) FROM log" if crosswise else "SELECT"),
                    (writer, "INSERT INTO guarded VALUES (1)"), (reader, "COMMIT"), (writer, "COMMIT"),
                ]  # fmt: skip
                if order == "writer first":
                    steps = [steps[i] for i in (2, 0, 1, 3, 5, 4)]
                states = [session.attempt(statement)[1] for session, statement in steps]
            what = "one is aborted" if crosswise else "without a cycle both commit"
            same("40001" in states, crosswise, f"{order}: {what}")


def test_reader_during_insert():
    """Fails if an insert does not look for readers once its bits are set: the server looks before, and a reader may
    come in between. The hash of a long value takes long enough for that. Readers come one after the other; the last one
    that sees an empty set stays."""
    ask(f"""CREATE TABLE notes (entry int); CREATE TABLE lengthy (s text);
        CREATE INDEX lengthy_s ON lengthy USING bloomset (s) WITH ({RARE})""")
    read = "BEGIN ISOLATION LEVEL SERIALIZABLE; INSERT INTO notes VALUES (1); " \
        "SELECT # filter > 0 FROM bloomset_filters('lengthy', 's')"  # fmt: skip
    for _ in range(3):
        ask("TRUNCATE notes; TRUNCATE lengthy")
        with Session() as writer, Session() as reader, Session() as next_reader:
            writer.ask("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM notes")
            reader.ask(read)
            writing = in_thread(writer.attempt, "INSERT INTO lengthy VALUES (repeat('x', 50000000))")
            while next_reader.ask(read) == ["f"]:
                reader.ask("ROLLBACK")
                reader, next_reader = next_reader, reader
            same(result_of(writing)[1], "00000", "the insert")
            states = [session.attempt("COMMIT")[1] for session in (reader, writer)]
        same(states, ["00000", "40001"], "the writer is aborted, which saw no row of a reader that saw none of its own")


run(test_crosswise, test_trees, test_with_a_table, test_reader_during_insert)
