#!/usr/bin/python3 -B
"""What a call site of bloomset_contains remembers, and the locks that it relies on: whatever another session, or its
own, does between two calls from one place, the second one does not deny what is there.

Each test says which precaution it fails without. The first call hears "no", so what it remembers would say so again.
"""

from bloomset_checks import (ELDER, GROVE, RARE, between_calls, by_index, check, contains, finds_all, make, make_calls,
                             numbers)
from session import NO_WORKERS, Session, ask, each, in_thread, result_of, run, wait_until_blocked
from tap import ok, same

# A worker takes locks of its own, until the end of the statement.
Session.settings = "SET client_min_messages = error; SET lock_timeout = '10s';" + NO_WORKERS
ROLE = "bloomtype_bloomset_calls"
GROUP = "bloomtype_bloomset_group"


# Indexes come and go

def test_call_after_rollback():
    """Fails if a call site remembers the index or its pages across the rollback of a subtransaction, which releases the
    locks, so that others can replace the index."""
    insert = "INSERT INTO undone VALUES (7)"
    another = f"CREATE INDEX undone_k ON undone USING bloomset (k) WITH ({RARE}, seed = 5)"
    second = "CREATE INDEX other_k ON undone USING bloomset (k) WITH (seed = 9)"
    changes = {
        "REINDEX INDEX": ["REINDEX INDEX undone_k", insert],
        "REINDEX TABLE": ["REINDEX TABLE undone", insert],
        "another index": ["DROP INDEX undone_k", another, insert],
        "a second index": [second, "DROP INDEX undone_k", insert],
        "TRUNCATE": ["TRUNCATE undone", insert],
        "VACUUM FULL": ["VACUUM FULL undone", insert],
        "growth": [f"INSERT INTO undone {numbers(1, 3000)}"],
        "ALTER TABLE": ["ALTER TABLE undone ADD COLUMN more float8 DEFAULT random()", insert],
        "other options": ["ALTER INDEX undone_k SET (seed = 77)", "REINDEX INDEX undone_k", insert],
    }
    for name, statements in changes.items():
        ask("DROP TABLE IF EXISTS undone")
        make("undone", numbers(100, 200))
        make_calls("undone")
        said = between_calls("SELECT ask_undone_undone(7)", *statements, name=f"first call undone, {name}")
        same(said, (["no yes "], "00000"), f"first call undone, then {name} and INSERT: the second finds the value")
        said = between_calls("SELECT ask_undone_undone(7)", "DELETE FROM undone WHERE k = 7", "VACUUM undone",
                             "REINDEX TABLE undone", name=f"{name}, and back")  # fmt: skip
        ok(said in [(["yes no "], "00000"), (["yes yes "], "00000")], f"{name}, then the value goes: no error", said)


def test_call_while_index_dies():
    """Fails if a call site goes on with an index that is replaced: REINDEX CONCURRENTLY stops to keep the old one
    current when all who hold a lock on the table have ended, and drops it later."""
    make("dying", numbers(100, 200))
    make_calls("dying")
    with Session() as asker, Session() as owner, Session() as first, Session() as second, Session() as other:
        asker.each("BEGIN", "SAVEPOINT here")
        same(asker.ask("SELECT ask_dying(7)"), ["f"], "the first call says no")
        asker.ask("ROLLBACK TO here")
        # It waits once before it declares the old index dead, and again before it drops it.
        first.ask("BEGIN; LOCK TABLE dying IN ACCESS SHARE MODE")
        rebuilding = in_thread(owner.attempt, "REINDEX INDEX CONCURRENTLY dying_k")
        wait_until_blocked(owner, first)
        second.ask("BEGIN; LOCK TABLE dying IN ACCESS SHARE MODE")
        first.ask("COMMIT")
        wait_until_blocked(owner, second)
        same(other.ask("SELECT indislive, indisready FROM pg_index JOIN pg_class ON oid = indexrelid "
                       "WHERE relname = 'dying_k_ccold'"), ["f|f"], "the old index is there, and dead")  # fmt: skip
        other.ask("INSERT INTO dying VALUES (7)")
        same(asker.ask("SELECT ask_dying(7)"), ["t"], "the second call finds the value in the new index")
        second.ask("COMMIT")
        asker.ask("COMMIT")
        same(result_of(rebuilding)[1], "00000", "REINDEX CONCURRENTLY ends")
        finds_all(asker, "dying", "after REINDEX CONCURRENTLY")


def test_index_dropped_between_calls():
    """Fails if a prepared statement or a function uses an index that has gone."""
    make("stripped", numbers(1, 100))
    make_calls("stripped")
    with Session() as asker, Session() as other:
        asker.ask("PREPARE prepared AS SELECT bloomset_contains('stripped', 'k', $1::bigint)")
        calls = "EXECUTE prepared (500)", "SELECT ask_stripped(500)"
        same([asker.ask(call) for call in calls for _ in range(6)], [["f"]] * 12, "the set denies a value")
        other.ask("DROP INDEX stripped_k")
        same([asker.attempt(call)[1] for call in calls], ["55000"] * 2, "without a set it is an error")
        other.each(f"CREATE INDEX another ON stripped USING bloomset (k) WITH ({RARE})",
                   "INSERT INTO stripped VALUES (500)")  # fmt: skip
        same([asker.ask(call) for call in calls], [["t"]] * 2, "another set is found")
        other.ask("DROP TABLE stripped")
        same(asker.attempt(calls[0])[1], "42P01", "without the table it is an error")
        make("stripped", numbers(1, 100))
        same([asker.ask(call) for call in calls], [["f"]] * 2, "a new table of the name is found")
        other.ask("INSERT INTO stripped VALUES (500)")
        same([asker.ask(call) for call in calls], [["t"]] * 2, "and what is put there")


# Locks

def test_locks_last():
    """Fails if a reader gives up its locks before the end of its transaction."""
    make("locked", numbers(100, 200))
    make_calls("locked")
    calls = [contains("locked", 7), by_index("locked_k", 7), "SELECT ask_locked(7)",
             "SELECT count(*) - 1 FROM bloomset_partitions('locked', 'k', 100)",
             "SELECT count(*) - 1 FROM bloomset_filters('locked', 'k')"]  # fmt: skip
    for call in calls:
        with Session() as asker, Session() as owner, Session() as other:
            asker.each("BEGIN", call)
            held = other.ask(f"""SELECT relation::regclass FROM pg_locks WHERE pid = {asker.pid} AND granted
                AND mode = 'AccessShareLock' AND relation::regclass::text ~ '^locked'""")
            same(sorted(held), ["locked", "locked_k"], f"{call}: locks table and index")
            rebuilding = in_thread(owner.attempt, "REINDEX INDEX CONCURRENTLY locked_k")
            wait_until_blocked(owner, asker)
            other.ask("INSERT INTO locked VALUES (7)")
            same(asker.ask(contains("locked", 7)), ["t"], f"{call}: the transaction finds what came meanwhile")
            asker.ask("COMMIT")
            same(result_of(rebuilding)[1], "00000", f"{call}: REINDEX CONCURRENTLY waits until the transaction ends")
            each("DELETE FROM locked WHERE k = 7", "REINDEX TABLE locked")


def test_locks_again():
    """Fails if a call site does not notice that a rollback has released its locks."""
    make("relocked", numbers(100, 200))
    make_calls("relocked")
    held = "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() " \
        "AND relation IN ('relocked'::regclass, 'relocked_k'::regclass)"
    with Session() as asker:
        asker.each("BEGIN", "SAVEPOINT here", "SELECT ask_relocked(7)")
        same(asker.ask(held), ["2"], "the first call locks table and index")
        asker.ask("ROLLBACK TO here")
        same(asker.ask(held), ["0"], "a rollback releases the locks")
        asker.ask("SELECT ask_relocked(7)")
        same(asker.ask(held), ["2"], "the next call locks them again")


def test_lock_order():
    """Fails with a deadlock if a reader by index locks the index before the table."""
    make("ordered", "VALUES (7)")
    on_index = "SELECT count(*) FROM pg_locks WHERE pid = {} AND granted AND relation = 'ordered_k'::regclass"
    with Session() as asker, Session() as owner, Session() as watcher:
        for call in by_index("ordered_k", 7), contains("ordered", 7), check("ordered_k"), \
                "SELECT count(*) FROM bloomset_info('ordered_k'::regclass)":  # fmt: skip
            owner.ask("BEGIN; LOCK TABLE ordered IN ACCESS EXCLUSIVE MODE")
            asking = in_thread(asker.attempt, call)
            wait_until_blocked(asker, owner)
            same(watcher.ask(on_index.format(asker.pid)), ["0"], f"{call}: waits without a lock on the index")
            same(owner.attempt("REINDEX TABLE ordered")[1], "00000", f"{call}: no deadlock")
            owner.ask("COMMIT")
            same(result_of(asking)[1], "00000", f"{call}: goes on")


# Trees

def test_partition_between_calls():
    """Fails if a call site remembers the leaves whatever has happened since."""
    changes = {
        "a partition attached": ["ALTER TABLE grove ATTACH PARTITION filled FOR VALUES IN (7)"],
        "a subpartition attached": ["ALTER TABLE grove_2 ATTACH PARTITION filled FOR VALUES IN (7)"],
        "a tree attached": ["CREATE TABLE trunk (p int, k bigint) PARTITION BY LIST (p)",
                            "ALTER TABLE trunk ATTACH PARTITION filled FOR VALUES IN (7)",
                            "ALTER TABLE grove ATTACH PARTITION trunk FOR VALUES IN (7, 8)"],
    }  # fmt: skip
    for name, statements in changes.items():
        ask(GROVE.format(", 7" if "grove_2" in statements[0] else ""))
        make_calls("grove")
        said = between_calls("SELECT ask_twice_grove(7)", *statements, name=name)
        same(said, (["no yes "], "00000"), f"{name} between two calls: the second finds its value")
        with Session() as session:
            finds_all(session, "grove", name)


def test_child_between_calls():
    """Fails as the test before, for children, of which the relation asked for may have had none or some."""
    changes = {
        "a child made": ["CREATE TABLE child () INHERITS (elder)", "INSERT INTO child VALUES (7)"],
        "a child joins": ["ALTER TABLE stray INHERIT elder"],
        "a grandchild joins": ["ALTER TABLE stray INHERIT younger"],
    }
    youngest = f"CREATE TABLE youngest () INHERITS (younger); CREATE INDEX ON youngest USING bloomset (k) WITH ({RARE})"
    for name, statements in changes.items():
        for before in "SELECT", youngest:
            ask(ELDER + before)
            make_calls("elder")
            said = between_calls("SELECT ask_twice_elder(7)", *statements, name=name)
            same(said, (["no yes "], "00000"), f"{name} between two calls: the second finds its value")


def test_same_snapshot():
    """Fails if a call does not accept invalidations: with the snapshot of the call before it looks for no sets anew
    unless one has come."""
    changes = {
        "grove": (GROVE.format(""), "ALTER TABLE grove ATTACH PARTITION filled FOR VALUES IN (7)"),
        "elder": (ELDER, "ALTER TABLE stray INHERIT elder"),
    }
    for table, (setup, change) in changes.items():
        ask(setup)
        make_calls(table)
        twice = f"BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT ask_twice_{table}(7); " \
            f"SELECT count(*) FROM {table} WHERE k + 0 = 7; COMMIT"  # fmt: skip
        said = between_calls(twice, change, name=table)
        same(said, (["no yes ", "1"], "00000"), f"{change} with one snapshot: the second call finds its value")


# Something else

def test_call_of_something_else():
    """Fails if a call site takes what it remembers of one relation, column or type for another."""
    for table, first in ("either", 1), ("neither", 51):
        make(table, numbers(first, first + 49), columns="k bigint, s text")
        ask(f"UPDATE {table} SET s = '{table[0]}' || k; CREATE INDEX ON {table} USING bloomset (s) WITH ({RARE})")
    say = "SELECT string_agg(bloomset_contains(t, c, v)::text, ' ' ORDER BY i) FROM (VALUES "
    with Session() as session:
        tables = say + "(1, 'either'::regclass, 'k'::name, 7), (2, 'neither', 'k', 7), " \
            "(3, 'either', 'k', 7)) AS x (i, t, c, v)"
        same(session.ask(tables), ["true false true"], "one call site, two tables")
        columns = say + "(1, 'either'::regclass, 's'::name, 'e7'), (2, 'either', 'k', '7'), (3, 'either', 's', '7'), " \
            "(4, 'either', 'k', '77')) AS x (i, t, c, v)"
        same(session.ask(columns), ["true true false false"], "one call site, two columns")
    ask("CREATE TABLE retyped (k bigint); INSERT INTO retyped VALUES (1); CREATE INDEX ON retyped USING bloomset (k)")
    make_calls("retyped")
    said = between_calls("SELECT ask_undone_retyped(7)", "ALTER TABLE retyped ALTER k TYPE text",
                         "INSERT INTO retyped VALUES ('7')", name="another type")  # fmt: skip
    ok(said in [(["no yes "], "00000"), ([], "42804")], "the type changes between two calls: not denied", said)


def test_rights_between_calls():
    """Fails if a call site remembers that the user may read."""
    make("secret", "VALUES (1)")
    make_calls("secret")
    ask(f"CREATE ROLE {ROLE}; CREATE ROLE {GROUP}; GRANT USAGE ON SCHEMA bloomtype_bloomset_calls TO {ROLE}")
    try:
        ask_as_another()
        ask_with_rights_that_go()
    finally:
        ask(f"DROP OWNED BY {ROLE}, {GROUP}; DROP ROLE {ROLE}, {GROUP}")


def ask_as_another():
    ask(f"""CREATE FUNCTION ask_as_two() RETURNS text LANGUAGE plpgsql AS $$
        DECLARE
            answers text := '';
            answer boolean;
        BEGIN
            FOR i IN 1..2 LOOP
                answer := bloomset_contains('secret', 'k', 1::bigint);
                answers := answers || answer;
                SET LOCAL ROLE {ROLE};
            END LOOP;
            RETURN answers;
        END $$""")
    with Session() as asker:
        asker.ask("BEGIN")
        same(asker.ask("SELECT ask_secret(1)"), ["t"], "the owner may ask")
        asker.ask(f"SET LOCAL ROLE {ROLE}")
        same(asker.attempt("SELECT ask_secret(1)")[1], "42501", "after SET ROLE the same call may not")
        asker.ask("ROLLBACK")
        same(asker.attempt("SELECT ask_as_two()")[1], "42501", "SET ROLE between two calls of a loop")
        asker.ask("PREPARE prepared AS SELECT bloomset_contains('secret', 'k', $1::bigint)")
        for _ in range(7):
            asker.ask("EXECUTE prepared (1)")
        asker.ask(f"SET ROLE {ROLE}")
        same(asker.attempt("EXECUTE prepared (1)")[1], "42501", "nor may a prepared statement")


def ask_with_rights_that_go():
    (database,) = ask("SELECT quote_ident(current_database())")
    rights = {
        "a grant of the column": (f"GRANT SELECT (k) ON secret TO {ROLE}", f"REVOKE SELECT (k) ON secret FROM {ROLE}"),
        "a grant of the table": (f"GRANT SELECT ON secret TO {ROLE}", f"REVOKE SELECT ON secret FROM {ROLE}"),
        "a role": (f"GRANT SELECT ON secret TO {GROUP}; GRANT {GROUP} TO {ROLE}", f"REVOKE {GROUP} FROM {ROLE}"),
        "ownership of the database": (f"GRANT SELECT ON secret TO pg_database_owner; "
                                      f"ALTER DATABASE {database} OWNER TO {ROLE}",
                                      f"ALTER DATABASE {database} OWNER TO CURRENT_USER"),
    }
    with Session(f"SET ROLE {ROLE}") as asker, Session() as other:
        for name, (grant, revoke) in rights.items():
            other.ask(grant)
            asker.ask("BEGIN")
            same(asker.ask("SELECT ask_secret(1)"), ["t"], f"with {name} it may")
            other.ask(revoke)
            same(asker.attempt("SELECT ask_secret(1)")[1], "42501", f"without {name}, in the same transaction, not")
            asker.ask("ROLLBACK")


run(test_call_after_rollback, test_call_while_index_dies, test_index_dropped_between_calls, test_locks_last,
    test_locks_again, test_lock_order, test_partition_between_calls, test_child_between_calls,
    test_same_snapshot, test_call_of_something_else, test_rights_between_calls)  # fmt: skip
