#!/usr/bin/python3 -B
"""The SQL of doc/usernames.md, doc/deduplication.md and doc/trace-search.md in several sessions at once; and triggers
of these pages and of doc/keeping-current.md in two schemas, and with data that pg_dump has dumped.

Four sessions register names, or deliver events in batches and one by one, at random. The names and the ids overlap, and
a part of the transactions is rolled back. What is committed must be there, once, and no session may see a deadlock.
"""

import contextlib
import hashlib
import itertools
import json
import random
import subprocess
import time
import uuid

import recipes
from session import Session, ask, extension_schema, in_thread, run, together
from tap import ok, same

SESSIONS = 4
SECONDS = 2  # of each part
PATIENCE = 60  # seconds
SEED = 20261122


def at_random(*works):
    """Runs each work(session, randomness) in a thread with a session of its own; returns their results."""
    return together(*[lambda number, session, work=work: work(session, random.Random(f"{SEED} {number}"))
                      for work in works])  # fmt: skip


def in_transaction(session, randomness, sql):
    """The SQLSTATE of a transaction, and whether it was committed: a fifth is rolled back."""
    session.ask("BEGIN")
    state = session.attempt(sql)[1]
    end = "ROLLBACK" if state != "00000" or randomness.random() < 0.2 else "COMMIT"
    session.ask(end)
    return state, end == "COMMIT"


# User names

def register(session, randomness):
    """Inserts one name or many of 3,000, by any spelling; returns the states and the names committed."""
    states, committed = set(), set()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        names = {f"Name{randomness.randrange(3000)}" for _ in range(randomness.choice([1, 1, 20]))}
        values = ", ".join(f"('{randomness.choice([name, name.upper()])}')" for name in sorted(names))
        state, kept = in_transaction(
            session, randomness, f"INSERT INTO accounts (name) VALUES {values} ON CONFLICT (key) DO NOTHING")
        states.add(state)
        committed |= names if kept else set()
    return states, committed


def rebuild(session, randomness):
    lock, build = recipes.block("usernames.md", "LOCK TABLE accounts IN SHARE MODE").split(";")[:2]
    states = set()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        session.ask("BEGIN")
        states |= {session.attempt(lock)[1], session.attempt(build)[1]}
        session.ask("COMMIT")
        time.sleep(0.1)
    return states, set()


def test_usernames():
    ask(recipes.block("usernames.md", "CREATE TABLE accounts"))
    results = at_random(*[register] * SESSIONS, rebuild)
    same(set.union(*(states for states, _ in results)), {"00000"}, "registrations and rebuilding: no deadlock")
    committed = {name.lower() for _, names in results for name in names}
    found = ask("SELECT key FROM accounts")
    same(sorted(found), sorted(committed), f"each of {len(committed)} committed names has one account")
    same(ask("SELECT name FROM accounts WHERE NOT is_taken(upper(name))"), [], "and is taken")
    same(ask("SELECT key FROM accounts JOIN name_filters ON part = part_of(key) WHERE NOT f @> key"), [],
         "because the filter has it")  # fmt: skip
    free = ask("SELECT i FROM generate_series(1, 1000) AS i WHERE is_taken('free' || i)")
    same(free, [], "a name that nobody has registered is free, whatever the filter says")
    wrong = ask("""SELECT part FROM name_filters WHERE f <>
        (SELECT bloom_create(600) | bloom_agg(key, 600) FROM accounts WHERE part_of(key) = part)""")
    same(wrong, [], "the filters have the committed names and no other")


def test_names_left_alone():
    """What does not add a name does not write a filter, and an emptied table leaves empty filters."""
    part, state = "part_of('alice')", "SELECT part, xmin, ctid FROM name_filters ORDER BY part"
    ask("INSERT INTO accounts (name) VALUES ('Alice')")
    before = ask(state)
    ask("UPDATE accounts SET name = upper(name)")
    same(ask(state), before, "an update that keeps the keys writes no filter")
    ask(f"DELETE FROM name_filters WHERE part = {part}")
    same(ask("SELECT is_taken('alice')"), ["t"], "a name whose part is missing is looked up")
    ask(f"INSERT INTO name_filters SELECT {part}, bloom_create(600); TRUNCATE accounts")
    ask(recipes.block("usernames.md", "LOCK TABLE accounts IN SHARE MODE"))
    same(ask("SELECT count(*) FROM name_filters WHERE f <> bloom_create(600)"), ["0"], "no accounts, no names")


def test_old_snapshot():
    """A snapshot from before a rebuild shows names that the filter has no more."""
    alice = "INSERT INTO accounts (name) VALUES ('Alice')"
    ask(alice)
    with Session() as session:
        session.each("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM accounts")
        ask("DELETE FROM accounts")
        ask(recipes.block("usernames.md", "LOCK TABLE accounts IN SHARE MODE"))
        same(session.attempt(alice)[1], "40001", "the registration of such a name fails")


def test_overfull():
    """Building anew gives the parts room for the names that there are."""
    names = 64 * 1300
    ask(f"TRUNCATE accounts; INSERT INTO accounts (name) SELECT 'Name' || i FROM generate_series(1, {names}) AS i")
    overfull = "SELECT count(*) FROM name_filters, bloom_info(f) WHERE overfull"
    same(ask(overfull), ["64"], "more than twice the names make all parts overfull")
    ask(recipes.block("usernames.md", "LOCK TABLE accounts IN SHARE MODE"))
    same(ask(overfull), ["0"], "built anew they are not")
    same(ask("SELECT count(*) FROM accounts WHERE NOT is_taken(key)"), ["0"], "and have every name")
    share = names // 64
    same(ask(f"SELECT min(capacity) >= 2 * {share}, max(capacity) < 2.2 * {share} FROM name_filters, bloom_info(f)"),
         ["t|t"], "and room for twice their share")  # fmt: skip


def test_choice():
    """An application chooses the same part and shard."""
    names = [f"name{number}" for number in range(1000)]
    parts = [int.from_bytes(hashlib.sha256(name.encode()).digest()[:2], "big") & 63 for name in names]
    same(ask("SELECT part_of('name' || i) FROM generate_series(0, 999) AS i"), [str(part) for part in parts],
         "the part of a name")  # fmt: skip
    ids = [event(number) for number in range(1000)]
    shards = [str(uuid.UUID(id).int & 255) for id in ids]
    same(ask(f"SELECT shard_of(id) FROM unnest('{{{','.join(ids)}}}'::uuid[]) AS id"), shards, "the shard of an id")


# Events

IDS = 60000


def event(number):
    return str(uuid.uuid5(uuid.NAMESPACE_OID, str(number)))


def deliver(session, randomness):
    """Delivers batches of 1 to 300 events and single events; returns the states and the numbers committed."""
    states, committed, last = set(), set(), 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        last = (last + 200) % IDS if randomness.random() < 0.7 else randomness.randrange(IDS)
        numbers = [(last + randomness.randrange(400)) % IDS for _ in range(randomness.choice([1, 10, 300]))]
        if len(numbers) == 1:
            sql = f"EXECUTE receive_one('{event(numbers[0])}', '')"
        else:
            batch = json.dumps([{"id": event(number), "body": ""} for number in numbers])
            sql = f"EXECUTE receive('{batch}')"
        state, kept = in_transaction(session, randomness, sql)
        states.add(state)
        committed |= set(numbers) if kept else set()
    return states, committed


def prepared(session, randomness):
    session.ask(recipes.block("deduplication.md", "PREPARE receive (json)").split("EXECUTE")[0])
    session.ask(recipes.block("deduplication.md", "PREPARE receive_one").split("EXECUTE")[0])
    return deliver(session, randomness)


def begin_generations(session, randomness):
    states = set()
    for _ in range(5):
        time.sleep(SECONDS / 6)
        states.add(session.attempt("SELECT next_generation()")[1])
    return states, set()


def test_deduplication():
    ask(recipes.block("deduplication.md", "CREATE TABLE seen"))
    results = at_random(*[prepared] * SESSIONS, begin_generations)
    same(set.union(*(states for states, _ in results)), {"00000"}, "deliveries and new generations: no deadlock")
    committed = set.union(*(numbers for _, numbers in results))
    stored = ask("SELECT id FROM events")
    same(len(stored), len(set(stored)), "no event is stored twice")
    expected = {event(number) for number in committed}
    same(set(stored) - expected, set(), "no event is stored that was not committed")
    generations = int(ask("SELECT count(DISTINCT generation) FROM seen")[0])
    same(generations, 6, "six generations")
    lost = len(expected - set(stored))
    mean = 0.001 * generations * len(expected)
    ok(lost <= mean + 5 * mean**0.5 + 5, f"of {len(expected)} events at most the false positives are missing: {lost}")
    missing = ask("""SELECT id FROM events AS e WHERE NOT EXISTS
        (SELECT FROM seen AS s WHERE s.shard = shard_of(e.id) AND s.f @> e.id)""")
    same(missing, [], "the filters have every event")


FORMS = {  # what prepares the statement, and what delivers one event
    "a batch": ("PREPARE receive (json)", """EXECUTE receive('[{"id": "%s", "body": ""}]')"""),
    "one event": ("PREPARE receive_one", "EXECUTE receive_one('%s', '')"),
}


def meet(id, first_form, second_form, end, rotate):
    """The second session delivers the event while the first holds its shard, if asked for behind a session that waits
    to begin a generation. Returns the SQLSTATEs and the number of events."""
    with Session() as first, Session() as job, Session() as second:
        for session in first, second:
            for prepare, _ in FORMS.values():
                session.ask(recipes.block("deduplication.md", prepare).split("EXECUTE")[0])
        first.each("BEGIN", FORMS[first_form][1] % id)
        waiting = []
        for session, sql in ((job, "SELECT next_generation()"),) * rotate + ((second, FORMS[second_form][1] % id),):
            waiting.append(in_thread(session.attempt, sql))
            wait_until_waiting(session)
        first.ask(end)
        states = {future.result(PATIENCE)[1] for future in waiting}
    return states, ask(f"SELECT count(*) FROM events WHERE id = '{id}'")


def test_meeting():
    """The second session waits for the first. The event is stored once, whether that commits or not."""
    ask("TRUNCATE events")
    cases = itertools.product(FORMS, FORMS, ("COMMIT", "ROLLBACK"), (False, True))
    for number, (first, second, end, rotate) in enumerate(cases, IDS):
        same(meet(event(number), first, second, end, rotate), ({"00000"}, ["1"]),
             f"{first}, then {second}, {end}{', a new generation between them' * rotate}: stored once")  # fmt: skip


def wait_until_waiting(session):
    deadline = time.monotonic() + PATIENCE
    while ask(f"SELECT cardinality(pg_blocking_pids({session.pid})) > 0") != ["t"]:
        if time.monotonic() > deadline:
            raise TimeoutError("the session does not wait")
        time.sleep(0.01)


def test_isolation():
    id = event(-1)
    for isolation in "REPEATABLE READ", "SERIALIZABLE":
        with Session() as session:
            session.ask(f"BEGIN ISOLATION LEVEL {isolation}")
            same(session.attempt(f"SELECT only_new(ARRAY['{id}'::uuid])")[1], "0A000", f"{isolation} is refused")


def test_refusal():
    """An event that the filters cannot hold is an error, as a missing id is without them."""
    first, second = event(-2), event(-3)
    statements = [recipes.block("deduplication.md", f"PREPARE {name} ").split("EXECUTE")[0].split("WITH checked")[0]
                  for name in ("receive", "receive_one", "receive_exactly")]  # fmt: skip
    deliveries = {
        "only_new": "SELECT only_new(ARRAY[%s]::uuid[])",
        "receive": """EXECUTE receive(json_build_array(json_build_object('id', %s, 'body', '')))""",
        "receive_one": "EXECUTE receive_one(%s, '')",
        "receive_exactly": """EXECUTE receive_exactly(json_build_array(json_build_object('id', %s, 'body', '')))""",
    }
    ask("TRUNCATE events")
    with Session() as session:
        session.each(*statements)
        for name, sql in deliveries.items():
            same(session.attempt(sql % "NULL")[1], "23502", f"{name} refuses NULL")
        ask(f"DELETE FROM seen WHERE shard = shard_of('{first}')")
        for name, sql in deliveries.items():
            same(session.attempt(sql % f"'{first}'")[1], "23502", f"{name} refuses an id without a shard")
        ask("TRUNCATE seen")
        for name, sql in deliveries.items():
            same(session.attempt(sql % f"'{second}'")[1], "23502", f"{name} refuses an id without a generation")
    same(ask("SELECT count(*) FROM events"), ["0"], "and nothing is stored")


def test_exact_check():
    """What is dropped as "probably seen" is kept as doubtful, and the check stores what was new."""
    prepare, check = recipes.block("deduplication.md", "PREPARE receive_exactly").split("WITH checked")
    ids = [event(number) for number in range(-50, -10)]
    batch = json.dumps([{"id": id, "body": ""} for id in ids])
    ask("DROP TABLE IF EXISTS doubtful; TRUNCATE events, seen; SELECT next_generation()")
    ask(f"SELECT only_new('{{{','.join(ids[:20])}}}')")  # as if all bits of these were set
    with Session() as session:
        session.each(prepare, f"EXECUTE receive_exactly('{batch}')", f"EXECUTE receive_exactly('{batch}')")
        same(session.ask("SELECT count(*) FROM events"), ["20"], "half of the events are dropped")
        session.ask("WITH checked" + check)
    same(ask("SELECT id FROM events ORDER BY id"), sorted(ids), "and found again, each once")


# Traces

DAY = "CREATE TABLE spans_%d PARTITION OF spans FOR VALUES FROM ('2026-06-%d') TO ('2026-06-%d')"


def test_closing():
    """A span whose transaction is open when its segment is closed is in the filter, or refused."""
    ask(recipes.block("trace-search.md", "CREATE TABLE segments"))
    ask(DAY % (1, 1, 2))
    insert = "INSERT INTO spans VALUES ('2026-06-01 12:00', '%s', 'web')"
    with Session() as early, Session() as late, Session() as closer:
        early.each("BEGIN", insert % event(1))
        closing = in_thread(closer.attempt, "SELECT close_segment('spans_1')")
        wait_until_waiting(closer)
        inserting = in_thread(late.attempt, insert % event(2))
        wait_until_waiting(late)
        early.ask("COMMIT")
        same(closing.result(PATIENCE)[1], "00000", "the segment closes when its writer has ended")
        same(inserting.result(PATIENCE)[1], "23514", "a writer that comes later is refused")
    with Session() as session:
        session.ask("BEGIN ISOLATION LEVEL REPEATABLE READ")
        same(session.attempt("SELECT close_segment('spans_1')")[1], "0A000", "REPEATABLE READ is refused")
    same(ask(f"SELECT traces @> '{event(1)}'::uuid FROM segments"), ["t"], "the filter has the early span")
    same(ask(f"SELECT count(*) FROM find_trace('{event(1)}')"), ["1"], "and the search finds it")
    same(ask(f"SELECT count(*) FROM candidates('{event(3)}')"), ["0"], "another trace has no candidate")


def test_closed():
    """A closed segment takes only rows that a search finds, and none from an older snapshot."""
    ask(DAY % (2, 2, 3))
    insert = "INSERT INTO spans VALUES ('2026-06-02 %s', '%s', 'late')"
    ask(f"{insert % ('10:00', event(4))}; {insert % ('14:00', event(4))}")
    with Session() as session, Session() as old:
        old.each("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM segments")
        session.ask("SELECT close_segment('spans_2')")
        rows = ("12:00", event(4)), ("12:00", event(5)), ("15:00", event(4))
        same([session.attempt(insert % row)[1] for row in rows], ["00000", "23514", "23514"],
             "of late spans those with a known trace and time are stored")  # fmt: skip
        same(old.attempt(insert % rows[1])[1], "23514", "an older snapshot does not miss that the segment is closed")
        session.ask("CREATE TABLE spans_9 PARTITION OF spans FOR VALUES FROM ('2026-06-09') TO ('2026-06-10')"
                    " PARTITION BY HASH (trace)")
        same(session.attempt("SELECT close_segment('spans_9')")[1], "0A000",
             "a segment with partitions is refused, whose rows the trigger would not find")
        session.ask("DROP TABLE spans_9")
        session.ask("DELETE FROM segments WHERE segment = 'spans_2'::regclass")
        same(session.attempt(insert % rows[1])[1], "00000", "a segment without a filter takes rows")
        session.ask("SELECT close_segment('spans_2')")
        same(session.ask(f"SELECT count(*) FROM find_trace('{event(5)}')"), ["1"], "and is closed again")


# Schemas, and dumps of data

@contextlib.contextmanager
def tenants(*blocks):
    """Runs the SQL in two schemas; yields two sessions, each with its schema first in the path."""
    names, extension = ("lookups_a", "lookups_b"), extension_schema()
    drop = f"DROP SCHEMA IF EXISTS {', '.join(names)} CASCADE"
    ask(drop)
    try:
        with Session() as a, Session() as b:
            for session, name in zip((a, b), names):
                session.ask(f"CREATE SCHEMA {name}; SET search_path = {name}, {extension}")
                session.each(*blocks)
            yield a, b
    finally:
        ask(drop)


def reload(session, tables):
    """Empties the tables and loads their data again from a dump of the schema."""
    dump = subprocess.run(["pg_dump", "--data-only", "--schema=lookups_a"], check=True, stdout=subprocess.PIPE)
    session.ask("TRUNCATE " + tables)
    load = subprocess.run(["psql", "-Xq", "-v", "ON_ERROR_STOP=1"], input=dump.stdout, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE)  # fmt: skip
    ok(load.returncode == 0, f"the data of {tables} load from a dump", load.stderr.decode())


KEPT = {  # table: a row, and how to find it
    "accounts (name)": ("'Alice'", "SELECT f @> 'alice' FROM name_filters WHERE part = part_of('alice')"),
    "members": ("-1", "SELECT f @> -1 FROM filters"),
}


def test_tenants():
    """A trigger writes the filter of its table's schema, whatever the session's search_path."""
    parts = ("usernames.md", "CREATE TABLE accounts"), *(("keeping-current.md", part) for part in (
        "CREATE TABLE members", "CREATE FUNCTION keep_members_current"))  # fmt: skip
    with tenants(*(recipes.block(*part) for part in parts)) as (a, b):
        for table, (value, question) in KEPT.items():
            b.ask(f"INSERT INTO lookups_a.{table} VALUES ({value})")
            same([a.ask(question), b.ask(question)], [["t"], ["f"]], f"{table}: the filter of its schema has the row")
        reload(a, "accounts, name_filters, members, filters")
        same([a.ask(question) for _, question in KEPT.values()], [["t"], ["t"]], "and after a load of the data")
        same(a.ask("SELECT count(*) FROM members, filters WHERE NOT f @> id"), ["0"], "as all others")


def test_load_of_segments():
    with tenants(recipes.block("trace-search.md", "CREATE TABLE segments"), DAY % (1, 1, 2)) as (a, _):
        a.ask("INSERT INTO spans SELECT '2026-06-01', md5(i::text)::uuid, 'web' FROM generate_series(1, 500) AS i")
        a.ask("SELECT close_segment('spans_1')")
        reload(a, "segments, spans")
        same(a.ask("SELECT count(*) FROM generate_series(1, 500) AS i, find_trace(md5(i::text)::uuid)"), ["500"],
             "and each of their traces is found")  # fmt: skip


run(test_usernames, test_names_left_alone, test_old_snapshot, test_overfull, test_deduplication, test_choice,
    test_meeting, test_isolation, test_refusal, test_exact_check, test_closing, test_closed, test_tenants, test_load_of_segments)
