#!/usr/bin/python3 -B
"""The ways to a false "no", one after the other: a set never denies what the asking statement's snapshot sees. Here:
old snapshots and fresh sets, rebuilding under way, growth and what is cached of pages.

In each test sessions meet at a fixed point, where a set without the precaution that the test names would deny a row
that is there. The tests that a set also denies what is absent keep one that always answers "maybe" from passing.

Other ways are in bloomset_calls.t, bloomset_serializable.t and bloomset_tables.t; those of standbys, promotion and
crashes in test/durability/bloomset.t.
"""

import contextlib
import random

from bloomset_checks import (RARE, USE_SETS, between_calls, by_index, check, contains, denied, denied_by_filters,
                             denied_by_scan, finds_all, make, make_calls, numbers, scan, settled)
from session import NO_WORKERS, Session, ask, each, in_thread, result_of, run, wait_until_blocked
from tap import note, ok, same, skip
import reference as ref

Session.settings = "SET client_min_messages = error; SET lock_timeout = '10s';"


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
            ok(settled(new, contains(table, 1)), f"{isolation}: without the old snapshot the old version is denied")
            same(new.ask(contains(table, 2)), ["t"], f"{isolation}: and the new one found")


def test_imported_snapshot():
    """Fails as the test before, in a session that began later and imports the old snapshot."""
    each("CREATE TABLE handed (k bigint)", "INSERT INTO handed VALUES (1)")
    with Session() as old, Session() as new, Session() as other:
        old.ask("BEGIN ISOLATION LEVEL REPEATABLE READ")
        (snapshot,) = old.ask("SELECT pg_export_snapshot()")
        new.each("UPDATE handed SET k = 2", f"CREATE INDEX handed_k ON handed USING bloomset (k) WITH ({RARE})")
        other.each("BEGIN ISOLATION LEVEL REPEATABLE READ", f"SET TRANSACTION SNAPSHOT '{snapshot}'")
        answers_from(other, "handed", "handed_k", 1, "an imported snapshot")


def test_snapshot_imported_during_build():
    """Fails if only a set with indcheckxmin is too fresh for an old snapshot: CREATE INDEX CONCURRENTLY and REINDEX
    CONCURRENTLY do not wait for a session that imports a snapshot after they have looked for old ones."""
    for how in "CREATE INDEX CONCURRENTLY late_import_k ON late_import USING bloomset (k)", \
            "REINDEX INDEX CONCURRENTLY late_import_k":  # fmt: skip
        each("DROP TABLE IF EXISTS late_import", "CREATE TABLE late_import (k bigint)",
             "INSERT INTO late_import VALUES (1), (3)")  # fmt: skip
        if how.startswith("REINDEX"):
            ask(f"CREATE INDEX late_import_k ON late_import USING bloomset (k) WITH ({RARE})")
        with Session() as old, Session() as new, Session() as other:
            old.ask("BEGIN ISOLATION LEVEL REPEATABLE READ")
            (snapshot,) = old.ask("SELECT pg_export_snapshot()")
            new.each("DELETE FROM late_import WHERE k = 1", "UPDATE late_import SET k = 4 WHERE k = 3")
            building = in_thread(new.attempt, how)
            wait_until_blocked(new, old)
            other.each("BEGIN ISOLATION LEVEL REPEATABLE READ", f"SET TRANSACTION SNAPSHOT '{snapshot}'")
            old.ask("COMMIT")
            same(result_of(building)[1], "00000", f"{how} ends")
            for value in 1, 3:
                answers_from(other, "late_import", "late_import_k", value, f"a snapshot imported during {how}: {value}")
            other.ask("COMMIT")
            ok(settled(new, contains("late_import", 1)), f"{how}: without the old snapshot the row is denied")


def test_older_writer():
    """What the precaution of the tests before costs: after CONCURRENTLY "maybe", until writers that are older than the
    set have ended. Other builds have all rows at once, also in the transaction that makes them."""
    each("CREATE TABLE young (k bigint)", "INSERT INTO young VALUES (1)", "CREATE TABLE old_writer (k bigint)")
    with Session() as writer, Session() as maker, Session() as other:
        for how, answer in ("CREATE INDEX", "f"), ("REINDEX INDEX CONCURRENTLY", "t"), ("REINDEX INDEX", "f"):
            writer.each("BEGIN", "INSERT INTO old_writer VALUES (1)")
            if how == "CREATE INDEX":
                maker.each("BEGIN", f"CREATE INDEX young_k ON young USING bloomset (k) WITH ({RARE})")
                same(maker.ask(contains("young", 2)), ["f"], f"{how}: its transaction denies an absent value")
                maker.ask("COMMIT")
            else:
                maker.ask(f"{how} young_k")
            same(other.ask(contains("young", 2)), [answer], f"{how}: what others say while an older writer works")
            writer.ask("COMMIT")
            ok(settled(other, contains("young", 2)), f"{how}: they deny an absent value afterwards")


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


def test_recently_dead():
    """Fails if a build skips rows that are dead, but that an old snapshot sees; or if an update of the column stays HOT
    (amsummarizing), so that the build takes the newest version only."""
    ask("CREATE TABLE IF NOT EXISTS anchor ()")
    for how in "REINDEX INDEX old_k", "REINDEX TABLE old", "VACUUM FULL old", "REINDEX INDEX CONCURRENTLY old_k":
        ask("DROP TABLE IF EXISTS old")
        make("old", "VALUES (1), (3), (5)")
        with Session() as old, Session() as new:
            old.each("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM anchor")
            new.each("UPDATE old SET k = 2 WHERE k = 1", "DELETE FROM old WHERE k = 5")
            rebuilding = in_thread(new.attempt, how)
            if "CONCURRENTLY" in how:
                # It waits for the old snapshot before the new index replaces the old one.
                wait_until_blocked(new, old)
            else:
                same(result_of(rebuilding)[1], "00000", f"{how} ends")
            answers_from(old, "old", "old_k", 1, f"{how}, a version updated before")
            answers_from(old, "old", "old_k", 5, f"{how}, a row deleted before")
            old.ask("COMMIT")
            same(result_of(rebuilding)[1], "00000", f"{how} ends")
            new.ask("REINDEX TABLE old")
            ok(settled(new, contains("old", 5)), f"{how}: rebuilt later, the set denies the row")


# Rebuilding under way

class Stages:
    """Sessions that insert and ask while another rebuilds the set: in new transactions, and in one that undoes its
    calls and so holds no lock when it asks again."""

    def __init__(self, asker, rememberer):
        self.asker, self.rememberer, self.next = asker, rememberer, 1000
        self.rememberer.ask("BEGIN")

    def work(self, name):
        """Inserts so much that the set grows, and asks."""
        last = self.next + 300
        self.asker.ask(f"INSERT INTO staged {numbers(self.next, last)}")
        self.next += 1000
        finds_all(self.asker, "staged", name)
        self.rememberer.ask("SAVEPOINT here")
        same(self.rememberer.ask(f"SELECT ask_staged({last})"), ["t"], f"{name}: a call site that was undone before")
        missed = "SELECT count(*) FROM (SELECT k FROM staged OFFSET 0) AS s WHERE NOT ask_staged(k)"
        same(self.rememberer.ask(missed), ["0"], f"{name}: it finds all")
        self.rememberer.ask("ROLLBACK TO here")


def test_reindex_concurrently_in_stages():
    """Fails if some phase of REINDEX CONCURRENTLY has rows that the index in use lacks. Each phase is stopped by a
    session for which it waits; meanwhile others insert and ask."""
    make("staged", numbers(100, 200), options="expected_items = 10")
    make_calls("staged")
    ask("CREATE TABLE IF NOT EXISTS anchor ()")
    with contextlib.ExitStack() as stack:
        owner, first, second, snapshot, asker, rememberer = (stack.enter_context(Session()) for _ in range(6))
        stages = Stages(asker, rememberer)
        stages.work("before")
        first.ask("BEGIN; INSERT INTO staged VALUES (1)")
        snapshot.each("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM anchor")
        rebuilding = in_thread(owner.attempt, "REINDEX INDEX CONCURRENTLY staged_k")
        wait_until_blocked(owner, first)
        stages.work("not built yet")
        second.ask("BEGIN; INSERT INTO staged VALUES (2)")
        first.ask("COMMIT")
        wait_until_blocked(owner, second)
        stages.work("built")
        second.ask("INSERT INTO staged VALUES (3); COMMIT")
        wait_until_blocked(owner, snapshot)
        stages.work("validated")
        same(snapshot.ask(denied("staged")), [], "validated: the old snapshot misses nothing")
        first.ask("BEGIN; LOCK TABLE staged IN ACCESS SHARE MODE")
        snapshot.ask("COMMIT")
        wait_until_blocked(owner, first)
        stages.work("replaced")
        second.ask("BEGIN; LOCK TABLE staged IN ACCESS SHARE MODE")
        first.ask("COMMIT")
        wait_until_blocked(owner, second)
        stages.work("the old index is dead")
        second.ask("COMMIT")
        rememberer.ask("COMMIT; BEGIN")
        same(result_of(rebuilding)[1], "00000", "REINDEX CONCURRENTLY ends")
        stages.work("afterwards")
        same(asker.attempt(check("staged_k"))[1], "00000", "bloomset_check finds nothing")


NOT_DENIED = [(["t"], "00000"), ([], "55000")]


def test_create_index_concurrently():
    """Fails if validation takes a row for indexed that is not: one that a transaction wrote before it knew of the
    index, and committed after the build."""
    ask(f"CREATE TABLE late (k bigint); INSERT INTO late {numbers(100, 200)}")
    with Session() as owner, Session() as first, Session() as second, Session() as watcher:
        first.ask("BEGIN; INSERT INTO late VALUES (1)")
        create = f"CREATE INDEX CONCURRENTLY late_k ON late USING bloomset (k) WITH ({RARE})"
        building = in_thread(owner.attempt, create)
        wait_until_blocked(owner, first)
        second.ask("BEGIN; INSERT INTO late VALUES (2); UPDATE late SET k = 3 WHERE k = 101; SAVEPOINT s")
        second.ask("INSERT INTO late VALUES (4); ROLLBACK TO s; INSERT INTO late VALUES (5)")
        same(watcher.ask(by_index("late_k", 100)), ["t"], "an index that is not built answers maybe")
        same(watcher.ask(by_index("late_k", -1)), ["t"], "also for an absent value")
        ok(watcher.attempt(contains("late", 100)) in NOT_DENIED, "by column it answers maybe, or does not count")
        first.ask("COMMIT")
        wait_until_blocked(owner, second)
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
        wait_until_blocked(owner, first)
        owner.connection.cancel()
        same(result_of(building)[1], "57014", "cancelled before the build")
        building = in_thread(owner.attempt, create.format("invalid"))
        wait_until_blocked(owner, first)
        second.ask("BEGIN; INSERT INTO broken VALUES (102)")
        first.ask("COMMIT")
        wait_until_blocked(owner, second)
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
            said = watcher.attempt(contains("broken", value))
            ok(said in NOT_DENIED, "by column invalid sets answer maybe, or do not count", said)
        same(watcher.ask(USE_SETS + scan("broken", 102)), ["1"], "no scan uses them")
        ask(f"CREATE INDEX valid ON broken USING bloomset (k) WITH ({RARE})")
        ok(settled(watcher, contains("broken", -1)), "beside them a valid set denies an absent value")
        finds_all(watcher, "broken", "beside invalid sets")
        each("DROP INDEX valid", "REINDEX INDEX invalid")
        ok(settled(watcher, contains("broken", -1)), "REINDEX makes an invalid set valid")
        finds_all(watcher, "broken", "after REINDEX")


# Caches of pages

GROWN = "SELECT generations FROM bloomset_info('{}'::regclass)"


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
            ok(int(one.ask(GROWN.format(f"{table}_k"))[0]) > 2, f"{table} has grown")
            same(one.ask(denied_by_filters(table)), [], f"{table}: the filters miss nothing")
            some = denied_by_scan(table, condition="k % 50 = 0")
            same(one.ask(USE_SETS + some), [], f"{table}: a scan misses nothing")
            absent = "SELECT count(*) FROM generate_series(1000001, 1001000) AS i WHERE bloomset_contains("
            (maybe,) = two.ask(f"{absent}'{table}', 'k', i)")
            ok(int(maybe) < 100, f"{table}: absent values are denied", maybe)


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
    grow = [f"INSERT INTO leaping {numbers(first, last)}" for first, last in ((11, 2000), (2001, 5000))]
    said = between_calls("SELECT miss()", *grow, name="growth between two calls")
    same(said, (["0 0 0 "], "00000"), "growth between two calls of one loop: all is found")


BLOCKS_PER_PAGE = 127


def block_of(value, nblocks):
    """The block of a generation that a bigint selects."""
    _, canonical = ref.element("bigint", value)
    return (ref.hash_of(canonical) >> 32) * nblocks >> 32


def test_bits_set_by_others():
    """Fails if a page of generation 1 learns of a later generation only when an element sets bits there. The bits of its
    first one may be set already: a block of generation 2 has elements of two pages of generation 1."""
    make("echoed", numbers(1, 1900), options=f"{RARE}, expected_items = 2000")
    filters = "SELECT filter FROM bloomset_filters('echoed', 'k') WHERE generation = "

    def blocks(generation):
        return int(ask(f"SELECT (bloom_info(({filters}{generation}))).bits")[0]) // 512

    def values_of(page, block, nblocks):
        """Values of a page of generation 1, and of a block of another generation."""
        n1 = blocks(1)
        return (value for value in range(10**6 * nblocks, 10**9) if block_of(value, n1) // BLOCKS_PER_PAGE == page
                and block_of(value, nblocks) == block)  # fmt: skip

    def insert(values, many):
        ask("INSERT INTO echoed VALUES " + ",".join(f"({next(values)})" for _ in range(many)))

    ok(BLOCKS_PER_PAGE < blocks(1) <= 2 * BLOCKS_PER_PAGE, "generation 1 has two pages", blocks(1))
    of_page = values_of(0, 0, 1)
    while ask(GROWN.format("echoed_k")) == ["1"]:
        insert(of_page, 50)
    n2 = blocks(2)
    shared = BLOCKS_PER_PAGE * n2 // blocks(1)
    insert(values_of(0, shared, n2), 150)
    first = next(values_of(1, shared, n2))
    with Session() as session:
        same(session.ask(f"SELECT ({filters}1) @> {first}::bigint, ({filters}2) @> {first}::bigint"), ["f|t"],
             "the bits of a value of the second page are set in generation 2 only")  # fmt: skip
        same(session.ask(contains("echoed", first)), ["f"], "which that page does not name: it is denied")
        session.ask(f"INSERT INTO echoed VALUES ({first})")
        finds_all(session, "echoed", "a value whose bits others have set")


REWRITES = {
    "TRUNCATE": "TRUNCATE rolled",
    "REINDEX": "REINDEX INDEX rolled_k",
    "REINDEX with other options": "ALTER INDEX rolled_k SET (seed = 12, expected_items = 7000); REINDEX INDEX rolled_k",
    "another index": "DROP INDEX rolled_k; CREATE INDEX rolled_k ON rolled USING bloomset (k) WITH (seed = 33)",
    "ALTER TABLE": "ALTER TABLE rolled ALTER k TYPE bigint USING k + 1000000",
    "growth": "SELECT",
}


def test_rewrites_rolled_back():
    """Fails if what is cached of an index outlives a rebuild, or the rollback of one."""
    for name, statement in REWRITES.items():
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
            same(session.attempt(check("rolled_k"))[1], "00000", f"{name}: bloomset_check")


def test_rewrites_in_place():
    """Fails as the test before, for files that are emptied in place: by TRUNCATE of a table that the transaction made,
    and by ON COMMIT DELETE ROWS."""
    index = f"CREATE INDEX {{0}}_k ON {{0}} USING bloomset (k) WITH (expected_items = 10, {RARE})"
    fill = "INSERT INTO {} SELECT i FROM generate_series({}, {}) AS i"
    with Session(NO_WORKERS) as session:  # which say "maybe" of temporary tables
        session.each("BEGIN", "CREATE TABLE inplace (k bigint)", index.format("inplace"))
        for first in 0, 1000, 2000:
            session.ask(fill.format("inplace", first, first + 500))
            same(session.ask(denied("inplace")), [], "in a new table nothing is missed")
            session.ask("TRUNCATE inplace; INSERT INTO inplace VALUES (77)")
            same(session.ask(denied("inplace")), [], "after TRUNCATE in place nothing is missed")
        session.each("COMMIT", "CREATE TEMP TABLE cleared (k bigint) ON COMMIT DELETE ROWS", index.format("cleared"))
        for first in 0, 1000, 2000:
            session.each("BEGIN", fill.format("cleared", first, first + 500))
            same(session.ask(denied("cleared")), [], "ON COMMIT DELETE ROWS: nothing is missed")
            session.ask("COMMIT")
            same(session.ask(contains("cleared", first + 3)), ["f"], "ON COMMIT DELETE ROWS: the set is empty, too")


SIZE = "SELECT pg_relation_size('{}'::regclass, 'main')"


def cancel_growth(session, watcher, index, statement, tries):
    """Runs a statement and cancels it as soon as the index gets more pages. Returns how often it was cancelled before
    the set had grown."""
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


def test_child_between_statements():
    """Fails if functions that return rows do not accept invalidations: a lock that is held already does not do it."""
    make("adopting", numbers(1, 100))
    make("stray", numbers(5001, 5100))
    asked = {"SELECT bloomset_partitions('adopting', 'k', 5007)": ["stray"],
             "SELECT partition FROM bloomset_filters('adopting', 'k') WHERE filter @> 5007::bigint": ["stray"]}
    with Session() as session:
        session.ask("BEGIN")
        for query in asked:
            same(session.ask(query), [], f"before a child joins: {query}")
        ask("ALTER TABLE stray INHERIT adopting")
        for query, result in asked.items():
            same(session.ask(query), result, f"in the next statement: {query}")
        session.ask("ROLLBACK")


def test_cancelled_growth():
    """Fails if a cancelled growth leaves pages that the next one does not use, or can never be finished."""
    rows = 400000
    for table in "steady", "cancelled":
        make(table, numbers(1, rows))
    grow = f"INSERT INTO {{}} {numbers(rows + 1, rows + 40000)}"
    with Session() as session, Session() as watcher:
        same(watcher.ask(GROWN.format("steady_k")), ["1"], "built, the set has one generation")
        session.ask(grow.format("steady"))
        same(watcher.ask(GROWN.format("steady_k")), ["2"], "and grows when more is inserted")
        caught = cancel_growth(session, watcher, "cancelled_k", grow.format("cancelled"), 12)
        before = watcher.ask(GROWN.format("cancelled_k"))
        note(f"the growth was cancelled {caught} times under way; generations then: {before[0]}")
        timeouts = random.Random("timeouts")
        timed_out = 0
        for _ in range(30):
            session.set_timeout(timeouts.randint(1, 60))
            timed_out += session.attempt(grow.format("cancelled"))[1] == "57014"
        ok(timed_out > 10, f"{timed_out} statements ran out of time")
        session.set_timeout(0)
        same(session.attempt(grow.format("cancelled"))[1], "00000", "without a limit the statement ends")
        same(watcher.ask(GROWN.format("cancelled_k")), ["2"], "and the set has grown once")
        sizes = [int(watcher.ask(SIZE.format(index))[0]) for index in ("steady_k", "cancelled_k")]
        ok(abs(sizes[1] - sizes[0]) <= 0.02 * sizes[0], "cancelled growth leaves no pages behind", sizes)
        same(watcher.ask(denied("cancelled", condition="k % 7 = 0")), [], "nothing is missed")
        same(watcher.attempt(check("cancelled_k"))[1], "00000", "bloomset_check finds nothing")


def test_timeout_of_each_row():
    """Fails if growth starts anew for each statement and never ends: each inserts a few rows with little time."""
    make("hasty", numbers(1, 1500000))
    with Session() as session, Session() as watcher:
        session.set_timeout(3)
        for first in range(0, 400000, 20):
            session.attempt(f"INSERT INTO hasty {numbers(1500001 + first, 1500020 + first)}")
            if first % 2000 == 0 and watcher.ask(GROWN.format("hasty_k")) == ["2"]:
                break
        session.set_timeout(0)
        ok(int(watcher.ask(GROWN.format("hasty_k"))[0]) >= 2, "the set grows although each statement has 3 ms")
        same(session.ask(denied("hasty", condition="k > 1500000")), [], "and misses nothing")


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
        same(session.attempt(check("discarding_k"))[1], "00000", "debug_discard_caches: bloomset_check")
    return None


run(test_broken_hot_chain, test_imported_snapshot, test_snapshot_imported_during_build, test_older_writer, test_cursor,
    test_recently_dead, test_reindex_concurrently_in_stages, test_create_index_concurrently, test_invalid_index,
    test_growth_elsewhere, test_growth_between_calls, test_bits_set_by_others, test_rewrites_rolled_back,
    test_rewrites_in_place, test_child_between_statements, test_cancelled_growth, test_timeout_of_each_row,
    test_discarded_caches)  # fmt: skip
