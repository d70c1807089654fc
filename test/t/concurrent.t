#!/usr/bin/python3 -B
"""Several sessions that add to one stored filter: which forms of UPDATE keep every session's elements, and which
lose some, as doc/keeping-current.md says. Sessions are made to meet at the row's lock; then they meet at random.

    prove -v test/t/concurrent.t       connects as a superuser, as psql does

What a filter must hold is computed from what was committed: the same elements and parameters give the same bytes.
"""

import os
import queue
import random
import subprocess
import threading
import time

import harness
from harness import Failed, clean_up_when_terminated, done, ok, part, same

SCHEMA = f"bloomtype_concurrent_{os.getpid()}"
PATIENCE = 60  # seconds, for what takes milliseconds
SESSIONS = 4
TRANSACTIONS = 25  # of each session and form
SEED = 20261122

PATH = ""  # set in main, when the extension's schema is known


# ---------------------------------------------------------------------------------------------------
# Sessions
# ---------------------------------------------------------------------------------------------------


def psql(script):
    return harness.psql(PATH + script)


class Session:
    """A psql that is sent statements, and answers with rows and SQLSTATE."""

    END = "--- end ---"

    def __init__(self):
        self.psql = subprocess.Popen(
            ["psql", "-XAtq", "-v", "VERBOSITY=verbose"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, encoding="utf-8", bufsize=1, env={**os.environ, "LC_MESSAGES": "C"},
        )  # fmt: skip
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.run(PATH)
        self.pid = self.run("SELECT pg_backend_pid();")[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.psql.terminate()
        self.psql.wait()

    def read(self):
        for line in self.psql.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def start(self, script):
        self.psql.stdin.write(f"{script}\n\\echo {self.END} :SQLSTATE\n")
        self.psql.stdin.flush()

    def finish(self):
        """The SQLSTATE of the last statement sent, and all lines."""
        lines = []
        while True:
            line = self.lines.get(timeout=PATIENCE)
            if line is None:
                raise Failed("psql ended: " + "\n".join(lines))
            if line.startswith(self.END):
                return line.split()[-1], lines
            lines.append(line)

    def state(self, script):
        self.start(script)
        return self.finish()[0]

    def run(self, script):
        self.start(script)
        state, lines = self.finish()
        if state != "00000":
            raise Failed("\n".join(lines))
        return lines


def wait_until_blocked(blocked, by):
    deadline = time.monotonic() + PATIENCE
    while psql(f"SELECT {by.pid} = ANY (pg_blocking_pids({blocked.pid}));") != ["t"]:
        if time.monotonic() > deadline:
            raise Failed("no session waits for the other")
        time.sleep(0.01)


# ---------------------------------------------------------------------------------------------------
# The forms
# ---------------------------------------------------------------------------------------------------

# Filter 1 is sparse and in its row, filter 2 is dense and out of line.
SIZES = {1: 1000, 2: 100000}
GIVEN = {1: 3, 2: 20000}

SETUP = f"""
CREATE SCHEMA {SCHEMA};
CREATE TABLE filters (id int PRIMARY KEY, f bloomfilter NOT NULL);
CREATE TABLE new_keys (id int, key int);
CREATE TABLE keys (id int, key int);
CREATE FUNCTION keep_current() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE filters SET f = (SELECT bloom_agg(key, filters.f) FROM new_rows AS n WHERE n.id = filters.id)
    WHERE id IN (SELECT id FROM new_rows);
    RETURN NULL;
END $$;
CREATE TRIGGER keep_current AFTER INSERT ON keys REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION keep_current();
"""
RESET = "TRUNCATE filters, keys, new_keys;\n" + "".join(
    f"INSERT INTO filters SELECT {id}, bloom_agg(-i, {SIZES[id]}) FROM generate_series(1, {GIVEN[id]}) AS i;\n"
    for id in SIZES
)

# Each form as psql reads it, with variables: id, size (its expected number of elements), keys, and the first and
# the last of these. Before it, what a transaction did earlier, if anything.
NEW = "unnest(:'keys'::int[]) AS new (key)"
FILTER_OF_NEW = f"(SELECT bloom_agg(key, :size) FROM {NEW})"
SAFE = {
    "bloom_add": ("", "UPDATE filters SET f = bloom_add(bloom_add(f, :first), :last) WHERE id = :id;"),
    "bloom_add with a guard": ("", """
        UPDATE filters SET f = bloom_add(bloom_add(f, :first), :last)
        WHERE id = :id AND NOT f @> ALL (:'keys'::int[]);"""),
    "a correlated subquery": ("", f"""
        UPDATE filters SET f = (SELECT bloom_agg(key, filters.f) FROM {NEW}) WHERE id = :id;"""),
    "a union with a subquery": ("", f"UPDATE filters SET f = f | {FILTER_OF_NEW} WHERE id = :id;"),
    "UPDATE ... FROM": ("", f"""
        UPDATE filters SET f = f | n.g FROM (SELECT :id AS id, {FILTER_OF_NEW} AS g) AS n WHERE filters.id = n.id;"""),
    "MERGE": ("", f"""
        MERGE INTO filters USING (SELECT :id AS id, {FILTER_OF_NEW} AS g) AS n ON filters.id = n.id
        WHEN MATCHED THEN UPDATE SET f = f | n.g
        WHEN NOT MATCHED THEN INSERT VALUES (n.id, n.g);"""),
    "ON CONFLICT": ("", f"""
        INSERT INTO filters VALUES (:id, {FILTER_OF_NEW})
        ON CONFLICT (id) DO UPDATE SET f = filters.f | excluded.f;"""),
    "new keys merged": (f"INSERT INTO new_keys SELECT :id, key FROM {NEW};", """
        WITH moved AS (DELETE FROM new_keys WHERE id = :id RETURNING key)
        UPDATE filters SET f = (SELECT bloom_agg(key, filters.f) FROM moved)
        WHERE id = :id AND EXISTS (SELECT FROM moved);"""),
    "a trigger of the statement": ("", f"INSERT INTO keys SELECT :id, key FROM {NEW};"),
    "SELECT ... FOR UPDATE, then UPDATE": ("", f"""
        SELECT f FROM filters WHERE id = :id FOR UPDATE \\gset
        \\if :ERROR
        \\else
        UPDATE filters SET f = (SELECT bloom_agg(key, :'f'::bloomfilter) FROM {NEW}) WHERE id = :id;
        \\endif"""),
}  # fmt: skip
LOSING = {
    "a subquery that reads the filter": ("", f"""
        UPDATE filters SET f = (SELECT bloom_agg(key, (SELECT f FROM filters WHERE id = :id)) FROM {NEW})
        WHERE id = :id;"""),
    "the filter joined to itself": ("", f"""
        UPDATE filters SET f = old.f | {FILTER_OF_NEW} FROM filters AS old WHERE filters.id = :id AND old.id = :id;"""),
    "the filter read in WITH": ("", f"""
        WITH old AS MATERIALIZED (SELECT id, f FROM filters WHERE id = :id)
        UPDATE filters SET f = old.f | {FILTER_OF_NEW} FROM old WHERE filters.id = old.id;"""),
    "SELECT, then UPDATE": ("SELECT f FROM filters WHERE id = :id \\gset", f"""
        UPDATE filters SET f = (SELECT bloom_agg(key, :'f'::bloomfilter) FROM {NEW}) WHERE id = :id;"""),
}  # fmt: skip


def variables(id, keys):
    return (f"\\set id {id}\n\\set size {SIZES[id]}\n\\set first {keys[0]}\n\\set last {keys[-1]}\n"
            f"\\set keys '{{{','.join(map(str, keys))}}}'\n")  # fmt: skip


def holds_exactly(id, keys, name):
    """Has the stored filter what was given and these keys, and nothing else?"""
    expected = (f"SELECT bloom_agg(key, {SIZES[id]}) FROM (SELECT -i FROM generate_series(1, {GIVEN[id]}) AS i "
                f"UNION ALL SELECT unnest('{{{','.join(map(str, keys))}}}'::int[])) AS v (key)")  # fmt: skip
    ok(psql(f"SELECT f = ({expected}) FROM filters WHERE id = {id};") == ["t"], name,
       f"not found: {lost(id, keys)}")  # fmt: skip


def lost(id, keys):
    return [int(key) for key in psql(f"SELECT key FROM unnest('{{{','.join(map(str, keys))}}}'::int[]) AS v (key), "
                                     f"filters WHERE id = {id} AND NOT f @> key;")]  # fmt: skip


# ---------------------------------------------------------------------------------------------------
# Two sessions that meet
# ---------------------------------------------------------------------------------------------------

FIRST, SECOND = [11, 12], [21, 22]


def meet(form, id, *, isolation="READ COMMITTED", end="COMMIT"):
    """The first session holds the row when the second comes, which waits, and goes on when the first ends. Returns
    the SQLSTATE of the second."""
    before, statement = form
    psql(RESET)
    with Session() as first, Session() as second:
        for session, keys in (first, FIRST), (second, SECOND):
            session.run(variables(id, keys) + f"BEGIN ISOLATION LEVEL {isolation};\n{before}\nSELECT;")
        first.run(statement)
        second.start(statement)
        wait_until_blocked(second, first)
        first.run(f"{end};")
        state = second.finish()[0]
        second.state("COMMIT;")
    return state


def test_read_committed():
    for id, size in (1, "sparse filter"), (2, "dense filter"):
        for name, form in SAFE.items():
            same(meet(form, id), "00000", f"{name}, {size}: the second goes on when the first commits")
            holds_exactly(id, FIRST + SECOND, f"{name}, {size}: nothing is lost")
            same(meet(form, id, end="ROLLBACK"), "00000", f"{name}, {size}: the second goes on after a rollback")
            holds_exactly(id, SECOND, f"{name}, {size}: what was rolled back is not there")
        for name, form in LOSING.items():
            same(meet(form, id), "00000", f"{name}, {size}: no error")
            same(lost(id, FIRST + SECOND), FIRST, f"{name}, {size}: the elements of the first are lost")


def test_higher_isolation():
    """Where the statement cannot see what the first session did, it fails, and works when it is repeated."""
    for isolation in "REPEATABLE READ", "SERIALIZABLE":
        for name, form in {**SAFE, **LOSING}.items():
            same(meet(form, 1, isolation=isolation), "40001", f"{name}, {isolation}: the second fails")
            holds_exactly(1, FIRST, f"{name}, {isolation}: the elements of the first are there")
            with Session() as second:
                before, statement = form
                second.run(f"{variables(1, SECOND)}BEGIN ISOLATION LEVEL {isolation};\n{before}\n{statement}\nCOMMIT;")
            holds_exactly(1, FIRST + SECOND, f"{name}, {isolation}: repeated, nothing is lost")


def test_absent_row():
    """Two sessions that both are to make the filter's row: ON CONFLICT waits and adds, MERGE fails."""
    for name, state, keys in ("ON CONFLICT", "00000", FIRST + SECOND), ("MERGE", "23505", FIRST):
        psql("TRUNCATE filters;")
        with Session() as first, Session() as second:
            for session, own in (first, FIRST), (second, SECOND):
                session.run(variables(1, own) + "BEGIN;")
            first.run(SAFE[name][1])
            second.start(SAFE[name][1])
            wait_until_blocked(second, first)
            first.run("COMMIT;")
            same(second.finish()[0], state, f"{name} without a row: the second ends with {state}")
            second.state("COMMIT;")
        same(lost(1, keys), [], f"{name} without a row: what was committed is there")


# ---------------------------------------------------------------------------------------------------
# Building anew
# ---------------------------------------------------------------------------------------------------

REBUILD = "UPDATE filters SET f = (SELECT bloom_agg(key, 1000) FROM keys WHERE id = 1) WHERE id = 1;"
LOCK = "LOCK TABLE keys IN SHARE MODE;"


def test_rebuild():
    """Building from the table while another session adds to both: what that one has not committed is not seen."""
    psql(RESET)
    with Session() as writer, Session() as builder:
        writer.run("BEGIN; INSERT INTO keys VALUES (1, 11);")
        builder.start(REBUILD)
        wait_until_blocked(builder, writer)
        writer.run("COMMIT;")
        same((builder.finish()[0], lost(1, [11])), ("00000", [11]), "a filter built anew loses what comes meanwhile")

        psql(RESET)
        writer.run("BEGIN; INSERT INTO keys VALUES (1, 11);")
        builder.run("BEGIN;")
        builder.start(LOCK)
        wait_until_blocked(builder, writer)
        writer.run("COMMIT;")
        same(builder.finish()[0], "00000", "the lock waits for writers")
        writer.start("INSERT INTO keys VALUES (1, 12);")
        wait_until_blocked(writer, builder)
        builder.run(REBUILD + "COMMIT;")
        same(writer.finish()[0], "00000", "and writers for the lock")
        same(lost(1, [11, 12]), [], "built anew under a lock of the table it loses nothing")


def test_guarded_rebuild():
    """A guard takes no lock where the filter holds the key already, so it does not notice that one is being built."""
    guarded = ("INSERT INTO new_keys VALUES (1, -1); "
               "UPDATE filters SET f = bloom_add(f, -1) WHERE id = 1{guard};")  # fmt: skip
    rebuild = "UPDATE filters SET f = (SELECT bloom_agg(key, 1000) FROM new_keys WHERE id = 1) WHERE id = 1;"
    with Session() as writer, Session() as builder:
        psql(RESET + "INSERT INTO new_keys VALUES (1, 5);")
        writer.run("BEGIN; " + guarded.format(guard=" AND NOT f @> -1"))
        same(builder.state(rebuild), "00000", "after a guard that found the key nobody waits")
        writer.run("COMMIT;")
        same(lost(1, [5, -1]), [-1], "and the key is lost")
        psql(RESET + "INSERT INTO new_keys VALUES (1, 5);")
        writer.run("BEGIN; " + guarded.format(guard=" AND NOT f @> -1"))
        builder.run("BEGIN;")
        builder.start("LOCK TABLE new_keys IN SHARE MODE;")
        wait_until_blocked(builder, writer)
        writer.run("COMMIT;")
        builder.finish()
        builder.run(rebuild + "COMMIT;")
        same(lost(1, [5, -1]), [], "under a lock of the table it is not")

        for guard, state, missing in (" AND NOT f @> -1", "00000", ["-1"]), ("", "40001", []):
            psql(RESET + "INSERT INTO new_keys VALUES (1, 5);")
            writer.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM new_keys;")
            builder.run("BEGIN; LOCK TABLE new_keys IN SHARE MODE; " + rebuild + "COMMIT;")
            same(writer.state(guarded.format(guard=guard)), state, f"under REPEATABLE READ the UPDATE{guard} ends with {state}")
            writer.run("COMMIT;")
            committed = psql("SELECT key FROM new_keys JOIN filters USING (id) WHERE NOT f @> key;")
            same(committed, missing, "as its guard asks the old filter" if guard else "and nothing that is committed is lost")


def test_waiting_key():
    """A key that waits in the side table already is no key that this transaction may rely on, unless it locks it."""
    merge = """WITH moved AS (DELETE FROM waiting RETURNING key)
        UPDATE filters SET f = (SELECT bloom_agg(key, filters.f) FROM moved) WHERE id = 1 AND EXISTS (SELECT FROM moved);"""
    rebuild = "UPDATE filters SET f = (SELECT bloom_agg(key, 1000) FROM new_keys WHERE id = 1) WHERE id = 1;"
    psql("CREATE TABLE waiting (key int PRIMARY KEY);")
    with Session() as writer, Session() as builder:
        for conflict, missing in ("NOTHING", [7]), ("UPDATE SET key = excluded.key", []):
            psql(RESET + "INSERT INTO new_keys VALUES (1, 5); TRUNCATE waiting; INSERT INTO waiting VALUES (7);")
            writer.run("BEGIN; INSERT INTO new_keys VALUES (1, 7);"
                       f"INSERT INTO waiting VALUES (7) ON CONFLICT (key) DO {conflict};")  # fmt: skip
            builder.start(merge)
            if not missing:
                wait_until_blocked(builder, writer)
                writer.run("COMMIT;")
            same(builder.finish()[0], "00000", f"DO {conflict}: merged")
            builder.run(rebuild + merge)
            if missing:
                writer.run("COMMIT;")
            same(lost(1, [5, 7]), missing, f"DO {conflict}: built anew and merged")


# ---------------------------------------------------------------------------------------------------
# Many sessions at random
# ---------------------------------------------------------------------------------------------------


def together(work, count=SESSIONS):
    """Runs work(number, session) in as many threads, each with a session of its own; returns what it returned."""
    results = [None] * count

    def run(number):
        try:
            with Session() as session:
                results[number] = work(number, session)
        except Exception as problem:
            results[number] = problem

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def writer(forms, id, isolation):
    """Transactions of one or two of the forms, with keys of their own, of which a quarter is rolled back. Returns
    the keys that were committed."""

    def work(number, session):
        randomness = random.Random(f"{SEED} {number} {id} {isolation} {len(forms)} {forms[0]}")
        committed = []
        for transaction in range(TRANSACTIONS):
            mine = [1000 * (transaction + 1) + 10 * number + i for i in range(4)]
            chosen = [randomness.choice(forms) for _ in range(randomness.randint(1, 2))]
            while True:
                states = [session.state(f"BEGIN ISOLATION LEVEL {isolation};")]
                for place, form in enumerate(chosen):
                    session.state(variables(id, mine[2 * place : 2 * place + 2]))
                    states += [session.state(statement) for statement in form if statement]
                if states[-1] == "40001" or "40001" in states:
                    session.run("ROLLBACK;")
                    continue
                if set(states) != {"00000"}:
                    raise Failed(f"SQLSTATEs {states}")
                if randomness.random() < 0.25:
                    session.run("ROLLBACK;")
                elif session.state("COMMIT;") == "00000":
                    committed += mine[: 2 * len(chosen)]
                else:
                    continue
                break
        return committed

    return work


def test_stress():
    def check(name, forms, id, isolation):
        psql(RESET)
        committed = sum(together(writer(forms, id, isolation)), [])
        holds_exactly(id, committed, f"{name}: the filter is that of the {len(committed)} keys committed")

    for name, form in SAFE.items():
        check(f"{SESSIONS} sessions, {name}", [form], 2, "READ COMMITTED")
    check(f"{SESSIONS} sessions, all forms, sparse", list(SAFE.values()), 1, "READ COMMITTED")
    everything = list(SAFE.values()) + list(LOSING.values())
    check(f"{SESSIONS} sessions, every form, repeatable read", everything, 1, "REPEATABLE READ")
    check(f"{SESSIONS} sessions, every form, serializable", everything, 1, "SERIALIZABLE")


def test_side_table():
    """New keys in a table of their own, merged by two sessions meanwhile: a committed key is found at every moment."""
    psql(RESET)
    writing = threading.Barrier(SESSIONS)
    unfinished = [None] * (SESSIONS - 2)
    probe = "SELECT f @> {0} OR EXISTS (SELECT FROM new_keys WHERE id = 1 AND key = {0}) FROM filters WHERE id = 1;"

    def work(number, session):
        writing.wait()
        if number >= SESSIONS - 2:
            while unfinished:
                session.run(f"\\set id 1\n{SAFE['new keys merged'][1]}")
            return []
        missed = []
        try:
            for i in range(4 * TRANSACTIONS):
                key = 1000 * (number + 1) + i
                session.run(f"INSERT INTO new_keys VALUES (1, {key});")
                missed += [key] * (session.run(probe.format(key)) != ["t"])
        finally:
            unfinished.pop()
        return missed

    same(sum(together(work), []), [], "a key in the side table or the filter is always found")
    psql(f"\\set id 1\n{SAFE['new keys merged'][1]}")
    holds_exactly(1, [1000 * (number + 1) + i for number in range(SESSIONS - 2) for i in range(4 * TRANSACTIONS)],
                  "after all merges the filter has every key")  # fmt: skip
    same(psql("SELECT count(*) FROM new_keys;"), ["0"], "and the side table none")


SHARDS = 16
SHARDED = f"""
CREATE TABLE shards (shard int PRIMARY KEY, f bloomfilter NOT NULL);
CREATE TABLE sharded (key int);
CREATE FUNCTION shard_of(key int) RETURNS int IMMUTABLE LANGUAGE sql RETURN hashint8extended(key, 0) & {SHARDS - 1};
CREATE FUNCTION keep_shards() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM shards WHERE shard IN (SELECT shard_of(key) FROM new_rows) ORDER BY shard FOR NO KEY UPDATE;
    UPDATE shards SET f = (SELECT bloom_agg(key, shards.f) FROM new_rows WHERE shard_of(key) = shard)
    WHERE shard IN (SELECT shard_of(key) FROM new_rows);
    RETURN NULL;
END $$;
CREATE TRIGGER keep_shards AFTER INSERT ON sharded REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION keep_shards();
INSERT INTO shards SELECT shard, bloom_create(1000) FROM generate_series(0, {SHARDS - 1}) AS shard;
"""


def test_shards():
    """Statements that touch several rows lock them in one order, so that there is no deadlock."""
    psql(SHARDED)

    def work(number, session):
        randomness = random.Random(f"{SEED} shards {number}")
        return [
            session.state(f"INSERT INTO sharded SELECT {number} + {SESSIONS} * i "
                          f"FROM generate_series({first}, {first + 9}) AS i ORDER BY {randomness.choice(['i', '-i'])};")
            for first in range(0, 10 * TRANSACTIONS, 10)
        ]  # fmt: skip

    same(set(sum(together(work), [])), {"00000"}, f"{SESSIONS} sessions that add to {SHARDS} filters: no deadlock")
    same(psql("SELECT count(*) FROM shards WHERE f <> "
              "(SELECT bloom_create(1000) | bloom_agg(key, 1000) FROM sharded WHERE shard_of(key) = shard);"), ["0"], "each has the keys of its part")  # fmt: skip
    same(psql("SELECT count(*) FROM sharded, shards WHERE shard = shard_of(key) AND f @> key;"),
         [str(10 * TRANSACTIONS * SESSIONS)], "each key is found in its part")  # fmt: skip


def main():
    global PATH
    clean_up_when_terminated()
    PATH = f"SET search_path = {SCHEMA}, {harness.extension_schema()};\nSET client_min_messages = warning;\n"
    try:
        psql(SETUP)
        for function in (
            test_read_committed, test_higher_isolation, test_absent_row, test_rebuild, test_guarded_rebuild, test_waiting_key, test_stress,
            test_side_table, test_shards,
        ):  # fmt: skip
            part(function)
    finally:
        harness.psql(f"SET client_min_messages = warning; DROP SCHEMA IF EXISTS {SCHEMA} CASCADE;")
    done()


if __name__ == "__main__":
    main()
