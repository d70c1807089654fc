"""Sessions with the server through psycopg 3, and SQL for filters of reference.py. Importing this module lets a test
import reference.py, too.

Every test in this directory runs by "prove test/t/NAME.t". The usual variables of libpq choose the server and a
database with the extension bloomtype, where the user must be a superuser. The tests need Debian's packages
python3-psycopg and python3-xxhash.
"""

import concurrent.futures
import contextlib
import json
import os
import subprocess
import sys
import time

from tap import clean_up_when_terminated, done, part

try:
    import psycopg
except ImportError:
    sys.exit(f"{sys.argv[0]} needs psycopg 3; Debian's package is python3-psycopg")

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")
sys.path.insert(1, GOLDEN)


def text_of(result):
    """The rows of a result, each a list of the texts of its fields; NULL is None."""
    fields = range(result.nfields)
    rows = ([result.get_value(row, field) for field in fields] for row in range(result.ntuples))
    return [[None if value is None else value.decode() for value in row] for row in rows]


def line_of(row):
    return "|".join("" if field is None else field for field in row)


# Seconds after which a test gives up waiting for another session. A busy machine may need minutes for a statement of
# a second, and only a test that fails waits so long.
PATIENCE = 600
# Makes the planner use no worker, even on a server that forces it to.
NO_WORKERS = "SET max_parallel_workers_per_gather = 0;"
# Makes it use workers for tables of any size.
CHEAP_WORKERS = "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;"


class Session:
    """A connection in autocommit mode. It uses the simple query protocol, so one string may hold several
    statements, which then are one transaction, and all values come as text.
    """

    settings = ""  # runs at the start of every session

    def __init__(self, settings="", **parameters):
        self.connection = psycopg.connect(
            autocommit=True, prepare_threshold=None, cursor_factory=psycopg.ClientCursor,
            **{"client_encoding": "UTF8", **parameters},
        )  # fmt: skip
        self.notices, self.error = [], None
        self.connection.add_notice_handler(lambda notice: self.notices.append(notice.message_primary))
        self.rows(self.settings + settings)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
            self.connection.cancel()
        self.connection.close()

    @property
    def pid(self):
        return self.connection.info.backend_pid

    def rows(self, sql, parameters=None):
        """The rows of all statements in a string."""
        if not sql:
            return []
        cursor = self.connection.execute(sql, parameters)
        rows = text_of(cursor.pgresult)
        while cursor.nextset():
            rows += text_of(cursor.pgresult)
        return rows

    def ask(self, sql, parameters=None):
        """The same as lines with "|" between the fields."""
        return [line_of(row) for row in self.rows(sql, parameters)]

    def each(self, *statements):
        """The lines of each of these statements, one transaction after the other."""
        return [self.ask(statement) for statement in statements]

    def attempt(self, sql, parameters=None):
        """The lines and the SQLSTATE of a statement that may fail. A lost connection is "lost". The message of the
        last failure remains in self.error."""
        try:
            return self.ask(sql, parameters), "00000"
        except psycopg.Error as problem:
            self.error = str(problem)
            return [], "lost" if self.connection.closed else problem.sqlstate

    def set_timeout(self, timeout):
        """Sets statement_timeout, in ms, though the old one may cancel this statement, too."""
        while self.attempt(f"SET statement_timeout = {timeout}")[1] != "00000":
            pass

    def explain(self, sql, options=""):
        """The nodes of a plan, top down."""
        ((plan,),) = self.rows(f"EXPLAIN (FORMAT JSON{options}) {sql}")
        return list(nodes_of(json.loads(plan)[0]["Plan"]))

    def copy(self, target, rows):
        """Fills a table from rows of strings, None being NULL."""
        with self.connection.cursor().copy(f"COPY {target} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)


def nodes_of(plan):
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes_of(child)


def has(node, wanted):
    """Has a node of a plan these properties? A tuple lists alternatives."""
    return all(node.get(key) in (want if isinstance(want, tuple) else (want,)) for key, want in wanted.items())


def in_order(nodes, wanted):
    """Has a plan all these nodes, top down?"""
    rest = iter(nodes)
    return all(any(has(node, one) for node in rest) for one in wanted)


def in_thread(function, *arguments):
    """Calls a function in a thread of its own; returns its future."""
    executor = concurrent.futures.ThreadPoolExecutor(1)
    future = executor.submit(function, *arguments)
    executor.shutdown(wait=False)
    return future


def result_of(future):
    return future.result(PATIENCE)


def until(true, what, seconds=PATIENCE):
    """Waits until a function returns true."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not after {seconds} s: {what}")
        time.sleep(0.01)


def together(*works, session_class=Session):
    """Runs each work(number, session) in a thread with a session of its own; returns their results."""

    def in_session(number):
        with session_class() as session:
            return works[number](number, session)

    with concurrent.futures.ThreadPoolExecutor(len(works)) as executor:
        return list(executor.map(in_session, range(len(works))))


def ask(sql, settings="", **parameters):
    """The lines of a string of statements, run in a session of its own."""
    with Session(settings, **parameters) as session:
        return session.ask(sql)


def each(*statements, settings=""):
    """The lines of each of these statements, all run in one session of their own."""
    with Session(settings) as session:
        return session.each(*statements)


def wait_until_blocked(blocked, by=None, asked=ask):
    """Waits until a session waits for a lock of another, or of any. asked(query) asks their server."""
    pids = f"pg_blocking_pids({blocked.pid})"
    query = f"SELECT {by.pid} = ANY ({pids})" if by else f"SELECT {pids} <> '{{}}'"
    until(lambda: asked(query) == ["t"], f"session {blocked.pid} waits")


def extension_schema():
    """The schema of bloomtype, quoted."""
    schemas = ask("SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'bloomtype'")
    return schemas[0] if schemas else sys.exit("no extension bloomtype here")


@contextlib.contextmanager
def own_schema():
    """Makes a schema in which all sessions work, and drops it in the end."""
    name = "bloomtype_" + os.path.basename(sys.argv[0]).removesuffix(".t")
    before, path = Session.settings, f"SET search_path = {name}, {extension_schema()}, pg_catalog;"
    ask(f"DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}")
    Session.settings = path + before
    try:
        yield name
    finally:
        Session.settings = before
        ask(f"DROP SCHEMA IF EXISTS {name} CASCADE")


def run(*tests):
    """Runs functions, each a part of the tests, in a schema of their own, and ends the tests."""
    clean_up_when_terminated()
    with own_schema():
        for test in tests:
            part(test)
    done()


def sanitized():
    """Has the server a sanitizer in it? A sanitizer takes memory of its own, without a bound."""
    config = os.environ.get("PG_CONFIG", "pg_config")
    return "-fsanitize" in subprocess.run([config, "--cflags"], stdout=subprocess.PIPE, encoding="utf-8").stdout


def quote(text):
    return "'" + text.replace("'", "''") + "'"


def hex_of(f):
    """The text form of a filter of reference.py."""
    return "\\x" + f.encode().hex()


def value(f):
    return quote(hex_of(f)) + "::bloomfilter"


def wide(m, first=1, blocks=32, width=0):
    """SQL that quickly makes a dense filter of integers with m bits: that many different blocks of hexadecimal
    digits, which set 44 % of their bits, repeated. With a width, a counter with m numbers of so many bits: at 4 bits
    they are at most 9, and 1 in 32 is 0."""
    flags, kind = ("00", "bloomfilter") if not width else ({4: "04", 8: "0c", 16: "14"}[width], "bloomcounter")
    header = f"0100{flags}06140000000ad7233c0000000000000000" + m.to_bytes(8, "little").hex()
    runs = f"string_agg(repeat(md5(i::text) || md5((-i)::text), {m * max(width, 1) // 512 // blocks}), '' ORDER BY i)"
    series = f"generate_series({first}, {first + blocks - 1}) AS i"
    return f"('\\x{header}' || convert_to((SELECT {runs} FROM {series}), getdatabaseencoding()))::{kind}"
