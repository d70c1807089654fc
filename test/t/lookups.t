#!/usr/bin/python3 -B
"""The SQL of doc/usernames.md, doc/deduplication.md and doc/trace-search.md in several sessions at once.

Four sessions deliver events in batches and one by one, at random. The ids overlap, and a part of the transactions is
rolled back. What is committed must be there, once, and no session may see a deadlock. Spans must be found as soon as
they are committed.
"""

import json
import random
import time
import uuid

import recipes
from session import Session, ask, in_thread, result_of, run, together, wait_until_blocked
from tap import same

SESSIONS = 4
SECONDS = 2  # of each part
SEED = 20261122


def at_random(*works):
    """Runs each work(session, randomness) in a thread with a session of its own; returns their results."""
    return together(*[lambda number, session, work=work: work(session, random.Random(f"{SEED} {number}"))
                      for work in works])  # fmt: skip


# User names

def test_usernames():
    """The set and its copy have every name, and REINDEX forgets the names that are gone."""
    contains = "SELECT key FROM accounts WHERE {} bloomset_contains('accounts', 'key', key)"
    ask(recipes.block("usernames.md", "CREATE TABLE accounts").split("SELECT bloomset_contains")[0])
    ask(recipes.block("usernames.md", "CREATE FUNCTION is_taken"))
    same(ask(contains.format("NOT")), [], "each name is probably taken")
    same(ask("SELECT key FROM accounts WHERE NOT is_taken(upper(name))"), [], "and taken, by a copy of the filters")
    same(ask("SELECT i FROM generate_series(1, 1000) AS i WHERE is_taken('free' || i)"), [],
         "a name that nobody has is free, whatever the filters say")  # fmt: skip
    ask("CREATE TABLE gone AS SELECT key FROM accounts WHERE id % 2 = 0; DELETE FROM accounts WHERE id % 2 = 0")
    of_gone = "SELECT count(*) FROM gone WHERE bloomset_contains('accounts', 'key', key)"
    same(ask(of_gone), ask("SELECT count(*) FROM gone"), "the set keeps names that are deleted")
    ask("REINDEX INDEX CONCURRENTLY accounts_key_set")
    # 1 % of 10,000, and four standard deviations
    same(ask(of_gone.replace("count(*)", "count(*) <= 140")), ["t"], "REINDEX forgets them")
    same(ask(contains.format("NOT")), [], "and no other")
    same(ask("SELECT count(*) FROM bloomset_filters('accounts', 'key')"), ["1"], "and leaves one filter")


# Events

IDS = 60000
RECEIVE = "EXECUTE receive('%s')"


def event(number):
    return str(uuid.uuid5(uuid.NAMESPACE_OID, str(number)))


def batch(ids):
    return RECEIVE % json.dumps([{"id": id, "body": ""} for id in ids])


def prepare(session):
    session.ask(recipes.block("deduplication.md", "PREPARE receive (json)").split("EXECUTE")[0])


def deliver(session, randomness):
    """Delivers batches of 1 to 300 events, a fifth of them in vain; returns the states and the numbers committed."""
    prepare(session)
    states, committed, last = set(), set(), 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        last = (last + 200) % IDS if randomness.random() < 0.7 else randomness.randrange(IDS)
        numbers = [(last + randomness.randrange(400)) % IDS for _ in range(randomness.choice([1, 10, 300]))]
        session.ask("BEGIN")
        state = session.attempt(batch(map(event, numbers)))[1]
        kept = state == "00000" and randomness.random() > 0.2
        session.ask("COMMIT" if kept else "ROLLBACK")
        states.add(state)
        committed |= set(numbers) if kept else set()
    return states, committed


def test_deduplication():
    ask(recipes.block("deduplication.md", "CREATE TABLE events"))
    results = at_random(*[deliver] * SESSIONS)
    same(set.union(*(states for states, _ in results)), {"00000"}, "deliveries: no deadlock")
    committed = {event(number) for _, numbers in results for number in numbers}
    stored = ask("SELECT id FROM events")
    same(len(stored), len(set(stored)), "no event is stored twice")
    same(set(stored), committed, f"each of {len(committed)} committed events is stored, and no other")


def test_meeting():
    """The second session waits for the first. The event is stored once, whether that commits or not."""
    for number, end in enumerate(("COMMIT", "ROLLBACK"), IDS):
        with Session() as first, Session() as second:
            prepare(first), prepare(second)
            first.each("BEGIN", batch([event(number)]))
            waiting = in_thread(second.attempt, batch([event(number)]))
            wait_until_blocked(second)
            first.ask(end)
            same(result_of(waiting)[1], "00000", f"the second goes on after {end}")
        same(ask(f"SELECT count(*) FROM events WHERE id = '{event(number)}'"), ["1"], "the event is stored once")


def test_another_partition():
    ask(f"INSERT INTO events (id, body, received) VALUES ('{event(-1)}', '', '2025-12-31')")
    with Session() as session:
        prepare(session)
        session.ask(batch([event(-1), event(-2), event(-2)]))
    same(ask(f"SELECT count(*) FROM events WHERE id IN ('{event(-1)}', '{event(-2)}')"), ["2"],
         "a repetition in another partition is dropped, and one in the batch")  # fmt: skip


def test_refusal():
    with Session() as session:
        for isolation in "REPEATABLE READ", "SERIALIZABLE":
            session.ask(f"BEGIN ISOLATION LEVEL {isolation}")
            same(session.attempt(f"SELECT bloomset_new('events', 'id', ARRAY['{event(-3)}'::uuid])")[1], "0A000", f"{isolation} is refused")
            session.ask("ROLLBACK")
        prepare(session)
        same(session.attempt(RECEIVE % '[{"id": null, "body": ""}]')[1], "22004", "an event without an id is refused")


# Traces

FIND = "bloomset_find(NULL::spans, 'trace', '%s')"
DAY = "CREATE TABLE spans_%d (LIKE spans INCLUDING ALL)"
ATTACH = "ALTER TABLE spans ATTACH PARTITION spans_%d FOR VALUES FROM ('2026-06-0%d') TO ('2026-06-0%d')"


def write_spans(session, randomness):
    """Inserts spans, each of a trace of its own, and searches for those that are committed; returns what is missed."""
    missed = []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        trace = str(uuid.UUID(int=randomness.getrandbits(128)))
        session.ask(f"INSERT INTO spans VALUES ('2026-06-0{randomness.randint(1, 2)}', '{trace}', 'web')")
        missed += [trace] * (session.ask(f"SELECT count(*) FROM {FIND % trace}") != ["1"])
    return missed


def test_traces():
    ask(recipes.block("trace-search.md", "CREATE INDEX spans_trace_set"))
    for day in 1, 2, 3:
        ask(DAY % day)
        ask(f"INSERT INTO spans_{day} SELECT '2026-06-0{day}', md5('early' || i)::uuid, 'web' FROM generate_series(1, 100) AS i")
        ask(ATTACH % (day, day, day + 1))
    missed = [trace for missed in at_random(*[write_spans] * SESSIONS) for trace in missed]
    same(missed, [], "each span is found when it is committed")
    ask("REINDEX TABLE CONCURRENTLY spans")
    found = "SELECT count(*) FROM (SELECT DISTINCT trace FROM spans) AS t, bloomset_find(NULL::spans, 'trace', trace)"
    same(ask(found), ask("SELECT count(*) FROM spans"), "and after REINDEX, as are those of attached partitions")
    absent = "generate_series(1, 1000) AS i, bloomset_partitions('spans', 'trace', md5('no' || i)::uuid)"
    # 0.1 % of 3,000, and more than four standard deviations
    same(ask(f"SELECT count(*) <= 12 FROM {absent}"), ["t"], "few partitions are read for absent traces")


run(test_usernames, test_deduplication, test_meeting, test_another_partition, test_refusal, test_traces)
