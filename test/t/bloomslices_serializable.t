#!/usr/bin/python3 -B
"""Sessions that meet at the rows that an index of bloomslices gives. SERIALIZABLE transactions that read by the index and
then write what the other has read are never both committed. An UPDATE, DELETE or SELECT FOR UPDATE that waits for another
session asks the new version of the row again, as after a sequential scan.
"""

from session import Session, ask, in_thread, result_of, run, until, wait_until_blocked, wide
from tap import ok, same

Session.settings = "SET client_min_messages = error; SET lock_timeout = '20s'; SET jit = off;"
BY_INDEX = "SET enable_seqscan = off; SET enable_indexscan = on; SET enable_bitmapscan = off; "
BY_BITMAP = "SET enable_seqscan = off; SET enable_indexscan = off; SET enable_bitmapscan = on; "
BY_SCAN = "SET enable_seqscan = on; SET enable_indexscan = off; SET enable_bitmapscan = off; "
PLANS = {"index": BY_INDEX, "bitmap": BY_BITMAP, "scan": BY_SCAN}
# Rows whose bits decide, and rows that are tested themselves, because their filters are sparse or of another seed.
ROWS = {"dense": "bloom_create(20)", "sparse": "bloom_create(10000)", "other seed": "bloom_create(20, 0.01, 'blocked', 5)"}


def make(table, empty):
    """Rows 1 .. 50, each with 20 keys that no other has."""
    ask(f"""DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (id int, n int DEFAULT 0, f bloomfilter);
        CREATE INDEX {table}_f ON {table} USING bloomslices (f) WITH (expected_items = 20);
        INSERT INTO {table} (id, f) SELECT i, bloom_agg((i * 100 + j)::bigint, {empty}) FROM generate_series(1, 50) AS i,
        generate_series(1, 20) AS j GROUP BY i""")  # fmt: skip


# SERIALIZABLE

READS = {
    "f @> key": "SELECT count(*) FROM crossed WHERE f @> {}::bigint",
    "bloom_contains_any": "SELECT count(*) FROM crossed WHERE bloom_contains_any(f, ARRAY[{0}, {0}]::bigint[])",
    "f @>= g": "SELECT count(*) FROM crossed WHERE f @>= bloom_add(bloom_create(20), {}::bigint)",
    "ORDER BY": "SELECT count(*) FROM (SELECT f <-> bloom_query({0}::bigint) AS d FROM crossed "
                "ORDER BY f <-> bloom_query({0}::bigint) LIMIT 1) AS s WHERE d = 0",
    "a join": "SELECT count(*) FROM (VALUES ({}::bigint)) AS v (key) JOIN crossed ON f @> key",
}  # fmt: skip
PRESENT, ABSENT = 1, 777777


def cross(isolation, settings, read):
    """Each of two transactions reads that a key is absent, and inserts a row with the key that the other has read."""
    with Session(settings) as one, Session(settings) as two:
        for session, key in (one, ABSENT), (two, ABSENT + 1):
            session.ask(f"BEGIN ISOLATION LEVEL {isolation}")
            same(session.ask(read.format(key)), ["0"], f"{isolation}: {key} is absent")
        states = {one: "00000", two: "00000"}
        insert = "INSERT INTO crossed (id, f) VALUES (0, bloom_add(bloom_create(20), {}::bigint))"
        for session, statement in (one, insert.format(ABSENT + 1)), (two, insert.format(ABSENT)), (one, "COMMIT"), \
                (two, "COMMIT"):  # fmt: skip
            if states[session] == "00000":
                states[session] = session.attempt(statement)[1]
        return sorted(states.values())


def test_crosswise():
    """Fails if a scan leaves no predicate lock on the index, or an insert does not look for one."""
    outcomes = {"SERIALIZABLE": ["00000", "40001"], "REPEATABLE READ": ["00000", "00000"]}
    for name, read in READS.items():
        for plan in ["index"] if name == "ORDER BY" else ["index", "bitmap"]:
            for isolation, states in outcomes.items():
                make("crossed", ROWS["dense"])
                with Session(PLANS[plan]) as session:
                    nodes = [node.get("Index Name") for node in session.explain(read.format(ABSENT))]
                ok("crossed_f" in nodes, f"{name}, {plan}: the plan uses the index", nodes)
                same(cross(isolation, PLANS[plan], read), states, f"{isolation}, {name}, {plan}")


def test_delete_crosswise():
    """The same for rows that are there: each transaction deletes the row that the other has found."""
    for isolation, states in ("SERIALIZABLE", ["00000", "40001"]), ("REPEATABLE READ", ["00000", "00000"]):
        make("crossed", ROWS["dense"])
        with Session(BY_INDEX) as one, Session(BY_INDEX) as two:
            for session, key in (one, 101), (two, 201):
                session.ask(f"BEGIN ISOLATION LEVEL {isolation}")
                same(session.ask(f"SELECT id FROM crossed WHERE f @> {key}::bigint AND id < 3"), [str(key // 100)], "found")
            got = [one.attempt("DELETE FROM crossed WHERE f @> 201::bigint AND id < 3")[1],
                   two.attempt("DELETE FROM crossed WHERE f @> 101::bigint AND id < 3")[1]]  # fmt: skip
            got = [session.attempt("COMMIT" if state == "00000" else "ROLLBACK")[1] if state == "00000" else state
                   for session, state in ((one, got[0]), (two, got[1]))]  # fmt: skip
        same(sorted(got), states, f"{isolation}, DELETE: {states[1]}")


def read_amid_insert(isolation):
    """A reader asks for the key of a row that a writer is adding to the index, and adds a row with the key for which the
    writer has asked before. Returns the SQLSTATEs of both, and whether the reader came while the writer was at work."""
    with Session(BY_INDEX) as writer, Session(BY_INDEX) as reader:
        for session in writer, reader:
            session.ask(f"BEGIN ISOLATION LEVEL {isolation}")
        same(writer.ask(f"SELECT count(*) FROM amid WHERE f @> {ABSENT}::bigint"), ["0"], f"{isolation}: no key yet")
        inserting = in_thread(writer.attempt, "INSERT INTO amid SELECT f FROM amid_source")
        until(lambda: inserting.done() or reader.ask(
            f"SELECT FROM pg_locks WHERE locktype = 'page' AND relation = 'amid_f'::regclass AND pid = {writer.pid}"),
            "a row is reserved")  # fmt: skip
        states = [None, reader.attempt(f"SELECT count(*) FROM amid WHERE f @> {PRESENT}::bigint")[1]]
        amid = not inserting.done()
        states[0] = result_of(inserting)[1]
        insert = f"INSERT INTO amid SELECT bloom_add(bloom_create(20), {ABSENT}::bigint)"
        for number, session, statement in (1, reader, insert), (0, writer, "COMMIT"), (1, reader, "COMMIT"):
            if states[number] == "00000":
                states[number] = session.attempt(statement)[1]
        return sorted(states), amid


def test_reader_amid_insert():
    """Fails if an insert does not look for readers once more when its entry is there: the server looks before."""
    ask(f"CREATE TABLE amid_source AS SELECT bloom_add({wide(1 << 28)}, {PRESENT}::bigint) AS f")
    for isolation, states in ("SERIALIZABLE", ["00000", "40001"]), ("REPEATABLE READ", ["00000", "00000"]):
        for _ in range(10):
            ask("DROP TABLE IF EXISTS amid; CREATE TABLE amid (f bloomfilter); ALTER TABLE amid ALTER f SET STORAGE external; "
                "CREATE INDEX amid_f ON amid USING bloomslices (f)")  # fmt: skip
            got, amid = read_amid_insert(isolation)
            if amid:
                break
        same((got, amid), (states, True), f"{isolation}: a reader amid an insert")


# Versions that come while a statement waits

CONDITIONS = {
    "f @> key": "f @> 101::bigint", "key <@ f": "101::bigint <@ f",
    "f @@ query": "f @@ bloom_query(ARRAY[101, 102]::bigint[])",
    "any": "bloom_contains_any(f, ARRAY[101, -1]::bigint[])", "all": "bloom_contains_all(f, ARRAY[101, 102]::bigint[])",
    "least": "bloom_contains_least(f, ARRAY[101, 102, 103, -1]::bigint[], 3)",
}  # fmt: skip
CHANGES = {
    "goes": ("UPDATE met SET f = bloom_create(20) WHERE id = 1", False),
    "stays": ("UPDATE met SET f = bloom_add(f, 5555::bigint) WHERE id = 1", True),
    "is null": ("UPDATE met SET f = NULL WHERE id = 1", False),
    "of another column": ("UPDATE met SET n = 7 WHERE id = 1", True),
    "is deleted": ("DELETE FROM met WHERE id = 1", False),
}  # fmt: skip
STATEMENTS = {
    "UPDATE": "UPDATE met SET n = n + 100 WHERE {} AND id < 10 RETURNING id",
    "DELETE": "DELETE FROM met WHERE {} AND id < 10 RETURNING id",
    "SELECT FOR UPDATE": "SELECT id FROM met WHERE {} AND id < 10 FOR UPDATE",
    "UPDATE FROM": "UPDATE met SET n = n + 100 FROM (VALUES (101), (-5)) AS v (key) WHERE met.f @> key::bigint AND {} "
                   "AND id < 10 RETURNING id",
}  # fmt: skip


def meet(settings, statement, change):
    """A statement that waits for a change: the ids that it gives."""
    with Session(settings) as session, Session() as other:
        other.each("BEGIN", change)
        asking = in_thread(session.attempt, statement)
        wait_until_blocked(session, other)
        other.ask("COMMIT")
        lines, state = result_of(asking)
        return lines if state == "00000" else state


def test_new_versions():
    """Fails if a row version that another session has made is not asked again, or by another question."""
    for rows, empty in ROWS.items():
        wrong, number = [], 0
        for name, condition in CONDITIONS.items():
            for kind, statement in STATEMENTS.items():
                for what, (change, there) in CHANGES.items():
                    number += 1
                    # Not all combinations, which take long
                    if number % 5 and not (kind == "UPDATE" and what in ("goes", "stays")):
                        continue
                    for plan in "index", "bitmap":
                        make("met", empty)
                        got = meet(PLANS[plan], statement.format(condition), change)
                        if got != (["1"] if there else []):
                            wrong.append(f"{plan}, {kind} WHERE {name}, row {what}: {got}")
        ok(not wrong, f"{rows}: a statement that has waited asks the new version", *wrong)


def test_new_versions_of_supersets():
    wrong = []
    for what, (change, there) in CHANGES.items():
        for plan in PLANS:
            make("met", ROWS["dense"])
            got = meet(PLANS[plan], "UPDATE met SET n = 1 WHERE f @>= bloom_add(bloom_create(20), 101::bigint) AND id < 10 "
                       "RETURNING id", change)  # fmt: skip
            if got != (["1"] if there else []):
                wrong.append(f"{plan}: row {what}: {got}")
    ok(not wrong, "f @>= g: a statement that has waited asks the new version", *wrong)


def test_nearest():
    """The nearest row is locked. If another session changes it meanwhile, its new version is given, as by a scan."""
    distance = "f <-> bloom_query(ARRAY[101, 102, 103]::bigint[])"
    statement = f"SELECT {distance} FROM met ORDER BY {distance} LIMIT 1 FOR UPDATE"
    for what in "goes", "stays", "is deleted":
        got = []
        for plan in "index", "scan":
            make("met", ROWS["dense"])
            got.append(meet(PLANS[plan], statement, CHANGES[what][0]))
        same(got[0], got[1], f"ORDER BY ... LIMIT 1 FOR UPDATE, row {what}: as by a scan")


run(test_crosswise, test_delete_crosswise, test_reader_amid_insert, test_new_versions, test_new_versions_of_supersets,
    test_nearest)  # fmt: skip
