#!/usr/bin/python3 -B
"""Sets on a server that is killed, on its standby, after a promotion, and behind logical replication.

    ROUNDS=20 test/durability/bloomset.t        PG_CONFIG names the PostgreSQL that has the extension

What must be in a set is what its table holds: after each round and at each moment of the standby, every value that a
session sees is found, in each way to ask. WAL is replayed with wal_consistency_checking = generic, which compares each
page with the one that the primary wrote, and pages have checksums. What was committed is known to the clients.

fsync is off because the operating system, whose cache has all that was written, goes on.
"""

import concurrent.futures
import contextlib
import os
import random
import signal
import time

from durable import DATABASE, Server, main, own_directory
from bloomset_checks import RARE, USE_SETS, VALID_SETS, denied, denied_by_filters, denied_by_partitions, denied_by_scan
from indexes import (SETTINGS, Clients, Readers, caught_up, faults_in_log, promote, recover, start_standby, tidy_up,
                     under_load, without_wal)
from session import in_thread, result_of, until, wait_until_blocked
from tap import note, ok, same

ROUNDS = int(os.environ.get("ROUNDS", "6"))
SECONDS = float(os.environ.get("STANDBY_SECONDS", "15"))
CLIENTS = 4
GROWTHS = max(3, ROUNDS // 2)  # sets that the server is killed with as they grow
LARGE = 300000  # rows of a set whose growth takes long enough to be killed in
SETTINGS = {**SETTINGS, "wal_level": "logical"}
directory = own_directory()

SCHEMA = f"""
CREATE EXTENSION bloomtype;
CREATE TABLE grown (client int, n int, k bigint, s text);
CREATE INDEX grown_k ON grown USING bloomset (k) WITH (expected_items = 100);
CREATE INDEX grown_s ON grown USING bloomset (s) WITH (expected_items = 100, false_positive_rate = 1e-6, seed = 3);
CREATE TABLE parted (client int, n int, k bigint) PARTITION BY LIST (client);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES IN (0, 1);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2, 3);
CREATE INDEX parted_k ON parted USING bloomset (k) WITH (expected_items = 10, {RARE});
CREATE UNLOGGED TABLE fleeting (k bigint);
CREATE INDEX fleeting_k ON fleeting USING bloomset (k) WITH (expected_items = 10, {RARE});
INSERT INTO fleeting SELECT i FROM generate_series(1, 3000) AS i;
"""
CHECKED = [("grown", "k"), ("grown", "s"), ("parted", "k")]
SETS = "grown", "parted_0", "parted_2"


def faults_of(session, tables=CHECKED):
    """What sets deny although their table has it, and errors, in one snapshot after the other."""
    wrong = []
    for table, column in tables:
        for query in denied(table, column), denied_by_partitions(table, column, "n % 5 = 0"), \
                denied_by_filters(table, column, "n % 3 = 0"):  # fmt: skip
            lines, state = session.attempt(query)
            if state != "00000" or lines:
                wrong.append(f"{state}: {lines[:5]} {session.error if state != '00000' else ''} {query}")
    return wrong


def check_sets(server, tables=SETS):
    """The errors of bloomset_check, for all sets of these tables."""
    wrong = []
    with server.connect() as session:
        for table in tables:
            sets = session.ask(VALID_SETS.format(table))
            wrong += [] if sets else [f"{table} has no set"]
            for index in sets:
                if session.attempt(f"SELECT bloomset_check({index})")[1] != "00000":
                    wrong.append(f"{table}: {session.error}")
    return wrong


# Crashes

def transaction(r, client, n):
    """The statements of transaction n of a client; all its rows bear n."""
    k, many = r.choice([1, r.randrange(10**9)]), r.choice([1, 1, 10, 100, 400])
    rows = f"SELECT {client}, {n}, {k} + i * {r.choice([0, 1, 1009])}{{}} FROM generate_series(1, {many}) AS i"
    grown = f"INSERT INTO grown {rows.format(f', {k} + i')}"
    parted = f"INSERT INTO parted {rows.format('')}"
    change = f"UPDATE grown SET k = k + 1, s = 'u' || k WHERE client = {client} AND n = {n - r.randint(1, 20)}"
    undone = f"SAVEPOINT s; {grown}; ROLLBACK TO s"
    return r.choice([[grown], [grown, parted], [grown, change], [undone, grown, parted], [parted, change, grown]])


def write(session, r, client, n):
    for statement in "BEGIN", *transaction(r, client, n):
        session.rows(statement)
    if r.random() < 0.9:
        session.rows("COMMIT")
        return True
    session.rows(f"PREPARE TRANSACTION 'p{n} of {client}'")
    if r.random() < 0.9:
        session.rows(f"COMMIT PREPARED 'p{n} of {client}'")
        return True
    return False


def maintain(session, r):
    # A transaction that stays prepared has its locks until the server has recovered.
    session.attempt("SET lock_timeout = '300ms'")
    _, state = session.attempt(r.choice([
        "REINDEX INDEX CONCURRENTLY grown_k", "REINDEX INDEX grown_s", "CHECKPOINT", "CHECKPOINT",
        "REINDEX TABLE CONCURRENTLY parted_0", "VACUUM grown", "VACUUM (INDEX_CLEANUP on) parted",
        "CREATE INDEX CONCURRENTLY again ON grown USING bloomset (k) WITH (expected_items = 50, seed = 8)",
        "DROP INDEX IF EXISTS again", "TRUNCATE parted_2", "DELETE FROM parted WHERE n % 3 = 0",
    ]))  # fmt: skip
    time.sleep(r.random() / 5)
    return state


def crash(server, number):
    """One round: clients write, the server is killed and recovers, sets and tables are compared."""
    clients = Clients(server, number, CLIENTS, write, maintain)
    time.sleep(random.uniform(1, 3))
    server.kill()
    clients.end()
    recover(server, number % 2 == 0)
    tidy_up(server)
    wrong = check_sets(server) + clients.errors
    with server.connect() as session:
        wrong += faults_of(session)
        rows = session.ask("SELECT count(*) FROM grown")
        lost = [client for client, last in clients.committed.items() if session.ask(
            f"SELECT count(*) FROM grown WHERE client = {client} AND n = {last}") == ["0"]]
        wrong += goes_on(session)
    wrong += check_sets(server, ["fleeting"])
    how = "killed, and again in recovery" if number % 2 == 0 else "killed"
    ok(not wrong and not lost, f"round {number}, {how}: the sets have all values of {rows[0]} rows", *wrong,
       f"clients that lost a commit: {lost}")  # fmt: skip


def goes_on(session):
    """What is wrong with an unlogged set after a crash: it is empty, and is filled again."""
    maybe = "SELECT count(*) FROM generate_series(1, 3000) AS i WHERE bloomset_contains('fleeting', 'k', i)"
    found = session.ask("SELECT count(*) FROM fleeting") + session.ask(maybe)
    session.ask("INSERT INTO fleeting SELECT i FROM generate_series(1, 3000) AS i")
    return session.ask(denied("fleeting")) + ([] if found == ["0", "0"] else [f"an unlogged set is not empty: {found}"])


GROWN = "SELECT generations FROM bloomset_info('{}_k'::regclass)"
SIZE = "SELECT pg_relation_size('{}_k'::regclass)"


GROW = f"INSERT INTO {{}} SELECT i FROM generate_series({LARGE + 1}, {LARGE + LARGE // 10}) AS i"


def make_large(server, table):
    server.sql(f"DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (k bigint); "
               f"INSERT INTO {table} SELECT i FROM generate_series(1, {LARGE}) AS i; "
               f"CREATE INDEX {table}_k ON {table} USING bloomset (k) WITH ({RARE})", "CHECKPOINT")


def path_of(server, table):
    return os.path.join(server.data, server.value(f"SELECT pg_relation_filepath('{table}_k')"))


def growing(path, work):
    """Waits for an index to get more pages; looks at the file, since a query takes long enough to miss it."""
    before = os.stat(path).st_size
    while os.stat(path).st_size == before and not work.done():
        pass


def duration_of_growth(server, table):
    """Lets a set grow, and returns how long it took to get its pages."""
    path = path_of(server, table)
    with server.connect() as writer:
        work = in_thread(writer.attempt, GROW.format(table))
        growing(path, work)
        began = last = time.monotonic()
        size = os.stat(path).st_size
        while not work.done():
            if os.stat(path).st_size != size:
                size, last = os.stat(path).st_size, time.monotonic()
    return last - began


def kill_in_growth(server, delay):
    """Stops a session some time after its index has got more pages, lets others commit, which writes its WAL so far,
    and kills the server. Returns whether the set had still to grow then."""
    path = path_of(server, "killed")
    with server.connect() as writer, server.connect() as other:
        pid = writer.pid
        work = in_thread(writer.attempt, GROW.format("killed"))
        growing(path, work)
        time.sleep(delay)
        os.kill(pid, signal.SIGSTOP)
        # They wait if the session was stopped with a lock on the WAL.
        committing = in_thread(other.attempt, "INSERT INTO pulse VALUES (1)")
        concurrent.futures.wait([committing], 0.5)
        server.kill()
        for future in work, committing:
            result_of(future)
    recover(server, random.random() < 0.3)
    return server.value(GROWN.format("killed")) == "1"


def crash_in_growth(server):
    """Kills the server amid growth again and again, until a growth is done; and all that with several sets. Growth that
    ends uses the pages that others have left."""
    server.sql("CREATE TABLE pulse (i int)")
    make_large(server, "steady")
    duration = duration_of_growth(server, "steady")
    same(server.value(GROWN.format("steady")), "2", "a large set grows once")
    kills = under_way = 0
    for _ in range(GROWTHS):
        make_large(server, "killed")
        for _ in range(5):
            kills += 1
            amid = kill_in_growth(server, random.uniform(0, duration / 2))
            under_way += amid
            with server.connect() as session:
                wrong = session.ask(denied("killed", condition="k % 10 = 0"))
            same(wrong, [], f"kill {kills} amid growth: nothing is denied")
            same(check_sets(server, ["killed"]), [], f"kill {kills} amid growth: bloomset_check")
            if not amid:
                break
        server.sql(GROW.format("killed"))
        same(server.value(GROWN.format("killed")), "2", "then the set has grown once")
        sizes = [int(server.value(SIZE.format(table))) for table in ("steady", "killed")]
        ok(abs(sizes[1] - sizes[0]) <= 0.02 * sizes[0], "growth that was killed leaves no pages behind", sizes)
        with server.connect() as session:
            same(session.ask(denied("killed", condition=f"k % 10 = 0 OR k > {LARGE}")), [], "nothing is denied")
    note(f"killed {kills} times in or after growth of {1000 * duration:.0f} ms")
    ok(under_way, f"which then was not done {under_way} times")


def crashes():
    server = Server(directory, "crashing").init("--data-checksums", **SETTINGS).start()
    server.run("createdb", DATABASE)
    server.sql(SCHEMA)
    for number in range(1, ROUNDS + 1):
        crash(server, number)
    crash_in_growth(server)
    same(faults_in_log(server), [], "crashes: no fault in the log")
    server.stop()


def minimal_wal():
    server = Server(directory, "minimal").init(**{**SETTINGS, "wal_level": "minimal", "max_wal_senders": "0"}).start()
    server.run("createdb", DATABASE)
    server.sql("CREATE EXTENSION bloomtype")
    tables = without_wal(server, "CREATE TABLE {t} (k bigint, n int)",
                         "CREATE INDEX {t}_k ON {t} USING bloomset (k) WITH (expected_items = 10)", "k",
                         [f"INSERT INTO {{t}} SELECT i, i FROM generate_series({first}, {last}) AS i"
                          for first, last in ((1, 500), (501, 9000), (9001, 12000))])  # fmt: skip
    with server.connect() as session:
        wrong = faults_of(session, [(table, "k") for table in tables])
        same(wrong, [], "wal_level = minimal: after a crash nothing is denied")
        same(session.ask("SELECT count(*) FROM t0"), ["12000"], "wal_level = minimal: rows are there")
        grown = [session.ask(GROWN.format(table)) for table in tables]
        ok(all(int(generations) > 1 for generations, in grown), "wal_level = minimal: the sets have grown", grown)
    same(check_sets(server, tables), [], "wal_level = minimal: bloomset_check finds nothing")
    server.stop()


# A standby

primary, standby = Server(directory, "primary"), Server(directory, "standby")


def begin_replication():
    start_standby(primary, standby, SETTINGS, [SCHEMA, "CREATE TABLE anchor ()"], max_standby_archive_delay="-1",
                  hot_standby_feedback="off")  # fmt: skip
    # Keeps the primary from pruning its catalogs, for which replay would wait as long as there are old snapshots. It
    # does not keep dead rows in other tables.
    primary.sql("SELECT pg_create_logical_replication_slot('catalogs', 'pgoutput')")
    caught_up(primary, standby)


def compare(readers, session, r, isolation):
    table, column = r.choice(CHECKED)
    some = f"n % 7 = {r.randrange(7)}"
    # A set that is newer than the snapshot has no filters.
    good = readers.compare(session, *r.choice([(denied(table, column), isolation)] * 3 + [
        (denied_by_partitions(table, column, some), isolation),
        (denied_by_filters(table, column, some), isolation, {"55000"}),
        (USE_SETS + denied_by_scan(table, column, f"n % 100 = {r.randrange(100)}"), isolation)]))  # fmt: skip
    absent = readers.query(session, "SELECT count(*) FILTER (WHERE NOT bloomset_contains('grown', 'k', -i)) "
                           "FROM generate_series(1, 10) AS i") if good else None  # fmt: skip
    readers.counts["no"] += int((absent or ["0"])[0])
    return absent is not None


def standby_under_load():
    readers, clients = Readers(standby, compare), Clients(primary, 1, CLIENTS, write, maintain)
    under_load(clients, readers, SECONDS)
    readers.report(clients, "nothing is denied")
    ok(readers.counts["no"] > 20, "standby: absent values are denied", readers.counts)
    tidy_up(primary)
    caught_up(primary, standby)
    with standby.connect() as session:
        same(faults_of(session), [], "standby: in the end nothing is denied")
    same(faults_in_log(standby), [], "standby: replayed pages are the same")


# Old snapshots on the standby: in each case the snapshot is taken; then the primary deletes or updates a row that it
# sees, and replaces the set, which does not have the row, because nobody on the primary sees it.
CREATE = f"CREATE INDEX {{t}}_k ON {{t}} USING bloomset (k) WITH ({RARE})"
CREATE_SECOND = f"CREATE INDEX{{}} {{{{t}}}}_l ON {{{{t}}}} USING bloomset (k) WITH ({RARE})"
REBUILDS = {
    "REINDEX": ["DELETE FROM {t} WHERE k = 5", "REINDEX INDEX {t}_k"],
    "REINDEX TABLE": ["DELETE FROM {t} WHERE k = 5", "REINDEX TABLE {t}"],
    "REINDEX CONCURRENTLY": ["DELETE FROM {t} WHERE k = 5", "REINDEX INDEX CONCURRENTLY {t}_k"],
    "UPDATE and REINDEX": ["UPDATE {t} SET k = 500 WHERE k = 5", "REINDEX INDEX {t}_k"],
    "another set": ["DELETE FROM {t} WHERE k = 5", "DROP INDEX {t}_k", CREATE],
    "a second set": ["DELETE FROM {t} WHERE k = 5", CREATE_SECOND.format("")],
    "a second set, CONCURRENTLY": ["DELETE FROM {t} WHERE k = 5", CREATE_SECOND.format(" CONCURRENTLY")],
    "a broken HOT chain": ["DROP INDEX {t}_k", "UPDATE {t} SET k = 500 WHERE k = 5", CREATE],
    "DELETE and REINDEX, twice": ["DELETE FROM {t} WHERE k = 5", "REINDEX INDEX {t}_k", "SELECT pg_current_xact_id()",
                                  "REINDEX INDEX {t}_k"],
}  # fmt: skip


def old_snapshot_hears(session, table, name):
    """The snapshot sees the row with 5, so nothing may deny it."""
    same(session.ask(f"SELECT count(*) FROM {table} WHERE k + 0 = 5"), ["1"], f"{name}: the old snapshot sees the row")
    same(session.ask(f"SELECT bloomset_contains('{table}', 'k', 5)"), ["t"], f"{name}: contains")
    # The session's own view of the catalogs is old, too.
    for index, in standby.sql(VALID_SETS.format(table)):
        same(session.ask(f"SELECT bloomset_contains({index}::regclass, 5)"), ["t"], f"{name}: contains by index")
    same(session.ask(f"SELECT bloomset_partitions('{table}', 'k', 5)"), [table], f"{name}: partitions")
    same(session.ask(USE_SETS + f"SELECT count(*) FROM {table} WHERE k = 5"), ["1"], f"{name}: the scan")
    session.ask("SAVEPOINT here")
    lines, state = session.attempt(f"SELECT bool_or(filter @> 5::bigint) FROM bloomset_filters('{table}', 'k')")
    ok(state == "55000" or lines == ["t"], f"{name}: the filters have it, or are refused", lines, state, session.error)
    session.ask("ROLLBACK TO here")


def old_snapshots(server_with_snapshots, names, between=None):
    """Opens a snapshot for each case, carries the cases out on the primary, and asks in the snapshots."""
    tables = {name: f"old_{number}" for number, name in enumerate(names)}
    for table in tables.values():
        primary.sql(f"DROP TABLE IF EXISTS {table}", f"CREATE TABLE {table} (k bigint)",
                    f"INSERT INTO {table} SELECT i FROM generate_series(1, 20) AS i",
                    CREATE.format(t=table), "SELECT pg_current_xact_id()")  # fmt: skip
    caught_up(primary, standby)
    with contextlib.ExitStack() as stack:
        asked, fresh = {}, {}
        for name in names:
            asked[name], fresh[name] = (stack.enter_context(server_with_snapshots.connect()) for _ in range(2))
            for session in asked[name], fresh[name]:
                session.each("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM anchor")
        if primary.value("SELECT count(*) FROM pg_stat_replication WHERE backend_xmin IS NULL") == "0":
            time.sleep(2)  # feedback tells the primary of these snapshots
        for name, table in tables.items():
            for statement in REBUILDS[name]:
                primary.sql(statement.format(t=table))
        caught_up(primary, standby)
        if between:
            for name, table in tables.items():
                old_snapshot_hears(asked[name], table, f"{name}, before the promotion")
            between()
        for name, table in tables.items():
            label = f"{name}, after the promotion" if between else name
            old_snapshot_hears(asked[name], table, label)
            old_snapshot_hears(fresh[name], table, f"{label}, asked for the first time")
    return tables


def denies_again(server, tables, label):
    """New snapshots on the standby hear "no" again, once the primary has given another transaction id."""
    wrong = [name for name, table in tables.items()
             if server.value(f"SELECT bloomset_contains('{table}', 'k', 5)") != "f"]  # fmt: skip
    same(wrong, [], f"{label}: new snapshots hear no")


def standby_validation():
    """CREATE INDEX CONCURRENTLY: a row that was not committed when the set was built, and that has gone when its build
    is validated, is not in the set. Nobody on the primary sees it, but a snapshot on the standby does."""
    primary.sql("CREATE TABLE validated (k bigint)", "INSERT INTO validated SELECT i FROM generate_series(10, 20) AS i")
    with contextlib.ExitStack() as stack:
        owner, first, second, third, watcher = (stack.enter_context(primary.connect()) for _ in range(5))
        old = stack.enter_context(standby.connect())
        first.ask("BEGIN; LOCK TABLE validated IN ROW EXCLUSIVE MODE")
        create = f"CREATE INDEX CONCURRENTLY validated_k ON validated USING bloomset (k) WITH ({RARE})"
        making = in_thread(owner.attempt, create)
        wait_until_blocked(owner, first, watcher.ask)
        second.ask("BEGIN; INSERT INTO validated VALUES (5)")
        third.ask("BEGIN; LOCK TABLE validated IN ROW EXCLUSIVE MODE")
        first.ask("COMMIT")
        built = "SELECT indisready FROM pg_index WHERE indexrelid = 'validated_k'::regclass"
        until(lambda: watcher.ask(built) == ["t"], "built")
        second.ask("COMMIT")
        caught_up(primary, standby)
        old.each("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM anchor")
        watcher.ask("DELETE FROM validated WHERE k = 5")
        third.ask("COMMIT")
        same(result_of(making)[1], "00000", "CREATE INDEX CONCURRENTLY ends")
        primary.sql("SELECT pg_current_xact_id()")
        caught_up(primary, standby)
        old_snapshot_hears(old, "validated", "deleted before the validation")
    denies_again(standby, {"validation": "validated"}, "validated on the standby")


def standby_snapshots():
    for feedback in "on", "off":
        standby.configure(hot_standby_feedback=feedback, wal_receiver_status_interval="'1s'")
        standby.sql("SELECT pg_reload_conf()")
        known = "NOT NULL" if feedback == "on" else "NULL"
        primary.poll(f"SELECT count(*) = 1 FROM pg_stat_replication WHERE backend_xmin IS {known}")
        tables = old_snapshots(standby, list(REBUILDS))
        primary.sql("SELECT pg_current_xact_id()", "SELECT pg_current_xact_id()", "CHECKPOINT")
        caught_up(primary, standby)
        if feedback == "off":
            time.sleep(0.5)
            denies_again(standby, tables, "standby")


def unlogged_on_standby():
    for call in "contains('fleeting', 'k', 5)", "contains('fleeting_k'::regclass, 5)", \
            "partitions('fleeting', 'k', 5)", "filters('fleeting', 'k')", "info('fleeting_k'::regclass)":  # fmt: skip
        sql = "SELECT * FROM bloomset_" + call
        with standby.connect() as session:
            state = session.attempt(sql)[1]
            ok(state == "55000", f"standby: {sql} of an unlogged table is refused: {state}", session.error)


def promotion():
    tables = old_snapshots(standby, ["REINDEX", "REINDEX CONCURRENTLY", "another set", "a broken HOT chain"],
                           lambda: promote(primary, standby))
    same(standby.value("SELECT pg_is_in_recovery()"), "f", "promoted")
    standby.sql("SELECT pg_current_xact_id()", "SELECT pg_current_xact_id()")
    denies_again(standby, tables, "promoted")
    with standby.connect() as session:
        same(faults_of(session), [], "promoted: nothing is denied")
        same(session.ask("SELECT count(*) FROM fleeting"), ["0"], "promoted: an unlogged table is empty")
        same(session.ask("SELECT bloomset_contains('fleeting', 'k', 5)"), ["f"], "promoted: so is its set")
        session.ask("INSERT INTO fleeting SELECT i FROM generate_series(1, 3000) AS i")
        same(session.ask(denied("fleeting")), [], "promoted: which goes on")
        session.each("INSERT INTO grown SELECT 9, i, i, i FROM generate_series(1, 30000) AS i",
                     "INSERT INTO parted SELECT 2, i, -i FROM generate_series(1, 10000) AS i")
        same(faults_of(session), [], "promoted: sets grow, and nothing is denied")
    same(check_sets(standby), [], "promoted: bloomset_check finds nothing")
    same(faults_in_log(standby), [], "promoted: no fault in the log")


# Logical replication

TABLES = """
CREATE TABLE copied (id int PRIMARY KEY, k bigint, s text, n int DEFAULT 0);
CREATE TABLE spread (id int PRIMARY KEY, k bigint, n int DEFAULT 0){};
"""


def logical():
    """The promoted standby publishes; the subscriber has sets, and other partitions than the publisher."""
    subscriber = Server(directory, "subscriber").init(**SETTINGS).start()
    subscriber.run("createdb", DATABASE)
    subscriber.sql("CREATE EXTENSION bloomtype", TABLES.format(" PARTITION BY RANGE (id)"), f"""
        CREATE TABLE spread_1 PARTITION OF spread FOR VALUES FROM (MINVALUE) TO (3000);
        CREATE TABLE spread_2 PARTITION OF spread FOR VALUES FROM (3000) TO (MAXVALUE);
        CREATE INDEX copied_k ON copied USING bloomset (k) WITH (expected_items = 10);
        CREATE INDEX copied_s ON copied USING bloomset (s) WITH (expected_items = 10);
        CREATE INDEX spread_k ON spread USING bloomset (k) WITH (expected_items = 10, {RARE})""")
    checked = [("copied", "k"), ("copied", "s"), ("spread", "k")]
    standby.sql(TABLES.format(""), "CREATE PUBLICATION sets FOR TABLE copied, spread",
                "INSERT INTO copied SELECT i, i, i, i FROM generate_series(1, 4000) AS i",
                "INSERT INTO spread SELECT i, i * 3, i FROM generate_series(1, 6000) AS i")  # fmt: skip
    subscriber.sql(f"CREATE SUBSCRIPTION sets CONNECTION '{standby.conninfo()}' PUBLICATION sets WITH (streaming = on)")
    r, wrong = random.Random("logical"), []
    changes = [
        "INSERT INTO copied SELECT max(id) + i, max(id) * 7 + i, 'x' || i, i "
        "FROM copied, generate_series(1, 300) AS i GROUP BY i",
        "UPDATE copied SET k = k + 1000000, s = s || 'u' WHERE id % 11 = {x}", "DELETE FROM copied WHERE id % 50 = {x}",
        "UPDATE spread SET id = id + 100000, k = -k WHERE id % 17 = {x} AND id < 50000",
        "UPDATE spread SET k = k * 5 WHERE id % 13 = {x}",
        "BEGIN; SAVEPOINT a; UPDATE copied SET k = 0; ROLLBACK TO a; "
        "UPDATE copied SET k = id * 11 WHERE id % 5 = {x}; COMMIT",
        "DELETE FROM spread WHERE id % 23 = {x}",
    ]  # fmt: skip
    with subscriber.connect() as session:
        until(lambda: wrong.extend(faults_of(session, checked)) or session.ask(
            "SELECT count(*) FROM pg_subscription_rel WHERE srsubstate <> 'r'") == ["0"], "initial copy")  # fmt: skip
        for _ in range(40):
            standby.sql(r.choice(changes).format(x=r.randrange(5)))
            wrong += faults_of(session, checked)
        lsn = standby.value("SELECT pg_current_wal_flush_lsn()")
        standby.poll(f"SELECT replay_lsn >= '{lsn}' FROM pg_stat_replication WHERE application_name = 'sets'")
        ok(not wrong, "logical replication: at every moment nothing is denied", *wrong[:3])
        same(faults_of(session, checked), [], "logical replication: in the end nothing is denied")
    for table in "copied", "spread":
        digest = f"SELECT md5(string_agg(t::text, ' ' ORDER BY id)) FROM {table} AS t"
        same(subscriber.value(digest), standby.value(digest), f"logical replication: {table} is the same")
    wrong = check_sets(subscriber, ["copied", "spread_1", "spread_2"])
    same(wrong, [], "logical replication: bloomset_check finds nothing")
    subscriber.sql("DROP SUBSCRIPTION sets")
    subscriber.stop()
    standby.stop()


main(crashes, minimal_wal, begin_replication, unlogged_on_standby, standby_validation, standby_snapshots,
     standby_under_load, promotion, logical)
