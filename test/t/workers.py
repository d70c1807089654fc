"""Sessions that do random work at the same time, for tests that compare an index with its table meanwhile.

The statements of each session come from a seed. How sessions meet does not.
"""

import collections
import os
import random
import threading
import time

from session import CHEAP_WORKERS, together

ISOLATIONS = "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"

# What any statement may meet: serialization failures, deadlocks, lock timeouts.
CONCURRENT = {"40001", "40P01", "55P03"}
# What DML may meet as well: keys that are there, rows whose partition is detached.
DML = {"23505", "23514"}
# What owners may meet as well: objects that the other has dropped, made or is detaching.
DDL = {"23505", "23514", "42704", "42P01", "42P07", "42P16", "42P17", "42809", "55000", "55006"}
# Internal errors of PostgreSQL itself: INSERT ... ON CONFLICT beside REINDEX CONCURRENTLY, and when owners meet.
ARBITER_RACE = "invalid arbiter index list"
CATALOG_RACES = "tuple concurrently", "could not open relation with OID", "cache lookup failed", "could not find"


class Worker:
    """What one session does. Everything that must not be is in faults. The seed is a setting, as in NAME=seed."""

    def __init__(self, seed, name, session):
        self.seed, self.name, self.session = seed, name, session
        self.random = random.Random(f"{seed.partition('=')[2]} {name}")
        self.counts, self.states = collections.Counter(), collections.Counter()
        self.faults, self.history = [], collections.deque(maxlen=25)

    def fault(self, what, found):
        began = "\n".join(f"  {line}" for line in self.history)
        self.faults.append(f"{self.name}, {self.seed}: {what}: {found}\n{began}")

    def remember(self, what):
        self.history.append(f"{time.time() % 1000:.3f} {what}")

    def attempt(self, sql, allowed=frozenset()):
        """The lines of a statement, or None if it failed. Only concurrency and the states allowed are no fault."""
        lines, state = self.session.attempt(sql)
        self.remember(f"{state} {' '.join(sql.split())[:300]}")
        if state == "00000":
            return lines
        self.states[state] += 1
        internal = ARBITER_RACE in self.session.error or \
            allowed >= DDL and any(race in self.session.error for race in CATALOG_RACES)
        if state not in CONCURRENT | allowed and not internal:
            self.fault(f"SQLSTATE {state}", f"{sql}\n{self.session.error}")
        return None

    def copy(self, target, rows):
        """False if it failed, and with it the transaction."""
        self.remember(f"COPY {target}, {len(rows)} rows from {rows[0]}"[:300])
        try:
            self.session.copy(target, rows)
        except Exception as problem:
            state = getattr(problem, "sqlstate", None)
            self.states[state] += 1
            if state not in CONCURRENT | DML:
                self.fault("COPY", problem)
            return False
        return True


def transact(worker, change, look, prepare):
    """One transaction: changes, some of them undone, and comparisons after each. The functions return False if the
    transaction has failed."""
    r = worker.random
    worker.isolation = r.choice(ISOLATIONS)
    worker.attempt(f"BEGIN ISOLATION LEVEL {worker.isolation}")
    good = r.random() < 0.7 or look(worker)
    for _ in range(r.randint(1, 4)):
        if not good:
            break
        undone = r.random() < 0.25
        if undone:
            worker.attempt("SAVEPOINT here")
        good = change(worker) and (r.random() < 0.5 or look(worker))
        if undone and worker.attempt("ROLLBACK TO here; RELEASE here") is not None:
            good = True
    if not good or r.random() < 0.15:
        worker.attempt("ROLLBACK")
    elif prepare and r.random() < 0.15:
        name = f"{worker.name} {os.getpid()}"
        if worker.attempt(f"PREPARE TRANSACTION '{name}'") is not None:
            worker.counts["prepared"] += 1
            worker.isolation = ISOLATIONS[0]
            look(worker)
            worker.attempt(f"{r.choice(['COMMIT', 'COMMIT', 'ROLLBACK'])} PREPARED '{name}'")
    else:
        worker.attempt("COMMIT")
    worker.counts["transactions"] += 1


def run_workers(seed, seconds, roles):
    """Lets sessions work until the time is over or something is wrong; returns them. Each role is a name, how many
    sessions have it, and what they do again and again. Reader 1 has parallel plans."""
    stop = threading.Event()

    def work_of(role, number, do):
        def work(_, session):
            worker = Worker(seed, f"{role} {number}", session)
            if (role, number) == ("reader", 1):
                (name,) = session.ask("SELECT name FROM pg_settings "
                                      "WHERE name IN ('force_parallel_mode', 'debug_parallel_query')")  # fmt: skip
                session.ask(f"{CHEAP_WORKERS} SET max_parallel_workers_per_gather = 2; SET {name} = on")
            until = time.monotonic() + seconds
            try:
                while time.monotonic() < until and not stop.is_set() and len(worker.faults) < 3:
                    do(worker)
            finally:
                if worker.faults or session.connection.closed:
                    stop.set()
            return worker

        return work

    return together(*[work_of(role, number, do) for role, many, do in roles for number in range(many)])


def totals(workers):
    """The counts, the SQLSTATEs and the faults of all."""
    return (sum((worker.counts for worker in workers), collections.Counter()),
            sum((worker.states for worker in workers), collections.Counter()),
            [fault for worker in workers for fault in worker.faults])  # fmt: skip
