"""What the durability tests share: private servers, a varied set of stored filters and counters, and the proof that
they have not changed. The proof is the SHA-256 of the binary form of each, computed here from the output of the type's
send function, and compared with the one that the server computes from the cast to bytea and with the one noted when
the value was made; and a probe for every element of every filter and counter.
"""

import atexit
import collections
import contextlib
import hashlib
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "t"))
from session import Session  # noqa: E402
from tap import clean_up_when_terminated, done, ok, same  # noqa: E402
import stored_counters  # noqa: E402


def main(*parts):
    """Runs the parts, each of which needs those before it, and ends the tests."""
    try:
        for part in parts:
            part()
    except Exception:
        ok(False, "goes on to the end", traceback.format_exc())
    done()


def megabytes(size):
    return f"{size / 1e6:.1f} MB"


DATABASE = "durability"
SETTINGS = {
    "listen_addresses": "''",
    "fsync": "off",  # the tests never kill the operating system
    "shared_buffers": "128MB",
    "max_wal_size": "8GB",
    "jit": "off",
    "autovacuum_naptime": "5s",
    "restart_after_crash": "off",
}


class Failed(Exception):
    """A program's exit status and messages."""


def server_user():
    """The user that runs the server; PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return "nobody"


def own_directory():
    """Makes a directory that the servers' user owns and can reach, with a path short enough for a socket. It goes
    away at the end, with all servers in it."""
    for parent in filter(None, [os.environ.get("DURABILITY_DIR"), tempfile.gettempdir(), "/tmp", "/var/tmp"]):
        directory = tempfile.mkdtemp(prefix="dur.", dir=parent)
        os.chmod(directory, 0o755)
        if server_user():
            shutil.chown(directory, server_user())
        if len(directory) < 80 and subprocess.run(["test", "-x", directory], user=server_user()).returncode == 0:
            break
        os.rmdir(directory)
    else:
        raise OSError("no temporary directory that the server could use")

    def clean_up():
        for server in Server.running.copy():
            with contextlib.suppress(Exception):
                server.stop("immediate")
        shutil.rmtree(directory, ignore_errors=True)

    atexit.register(clean_up)
    clean_up_when_terminated()
    return directory


def bindir(major=None):
    """Where the programs are: of PG_CONFIG, or of a release of Debian's packages."""
    if major:
        return f"/usr/lib/postgresql/{major}/bin"
    return subprocess.run([os.environ.get("PG_CONFIG", "pg_config"), "--bindir"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


class Server:
    running = []

    def __init__(self, directory, name, major=None):
        self.bin = bindir(major)
        self.home = os.path.join(directory, name)
        self.data = os.path.join(self.home, "data")
        self.name = name
        os.mkdir(self.home)
        if server_user():
            shutil.chown(self.home, server_user())

    def run(self, program, *arguments, **options):
        """Runs a PostgreSQL program as the servers' user, or raises Failed."""
        others = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        environment = {**others, "PATH": self.bin + ":" + os.environ["PATH"], "HOME": self.home, "LC_ALL": "C.UTF-8",
                       "PGHOST": self.home, "PGPORT": "5432", "PGUSER": "postgres", "PGDATABASE": DATABASE,
                       "PGCLIENTENCODING": "UTF8", **options.pop("env", {})}
        options.setdefault("stdout", subprocess.PIPE)
        done = subprocess.run([os.path.join(self.bin, program), *arguments], env=environment, user=server_user(),
                              extra_groups=[] if server_user() else None, cwd=self.home,
                              stderr=subprocess.PIPE, **options)
        if done.returncode != 0:
            said = "".join(output if isinstance(output, str) else output.decode(errors="replace")
                           for output in (done.stderr, done.stdout) if output)  # fmt: skip
            raise Failed(f"{program}: exit status {done.returncode}: {said[-4000:]}")
        return done.stdout

    @property
    def major(self):
        return int(re.search(rb"\d+", self.run("postgres", "--version"))[0])

    def conninfo(self, database=DATABASE):
        return f"host={self.home} port=5432 user=postgres dbname={database}"

    def init(self, *options, **settings):
        self.run("initdb", "--no-sync", "--pgdata", self.data, "--username=postgres", "--auth=trust",
                 "--encoding=UTF8", "--locale=C.UTF-8", *options)
        self.configure(unix_socket_directories=f"'{self.home}'", **{**SETTINGS, **settings})
        return self

    def configure(self, **settings):
        with open(os.path.join(self.data, "postgresql.conf"), "a") as conf:
            for name, value in settings.items():
                conf.write(f"{name} = {value}\n")

    def start(self):
        self.running.append(self)
        try:
            # Not a pipe, which the server would hold open.
            self.run("pg_ctl", "start", "--wait", "--timeout=300", "--silent", "--pgdata", self.data, "--log",
                     os.path.join(self.home, "log"), stdout=subprocess.DEVNULL)
        except Failed:
            print("".join(f"# {line}" for line in self.log()[-20:]))
            raise
        return self

    def stop(self, mode="fast"):
        if self in self.running:
            self.running.remove(self)
        self.run("pg_ctl", "stop", "--wait", "--timeout=300", "--silent", f"--mode={mode}", "--pgdata", self.data)

    def log(self):
        with open(os.path.join(self.home, "log"), errors="replace") as log:
            return log.readlines()

    def postmaster(self):
        with open(os.path.join(self.data, "postmaster.pid")) as file:
            return int(file.readline())

    def kill(self):
        """Kills the postmaster and all its children with SIGKILL, and waits until they are gone, because a new
        postmaster takes a zombie for a running one. SIGSTOP first keeps the postmaster from forking."""
        postmaster = self.postmaster()
        os.kill(postmaster, signal.SIGSTOP)
        victims = [postmaster] + children(postmaster)
        for victim in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        while any(os.path.exists(f"/proc/{victim}") for victim in victims):
            time.sleep(0.01)
        self.running.remove(self)
        return len(victims)

    def connect(self, settings="", database=DATABASE, **parameters):
        return Session(settings, host=self.home, port=5432, user="postgres", dbname=database, **parameters)

    def sql(self, *statements, database=DATABASE):
        """Runs statements, each a transaction, in one session; returns all rows, each a list of strings."""
        with self.connect(database=database) as session:
            return [[field or "" for field in row] for statement in statements for row in session.rows(statement)]

    def value(self, *statements, database=DATABASE):
        (row,) = self.sql(*statements, database=database)
        return "\t".join(row)

    def copy(self, query, database=DATABASE):
        """The rows of a query in binary form, each a tuple of buffers or None."""
        with self.connect(database=database) as session, session.connection.cursor() as cursor:
            with cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT binary)") as copy:
                yield from copy.rows()

    def poll(self, query, seconds=300):
        """Waits until a query gives true."""
        until = time.monotonic() + seconds
        while self.value(query) != "t":
            if time.monotonic() > until:
                raise TimeoutError(f"not true after {seconds} seconds: {query}")
            time.sleep(0.05)


def children(parent):
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{process}/stat") as stat:
            if int(stat.read().rpartition(")")[2].split()[1]) == parent:
                found.append(int(process))
    return found


# The filters

# An element of each type that may be one, made from a number i.
ELEMENTS = {
    "smallint": "(i % 30000)::smallint",
    "integer": "(i * 3)::integer",
    "positive": "i::integer::positive",
    "bigint": "i::bigint * 1000003",
    "real": "(i / 4.0)::real",
    "float8": "i::float8 / 7",
    "numeric": "i * 0.010",
    "text": "'ключ ' || i",
    "varchar": "('v' || i)::varchar(20)",
    "char": "('c' || i)::char(12)",
    "name": "('n' || i)::name",
    "mood": "(enum_range(NULL::mood))[1 + i % 4]",
    "bytea": "int8send(i)",
    "uuid": "md5(i::text)::uuid",
    "boolean": "i % 2 = 0",
    "date": "date '2000-01-01' + i::integer",
    "time": "time '00:00' + i * interval '1.5 seconds'",
    "timetz": "timetz '00:00+02' + i * interval '1 second'",
    "timestamp": "timestamp '2000-01-01' + i * interval '1 minute'",
    "timestamptz": "timestamptz '2000-01-01 UTC' + i * interval '1 minute'",
    "interval": "i * interval '1 hour'",
    "inet": "inet '10.0.0.0' + i",
    "cidr": "('10.' || i / 256 % 256 || '.' || i % 256 || '.0/24')::cidr",
    "macaddr": "('08002b' || lpad(to_hex(i), 6, '0'))::macaddr",
    "macaddr8": "('08002bfffe' || lpad(to_hex(i), 6, '0'))::macaddr8",
}

# First element, number of elements, capacity, rate: sparse, dense, small and overfull filters of any rate. Each with
# every type, layout and seed.
SHAPES = [(1, 1, 1000, 0.01), (1, 300, 300, 0.01), (2, 300, 100000, 0.001), (1, 30, 1, 0.5),
          (5, 3000, 3000, 0.01), (7, 1000, 900, 1e-9)]
SEEDS = [0, 42, -1]
# Large ones of one type: 2.4 MB, and sparse with 400 kB.
LARGE_TYPE = "bigint"
LARGE = [(1, 320000, 2000000, 0.01), (9, 50000, 10000000, 0.01)]

# Places for a filter, and the queries that read it there: key, element type, first element, number, filter.
PLACES = {
    "table": "SELECT id * 10 + array_position('{external,extended,lz4,main,plain}', storage), type, first, n, f "
             "FROM filters",
    "hash partition": "SELECT id, type, first, n, f FROM by_hash",
    "array": "SELECT id * 1000 + at, type, first[at], n[at], fs[at] FROM lists, generate_subscripts(fs, 1) at",
    "domain": "SELECT id, type, first, n, f FROM in_domain",
    "composite": "SELECT id, type, first, n, (c).f FROM composites",
    "array of composites": "SELECT id, type, first, n, cs[2].f FROM composites",
    "default": "SELECT id, 'text', 1, 1, f FROM defaults",
    "default literal": "SELECT id, 'text', 2, 1, g FROM defaults",
    "generated": "SELECT id, 'text', 3, 1, h FROM defaults",
    "materialized view": "SELECT id, type, first, n, f FROM united",
    "function": "SELECT 1, 'text', 2, 1, constant_filter()",
}

SCHEMA = """
CREATE EXTENSION IF NOT EXISTS bloomtype;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'über');
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE DOMAIN blocked AS bloomfilter CHECK ((bloom_info(VALUE)).layout = 'blocked');
CREATE TYPE named AS (name text, f bloomfilter);

-- Each partition stores in its own way. The indexes show whether a filter can be found by its value.
CREATE TABLE filters (id integer, storage text, how text, type text, first integer, n integer, f bloomfilter,
    PRIMARY KEY (id, storage)) PARTITION BY LIST (storage);
CREATE TABLE filters_external PARTITION OF filters FOR VALUES IN ('external');
CREATE TABLE filters_extended PARTITION OF filters FOR VALUES IN ('extended');
CREATE TABLE filters_lz4 PARTITION OF filters FOR VALUES IN ('lz4');
CREATE TABLE filters_main PARTITION OF filters FOR VALUES IN ('main');
CREATE TABLE filters_plain PARTITION OF filters FOR VALUES IN ('plain');
ALTER TABLE filters_extended ALTER f SET STORAGE extended;
ALTER TABLE filters_lz4 ALTER f SET STORAGE extended, ALTER f SET COMPRESSION lz4;
ALTER TABLE filters_main ALTER f SET STORAGE main;
ALTER TABLE filters_plain ALTER f SET STORAGE plain;
CREATE INDEX ON filters USING hash (f);
CREATE INDEX ON filters ((# f));
-- A partition accepts a filter only if that has the hash it had.
CREATE TABLE by_hash (id integer, type text, first integer, n integer, f bloomfilter) PARTITION BY HASH (f);
CREATE TABLE by_hash_0 PARTITION OF by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE by_hash_1 PARTITION OF by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 1);
"""


def values(rows):
    return ", ".join("(" + ", ".join(map(repr, row)) + ")" for row in rows)


def fill_type(element, large):
    """INSERTs of filters that hold elements of one type, into made."""
    shapes = values(SHAPES + (LARGE if large else []))
    return f"""
        INSERT INTO made (how, type, first, n, f)
        SELECT format('%s, seed %s, room for %s at %s', layout, seed, room, rate), '{element}', first, n,
            (SELECT bloom_agg({ELEMENTS[element]}, empty) FROM generate_series(first, first + n - 1) AS i)
        FROM (VALUES {shapes}) AS shape (first, n, room, rate),
            (VALUES ('blocked'), ('classic')) AS layout (layout), (VALUES {values((s,) for s in SEEDS)}) AS s (seed),
            LATERAL (SELECT bloom_create(room, rate, layout, seed) AS empty OFFSET 0) AS e
        WHERE n < 10000 OR seed = 42;
        INSERT INTO made (how, type, first, n, f)
        SELECT 'sized itself', '{element}', 1, n, bloom_agg({ELEMENTS[element]})
        FROM (VALUES (1), (10), (500), (6000)) AS v (n), generate_series(1, n) AS i GROUP BY n;
        INSERT INTO made (how, type, first, n, f)
        SELECT 'union', '{element}', 1, 4000, bloom_union_agg(f)
        FROM (SELECT bloom_agg({ELEMENTS[element]}, 4000) FROM generate_series(1, 4000) AS i GROUP BY i % 3) AS v (f);
        INSERT INTO made (how, type, first, n, f)
        SELECT 'union of sizes', '{element}', 1, 900, a.f | bloom_fold(b.f, a.f)
        FROM (SELECT bloom_agg({ELEMENTS[element]}) FROM generate_series(1, 100) AS i) AS a (f),
            (SELECT bloom_agg({ELEMENTS[element]}) FROM generate_series(101, 900) AS i) AS b (f);
        INSERT INTO made (how, type, first, n, f)
        SELECT 'intersection', '{element}', 100, 51, a.f & b.f
        FROM (SELECT bloom_agg({ELEMENTS[element]}, 1000) FROM generate_series(1, 150) AS i) AS a (f),
            (SELECT bloom_agg({ELEMENTS[element]}, 1000) FROM generate_series(100, 300) AS i) AS b (f);
        INSERT INTO made (how, type, first, n, f)
        SELECT 'folded', '{element}', 1, 2000, bloom_fold(bloom_agg({ELEMENTS[element]}), 0.4)
        FROM generate_series(1, 2000) AS i;
        INSERT INTO made (how, type, first, n, f)
        SELECT 'overfull', '{element}', 1, 5000, bloom_agg({ELEMENTS[element]}, bloom_create(10))
        FROM generate_series(1, 5000) AS i;
    """


# Filters without elements, and filters whose bits compress.
SPECIAL = """
    INSERT INTO made (how, type, first, n, f) VALUES
        ('empty without a size', NULL, 1, 0, (SELECT bloom_agg(i) FROM generate_series(1, 0) AS i)),
        ('empty', NULL, 1, 0, bloom_create(1)), ('empty', NULL, 1, 0, bloom_create(1000, 1e-9, 'classic', -7)),
        ('empty, at the cap', NULL, 1, 0, bloom_create(200000000)),
        ('sparse, at the cap', 'bigint', 1, 2000,
         (SELECT bloom_agg(i::bigint * 1000003, 200000000) FROM generate_series(1, 2000) AS i));
    CREATE TEMPORARY TABLE dense AS
        SELECT f::bytea AS b FROM made WHERE type = 'bigint' AND how LIKE '%room for 2000000 %' ORDER BY id;
    INSERT INTO made (how, type, first, n, f)
        SELECT 'saturated', 'bigint', 1, 100000,
            (substr(b, 1, 28) || decode(repeat('ff', length(b) - 28), 'hex'))::bloomfilter FROM dense
        UNION ALL
        SELECT 'no bit set', NULL, 1, 0,
            (substr(b, 1, 28) || decode(repeat('00', length(b) - 28), 'hex'))::bloomfilter FROM dense;
"""


# Puts the filters made into all places.
PLACE = """
    INSERT INTO filters
        SELECT id, storage, how, type, first, n, f
        FROM made, unnest('{external,extended,lz4,main,plain}'::text[]) AS storage
        WHERE (storage <> 'plain' OR length(f::bytea) < 7000) ORDER BY id;
    INSERT INTO by_hash SELECT id, type, first, n, f FROM made WHERE n < 3000;
    CREATE TABLE lists AS
        SELECT row_number() OVER () AS id, type, array_agg(first ORDER BY id) || 1 AS first,
            array_agg(n ORDER BY id) || 0 AS n, array_agg(f ORDER BY id) || NULL::bloomfilter AS fs
        FROM made WHERE n < 10000 GROUP BY type, id / 20;
    ALTER TABLE lists ADD PRIMARY KEY (id);
    CREATE TABLE in_domain (id integer PRIMARY KEY, type text, first integer, n integer, f blocked);
    INSERT INTO in_domain SELECT id, type, first, n, f FROM made WHERE (bloom_info(f)).layout = 'blocked';
    CREATE TABLE composites (id integer PRIMARY KEY, type text, first integer, n integer, c named, cs named[]);
    INSERT INTO composites SELECT id, type, first, n, (how, f)::named, ARRAY[(NULL, NULL), (how, f)]::named[]
        FROM made WHERE n < 10000;
    CREATE MATERIALIZED VIEW united AS
        SELECT min(id) AS id, type, 1 AS first, 4000 AS n, bloom_union_agg(f) AS f
        FROM filters WHERE how = 'union' GROUP BY type;
    -- A filter as a constant of the schema: of a default, a function, a partial index.
    DO $$
    DECLARE
        f bloomfilter := bloom_agg('ключ ' || i) FROM generate_series(2, 50) AS i;
        numbers bloomfilter := bloom_agg(i) FROM generate_series(1, 1000) AS i;
    BEGIN
        EXECUTE format('CREATE TABLE defaults (id integer PRIMARY KEY,
            f bloomfilter DEFAULT bloom_add(bloom_create(100, seed => 5), ''ключ 1''::text),
            g bloomfilter DEFAULT %L::bloomfilter,
            h bloomfilter GENERATED ALWAYS AS (bloom_add(f, ''ключ 3''::text)) STORED)', f);
        EXECUTE format('CREATE FUNCTION constant_filter() RETURNS bloomfilter IMMUTABLE
            RETURN %L::bloomfilter', f);
        CREATE TABLE numbers AS SELECT i FROM generate_series(1, 100000) AS i;
        EXECUTE format('CREATE INDEX numbers_in_filter ON numbers (i) WHERE %L::bloomfilter @> i', numbers);
        EXECUTE format('CREATE VIEW numbers_found AS SELECT i FROM numbers WHERE %L::bloomfilter @> i', numbers);
    END
    $$;
    INSERT INTO defaults (id) VALUES (1);
"""


def setup(server, database=DATABASE, version=None):
    """Makes a database with all kinds of filters and, unless a version before 1.1.0 is named, counters in all kinds of
    places."""
    server.run("createdb", database)
    if version:
        server.sql(f"CREATE EXTENSION bloomtype VERSION '{version}'", database=database)
    made = "CREATE TEMPORARY TABLE made (id serial, how text, type text, first integer, n integer, f bloomfilter)"
    server.sql(SCHEMA, made, *(fill_type(element, element == LARGE_TYPE) for element in ELEMENTS), SPECIAL, PLACE,
               "ANALYZE", database=database)  # fmt: skip
    if version != "1.0.0":
        setup_counters(server, database)


def setup_counters(server, database=DATABASE):
    server.sql(stored_counters.SCHEMA, stored_counters.MADE,
               *(stored_counters.fill_type(name, element, name == LARGE_TYPE) for name, element in ELEMENTS.items()),
               stored_counters.SPECIAL, stored_counters.PLACE, "ANALYZE", database=database)  # fmt: skip


# The proof

def all_places(places):
    return " UNION ALL ".join(
        f"SELECT '{name}' AS place, id::integer AS id, type, first, n, value "
        f"FROM ({query}) AS p (id, type, first, n, value)"
        for name, query in places.items())


# An element made from i is where it was put: in a filter, and in a counter as often.
FOUND = "value @> ({0})", f"value @> ({{0}}) AND bloom_count(value, {{0}}) >= {stored_counters.TIMES}"


def places_in(server, database=DATABASE):
    """The places of filters, and of counters if the database has them."""
    there = server.value("SELECT to_regclass('counters') IS NOT NULL", database=database)
    return PLACES, stored_counters.PLACES if there == "t" else {}


def manifest(server, database=DATABASE, places=None):
    """{place and key: [SHA-256, size] of the binary form}, and whether the server computes the same digests."""
    found, agreed = {}, True
    for these in filter(None, places or places_in(server, database)):
        for place, key, digest, value in server.copy(f"""
                SELECT place, format('%s %s %s %s', id, type, first, n), sha256(value::bytea), value
                FROM ({all_places(these)}) AS p""", database):
            name = f"{bytes(place).decode()} {bytes(key).decode()}"
            assert name not in found, name
            if value is None:
                found[name] = None
            else:
                found[name] = [hashlib.sha256(value).hexdigest(), len(value)]
                agreed = agreed and hashlib.sha256(value).digest() == digest
    return found, agreed


def lost_elements(server, database=DATABASE, places=None):
    """The number of elements probed, and the number not found."""
    probed = lost = 0
    for these, condition in zip(places or places_in(server, database), FOUND):
        for element, expression in ELEMENTS.items() if these else ():
            row = server.sql(f"""
                SELECT count(*), count(*) FILTER (WHERE ({condition.format(expression)}) IS NOT TRUE)
                FROM ({all_places(these)}) AS p, LATERAL generate_series(first, first + n - 1) AS i
                WHERE type = '{element}'""", database=database)[0]
            probed, lost = probed + int(row[0]), lost + int(row[1])
    return probed, lost


INDEXED = """
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
"""


def indexed(server, name, query, database):
    """The count that a query gives by an index, or False if the plan has none of that name."""
    with server.connect(INDEXED, database) as session:
        used = any(name in node.get("Index Name", "") for node in session.explain(query))
        return used and session.ask(query)[0]


def found_by_value(server, table, column, label, database):
    """Tests the hash index of each partition by a join, in which a value finds its equals in all partitions."""
    times = collections.Counter(
        digest for (digest,) in server.sql(f"SELECT sha256({column}::bytea) FROM {table}", database=database))
    query = f"SELECT count(*) FROM {table} a JOIN {table} b ON a.{column} = b.{column}"
    same(indexed(server, f"_{column}_idx", query, database), str(sum(n * n for n in times.values())),
         f"{label}: the hash index of {table} finds every value")


def verify(server, want, label, database=DATABASE, writable=True):
    """Tests that a database holds the filters and counters of a manifest."""
    got, agreed = manifest(server, database)
    size = sum(entry[1] for entry in want.values() if entry)
    wrong = [name for name in sorted(want.keys() | got.keys()) if want.get(name, 0) != got.get(name, 0)]
    ok(not wrong, f"{label}: the SHA-256 of all {len(want)} filters and counters ({megabytes(size)}) is the same",
       wrong[:10])
    ok(agreed, f"{label}: the cast to bytea gives what the send function gives")
    probed, lost = lost_elements(server, database)
    ok(lost == 0 and probed > 0, f"{label}: of {probed} elements none is lost", f"lost: {lost}")

    found_by_value(server, "filters", "f", label, database)
    if places_in(server, database)[1]:
        found_by_value(server, "counters", "c", label, database)
    same(indexed(server, "_expr_idx", "SELECT count(*) FROM filters a WHERE EXISTS "
                 "(SELECT FROM filters b WHERE # b.f = # a.f AND b.id = a.id AND b.storage = a.storage)", database),
         server.value("SELECT count(*) FROM filters", database=database),
         f"{label}: the expression index finds every filter by its cardinality")
    same(indexed(server, "numbers_in_filter", "SELECT count(*) FROM numbers_found WHERE i BETWEEN 1 AND 1000",
                 database), "1000", f"{label}: a partial index over a constant filter has all its elements")
    if writable:
        for table, columns in ("defaults", "f, g, h"), ("counter_defaults", "a, b, c"):
            if table == "defaults" or places_in(server, database)[1]:
                same(server.value(f"BEGIN; INSERT INTO {table} (id) VALUES (2); "
                                  f"SELECT count(*) FROM (SELECT DISTINCT {columns} FROM {table}) AS d; ROLLBACK",
                                  database=database),
                     "1", f"{label}: new rows of {table} are the same")
    return got
