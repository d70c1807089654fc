#!/usr/bin/python3 -B
"""The ways to a false "no", one after the other: a set never denies what the asking statement's snapshot sees.

In each test sessions meet at a fixed point, where a set that lacked one of its precautions would deny a row that is
there. Each says in its comment which precaution that is. The tests that a set must also deny what is absent keep one
that always answers "maybe" from passing. The rates of the sets are so low that no absent value of a test is taken for
present. Standbys, promotion and crashes are in test/durability/bloomset.t.
"""

import contextlib
import random
import time

from bloomset_checks import (PATIENCE, RARE, USE_SETS, denied, denied_by_filters, denied_by_index, denied_by_partitions,
                             denied_by_scan, settled, wait_until_blocked)
from session import CHEAP_WORKERS, Session, ask, each, in_thread, run
from tap import note, ok, same, skip

Session.settings = "SET client_min_messages = error; SET lock_timeout = '10s';"
ROLE = "bloomtype_bloomset_traps"
GROUP = "bloomtype_bloomset_group"


def contains(table, value, column="k"):
    return f"SELECT bloomset_contains('{table}', '{column}', {value})"


def by_index(index, value):
    return f"SELECT bloomset_contains('{index}'::regclass, {value})"


def scan(table, value, column="k"):
    return f"SELECT count(*) FROM {table} WHERE {column} = {value}"


def make(table, rows="", columns="k bigint", options=f"{RARE}, expected_items = 100"):
    """Makes a table with a set of its column k, and these values there."""
    ask(f"CREATE TABLE {table} ({columns})")
    if rows:
        ask(f"INSERT INTO {table} (k) {rows}")
    ask(f"CREATE INDEX {table}_k ON {table} USING bloomset (k) WITH ({options})")


def numbers(first, last):
    return f"SELECT i FROM generate_series({first}, {last}) AS i"


def result_of(future):
    return future.result(PATIENCE)


def finds_all(session, table, name):
    """No row that the session sees is missed, in any way to ask."""
    for kind, query in (("contains", denied), ("partitions", denied_by_partitions), ("filters", denied_by_filters)):
        same(session.ask(query(table)), [], f"{name}: {kind}")


def answers_from(session, table, index, value, name):
    """What a session must hear of a value that it alone sees: never "no", in any way to ask."""
    same(session.ask(f"SELECT count(*) FROM {table} WHERE k + 0 = {value}"), ["1"], f"{name}: the row is visible")
    same(session.ask(contains(table, value)), ["t"], f"{name}: contains by column")
    same(session.ask(by_index(index, value)), ["t"], f"{name}: contains by index")
    same(session.ask(f"SELECT bloomset_partitions('{table}', 'k', {value})"), [table], f"{name}: partitions")
    same(session.ask(USE_SETS + scan(table, value)), ["1"], f"{name}: the scan")
    session.ask("SAVEPOINT here")
    lines, state = session.attempt(f"SELECT bool_or(filter @> {value}::bigint) FROM bloomset_filters('{table}', 'k')")
    ok(state == "55000" or lines == ["t"], f"{name}: the filters have it, or are refused", lines, state)
    session.ask("ROLLBACK TO here; RESET enable_seqscan; RESET enable_indexscan; RESET enable_indexonlyscan")


# Fresh sets and old snapshots

def test_broken_hot_chain():
    """Fails if readers ignore indcheckxmin: CREATE INDEX enters only the newest version of a HOT chain."""
    for isolation in "REPEATABLE READ", "SERIALIZABLE":
        table = "hot_" + isolation[0].lower()
        each(f"CREATE TABLE {table} (k bigint)", f"INSERT INTO {table} VALUES (1), (3), (5)")
        with Session() as old, Session() as new:
            old.each(f"BEGIN ISOLATION LEVEL {isolation}", f"SELECT count(*) FROM {table}")
            new.each(f"UPDATE {table} SET k = 2 WHERE k = 1", f"DELETE FROM {table} WHERE k = 5",
                     f"CREATE INDEX {table}_k ON {table} USING bloomset (k) WITH ({RARE})")  # fmt: skip
            same(new.ask(f"SELECT indcheckxmin FROM pg_index WHERE indexrelid = '{table}_k'::regclass"), ["t"],
                 "PostgreSQL marks the index as unusable for old snapshots")  # fmt: skip
            answers_from(old, table, f"{table}_k", 1, f"{isolation}, a version that the index lacks")
            answers_from(old, table, f"{table}_k", 5, f"{isolation}, a row deleted before the index was made")
            old.ask("COMMIT")
            ok(settled(new, contains(table, 1)), f"{isolation}: when the old snapshot has gone, the set denies the old version")
            same(new.ask(contains(table, 2)), ["t"], f"{isolation}: and has the new one")


def test_imported_snapshot():
    """Fails as the test before, in a session that began later and imports the old snapshot."""
    each("CREATE TABLE handed (k bigint)", "INSERT INTO handed VALUES (1)")
    with Session() as old, Session() as new, Session() as other:
        old.ask("BEGIN ISOLATION LEVEL REPEATABLE READ")
        (snapshot,) = old.ask("SELECT pg_export_snapshot()")
        new.each("UPDATE handed SET k = 2", f"CREATE INDEX handed_k ON handed USING bloomset (k) WITH ({RARE})")
        other.each("BEGIN ISOLATION LEVEL REPEATABLE READ", f"SET TRANSACTION SNAPSHOT '{snapshot}'")
        answers_from(other, "handed", "handed_k", 1, "an imported snapshot")


def test_cursor():
    """Fails if "fresh" is judged by a newer snapshot than the one that the statement uses."""
    each("CREATE TABLE fetched (k bigint)", "INSERT INTO fetched VALUES (1)")
    with Session() as old, Session() as new:
        old.each("BEGIN", "DECLARE c CURSOR FOR SELECT count(*), bloomset_contains('fetched', 'k', 1) FROM fetched "
                 "WHERE k + 0 = 1 GROUP BY ()")  # fmt: skip
        new.each("UPDATE fetched SET k = 2", f"CREATE INDEX fetched_k ON fetched USING bloomset (k) WITH ({RARE})")
        old.ask("SELECT count(*) FROM fetched")
        same(old.ask("FETCH c"), ["1|t"], "a cursor's snapshot is older than the index")
        # The transaction's own changes are invisible to its older cursor.
        each("CREATE TABLE own (k bigint)", "INSERT INTO own VALUES (1)")
        new.each("BEGIN", "DECLARE c CURSOR FOR SELECT bloomset_contains('own', 'k', 1)", "UPDATE own SET k = 2",
                 f"CREATE INDEX own_k ON own USING bloomset (k) WITH ({RARE})", "SELECT count(*) FROM own")  # fmt: skip
        same(new.ask("FETCH c"), ["t"], "the cursor of a transaction that updates and makes the index")


def test_reindex_and_recently_dead():
    """Fails if an update of the column stays a HOT update (amsummarizing), or a build skips rows that are dead, but that
    an old snapshot sees."""
    for how in "REINDEX INDEX versions_k", "REINDEX TABLE versions", "VACUUM FULL versions", "REINDEX INDEX CONCURRENTLY versions_k":
        ask("DROP TABLE IF EXISTS versions")
        make("versions", "VALUES (1), (3), (5)")
        ask("CREATE TABLE IF NOT EXISTS anchor ()")
        with Session() as old, Session() as new:
            old.each("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM anchor")
            new.each("UPDATE versions SET k = 2 WHERE k = 1", "DELETE FROM versions WHERE k = 5")
            if "CONCURRENTLY" in how:
                # It waits for the old snapshot before the new index replaces the old one.
                rebuilding = in_thread(new.attempt, how)
                with Session() as watcher:
                    wait_until_blocked(watcher, new, old)
            else:
                new.ask(how)
            answers_from(old, "versions", "versions_k", 1, f"{how}, a version updated before")
            answers_from(old, "versions", "versions_k", 5, f"{how}, a row deleted before")
            old.ask("COMMIT")
            if "CONCURRENTLY" in how:
                same(result_of(rebuilding)[1], "00000", f"{how} ends")
            new.ask("REINDEX TABLE versions")
            ok(settled(new, contains("versions", 5)), f"{how}: rebuilt later, the set denies the row")


# What a call site remembers

# The second call comes from the same place in the same function, after a wait for the lock that another session has.
CALLS = """
CREATE FUNCTION ask_{name}(x bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN {call};
END $$;
CREATE FUNCTION ask_twice_{name}(x bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answers text := '';
    answer boolean;
BEGIN
    FOR i IN 1..2 LOOP
        answer := {call};
        answers := answers || CASE WHEN answer THEN 'yes ' ELSE 'no ' END;
        IF i = 1 THEN PERFORM pg_advisory_xact_lock(4711); END IF;
    END LOOP;
    RETURN answers;
END $$;
CREATE FUNCTION ask_undone_{name}(x bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answers text := '';
    answer boolean;
BEGIN
    FOR i IN 1..2 LOOP
        BEGIN
            answer := {call};
            IF i = 1 THEN RAISE EXCEPTION 'undone'; END IF;
        EXCEPTION WHEN raise_exception THEN NULL;
        END;
        answers := answers || CASE WHEN answer THEN 'yes ' ELSE 'no ' END;
        IF i = 1 THEN PERFORM pg_advisory_xact_lock(4711); END IF;
    END LOOP;
    RETURN answers;
END $$;
"""


def make_calls(table):
    ask(CALLS.format(name=table, call=f"bloomset_contains('{table}', 'k', x)"))


def between_calls(call, *statements, before=(), name):
    """Runs statements in another session between the two calls of a function. Returns what the function says, and its
    SQLSTATE."""
    with Session() as asker, Session() as other, Session() as watcher:
        asker.each(*before)
        other.ask("SELECT pg_advisory_lock(4711)")
        asking = in_thread(asker.attempt, call)
        wait_until_blocked(watcher, asker, other)
        states = [other.attempt(statement)[1] for statement in statements]
        same(set(states), {"00000"}, f"{name}: the other session is not held up")
        other.ask("SELECT pg_advisory_unlock(4711)")
        return result_of(asking)


def test_call_after_rollback():
    """Fails if a call site remembers the index, its pages or its locks across the rollback of a subtransaction, which
    releases the locks, so that others can replace the index."""
    insert = "INSERT INTO undone VALUES (7)"
    changes = {
        "REINDEX INDEX": ["REINDEX INDEX undone_k", insert],
        "REINDEX TABLE": ["REINDEX TABLE undone", insert],
        "another index": ["DROP INDEX undone_k", f"CREATE INDEX undone_k ON undone USING bloomset (k) WITH ({RARE}, seed = 5)",
                          insert],
        "an index before": ["CREATE INDEX other_k ON undone USING bloomset (k) WITH (seed = 9)", "DROP INDEX undone_k", insert],
        "TRUNCATE": ["TRUNCATE undone", insert],
        "VACUUM FULL": ["VACUUM FULL undone", insert],
        "growth": ["INSERT INTO undone SELECT i FROM generate_series(1, 3000) AS i"],
        "ALTER TABLE": ["ALTER TABLE undone ADD COLUMN more float8 DEFAULT random()", "INSERT INTO undone VALUES (7)"],
        "other options": ["ALTER INDEX undone_k SET (seed = 77, expected_items = 5000)", "REINDEX INDEX undone_k", insert],
    }  # fmt: skip
    for name, statements in changes.items():
        ask("DROP TABLE IF EXISTS undone; DROP FUNCTION IF EXISTS ask_undone, ask_twice_undone, ask_undone_undone")
        make("undone", numbers(100, 200))
        make_calls("undone")
        said = between_calls("SELECT ask_undone_undone(7)", *statements, name=f"first call undone, {name}")
        same(said, (["no yes "], "00000"), f"first call undone, then {name} and INSERT elsewhere: the second finds the value")
        said = between_calls("SELECT ask_undone_undone(7)", "DELETE FROM undone WHERE k = 7", "VACUUM undone",
                             "REINDEX TABLE undone", name=f"{name}, and back")  # fmt: skip
        ok(said in [(["yes no "], "00000"), (["yes yes "], "00000")], f"{name}, then the value goes: no error", said)


def test_call_of_something_else():
    """Fails if a call site takes what it remembers of one relation, column or type for another."""
    make("either", numbers(1, 50), columns="k bigint, s text")
    make("neither", numbers(51, 99), columns="k bigint, s text")
    ask("UPDATE either SET s = 'e' || k; UPDATE neither SET s = 'n' || k; "
        f"CREATE INDEX ON either USING bloomset (s) WITH ({RARE}); CREATE INDEX ON neither USING bloomset (s) WITH ({RARE})")
    calls = "(VALUES (1, 'either'::regclass, 'k'::name, {0}), (2, 'neither', 'k', {0}), (3, 'either', 'k', {0})) AS c (i, t, n, v)"
    with Session() as session:
        same(session.ask("SELECT string_agg(bloomset_contains(t, n, v)::text, ' ' ORDER BY i) FROM " + calls.format(7)),
             ["true false true"], "one call site, two tables")  # fmt: skip
        columns = "SELECT string_agg(bloomset_contains('either', n::name, v)::text, ' ') FROM " \
            "(VALUES ('s', 'e7'), ('k', '7'), ('s', '7'), ('k', '77')) AS c (n, v)"
        same(session.ask(columns), ["true true false false"], "one call site, two columns")
    ask("CREATE TABLE retyped (k bigint); INSERT INTO retyped VALUES (1); CREATE INDEX ON retyped USING bloomset (k)")
    make_calls("retyped")
    said = between_calls("SELECT ask_undone_retyped(7)", "ALTER TABLE retyped ALTER k TYPE text", "INSERT INTO retyped VALUES ('7')",
                         name="another type")  # fmt: skip
    ok(said in [(["no yes "], "00000"), ([], "42804")], "the type changes between two calls: not denied", said)


def test_call_while_index_dies():
    """Fails as the test before, and if readers hold no lock on the table: REINDEX CONCURRENTLY stops to keep the old index
    current when all who hold one have ended, and drops it later."""
    make("dying", numbers(100, 200))
    make_calls("dying")
    with Session() as asker, Session() as owner, Session() as first, Session() as second, Session() as other:
        asker.each("BEGIN", "SAVEPOINT here")
        same(asker.ask("SELECT ask_dying(7)"), ["f"], "the first call says no")
        asker.ask("ROLLBACK TO here")
        # It waits once before it declares the old index dead, and again before it drops it.
        first.ask("BEGIN; LOCK TABLE dying IN ACCESS SHARE MODE")
        rebuilding = in_thread(owner.attempt, "REINDEX INDEX CONCURRENTLY dying_k")
        wait_until_blocked(other, owner, first)
        second.ask("BEGIN; LOCK TABLE dying IN ACCESS SHARE MODE")
        first.ask("COMMIT")
        wait_until_blocked(other, owner, second)
        same(other.ask("SELECT indislive, indisready FROM pg_index JOIN pg_class ON oid = indexrelid "
                       "WHERE relname = 'dying_k_ccold'"), ["f|f"], "the old index is there, and dead")  # fmt: skip
        other.ask("INSERT INTO dying VALUES (7)")
        same(asker.ask("SELECT ask_dying(7)"), ["t"], "the second call, after ROLLBACK TO, finds the value in the new index")
        second.ask("COMMIT")
        asker.ask("COMMIT")
        same(result_of(rebuilding)[1], "00000", "REINDEX CONCURRENTLY ends")
        finds_all(asker, "dying", "after REINDEX CONCURRENTLY")


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
                AND mode = 'AccessShareLock' AND relation::regclass::text ~ '^locked' ORDER BY 1::text""")
            same(sorted(held), ["locked", "locked_k"], f"{call}: locks table and index")
            rebuilding = in_thread(owner.attempt, "REINDEX INDEX CONCURRENTLY locked_k")
            wait_until_blocked(other, owner, asker)
            other.ask("INSERT INTO locked VALUES (7)")
            same(asker.ask(contains("locked", 7)), ["t"], f"{call}: later the same transaction finds what came meanwhile")
            asker.ask("COMMIT")
            same(result_of(rebuilding)[1], "00000", f"{call}: REINDEX CONCURRENTLY waits for the end of the transaction")
            each("DELETE FROM locked WHERE k = 7", "REINDEX TABLE locked")


def test_locks_again():
    """Fails if a call site that remembers its sets does not notice that a rollback has released their locks."""
    make("relocked", numbers(100, 200))
    make_calls("relocked")
    held = "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND relation IN ('relocked'::regclass, 'relocked_k'::regclass)"
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
    with Session() as asker, Session() as owner, Session() as watcher:
        for call in by_index("ordered_k", 7), contains("ordered", 7), "SELECT bloomset_check('ordered_k'::regclass)", \
                "SELECT count(*) FROM bloomset_info('ordered_k'::regclass)":  # fmt: skip
            owner.ask("BEGIN; LOCK TABLE ordered IN ACCESS EXCLUSIVE MODE")
            asking = in_thread(asker.attempt, call)
            wait_until_blocked(watcher, asker, owner)
            same(watcher.ask(f"""SELECT count(*) FROM pg_locks WHERE pid = {asker.pid} AND granted
                AND relation = 'ordered_k'::regclass"""), ["0"], f"{call}: waits for the table without a lock on the index")
            same(owner.attempt("REINDEX TABLE ordered")[1], "00000", f"{call}: no deadlock")
            owner.ask("COMMIT")
            same(result_of(asking)[1], "00000", f"{call}: goes on")


def test_tree_between_calls():
    """Fails if a call site remembers the leaves, or does not accept invalidations before each call."""
    changes = {
        "a partition attached": ["ALTER TABLE grove ATTACH PARTITION filled FOR VALUES IN (7)"],
        "a subpartition attached": ["ALTER TABLE grove_2 ATTACH PARTITION filled FOR VALUES IN (7)"],
        "a tree attached": ["CREATE TABLE trunk (p int, k bigint) PARTITION BY LIST (p)",
                            "ALTER TABLE trunk ATTACH PARTITION filled FOR VALUES IN (7)",
                            "ALTER TABLE grove ATTACH PARTITION trunk FOR VALUES IN (7, 8)"],
    }  # fmt: skip
    for name, statements in changes.items():
        ask(f"""
            DROP TABLE IF EXISTS grove, filled, trunk CASCADE;
            DROP FUNCTION IF EXISTS ask_grove, ask_twice_grove, ask_undone_grove;
            CREATE TABLE grove (p int, k bigint) PARTITION BY LIST (p);
            CREATE TABLE grove_1 PARTITION OF grove FOR VALUES IN (1);
            CREATE TABLE grove_2 PARTITION OF grove FOR VALUES IN ({'2, 7' if 'sub' in name else '2'}) PARTITION BY LIST (p);
            CREATE TABLE grove_21 PARTITION OF grove_2 FOR VALUES IN (2);
            CREATE INDEX grove_k ON grove USING bloomset (k) WITH ({RARE}, expected_items = 100);
            INSERT INTO grove SELECT 1 + i % 2, i FROM generate_series(100, 200) AS i;
            CREATE TABLE filled (p int, k bigint);
            INSERT INTO filled VALUES (7, 7);
            CREATE INDEX filled_k ON filled USING bloomset (k) WITH ({RARE}, seed = 6);
        """)
        make_calls("grove")
        said = between_calls("SELECT ask_twice_grove(7)", *statements, name=name)
        same(said, (["no yes "], "00000"), f"{name} between two calls: the second finds its value")
        with Session() as session:
            finds_all(session, "grove", name)
    changes = {
        "a child made": ["CREATE TABLE child () INHERITS (elder)", "INSERT INTO child VALUES (7)"],
        "a child joins": ["ALTER TABLE stray INHERIT elder"],
        "a grandchild joins": ["ALTER TABLE stray INHERIT younger"],
    }
    for name, statements in changes.items():
        for second in False, True:
            ask(f"""
                DROP TABLE IF EXISTS elder, stray CASCADE;
                DROP FUNCTION IF EXISTS ask_elder, ask_twice_elder, ask_undone_elder;
                CREATE TABLE elder (k bigint);
                CREATE TABLE younger () INHERITS (elder);
                CREATE TABLE stray (k bigint);
                INSERT INTO stray VALUES (7);
                CREATE INDEX ON elder USING bloomset (k) WITH ({RARE});
                CREATE INDEX ON younger USING bloomset (k) WITH ({RARE});
                CREATE INDEX ON stray USING bloomset (k) WITH ({RARE});
            """)
            if second:
                ask("CREATE TABLE youngest () INHERITS (younger); CREATE INDEX ON youngest USING bloomset (k)")
            make_calls("elder")
            said = between_calls("SELECT ask_twice_elder(7)", *statements, name=name)
            same(said, (["no yes "], "00000"), f"{name} between two calls: the second finds its value")


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
        other.each(f"CREATE INDEX another ON stripped USING bloomset (k) WITH ({RARE})", "INSERT INTO stripped VALUES (500)")
        same([asker.ask(call) for call in calls], [["t"]] * 2, "another set is found")
        other.ask("DROP TABLE stripped")
        same(asker.attempt(calls[0])[1], "42P01", "without the table it is an error")
        make("stripped", numbers(1, 100))
        same([asker.ask(call) for call in calls], [["f"]] * 2, "a new table of the name is found")
        other.ask("INSERT INTO stripped VALUES (500)")
        same([asker.ask(call) for call in calls], [["t"]] * 2, "and what is put there")


def test_rights_between_calls():
    """Fails if a call site remembers that the user may read."""
    make("secret", "VALUES (1)")
    make_calls("secret")
    ask(f"CREATE ROLE {ROLE}; GRANT USAGE ON SCHEMA bloomtype_bloomset_traps TO {ROLE}")
    try:
        ask_with_other_rights()
    finally:
        ask(f"DROP OWNED BY {ROLE}, {GROUP}; DROP ROLE {ROLE}, {GROUP}")


def ask_with_other_rights():
    with Session() as asker, Session() as other:
        asker.ask("BEGIN")
        same(asker.ask("SELECT ask_secret(1)"), ["t"], "the owner may ask")
        asker.ask(f"SET LOCAL ROLE {ROLE}")
        same(asker.attempt("SELECT ask_secret(1)")[1], "42501", "after SET ROLE the same call may not")
        asker.ask("ROLLBACK")
        asker.ask("PREPARE prepared AS SELECT bloomset_contains('secret', 'k', $1::bigint)")
        for _ in range(7):
            asker.ask("EXECUTE prepared (1)")
        asker.ask(f"SET ROLE {ROLE}")
        same(asker.attempt("EXECUTE prepared (1)")[1], "42501", "nor may a prepared statement")
        other.ask(f"GRANT SELECT (k) ON secret TO {ROLE}")
        same(asker.ask("SELECT ask_secret(1)"), ["t"], "with a grant of the column it may")
        asker.each("BEGIN", "SELECT ask_secret(1)")
        other.ask(f"REVOKE SELECT (k) ON secret FROM {ROLE}")
        same(asker.attempt("SELECT ask_secret(1)")[1], "42501", "revoked between two calls of a transaction, it may not")
        asker.ask("ROLLBACK")
        other.ask(f"CREATE ROLE {GROUP}; GRANT SELECT ON secret TO {GROUP}; GRANT {GROUP} TO {ROLE}")
        asker.each("BEGIN", "SELECT ask_secret(1)")
        other.ask(f"REVOKE {GROUP} FROM {ROLE}")
        same(asker.attempt("SELECT ask_secret(1)")[1], "42501", "nor without the role by which it might")
        asker.ask("ROLLBACK; RESET ROLE")
        ask(f"""CREATE FUNCTION ask_as() RETURNS text LANGUAGE plpgsql AS $$
            DECLARE answer boolean; answers text := '';
            BEGIN
                FOR i IN 1..2 LOOP
                    answer := bloomset_contains('secret', 'k', 1::bigint);
                    answers := answers || answer;
                    SET LOCAL ROLE {ROLE};
                END LOOP;
                RETURN answers;
            END $$""")
        same(asker.attempt("SELECT ask_as()")[1], "42501", "SET ROLE between two calls of a loop")


# Rebuilding under way

def test_reindex_concurrently_in_stages():
    """Fails if some phase of REINDEX CONCURRENTLY has rows that the index in use lacks. Each phase is stopped by a session
    for which it waits; meanwhile others insert and ask."""
    make("staged", numbers(100, 200), options="expected_items = 10")
    make_calls("staged")
    ask("CREATE TABLE IF NOT EXISTS anchor ()")
    names = "rememberer", "owner", "writer", "reader", "first", "second", "snapshot", "watcher"
    with contextlib.ExitStack() as stack:
        rememberer, owner, writer, reader, first, second, snapshot, watcher = (
            stack.enter_context(Session()) for _ in names)
        rememberer.ask("BEGIN")
        number = iter(range(1000, 100000, 1000))

        def stage(name, waits_for=None):
            """Inserts enough to grow; asks in a new transaction, in an old one that undid its former call, and in a snapshot."""
            if waits_for:
                wait_until_blocked(watcher, owner, waits_for)
            value = next(number)
            watcher.ask(f"INSERT INTO staged {numbers(value, value + 300)}")
            finds_all(reader, "staged", name)
            rememberer.ask("SAVEPOINT here")
            same(rememberer.ask(f"SELECT ask_staged({value + 300})"), ["t"], f"{name}: a call site that was undone before")
            same(rememberer.ask("SELECT count(*) FROM (SELECT k FROM staged OFFSET 0) AS s WHERE NOT ask_staged(k)"), ["0"],
                 f"{name}: finds all")  # fmt: skip
            rememberer.ask("ROLLBACK TO here")

        stage("before")
        writer.ask("BEGIN; INSERT INTO staged VALUES (1)")
        snapshot.each("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM anchor")
        rebuilding = in_thread(owner.attempt, "REINDEX INDEX CONCURRENTLY staged_k")
        stage("waiting to build", writer)
        second.ask("BEGIN; INSERT INTO staged VALUES (2)")
        writer.ask("COMMIT")
        stage("built, waiting to complete", second)
        second.ask("INSERT INTO staged VALUES (3); COMMIT")
        stage("completed, waiting for an old snapshot", snapshot)
        same(snapshot.ask(denied("staged")), [], "the old snapshot misses nothing")
        first.ask("BEGIN; LOCK TABLE staged IN ACCESS SHARE MODE")
        snapshot.ask("COMMIT")
        stage("replaced, waiting to declare the old index dead", first)
        second.ask("BEGIN; LOCK TABLE staged IN ACCESS SHARE MODE")
        first.ask("COMMIT")
        stage("waiting to drop the old index", second)
        second.ask("COMMIT")
        rememberer.ask("COMMIT")
        same(result_of(rebuilding)[1], "00000", "REINDEX CONCURRENTLY ends")
        rememberer.ask("BEGIN")
        stage("afterwards")
        same(watcher.attempt("SELECT bloomset_check('staged_k'::regclass)")[1], "00000", "bloomset_check finds nothing")


def test_create_index_concurrently():
    """Fails if validation takes a row for indexed that is not: one that a transaction wrote before it knew of the index,
    and committed after the build."""
    ask(f"CREATE TABLE late (k bigint); INSERT INTO late {numbers(100, 200)}")
    with Session() as owner, Session() as first, Session() as second, Session() as watcher:
        first.ask("BEGIN; INSERT INTO late VALUES (1)")
        building = in_thread(owner.attempt, f"CREATE INDEX CONCURRENTLY late_k ON late USING bloomset (k) WITH ({RARE})")
        wait_until_blocked(watcher, owner, first)
        second.ask("BEGIN; INSERT INTO late VALUES (2); UPDATE late SET k = 3 WHERE k = 101; SAVEPOINT s")
        second.ask("INSERT INTO late VALUES (4); ROLLBACK TO s; INSERT INTO late VALUES (5)")
        same(watcher.ask(by_index("late_k", 100)), ["t"], "an index that is not built answers maybe")
        same(watcher.ask(by_index("late_k", -1)), ["t"], "also for an absent value")
        ok(watcher.attempt(contains("late", 100)) in [(["t"], "00000"), ([], "55000")], "by column it is maybe, or no set")
        first.ask("COMMIT")
        wait_until_blocked(watcher, owner, second)
        same(watcher.ask(by_index("late_k", -1)), ["t"], "an index that is not complete answers maybe")
        second.ask("INSERT INTO late VALUES (6); COMMIT")
        same(result_of(building)[1], "00000", "CREATE INDEX CONCURRENTLY ends")
        finds_all(watcher, "late", "after CREATE INDEX CONCURRENTLY")
        ok(settled(watcher, contains("late", -1)), "and an absent value is denied")


def test_invalid_index():
    """Fails if an index that CREATE INDEX CONCURRENTLY left unfinished counts."""
    ask(f"CREATE TABLE broken (k bigint); INSERT INTO broken {numbers(1, 100)}")
    create = f"CREATE INDEX CONCURRENTLY {{}} ON broken USING bloomset (k) WITH ({RARE})"
    with Session() as owner, Session() as first, Session() as second, Session() as watcher:
        first.ask("BEGIN; INSERT INTO broken VALUES (101)")
        building = in_thread(owner.attempt, create.format("unready"))
        wait_until_blocked(watcher, owner, first)
        owner.connection.cancel()
        same(result_of(building)[1], "57014", "cancelled before the build")
        building = in_thread(owner.attempt, create.format("invalid"))
        wait_until_blocked(watcher, owner, first)
        second.ask("BEGIN; INSERT INTO broken VALUES (102)")
        first.ask("COMMIT")
        wait_until_blocked(watcher, owner, second)
        owner.connection.cancel()
        same(result_of(building)[1], "57014", "cancelled after the build")
        second.ask("COMMIT")
        same(watcher.ask("SELECT relname, indisready, indisvalid FROM pg_index JOIN pg_class ON oid = indexrelid "
                         "WHERE indrelid = 'broken'::regclass ORDER BY 1"), ["invalid|t|f", "unready|f|f"],
             "both indexes are invalid")  # fmt: skip
        for index in "invalid", "unready":
            for value in 50, 101, 102, -1:
                same(watcher.ask(by_index(index, value)), ["t"], f"the {index} index answers maybe")
        for value in 50, 102:
            answer = watcher.attempt(contains("broken", value))
            ok(answer in [(["t"], "00000"), ([], "55000")], "by column invalid sets answer maybe, or do not count", answer)
        same(watcher.ask(USE_SETS + scan("broken", 102)), ["1"], "no scan uses them")
        ask(f"CREATE INDEX valid ON broken USING bloomset (k) WITH ({RARE})")
        ok(settled(watcher, contains("broken", -1)), "beside them a valid set denies an absent value")
        finds_all(watcher, "broken", "beside invalid sets")
        each("DROP INDEX valid", "REINDEX INDEX invalid")
        ok(settled(watcher, contains("broken", -1)), "REINDEX makes an invalid set valid")
        finds_all(watcher, "broken", "after REINDEX")


# Caches of pages

def test_growth_elsewhere():
    """Fails if a session trusts the metapage that it read before another session let the index grow."""
    for table, options in ("growing", "expected_items = 10"), ("growing_r", f"expected_items = 100, {RARE}"):
        make(table, options=options)
        make_calls(table)
        with Session() as one, Session() as two:
            one.ask(contains(table, 1))
            for turn in range(4):
                first = 10000 * turn
                for session, start in (one, first), (two, first + 5000):
                    session.ask(f"INSERT INTO {table} {numbers(start, start + 400 * 3 ** turn // 3)}")
                    one.ask(f"INSERT INTO {table} VALUES ({-start - 1})")
                    two.ask(f"INSERT INTO {table} VALUES ({-start - 2})")
                    for asker in one, two:
                        same(asker.ask(denied(table)), [], f"{table}, turn {turn}: nothing is missed")
            ok(int(one.ask(f"SELECT generations FROM bloomset_info('{table}_k'::regclass)")[0]) > 2, f"{table} has grown")
            same(one.ask(denied_by_filters(table)), [], f"{table}: the filters miss nothing")
            same(one.ask(USE_SETS + denied_by_scan(table, condition="k % 50 = 0")), [], f"{table}: a scan misses nothing")
            absent = f"SELECT count(*) FROM generate_series(1000001, 1001000) AS i WHERE bloomset_contains('{table}', 'k', i)"
            ok(int(two.ask(absent)[0]) < 100, f"{table}: absent values are denied", two.ask(absent))


def test_growth_between_calls():
    """Fails as the test before, within one call site of one transaction; or if a probe accepts an invalidation between
    its look at the metapage and its use."""
    make("leaping", numbers(1, 10), options="expected_items = 10")
    ask("""CREATE FUNCTION miss() RETURNS text LANGUAGE plpgsql AS $$
        DECLARE
            missed text := '';
            many int;
        BEGIN
            FOR i IN 1..3 LOOP
                many := 0;
                FOR x IN 1..(CASE i WHEN 1 THEN 10 WHEN 2 THEN 10 ELSE 5000 END) LOOP
                    IF NOT bloomset_contains('leaping', 'k', x) THEN many := many + 1; END IF;
                END LOOP;
                missed := missed || many || ' ';
                IF i = 2 THEN PERFORM pg_advisory_xact_lock(4711); END IF;
            END LOOP;
            RETURN missed;
        END $$""")
    said = between_calls("SELECT miss()", f"INSERT INTO leaping {numbers(11, 2000)}", f"INSERT INTO leaping {numbers(2001, 5000)}",
                         name="growth between two calls")  # fmt: skip
    same(said, (["0 0 0 "], "00000"), "growth between two calls of one loop: all is found")


def test_rewrites_in_a_transaction():
    """Fails if what is cached of an index outlives a rebuild in place, or the rollback of one."""
    changes = {
        "TRUNCATE": "TRUNCATE rolled",
        "REINDEX": "REINDEX INDEX rolled_k",
        "REINDEX with other options": "ALTER INDEX rolled_k SET (seed = 12, expected_items = 7000); REINDEX INDEX rolled_k",
        "another index": "DROP INDEX rolled_k; CREATE INDEX rolled_k ON rolled USING bloomset (k) WITH (seed = 33)",
        "ALTER TABLE": "ALTER TABLE rolled ALTER k TYPE bigint USING k + 1000000",
        "growth": "SELECT",
    }
    for name, statement in changes.items():
        ask("DROP TABLE IF EXISTS rolled")
        make("rolled", numbers(1, 50), options="expected_items = 10")
        with Session() as session, Session() as other:
            session.each(contains("rolled", 1), "BEGIN", "SAVEPOINT here", statement)
            same(session.ask(denied("rolled")), [], f"{name}: nothing is missed")
            session.ask(f"INSERT INTO rolled {numbers(2001, 4000)}")
            same(session.ask(denied("rolled")), [], f"{name}, then INSERT and growth: nothing is missed")
            session.ask("ROLLBACK TO here")
            same(session.ask(denied("rolled")), [], f"{name}, rolled back: nothing is missed")
            session.ask(f"INSERT INTO rolled {numbers(5001, 5100)}")
            same(session.ask(denied("rolled")), [], f"{name}, rolled back, then INSERT: nothing is missed")
            session.ask("COMMIT")
            same(other.ask(denied("rolled")), [], f"{name}, rolled back: another session misses nothing")
            same(session.attempt("SELECT bloomset_check('rolled_k'::regclass)")[1], "00000", f"{name}: bloomset_check")
    with Session() as session:
        # TRUNCATE of a table that the transaction made empties the file in place.
        session.ask("BEGIN; CREATE TABLE inplace (k bigint); CREATE INDEX inplace_k ON inplace USING bloomset (k) "
                    f"WITH (expected_items = 10, {RARE})")
        for turn in range(3):
            session.each(f"INSERT INTO inplace {numbers(1000 * turn, 1000 * turn + 500)}")
            same(session.ask(denied("inplace")), [], "in a new table nothing is missed")
            session.ask("TRUNCATE inplace; INSERT INTO inplace VALUES (77)")
            same(session.ask(denied("inplace")), [], "after TRUNCATE in place nothing is missed")
        session.ask("COMMIT")
        session.ask("CREATE TEMP TABLE cleared (k bigint) ON COMMIT DELETE ROWS; CREATE INDEX cleared_k ON cleared "
                    f"USING bloomset (k) WITH (expected_items = 10, {RARE})")
        for turn in range(3):
            session.each("BEGIN", f"INSERT INTO cleared {numbers(1000 * turn, 1000 * turn + 500)}")
            same(session.ask(denied("cleared")), [], "ON COMMIT DELETE ROWS: nothing is missed")
            session.ask("COMMIT")
            same(session.ask(contains("cleared", 1000 * turn + 3)), ["f"], "ON COMMIT DELETE ROWS: the set is empty, too")


GROWN = "SELECT generations FROM bloomset_info('{}'::regclass)"
SIZE = "SELECT pg_relation_size('{}'::regclass, 'main')"


def cancel_growth(session, watcher, index, statement, tries):
    """Runs a statement and cancels it as soon as the index gets more pages. Returns how often it was cancelled while the
    index had pages that no generation holds."""
    caught, generations = 0, watcher.ask(GROWN.format(index))
    (size,) = watcher.ask(SIZE.format(index))
    cancel = f"SELECT pg_cancel_backend({session.pid}) WHERE ({SIZE.format(index)}) <> "
    for _ in range(tries):
        running = in_thread(session.attempt, statement)
        while not running.done() and not watcher.ask(cancel + size):
            pass
        if result_of(running)[1] == "00000" or watcher.ask(GROWN.format(index)) != generations:
            break
        caught += 1
        (size,) = watcher.ask(SIZE.format(index))
    return caught


def test_cancelled_growth():
    """Fails if a cancelled growth leaves pages that the next one does not use, or can never be finished."""
    options, rows = RARE, 400000
    for table in "steady", "cancelled":
        make(table, numbers(1, rows), options=options)
    grow = f"INSERT INTO {{}} {numbers(rows + 1, rows + 40000)}"
    with Session() as session, Session() as watcher:
        same(watcher.ask(GROWN.format("steady_k")), ["1"], "built, the set has one generation")
        session.ask(grow.format("steady"))
        same(watcher.ask(GROWN.format("steady_k")), ["2"], "and grows when more is inserted")
        caught = cancel_growth(session, watcher, "cancelled_k", grow.format("cancelled"), 12)
        before = watcher.ask(GROWN.format("cancelled_k"))
        note(f"the growth was cancelled {caught} times under way; generations then: {before}")
        timeouts = random.Random("timeouts")
        timed_out = 0
        for _ in range(30):
            session.ask(f"SET statement_timeout = {timeouts.randint(1, 60)}")
            timed_out += session.attempt(grow.format("cancelled"))[1] == "57014"
        ok(timed_out > 10, f"{timed_out} statements ran out of time")
        session.ask("RESET statement_timeout")
        same(session.attempt(grow.format("cancelled"))[1], "00000", "without a limit the statement ends")
        same(watcher.ask(GROWN.format("cancelled_k")), ["2"], "and the set has grown once")
        sizes = [int(watcher.ask(SIZE.format(index))[0]) for index in ("steady_k", "cancelled_k")]
        ok(abs(sizes[1] - sizes[0]) <= 0.02 * sizes[0], "cancelled growth leaves no pages behind", sizes)
        same(watcher.ask(denied("cancelled", condition="k % 7 = 0")), [], "nothing is missed")
        same(watcher.attempt("SELECT bloomset_check('cancelled_k'::regclass)")[1], "00000", "bloomset_check finds nothing")


def test_timeout_of_each_row():
    """Fails if growth starts anew for each statement and never ends: each inserts one row with little time."""
    make("hasty", numbers(1, 100000))
    with Session() as session:
        session.ask("SET statement_timeout = 3")
        for first in range(0, 400000, 20):
            session.attempt(f"INSERT INTO hasty {numbers(100001 + first, 100020 + first)}")
            if first % 2000 == 0 and session.attempt(GROWN.format("hasty_k"))[0] == ["2"]:
                break
        session.ask("RESET statement_timeout")
        ok(int(session.ask(GROWN.format("hasty_k"))[0]) >= 2, "the set grows although each statement has 3 ms")
        same(session.ask(denied("hasty", condition="k > 100000")), [], "and misses nothing")


# SERIALIZABLE

def absence(kind, table, value):
    """Reads that a value is absent: returns the statement and what it says then."""
    return {
        "contains": (contains(table, value), ["f"]),
        "contains by index": (by_index(f"{table}_k", value), ["f"]),
        "partitions": (f"SELECT count(*) FROM bloomset_partitions('{table}', 'k', {value})", ["0"]),
        "filters": (f"SELECT bool_or(filter @> {value}::bigint) FROM bloomset_filters('{table}', 'k')", ["f"]),
        "scan": (USE_SETS + scan(table, value), ["0"]),
        "function": (f"SELECT ask_{table}({value})", ["f"]),
        "worker": (f"{WORKERS_ONLY} SELECT bool_or(bloomset_contains('{table}', 'k', {value})) FROM sundry", ["f"]),
    }[kind]


KINDS = "contains", "contains by index", "partitions", "filters", "scan", "function", "worker"
WORKERS_ONLY = CHEAP_WORKERS + "SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = off;"


def cross(kind, isolation, table, target=None, bits=False):
    """Two transactions each read that a value is absent; then each inserts what the other has read. Returns their
    SQLSTATEs. With bits the values' bits come into the set in between."""
    target = target or table
    with Session() as one, Session() as two:
        for session in one, two:
            # A call in another transaction before: nothing of it may keep the next from being noticed.
            session.ask(f"SELECT ask_{table}(-5)")
            session.ask(f"BEGIN ISOLATION LEVEL {isolation}")
        for session, value in (one, 1), (two, 2):
            query, want = absence(kind, table, value)
            same(session.ask(query)[-1:], want, f"{isolation}, {kind}: {value} is absent")
        if bits:
            ask(f"BEGIN; INSERT INTO {target} (k) VALUES (1), (2); ROLLBACK")
        states = {one: "00000", two: "00000"}
        for session, statement in ((one, f"INSERT INTO {target} (k) VALUES (2)"), (two, f"INSERT INTO {target} (k) VALUES (1)"),
                                   (one, "COMMIT"), (two, "COMMIT")):  # fmt: skip
            if states[session] == "00000":
                states[session] = session.attempt(statement)[1]
        return sorted(states.values())


def test_serializable_crosswise():
    """Fails if a reader leaves no predicate lock on each index that it asks, or an insert whose bits are set already does
    not look for such locks."""
    ask("CREATE TABLE sundry AS SELECT i FROM generate_series(1, 1000) AS i; ANALYZE sundry")
    for bits in False, True:
        for kind in KINDS:
            for isolation, states in ("SERIALIZABLE", ["00000", "40001"]), ("REPEATABLE READ", ["00000", "00000"]):
                ask("DROP TABLE IF EXISTS crossed; DROP FUNCTION IF EXISTS ask_crossed, ask_twice_crossed, ask_undone_crossed")
                make("crossed", numbers(100, 110))
                make_calls("crossed")
                name = f"{isolation}, absence read by {kind}{', bits set meanwhile' if bits else ''}"
                same(cross(kind, isolation, "crossed", bits=bits), states,
                     f"{name}: {'one of two is aborted' if '40001' in states else 'both commit'}")  # fmt: skip


def test_serializable_over_a_tree():
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
        ask(f"DROP FUNCTION IF EXISTS ask_{table}, ask_twice_{table}, ask_undone_{table}")
        make_calls(table)
        for kind in "contains", "partitions", "filters":
            each(f"TRUNCATE {table}")
            same(cross(kind, "SERIALIZABLE", table, target), ["00000", "40001"],
                 f"{kind} of {table}, the value comes into {target}: one is aborted")  # fmt: skip


def test_serializable_with_a_table():
    """Fails if the reader's lock is lost, where only one of two dependencies goes through the set: the reader's INSERT is
    read by the other with SELECT. And no transaction may be aborted without such a cycle."""
    each("CREATE TABLE log (entry int)", f"CREATE TABLE guarded (k bigint); "
         f"CREATE INDEX guarded_k ON guarded USING bloomset (k) WITH ({RARE})")  # fmt: skip
    for order in "reader first", "writer first":
        for crosswise in True, False:
            each("TRUNCATE log", "TRUNCATE guarded")
            with Session() as reader, Session() as writer:
                for session in reader, writer:
                    session.ask("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM pg_am")
                states = []
                reads = (reader, contains("guarded", 1)), (reader, "INSERT INTO log VALUES (1)")
                writes = (writer, "SELECT count(*) FROM log" if crosswise else "SELECT"), \
                    (writer, "INSERT INTO guarded VALUES (1)")
                ends = (reader, "COMMIT"), (writer, "COMMIT")
                for session, statement in (*reads, *writes, *ends) if order == "reader first" else \
                        (writes[0], *reads, writes[1], *ends[::-1]):  # fmt: skip
                    states.append(session.attempt(statement)[1])
            same("40001" in states, crosswise, f"SERIALIZABLE, {order}: {'one is aborted' if crosswise else 'both commit'}")


# Options and types

def test_options_after_build():
    """Fails if anything but the build reads the options: the set was made by those of then."""
    make("optional", numbers(1, 500), options="expected_items = 100, seed = 1, false_positive_rate = 0.01")
    asked = "SELECT requested_rate::numeric FROM bloomset_info('optional_k'::regclass)"
    same(ask(asked), ["0.01"], "the rate asked")
    with Session() as old:
        old.ask(contains("optional", 1))
        for statement in "SET (seed = 2)", "SET (false_positive_rate = 1e-6)", "SET (expected_items = 100000)", "RESET (seed)":
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


def test_leaves_of_other_options():
    """Fails if a leaf is asked with the class, seed or size of another."""
    ask(f"CREATE TABLE mixed (p int, k bigint) PARTITION BY LIST (p); CREATE INDEX mixed_k ON mixed USING bloomset (k) "
        f"WITH ({RARE}, seed = 1)")
    for p in range(1, 6):
        ask(f"CREATE TABLE mixed_{p} (x text, k bigint, p int); ALTER TABLE mixed_{p} DROP x; "
            f"INSERT INTO mixed_{p} SELECT p * 1000 + i, p FROM generate_series(1, 100 * {p}) AS i, (VALUES ({p})) AS v (p); "
            f"CREATE INDEX ON mixed_{p} USING bloomset (k) WITH (seed = {p * 7 - 20}, false_positive_rate = 1e-{2 + p}, "
            f"expected_items = {10 ** p}); "
            f"ALTER TABLE mixed ATTACH PARTITION mixed_{p} FOR VALUES IN ({p})")  # fmt: skip
    with Session() as session:
        same(session.ask("SELECT count(*) FROM pg_inherits WHERE inhparent = 'mixed_k'::regclass"), ["5"],
             "the sets of other options are attached")  # fmt: skip
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
    ("varchar(20)", "text"), ("text", "varchar"), ("varchar", "varchar(30)"), ("char(8)", "text"), ("text", "char(12)"),
    ("varchar(9)", "char(12)"), ("char(8)", "varchar(10)"), ("cidr", "inet"), ("integer", "bigint"), ("bigint", "numeric"),
    ("smallint", "integer"), ("integer", "real"), ("numeric(9,2)", "numeric"), ("numeric(9,2)", "numeric(12,4)"),
    ("timestamp", "timestamptz"), ("timestamptz", "timestamp"), ("date", "timestamp"), ("timestamp(3)", "timestamp"),
    ("name", "text"), ("text", "name"), ("integer", "whole"), ("whole", "bigint"), ("real", "float8"), ("bytea", "bytea"),
    ("macaddr", "macaddr8"), ("time(2)", "time"), ("varchar(20)", "shortish"),
]  # fmt: skip
VALUE_OF = {
    "varchar": "'v ' || i", "text": "'v ' || i || '  '", "char": "'c' || i", "name": "'n' || i", "cidr": "('10.0.' || i || '.0/24')",
    "timestamp": "timestamp '2024-01-01 00:00' + i * interval '1 hour'", "date": "date '2024-01-01' + i",
    "timestamptz": "timestamptz '2024-01-01 00:00' + i * interval '1 hour'", "bytea": "int4send(i)",
    "macaddr": "('08002b' || lpad(to_hex(i), 6, '0'))", "time": "time '00:00' + i * interval '1 s'",
}  # fmt: skip


def test_changed_types():
    """Fails if ALTER TYPE keeps the file of an index although the new type's values hash otherwise."""
    ask("CREATE DOMAIN whole AS integer; CREATE DOMAIN shortish AS varchar(40)")
    for before, after in TYPES:
        value = VALUE_OF.get(before.split("(")[0], "i")
        with Session("SET TimeZone = 'UTC';") as session:
            session.ask("DROP TABLE IF EXISTS typed")
            session.ask(f"CREATE TABLE typed (k {before}); INSERT INTO typed SELECT ({value})::{before} "
                        f"FROM generate_series(1, 60) AS i; CREATE INDEX typed_k ON typed USING bloomset (k) WITH ({RARE})")
            same(session.ask(denied("typed")), [], f"{before}: nothing is missed")
            file = "SELECT pg_relation_filenode('typed_k'::regclass)"
            old = session.ask(file)
            _, state = session.attempt(f"ALTER TABLE typed ALTER k TYPE {after} USING k::{after}")
            if state != "00000":
                ok(state == "0A000", f"{before} to {after}: {state}", session.error)
                continue
            name = f"{before} to {after}, {'the same' if session.ask(file) == old else 'another'} file"
            same(session.ask(denied("typed")), [], f"{name}: nothing is missed")
            same(session.ask(denied_by_filters("typed")), [], f"{name}: by filters")
            session.ask(f"INSERT INTO typed SELECT ({value})::{before}::{after} FROM generate_series(61, 99) AS i")
            same(session.ask(denied("typed")), [], f"{name}, after INSERT: nothing is missed")
            same(session.attempt("SELECT bloomset_check('typed_k'::regclass)")[1], "00000", f"{name}: bloomset_check")


def test_collations():
    """Fails if the collation of the index or of the column is not looked at, when the set is made and when it is asked."""
    with Session() as session:
        _, state = session.attempt("CREATE COLLATION careless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
        if state != "00000":
            return skip("nondeterministic collations", "the server has no ICU")
        session.ask("CREATE TABLE careless_column (s text COLLATE careless); CREATE TABLE careful_column (s text)")
        for table, column in ("careless_column", "s"), ("careless_column", 's COLLATE "C"'), ("careful_column", "s COLLATE careless"), \
                ("careful_column", "(s COLLATE careless)"), ("careless_column", "(s || 'x')"):  # fmt: skip
            same(session.attempt(f"CREATE INDEX ON {table} USING bloomset ({column})")[1], "0A000",
                 f"a set on {column} of {table} is refused")  # fmt: skip
        # The index has a collation of its own, so that it may stay when the column's changes.
        for definition in "s", 's COLLATE "C"', 's COLLATE "POSIX"':
            session.ask(f"""DROP TABLE IF EXISTS changed; CREATE TABLE changed (s text);
                INSERT INTO changed VALUES ('a'); CREATE INDEX changed_s ON changed USING bloomset ({definition}) WITH ({RARE})""")
            same(session.ask(contains("changed", "'a'", "s")), ["t"], f"{definition}: found")
            _, state = session.attempt("ALTER TABLE changed ALTER s TYPE text COLLATE careless")
            equal = session.ask("SELECT count(*) FROM changed WHERE s = 'A'")
            if state == "00000":
                same(equal, ["1"], f"{definition}: under the new collation the column equals 'A'")
                lines, state = session.attempt(contains("changed", "'A'", "s"))
                ok(lines == ["t"] or state in ("0A000", "55000"), f"{definition}: after the column's collation has changed, 'A' is "
                   "maybe, or an error", lines, state)  # fmt: skip
                same(session.ask(USE_SETS + "SELECT count(*) FROM changed WHERE s = 'A'"), ["1"], f"{definition}: the scan")
            else:
                ok(state == "0A000", f"{definition}: the collation cannot be changed: {state}", session.error)
    return None


# Which index, which rows

def test_which_index():
    """Fails if a partial or an expression set answers for the column, or columns are taken by number in another table."""
    ask(f"""CREATE TABLE chosen (a int, k bigint, b text);
        INSERT INTO chosen SELECT i, i, i FROM generate_series(1, 100) AS i;
        CREATE INDEX chosen_part ON chosen USING bloomset (k) WITH ({RARE}) WHERE a <= 50;
        CREATE INDEX chosen_expr ON chosen USING bloomset ((k + 1000)) WITH ({RARE});
        CREATE INDEX chosen_a ON chosen USING bloomset (a) WITH ({RARE})""")
    with Session() as session:
        same(session.attempt(contains("chosen", 77))[1], "55000", "a partial set and one of an expression are no set of a column")
        same(session.ask(by_index("chosen_part", 77)), ["f"], "asked by index, a partial set knows its rows")
        same(session.ask(denied_by_index("chosen_part", "chosen", "k", "a <= 50")), [], "all of them")
        session.ask("UPDATE chosen SET a = 1 WHERE k = 77")
        same(session.ask(by_index("chosen_part", 77)), ["t"], "also one that came by an update of another column")
        same(session.ask(denied_by_index("chosen_expr", "chosen", "(k + 1000)")), [], "a set of an expression has its values")
        session.ask("CREATE INDEX chosen_k ON chosen USING bloomset (k) WITH (" + RARE + ")")
        finds_all(session, "chosen", "with a set of the column beside them")
        same(session.ask(contains("chosen", 1077)), ["f"], "which alone answers")
        session.ask("""CREATE TABLE chosen_child (k bigint, more bigint, b text, a int); ALTER TABLE chosen_child INHERIT chosen;
            INSERT INTO chosen_child (a, k, more) VALUES (8000, 9000, 7000)""")
        same(session.ask(contains("chosen", 123456)), ["t"], "a child without a set answers maybe")
        session.ask(f"CREATE INDEX ON chosen_child USING bloomset (a) WITH ({RARE}); "
                    f"CREATE INDEX ON chosen_child USING bloomset (more) WITH ({RARE})")
        same(session.ask(contains("chosen", 123456)), ["t"], "so does one with a set of another column")
        session.ask(f"CREATE INDEX ON chosen_child USING bloomset (k) WITH ({RARE})")
        ok(settled(session, contains("chosen", 8000)), "with a set it answers for its own column")
        finds_all(session, "chosen", "a child with columns in another order")
        same(session.ask(contains("chosen", 7000)), ["f"], "not for the one with the number of the parent's")
        same([session.ask(contains("chosen", value, "a")) for value in (8000, 9000)], [["t"], ["f"]], "also for another column")
        # Of several sets, a "no" of any is enough: the second one is better than the first.
        session.ask(f"""CREATE TABLE twice (k bigint); INSERT INTO twice {numbers(1, 3000)};
            CREATE INDEX ON twice USING bloomset (k) WITH (false_positive_rate = 0.5);
            CREATE INDEX ON twice USING bloomset (k) WITH ({RARE})""")
        maybe = "SELECT count(*) FROM generate_series(5001, 6000) AS i WHERE bloomset_contains('twice', 'k', i)"
        ok(settled(session, maybe, ["0"]), "of two sets, any no is enough")
        finds_all(session, "twice", "two sets")


def test_rows_elsewhere():
    """Fails if a relation whose rows are not in its heap, or not all, is denied."""
    with Session() as session:
        make("here", numbers(1, 10))
        session.ask("CREATE VIEW viewed AS SELECT * FROM here; CREATE SEQUENCE counted")
        for relation, column in ("viewed", "k"), ("counted", "last_value"), ("here_k", "k"):
            state = session.attempt(contains(relation, 1, column))[1]
            ok(state == "42809", f"{relation} is no table: {state}", session.error)
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
            session.ask("ALTER FOREIGN TABLE away INHERIT here")
            same(session.ask(contains("here", 500)), ["t"], "a foreign child answers maybe")
        finally:
            session.ask("DROP FOREIGN DATA WRAPPER nowhere CASCADE")
        same(session.ask(contains("here", 500)), ["f"], "without it the set denies")
        session.ask("CREATE ACCESS METHOD pile TYPE TABLE HANDLER heap_tableam_handler")
        try:
            session.ask("CREATE TABLE piled (k bigint) USING pile; INSERT INTO piled VALUES (1)")
            same(session.attempt("CREATE INDEX ON piled USING bloomset (k)")[1], "0A000",
                 "a table of another access method is refused")  # fmt: skip
            state = session.attempt("ALTER TABLE here SET ACCESS METHOD pile")[1]
            ok(state == "0A000", f"nor can a table with a set become one: {state}", session.error)
        finally:
            session.ask("DROP ACCESS METHOD pile CASCADE")
        finds_all(session, "here", "the table stays")
        bare = "CREATE TABLE bare (k bigint); CREATE TABLE bare_p (k bigint) PARTITION BY LIST (k)"
        session.ask(bare)
        same([session.attempt(contains(table, 1))[1] for table in ("bare", "bare_p")], ["55000"] * 2, "no set at all is an error")


def test_detach_pending():
    """Fails if the leaves are those of the newest catalog: an old snapshot reads a partition that is being detached."""
    ask(f"""CREATE TABLE leaving (k bigint, p int) PARTITION BY LIST (p);
        CREATE TABLE leaving_1 PARTITION OF leaving FOR VALUES IN (1);
        CREATE TABLE leaving_2 PARTITION OF leaving FOR VALUES IN (2);
        CREATE INDEX leaving_k ON leaving USING bloomset (k) WITH ({RARE});
        INSERT INTO leaving VALUES (1, 1), (2, 2)""")
    with Session() as old, Session() as fetching, Session() as owner, Session() as watcher:
        fetching.each("BEGIN", "DECLARE c CURSOR FOR SELECT k FROM leaving WHERE k = 2")
        old.each("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM leaving")
        detaching = in_thread(owner.attempt, "ALTER TABLE leaving DETACH PARTITION leaving_2 CONCURRENTLY")
        wait_until_blocked(watcher, owner)
        same(fetching.ask("FETCH c"), ["2"], "so does an older cursor")
        same(fetching.ask(contains("leaving", 2)), ["t"], "beside which a newer statement hears of the partition")
        fetching.ask("COMMIT")
        same(old.ask("SELECT k FROM leaving ORDER BY k"), ["1", "2"], "the old snapshot reads the partition")
        finds_all(old, "leaving", "a partition that is being detached")
        same(old.ask(denied_by_index("leaving_k", "leaving")), [], "a partition that is being detached: by index")
        old.ask("COMMIT")
        same(result_of(detaching)[1], "00000", "the partition is detached")
        ok(settled(old, contains("leaving", 2)), "then the tree denies its value")
        same(old.ask(contains("leaving_2", 2)), ["t"], "which the table itself still has")


# Temporary tables and workers

def force_workers(session):
    """Lets workers run every query that may run in parallel."""
    session.ask(CHEAP_WORKERS + "SET max_parallel_workers_per_gather = 2; SELECT set_config(name, 'on', false) FROM pg_settings "
                "WHERE name IN ('force_parallel_mode', 'debug_parallel_query')")  # fmt: skip


def workers_of(session, query):
    plan = session.explain(query, ", ANALYZE, TIMING OFF")
    return sum(node.get("Workers Launched", 0) for node in plan)


def test_temporary_tables():
    """Fails if a worker reads a temporary set, whose newest pages only the leader has, or a session reads the rows of
    temporary children of another one."""
    with Session() as session, Session() as other:
        session.ask(f"""CREATE TEMP TABLE fleeting (k bigint); CREATE INDEX fleeting_k ON fleeting USING bloomset (k)
            WITH ({RARE}, expected_items = 10); INSERT INTO fleeting {numbers(1, 500)}""")
        finds_all(session, "fleeting", "a temporary table")
        same(session.ask(contains("fleeting", 5000)), ["f"], "a temporary set denies")
        same(session.attempt("SELECT bloomset_check('fleeting_k'::regclass)")[1], "00000", "bloomset_check of a temporary set")
        force_workers(session)
        for query in contains("fleeting", 77), by_index("fleeting_k", 77), contains("fleeting", 5000), \
                "SELECT count(*) = 1 FROM bloomset_partitions('fleeting', 'k', 77)":  # fmt: skip
            if workers_of(session, query):
                same(session.ask(query), ["t"], f"in a worker a temporary set answers maybe: {query}")
            else:
                skip(query, "no worker was launched")
        session.ask("SET max_parallel_workers_per_gather = 0")
        same(session.ask(contains("fleeting", 5000)), ["f"], "without one it denies")

        ask(f"CREATE TABLE mother (k bigint); CREATE INDEX mother_k ON mother USING bloomset (k) WITH ({RARE})")
        other.ask("CREATE TEMP TABLE her_child () INHERITS (bloomtype_bloomset_traps.mother); INSERT INTO her_child VALUES (7)")
        same(other.ask("SELECT k FROM mother"), ["7"], "a session sees the rows of its temporary child")
        same(other.ask(contains("mother", 7)), ["t"], "and finds them")
        same(other.ask(contains("mother", 8)), ["t"], "a child without a set answers maybe")
        with Session() as third:
            same(third.ask("SELECT k FROM mother"), [], "another session does not see them")
            ok(settled(third, contains("mother", 8)), "nor does their lack of a set matter there")
            same(third.ask("SELECT count(*) FROM bloomset_filters('mother', 'k')"), ["1"], "nor to filters")
            same(third.ask("SELECT count(*) FROM bloomset_partitions('mother', 'k', 7)"), ["0"], "nor to partitions")
        other.ask(f"CREATE INDEX ON her_child USING bloomset (k) WITH ({RARE}); INSERT INTO her_child VALUES (9)")
        finds_all(other, "mother", "a temporary child with a set")
        same(other.ask(contains("mother", 8)), ["f"], "with a set it denies")


def test_workers():
    """Fails if a worker knows less than its leader: rows, indexes and rights of the leader's transaction."""
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
                     f"CREATE INDEX shared_k2 ON shared USING bloomset (k) WITH ({RARE})", "INSERT INTO shared VALUES (30000)")
        same(session.ask(query), ["0"], "and in an index that it made")
        session.ask("ROLLBACK")
        same(session.ask(query), ["0"], "and after it was rolled back")
        session.each("BEGIN ISOLATION LEVEL REPEATABLE READ", query)
        each("DELETE FROM shared WHERE k = 5", "INSERT INTO shared VALUES (40000)")
        same(session.ask(query), ["0"], "in an old snapshot, too")
        session.ask("COMMIT")
    return None


# Debugging servers

def test_discarded_caches():
    """Fails, on a server with assertions, if anything is used after an invalidation may have freed it."""
    with Session() as session:
        if session.attempt("SET debug_discard_caches = 1")[1] != "00000":
            return skip("debug_discard_caches", "the server has none")
        session.ask("CREATE TABLE discarding (k bigint); CREATE INDEX discarding_k ON discarding USING bloomset (k) "
                    "WITH (expected_items = 10)")
        session.ask(f"INSERT INTO discarding {numbers(1, 300)}")
        same(session.ask(denied("discarding")), [], "debug_discard_caches: nothing is missed")
        session.ask("REINDEX INDEX discarding_k")
        finds_all(session, "discarding", "debug_discard_caches, after REINDEX")
        same(session.ask(USE_SETS + scan("discarding", 7)), ["1"], "debug_discard_caches: the scan")
        same(session.attempt("SELECT bloomset_check('discarding_k'::regclass)")[1], "00000", "debug_discard_caches: bloomset_check")
    return None


def timed(test):
    def run_test():
        began = time.monotonic()
        test()
        note(f"{test.__name__}: {time.monotonic() - began:.1f} s")

    run_test.__name__ = test.__name__
    return run_test


run(*map(timed, [
    test_broken_hot_chain, test_imported_snapshot, test_cursor, test_reindex_and_recently_dead, test_call_after_rollback,
    test_call_of_something_else, test_call_while_index_dies,
    test_locks_last, test_locks_again, test_lock_order, test_tree_between_calls, test_index_dropped_between_calls, test_rights_between_calls,
    test_reindex_concurrently_in_stages, test_create_index_concurrently, test_invalid_index, test_growth_elsewhere,
    test_growth_between_calls, test_rewrites_in_a_transaction, test_cancelled_growth, test_timeout_of_each_row,
    test_serializable_crosswise, test_serializable_over_a_tree, test_serializable_with_a_table, test_options_after_build,
    test_leaves_of_other_options, test_changed_types, test_collations, test_which_index, test_rows_elsewhere,
    test_detach_pending, test_temporary_tables, test_workers, test_discarded_caches,
]))  # fmt: skip
