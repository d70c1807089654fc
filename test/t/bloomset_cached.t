#!/usr/bin/python3 -B
"""What a backend keeps of a tree that it has found, and uses in a later transaction without a search: whatever happens
between the transactions, it denies nothing that is there, tells nobody who may not read, and has its locks again.

Each test says which precaution it fails without. The first question is answered "no", so what is kept would say so
again. What a call site remembers within a transaction is tested by bloomset_calls.t.
"""

from bloomset_checks import (ELDER, GROVE, RARE, by_index, contains, denied, denied_by_partitions, make, make_calls,
                             numbers)
from session import NO_WORKERS, Session, ask, each, in_thread, result_of, run, wait_until_blocked
from tap import note, ok, same

# A worker keeps nothing from one statement to the next.
Session.settings = "SET client_min_messages = error; SET lock_timeout = '10s';" + NO_WORKERS
ROLE = "bloomtype_bloomset_cached"
GROUP = "bloomtype_bloomset_cachers"

# All that search for the sets of a table's column.
WAYS = {
    "contains": "SELECT bloomset_contains('{}', 'k', 7)",
    "partitions": "SELECT count(*) > 0 FROM bloomset_partitions('{}', 'k', 7)",
    "filters": "SELECT bool_or(filter @> 7::bigint) FROM bloomset_filters('{}', 'k')",
    "call site": "SELECT ask_{}(7)",
    "prepared": "EXECUTE prepared (7)",
}


def answers(asker, table, undone):
    """What each way says of 7: yes, no, or the SQLSTATE."""
    said = {}
    for way, query in WAYS.items():
        if undone:
            asker.ask("SAVEPOINT way")
        lines, state = asker.attempt(query.format(table))
        said[way] = {"t": "yes", "f": "no"}[lines[0]] if state == "00000" else state
        if undone:
            asker.ask("RELEASE way" if state == "00000" else "ROLLBACK TO way")
    return said


def answers_change(name, table, setup, statements, undone=False):
    """A session that was told "no" by a tree, or by one that it has seen in a subtransaction only, is not told so again
    when another has put 7 there."""
    ask(setup)
    make_calls(table)
    with Session() as asker, Session() as other:
        asker.ask(f"PREPARE prepared AS SELECT bloomset_contains('{table}', 'k', $1::bigint)")
        if undone:
            asker.ask("BEGIN; SAVEPOINT here")
        for _ in range(2):
            said = answers(asker, table, undone)
            same(set(said.values()), {"no"}, f"{name}: before, every way says no")
        if undone:
            asker.ask("ROLLBACK TO here")
        states = [other.attempt(statement)[1] for statement in statements]
        same(set(states), {"00000"}, f"{name}: the other session is not held up")
        for _ in range(2):
            said = answers(asker, table, undone)
            # a tree of which a part has no set has no filters
            good = said.pop("filters") in ("yes", "55000") and set(said.values()) == {"yes"}
            ok(good, f"{name}: after, no way denies", said)
        if undone:
            asker.ask("COMMIT")
        for query in denied, denied_by_partitions:
            same(asker.ask(query(table)), [], f"{name}: nothing is missed")


# Changes

BUSH = """
DROP TABLE IF EXISTS bush CASCADE;
CREATE TABLE bush (k bigint, other bigint);
CREATE INDEX bush_k ON bush USING bloomset (k) WITH ({0}, expected_items = 100);
CREATE INDEX bush_other ON bush USING bloomset (other) WITH ({0}, expected_items = 100);
INSERT INTO bush SELECT i, i + 1000 FROM generate_series(100, 200) AS i;
""".format(RARE)
INSERT = "INSERT INTO bush VALUES (7, 1)"
ANOTHER = f"CREATE INDEX ON bush USING bloomset (k) WITH ({RARE}, seed = 3)"

CHANGES = {
    "grove": {
        "a partition attached": ["ALTER TABLE grove ATTACH PARTITION filled FOR VALUES IN (7)"],
        "a subpartition attached": ["ALTER TABLE grove_2 ATTACH PARTITION filled FOR VALUES IN (7)"],
        "a tree attached": ["CREATE TABLE trunk (p int, k bigint) PARTITION BY LIST (p)",
                            "ALTER TABLE trunk ATTACH PARTITION filled FOR VALUES IN (7)",
                            "ALTER TABLE grove ATTACH PARTITION trunk FOR VALUES IN (7, 8)"],
        "a partition made": ["CREATE TABLE grove_7 PARTITION OF grove FOR VALUES IN (7)",
                             "INSERT INTO grove VALUES (7, 7)"],
        "a partition replaced": ["ALTER TABLE grove DETACH PARTITION grove_1",
                                 "ALTER TABLE grove ATTACH PARTITION filled FOR VALUES IN (7)"],
        "a partition detached concurrently": ["ALTER TABLE grove DETACH PARTITION grove_1 CONCURRENTLY",
                                              "ALTER TABLE grove ATTACH PARTITION filled FOR VALUES IN (7)"],
        "a partition dropped and made": ["DROP TABLE grove_1",
                                         "CREATE TABLE grove_1 PARTITION OF grove FOR VALUES IN (1)",
                                         "INSERT INTO grove VALUES (1, 7)"],
        "a partition's set rebuilt": ["INSERT INTO grove VALUES (2, 7)", "REINDEX TABLE grove"],
        "a partition's set rebuilt concurrently": ["REINDEX TABLE CONCURRENTLY grove",
                                                   "INSERT INTO grove VALUES (2, 7)"],
        "the partitioned set made anew": [
            "DROP INDEX grove_k", f"CREATE INDEX grove_k ON grove USING bloomset (k) WITH ({RARE}, seed = 4)",
            "INSERT INTO grove VALUES (2, 7)"],
    },
    "elder": {
        "a child made": ["CREATE TABLE child () INHERITS (elder)", "INSERT INTO child VALUES (7)"],
        "a child joins": ["ALTER TABLE stray INHERIT elder"],
        "a grandchild joins": ["ALTER TABLE stray INHERIT younger"],
        "a child leaves, another joins": ["ALTER TABLE younger NO INHERIT elder", "ALTER TABLE stray INHERIT elder"],
        "a child loses its set": ["DROP INDEX younger_k_idx", "INSERT INTO younger VALUES (7)"],
        "a child loses its set concurrently": ["DROP INDEX CONCURRENTLY younger_k_idx",
                                               "INSERT INTO younger VALUES (7)"],
    },
    "bush": {
        "REINDEX INDEX": ["REINDEX INDEX bush_k", INSERT],
        "REINDEX INDEX CONCURRENTLY": ["REINDEX INDEX CONCURRENTLY bush_k", INSERT],
        "another index": ["DROP INDEX bush_k", ANOTHER, INSERT],
        "a second index": [ANOTHER, "DROP INDEX CONCURRENTLY bush_k", INSERT],
        "TRUNCATE": ["TRUNCATE bush", INSERT],
        "VACUUM FULL": ["VACUUM FULL bush", INSERT],
        "growth": [f"INSERT INTO bush {numbers(1, 3000)}"],
        "the table made anew": [BUSH, INSERT],
        "columns renamed": ["ALTER TABLE bush RENAME k TO was", "ALTER TABLE bush RENAME other TO k",
                            "INSERT INTO bush VALUES (1, 7)"],
        "another type": ["ALTER TABLE bush ALTER k TYPE int", INSERT],
        "a domain": ["DROP DOMAIN IF EXISTS whole CASCADE; CREATE DOMAIN whole AS bigint",
                     "ALTER TABLE bush ALTER k TYPE whole", INSERT],
    },
}  # fmt: skip
# These wait for the end of a transaction that has had the lock, or leave it with a name that it cannot look up.
NOT_DURING_TRANSACTION = "CONCURRENTLY", "CREATE TABLE bush"


def test_changes():
    """Fails if a tree is used after an invalidation, in whatever way it is asked."""
    for table, changes in CHANGES.items():
        for name, statements in changes.items():
            grove = GROVE.format(", 7" if name == "a subpartition attached" else "")
            setup = {"grove": grove, "elder": ELDER, "bush": BUSH}[table]
            answers_change(name, table, setup, statements)
            if not any(word in statement for statement in statements for word in NOT_DURING_TRANSACTION):
                answers_change(f"{name}, after ROLLBACK TO", table, setup, statements, undone=True)


def test_no_set_left():
    """Fails if a tree outlives its last set, or its table."""
    ask(BUSH)
    with Session() as asker:
        call, other = contains("bush", 7), by_index("bush_other", 7)
        same(asker.each(call, call, other, other), [["f"]] * 4, "the sets deny a value")
        (index,) = asker.ask("SELECT 'bush_other'::regclass::oid")
        each("DROP INDEX bush_k, bush_other")
        same(asker.attempt(call)[1], "55000", "without a set it is an error")
        same(asker.attempt(by_index(index, 7))[1], "42P01", "without the index, too")


def test_own_changes():
    """Fails if a tree that the transaction has made is used after it, or a subtransaction, was undone."""
    ask(BUSH)
    with Session() as asker, Session() as other:
        call = contains("bush", 7)
        make_another = f"{ANOTHER}; DROP INDEX bush_k"
        same(asker.each("BEGIN", make_another, call, call)[2:], [["f"]] * 2, "an index of the transaction")
        asker.ask("ROLLBACK")
        other.ask(INSERT)
        same(asker.ask(call), ["t"], "an index that was undone is not asked")
        other.ask(BUSH)
        same(asker.each("BEGIN", "SAVEPOINT here", make_another, call, call)[3:], [["f"]] * 2, "of a subtransaction")
        asker.ask("ROLLBACK TO here")
        other.ask(INSERT)
        same(asker.each(call, "COMMIT", call)[::2], [["t"]] * 2, "an index of a subtransaction that was undone")
        other.ask(BUSH + "CREATE TABLE twig () INHERITS (bush)")
        same(asker.each("BEGIN", "ALTER TABLE twig NO INHERIT bush", call)[2], ["f"], "a child leaves")
        asker.ask("ROLLBACK")
        other.ask("INSERT INTO twig VALUES (7)")
        same(asker.ask(call), ["t"], "a child that stays after all is asked")


def test_renamed_schema():
    """Fails if the name of the schema by which chunks of TimescaleDB are known is not looked at again."""
    each("CREATE SCHEMA sheds", "CREATE TABLE sheds.chunk (k bigint)",
         f"CREATE INDEX ON sheds.chunk USING bloomset (k) WITH ({RARE})")  # fmt: skip
    try:
        (table,) = ask("SELECT 'sheds.chunk'::regclass::oid")
        with Session() as asker, Session() as other:
            same(asker.each(*[contains(table, 7)] * 2), [["f"]] * 2, "a set in a schema of any name")
            other.ask("ALTER SCHEMA sheds RENAME TO _timescaledb_internal")
            same(asker.ask(contains(table, 7)), ["t"], "a chunk may have rows elsewhere")
            other.ask("ALTER SCHEMA _timescaledb_internal RENAME TO sheds")
            same(asker.ask(contains(table, 7)), ["f"], "and back")
    finally:
        ask("DROP SCHEMA IF EXISTS sheds, _timescaledb_internal CASCADE")


def test_something_else():
    """Fails if the tree of one relation or column is taken for that of another."""
    ask(BUSH + "INSERT INTO bush VALUES (1, 7);" + GROVE.format(""))
    make("second", "VALUES (7)")
    calls = {
        contains("bush", 7): "f", contains("bush", 7, "other"): "t", by_index("bush_k", 7): "f",
        by_index("bush_other", 7): "t", contains("second", 7): "t", contains("grove", 101): "t",
        contains("grove_1", 101): "f", by_index("grove_k", 101): "t", contains("grove_2", 101): "t",
        contains("filled", 7): "t", contains("filled", 101): "f",
    }  # fmt: skip
    with Session() as asker:
        for turn in range(3):
            same([asker.ask(call) for call in calls], [[answer] for answer in calls.values()], f"by turns, {turn}")
        mixed = " UNION ALL ".join(f"({call})" for call in calls)
        same(asker.ask(mixed), list(calls.values()), "in one statement")


# Locks

HELD = "SELECT relation::regclass::text FROM pg_locks WHERE pid = {} AND granted AND mode = 'AccessShareLock' " \
    "AND relation::regclass::text ~ '^grove' ORDER BY relation"  # fmt: skip


def test_locks_again():
    """Fails if a transaction that uses a tree lacks a lock of the one that has found it."""
    ask(GROVE.format(""))
    with Session() as finder, Session() as asker, Session() as other:
        for call in contains("grove", 7), by_index("grove_k", 7), WAYS["partitions"].format("grove"), \
                "SELECT elements FROM bloomset_info('grove_k'::regclass)":  # fmt: skip
            finder.each("BEGIN", call)
            held = other.ask(HELD.format(finder.pid))
            finder.ask("ROLLBACK")
            same(len(held), 8, f"{call}: locks four tables and their sets")
            for _ in range(2):
                asker.each("BEGIN", call)
                same(other.ask(HELD.format(asker.pid)), held, f"{call}: another transaction has the same locks")
                asker.ask("ROLLBACK")
            asker.each("BEGIN", "SAVEPOINT here", call, "ROLLBACK TO here")
            same(other.ask(HELD.format(asker.pid)), [], f"{call}: a rollback releases them")
            asker.ask(call)
            same(other.ask(HELD.format(asker.pid)), held, f"{call}: the next call has them again")
            asker.each("SAVEPOINT here", call, "RELEASE here", call)
            same(other.ask(HELD.format(asker.pid)), held, f"{call}: and a subtransaction hands them on")
            asker.ask("COMMIT")


def test_rebuilding_waits():
    """Fails as the test before: REINDEX CONCURRENTLY stops to keep an index current when nobody locks its table."""
    ask(GROVE.format(""))
    with Session() as asker, Session() as owner, Session() as other:
        same(asker.each(*[contains("grove", 7)] * 2), [["f"]] * 2, "in transactions before")
        same(asker.each("BEGIN", contains("grove", 7))[1], ["f"], "in this transaction")
        rebuilding = in_thread(owner.attempt, "REINDEX TABLE CONCURRENTLY grove_21")
        wait_until_blocked(owner, asker)
        other.ask("INSERT INTO grove VALUES (2, 7)")
        same(asker.ask(contains("grove", 7)), ["t"], "it finds what came meanwhile")
        asker.ask("COMMIT")
        same(result_of(rebuilding)[1], "00000", "REINDEX CONCURRENTLY waits until it ends")


def test_former_locks():
    """Fails if a transaction locks the relations of a tree that has changed since."""
    ask(GROVE.format(""))
    with Session() as asker, Session() as owner:
        same(asker.each(*[contains("grove", 7)] * 2), [["f"]] * 2, "before")
        owner.each("ALTER TABLE grove DETACH PARTITION grove_1", "BEGIN", "LOCK TABLE grove_1")
        same(asker.attempt(contains("grove", 7)), (["f"], "00000"), "what has left the tree holds nobody up")


def answers_after_wait(table, lock, *changes):
    """What a call answers, if the tree changes while it waits for locks; and what the next call answers."""
    with Session() as asker, Session() as owner:
        same(asker.each(*[contains(table, 7)] * 2), [["f"]] * 2, "before, it is denied")
        owner.each("BEGIN", lock, *changes)
        asking = in_thread(asker.attempt, contains(table, 7))
        wait_until_blocked(asker, owner)
        owner.ask("COMMIT")
        return result_of(asking), asker.ask(contains(table, 7))


def waits_for_change(name, table, setup, lock, *changes):
    """The tree changes while a transaction that uses it waits for its locks. If autovacuum has sent an invalidation just
    before, the call searches anew. Then it may know only the children that its snapshot sees, so it is tried again."""
    for _ in range(5):
        ask(setup)
        answer, later = answers_after_wait(table, lock, *changes)
        same(later, ["t"], f"{name}: not denied later")
        if answer == (["t"], "00000"):
            break
    same(answer, (["t"], "00000"), f"{name} while a call waits for a lock: not denied")


def test_change_while_locking():
    """Fails if invalidations are looked for before the locks are taken and not after."""
    waits_for_change("a partition attached", "grove", GROVE.format(", 7"), "LOCK TABLE ONLY grove_1",
                     "ALTER TABLE grove_2 ATTACH PARTITION filled FOR VALUES IN (7)")  # fmt: skip
    waits_for_change("a child joins", "elder", ELDER, "LOCK TABLE ONLY younger", "ALTER TABLE stray INHERIT elder")
    waits_for_change("a child's set dropped", "elder", ELDER, "LOCK TABLE ONLY younger",
                     "INSERT INTO younger VALUES (7)", "DROP INDEX younger_k_idx")  # fmt: skip
    waits_for_change("a child's set made anew", "elder", ELDER, "LOCK TABLE ONLY younger", "DROP INDEX younger_k_idx",
                     f"CREATE INDEX ON younger USING bloomset (k) WITH ({RARE}, seed = 2)",
                     "INSERT INTO younger VALUES (7)")  # fmt: skip


def test_change_while_searching():
    """Fails if a tree is kept that changed while it was searched."""
    ask(GROVE.format(""))
    with Session() as asker, Session() as owner, Session() as other:
        owner.each("BEGIN", "LOCK TABLE ONLY grove_21")
        asking = in_thread(asker.attempt, contains("grove", 7))
        wait_until_blocked(asker, owner)
        other.ask("ALTER TABLE grove ATTACH PARTITION filled FOR VALUES IN (7)")
        owner.ask("COMMIT")
        ok(result_of(asking)[1] == "00000", "the children of the root were found before one was attached")
        same(asker.each(*[contains("grove", 7)] * 2), [["t"]] * 2, "the next transaction knows it")


HEAVY = [f"heavy_{i}" for i in range(200)]


def answers_during_commit(asker, committing, call):
    """Whether the commit was visible, and the answer, again and again until it has ended."""
    while not committing.done():
        yield from asker.ask(f"SELECT EXISTS (SELECT FROM marker), ({call})")


# By the name of a table: what makes it, and its change by which it gets a child that has 7.
LONE = f"""
DROP TABLE IF EXISTS lone, stray CASCADE;
CREATE TABLE lone (k bigint){{}};
CREATE TABLE stray (k bigint);
INSERT INTO stray VALUES (7);
CREATE INDEX ON lone USING bloomset (k) WITH ({RARE});
CREATE INDEX ON stray USING bloomset (k) WITH ({RARE});
"""
NEW_CHILDREN = {
    "another child": ("elder", ELDER, "ALTER TABLE stray INHERIT elder"),
    "the first child": ("lone", LONE.format(""), "ALTER TABLE stray INHERIT lone"),
    "the first partition": ("lone", LONE.format(" PARTITION BY LIST (k)"),
                            "ALTER TABLE lone ATTACH PARTITION stray FOR VALUES IN (7)"),
}  # fmt: skip


def answers_to_new_child(table, setup, change):
    """The answers of two sessions while a child is added: in a transaction each, and in one."""
    ask(f"{setup}; DROP TABLE IF EXISTS marker; CREATE TABLE marker (i int); CREATE OR REPLACE FUNCTION ask() "
        f"RETURNS bool LANGUAGE plpgsql AS 'BEGIN RETURN bloomset_contains(''{table}'', ''k'', 7); END'")  # fmt: skip
    with Session() as asker, Session() as again, Session() as owner:
        owner.ask("".join(f"CREATE TABLE {table} (i text);" for table in HEAVY))
        again.ask("BEGIN")
        works = (asker, contains(table, 7)), (again, "SELECT ask()")
        for session, call in works:
            same(session.each(*[call] * 2), [["f"]] * 2, "before, it is denied")
        owner.each("BEGIN", change, "INSERT INTO marker VALUES (1)", "DROP TABLE " + ", ".join(HEAVY),
                   "PREPARE TRANSACTION 'bloomset_cached'")  # fmt: skip
        committing = in_thread(owner.attempt, "COMMIT PREPARED 'bloomset_cached'")
        seen = [in_thread(lambda *a: list(answers_during_commit(*a)), session, committing, call)
                for session, call in works]  # fmt: skip
        seen = [answer for future in seen for answer in result_of(future)]
        same(result_of(committing)[1], "00000", "the commit")
    return seen


def test_commit_before_invalidations():
    """Fails if a tree is used while a commit that adds a child is visible and its invalidations are not: COMMIT PREPARED
    removes the files of dropped tables in between. Fails for a first child also if a search trusts relhassubclass."""
    for name, (table, setup, change) in NEW_CHILDREN.items():
        seen = [answer for _ in range(6) for answer in answers_to_new_child(table, setup, change)]
        note(f"{name}: {len(seen)} answers during commits, {seen.count('t|t')} that saw one")
        same(seen.count("t|f"), 0, f"{name}: a commit that is visible is never denied")


# Privileges

def test_rights():
    """Fails if what is kept tells that the user may read."""
    ask(f"CREATE ROLE {ROLE}; CREATE ROLE {GROUP}; GRANT USAGE ON SCHEMA bloomtype_bloomset_cached TO {ROLE}")
    try:
        rights_that_go()
        other_user()
    finally:
        ask("ALTER DATABASE {} OWNER TO CURRENT_USER".format(*ask("SELECT quote_ident(current_database())")))
        ask(f"DROP OWNED BY {ROLE}, {GROUP}; DROP ROLE {ROLE}, {GROUP}")


CALLS = contains("bush", 7), by_index("bush_k", 7), WAYS["partitions"].format("bush"), \
    "SELECT count(*) = 0 FROM bloomset_filters('bush', 'k')", \
    "SELECT reindex_pays FROM bloomset_info('bush_k'::regclass)"


def rights_that_go():
    (database,) = ask("SELECT quote_ident(current_database())")
    rights = {
        "the column": (f"GRANT SELECT (k) ON bush TO {ROLE}", f"REVOKE SELECT (k) ON bush FROM {ROLE}"),
        "the table": (f"GRANT SELECT ON bush TO {ROLE}", f"REVOKE SELECT ON bush FROM {ROLE}"),
        "a role": (f"GRANT SELECT ON bush TO {GROUP}; GRANT {GROUP} TO {ROLE}", f"REVOKE {GROUP} FROM {ROLE}"),
        "the database": (f"GRANT SELECT ON bush TO pg_database_owner; ALTER DATABASE {database} OWNER TO {ROLE}",
                         f"ALTER DATABASE {database} OWNER TO CURRENT_USER"),
        "a superuser": (f"ALTER ROLE {ROLE} SUPERUSER", f"ALTER ROLE {ROLE} NOSUPERUSER"),
        "the owner": (f"ALTER TABLE bush OWNER TO {ROLE}", "ALTER TABLE bush OWNER TO CURRENT_USER"),
        "no row security": (f"GRANT SELECT ON bush TO {ROLE}", "ALTER TABLE bush ENABLE ROW LEVEL SECURITY"),
        "row security bypassed": (f"GRANT SELECT ON bush TO {ROLE}; ALTER TABLE bush ENABLE ROW LEVEL SECURITY; "
                                  f"ALTER ROLE {ROLE} BYPASSRLS", f"ALTER ROLE {ROLE} NOBYPASSRLS"),
        "an owner's row security": (f"ALTER TABLE bush OWNER TO {ROLE}; ALTER TABLE bush ENABLE ROW LEVEL SECURITY",
                                    "ALTER TABLE bush FORCE ROW LEVEL SECURITY"),
    }  # fmt: skip
    with Session(f"SET ROLE {ROLE}") as asker, Session() as other:
        for name, (grant, revoke) in rights.items():
            other.each(BUSH, grant)
            same({asker.attempt(call)[1] for call in CALLS * 2}, {"00000"}, f"{name}: it may")
            other.ask(revoke)
            same({asker.attempt(call)[1] for call in CALLS * 2}, {"42501"}, f"{name}, no longer: it may not")


def other_user():
    ask(BUSH)
    with Session() as asker:
        asker.ask("PREPARE prepared AS SELECT bloomset_contains('bush', 'k', $1::bigint)")
        calls = *CALLS, "EXECUTE prepared (7)"
        same({asker.attempt(call)[1] for call in calls * 2}, {"00000"}, "the owner may ask")
        asker.ask(f"SET ROLE {ROLE}")
        same({asker.attempt(call)[1] for call in calls}, {"42501"}, "after SET ROLE it may not")
        asker.ask("RESET ROLE; BEGIN")
        for call in CALLS:
            asker.each("SAVEPOINT here", call, f"SET LOCAL ROLE {ROLE}")
            same(asker.attempt(call)[1], "42501", f"after SET LOCAL ROLE in a transaction: {call}")
            asker.ask("ROLLBACK TO here")


# Memory

LEVELS = 400


def test_bounded():
    """Fails if a backend keeps all trees that it has seen, or those that are stale: each table of a chain of children
    has all below it in its tree."""
    ask("""DO $$ BEGIN FOR i IN 1..%d LOOP
        EXECUTE format('CREATE TABLE link_%%s (%%s) %%s', i, CASE WHEN i = 1 THEN 'k bigint' END,
            CASE WHEN i > 1 THEN format('INHERITS (link_%%s)', i - 1) END);
        EXECUTE format('CREATE INDEX ON link_%%s USING bloomset (k) WITH (%s, expected_items = 10)', i);
        EXECUTE format('INSERT INTO link_%%s VALUES (%%s)', i, i);
        END LOOP; END $$""" % (LEVELS, RARE))
    kept = "SELECT coalesce(sum(total_bytes), 0) FROM pg_backend_memory_contexts WHERE name = 'bloomset trees'"
    with Session() as asker:
        most, wrong = 0, []
        for turn in range(2):
            for level in range(1, LEVELS + 1):
                for value in level, level - 1:
                    if asker.ask(contains(f"link_{level}", value)) != ["t" if value == level else "f"]:
                        wrong.append((level, value))
                most = max(most, int(asker.ask(kept)[0]))
        same(wrong, [], f"trees of 1 to {LEVELS} tables answer")
        ok(800000 < most < 1200000, "the backend keeps 1 MB of them", most)
        for _ in range(300):
            ask("ALTER TABLE link_1 SET (fillfactor = 90)")
            asker.ask(contains("link_1", 0))
        ok(int(asker.ask(kept)[0]) < 100000, "what is stale is discarded", asker.ask(kept))


run(test_changes, test_no_set_left, test_own_changes, test_renamed_schema, test_something_else, test_locks_again,
    test_rebuilding_waits, test_former_locks, test_change_while_locking, test_change_while_searching,
    test_commit_before_invalidations, test_rights, test_bounded)  # fmt: skip
