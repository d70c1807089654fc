"""Which of many? One key in 500 and in 50,000 stored sets: filters, the same with an index bloomslices, a table of pairs
with a B-tree, and arrays with GIN.

A key that is in some set is in three of them on average. Filters have a rate of 0.1 %: the wrong sets that they find
are one of the figures.
"""
import functools
import itertools
import os
import typing

from measure import pgbench
from plans import agree, connect, expect
from results import Step

RATE = 0.001
KEYS = 1000  # looked up at once, and added at once
QUIET = "parallel_workers = 0, autovacuum_enabled = off"
TOASTED = QUIET + ", toast.autovacuum_enabled = off"


class Peer(typing.NamedTuple):
    table: str
    make: str
    find: str  # the sets that hold {}
    plan: tuple  # the nodes that find must have
    find_all: str  # pairs of a set and a key of routing_asked
    add: str  # a key to a set
    add_many: str  # the rows of routing_new
    insert: str  # a set, whose keys are in routing_set
    setting: str = ""


SETS_FIRST = ("SELECT s.id, k.key FROM (SELECT * FROM {0} OFFSET 0) AS s "
              "CROSS JOIN LATERAL (SELECT key FROM routing_asked WHERE {1} OFFSET 0) AS k")  # fmt: skip
NEW = "(SELECT DISTINCT id FROM routing_new) AS n WHERE n.id = s.id"
PAIRS = {"find": "SELECT id FROM {0} WHERE key = %s", "find_all": "SELECT id, key FROM routing_asked JOIN {0} USING (key)",
         "add": "INSERT INTO {0} VALUES (:set, :key)", "add_many": "INSERT INTO {0} SELECT id, key FROM routing_new",
         "insert": "INSERT INTO {0} SELECT :set, key FROM routing_set"}  # fmt: skip
FILTERS = {"find": "SELECT id FROM {0} WHERE f @> %s",
           "add": "UPDATE {0} SET f = bloom_add(f, :key::bigint) WHERE id = :set",
           "add_many": "UPDATE {0} AS s SET f = (SELECT bloom_agg(key, s.f) FROM routing_new AS k WHERE k.id = s.id) FROM " + NEW,
           "insert": "INSERT INTO {0} SELECT :set, bloom_agg(key, {{keys}}, %g) FROM routing_set" % RATE}  # fmt: skip
MAKE_FILTERS = ("CREATE TABLE {0} WITH (%s) AS SELECT id, bloom_agg(key, keys, %g) AS f "
                "FROM routing_members JOIN routing_sizes USING (id) GROUP BY id; "
                "ALTER TABLE {0} ADD PRIMARY KEY (id)" % (TOASTED, RATE))  # fmt: skip
PEERS = {
    "bloomfilter": Peer(
        "routing_filters", MAKE_FILTERS.format("routing_filters"),
        plan=({"Node Type": "Seq Scan"},),
        find_all=SETS_FIRST.format("routing_filters", "s.f @> key"),
        **{name: sql.format("routing_filters") for name, sql in FILTERS.items()}),
    "bloomslices": Peer(
        "routing_sliced", MAKE_FILTERS.format("routing_sliced") + "; CREATE INDEX ON routing_sliced USING bloomslices (f)",
        plan=({"Node Type": "Index Scan"},),
        find_all="SELECT id, key FROM routing_asked JOIN routing_sliced ON f @> key",
        **{name: sql.format("routing_sliced") for name, sql in FILTERS.items()}),
    "B-tree (key)": Peer(
        "routing_pairs",
        "CREATE TABLE routing_pairs WITH (%s) AS SELECT id, key FROM routing_members; "
        "CREATE INDEX ON routing_pairs (key)" % QUIET,
        plan=({"Node Type": ("Index Scan", "Bitmap Index Scan")},),
        **{name: sql.format("routing_pairs") for name, sql in PAIRS.items()}),
    "B-tree (key, set)": Peer(
        "routing_covered",
        "CREATE TABLE routing_covered WITH (%s) AS SELECT id, key FROM routing_members; "
        "ALTER TABLE routing_covered ADD PRIMARY KEY (key, id)" % QUIET,
        plan=({"Node Type": "Index Only Scan"},),
        **{name: sql.format("routing_covered") for name, sql in PAIRS.items()}),
    "GIN on bigint[]": Peer(
        "routing_arrays",
        "CREATE TABLE routing_arrays WITH (%s) AS SELECT id, array_agg(key) AS keys FROM routing_members GROUP BY id; "
        "ALTER TABLE routing_arrays ADD PRIMARY KEY (id); CREATE INDEX ON routing_arrays USING gin (keys)" % TOASTED,
        "SELECT id FROM routing_arrays WHERE keys @> ARRAY[%s]", ({"Node Type": "Bitmap Index Scan"},),
        "SELECT id, key FROM routing_asked JOIN routing_arrays ON keys @> ARRAY[key]",
        "UPDATE routing_arrays SET keys = keys || :key::bigint WHERE id = :set",
        "UPDATE routing_arrays AS s SET keys = keys || (SELECT array_agg(key) FROM routing_new AS k WHERE k.id = s.id) "
        "FROM " + NEW,
        "INSERT INTO routing_arrays SELECT :set, array_agg(key) FROM routing_set",
        # The planner does not know what it costs to fetch an array, and scans a table of few arrays.
        "enable_seqscan = off"),
}  # fmt: skip


def next_prime(n):
    return next(p for p in itertools.count(n) if all(p % d for d in range(2, int(p**0.5) + 1)))


def run(session, peer, script, transactions):
    """The figures of measure.pgbench, with the setting of a peer."""
    if peer.setting:
        os.environ["PGOPTIONS"] = "-c " + peer.setting.replace(" ", "")
    try:
        return pgbench(session, script, transactions)
    finally:
        os.environ.pop("PGOPTIONS", None)


class Sets:
    """Sets of even keys: least to most of them. The keys of a set are distinct, because half a key is an element of
    an arithmetic progression modulo a prime."""

    def __init__(self, number, least, most):
        self.number, self.least, self.most = number, least, most
        self.total = number * (least + most) // 2
        self.domain = next_prime(max(self.total // 3, 2 * most))
        self.case = "{:,} sets".format(number)

    @functools.cached_property
    def session(self):
        return connect("work_mem = '64MB'", "maintenance_work_mem = '512MB'")

    @functools.cached_property
    def indexed(self):
        return connect("work_mem = '64MB'", "enable_seqscan = off")

    def session_of(self, peer):
        return self.indexed if peer.setting else self.session

    def make(self, results):
        session = self.session
        session.ask("DROP TABLE IF EXISTS routing_sizes, routing_members, routing_asked, routing_new, routing_set, "
                    + ", ".join(peer.table for peer in PEERS.values()))  # fmt: skip
        session.ask("CREATE UNLOGGED TABLE routing_sizes AS SELECT id, %d + (id * 7919) %% %d AS keys "
                    "FROM generate_series(1, %d::bigint) AS id" % (self.least, self.most - self.least + 1, self.number))  # fmt: skip
        hashed = "(hashint8extended(id, %d) & 2147483647)"
        session.ask("CREATE UNLOGGED TABLE routing_members AS SELECT id, 2 * ((%s + i * (1 + %s %% (%d - 1))) %% %d) AS key "
                    "FROM routing_sizes, generate_series(1, keys) AS i" % (hashed % 1, hashed % 2, self.domain, self.domain))  # fmt: skip
        session.ask("CREATE UNLOGGED TABLE routing_asked AS SELECT 2 * (hashint8extended(i, 3) & 2147483647) %% %d AS key "
                    "FROM generate_series(1, %d::bigint) AS i; ANALYZE routing_asked" % (2 * self.domain, KEYS))  # fmt: skip
        session.ask("CREATE UNLOGGED TABLE routing_new (id bigint, key bigint); "
                    "CREATE UNLOGGED TABLE routing_set (key bigint)")  # fmt: skip
        for peer in PEERS.values():
            session.ask(peer.make)
            session.ask("VACUUM ANALYZE " + peer.table)
        session.ask("CHECKPOINT")
        results.figures(self.case, self.total, "size", "bytes", {
            name: int(session.ask("SELECT pg_total_relation_size('%s')" % peer.table)[0]) for name, peer in PEERS.items()})  # fmt: skip

    def find(self, results):
        for peer in PEERS.values():
            expect(self.session_of(peer), peer.find % "42::bigint", *peer.plan)
        for kind, key in ("present", "2 * random(0, %d)" % (self.domain - 1)), ("absent", "2 * random(0, %d) + 1" % self.domain):
            script = "\\set key %s\n" % key
            results.compare("%s, a key that is %s" % (self.case, kind), self.total, "time", "ms", {
                name: lambda peer=peer, number=50 if name == "bloomfilter" else 2000:
                1000 * run(self.session, peer, script + peer.find % ":key::bigint" + ";\n", number)[0]
                for name, peer in PEERS.items()})  # fmt: skip

    def find_all(self, results):
        answers = {name: set(self.session_of(peer).ask(peer.find_all)) for name, peer in PEERS.items()}
        exact = answers.pop("GIN on bigint[]")
        found = answers.pop("bloomfilter")
        agree(self.case, found, answers.pop("bloomslices"))
        agree(self.case, exact, exact & found, *answers.values())
        results.add(self.case, "bloomfilter", self.total, "wrong sets of a key", "sets", [len(found - exact) / KEYS], [])
        results.add(self.case, "bloomfilter", self.total, "right sets of a key", "sets", [len(exact) / KEYS], [])
        results.compare("%s, %d keys at once" % (self.case, KEYS), self.total, "time", "ms", {
            name: lambda peer=peer: 1000 * self.session_of(peer).seconds("SELECT count(*) FROM (%s) AS v" % peer.find_all)
            for name, peer in PEERS.items()})  # fmt: skip

    def upkeep(self, results, case, run, prepare=""):
        """Time and WAL of a change. run(peer) returns both. All peers of a round make the same change."""
        figures = {name: [] for name in PEERS}
        for _ in range(6):
            self.session.ask(prepare)
            for name, peer in PEERS.items():
                figures[name].append(run(peer))
        for metric, unit, field, scale in ("time", "ms", 0, 1000), ("WAL", "bytes", 1, 1):
            base, *_ = figures.values()
            for name, pairs in figures.items():
                results.add("%s, %s" % (self.case, case), name, self.total, metric, unit,
                            [scale * pair[field] for pair in pairs[1:]],
                            [pair[field] / other[field] for pair, other in zip(pairs[1:], base[1:])])  # fmt: skip

    def change(self, sql):
        before = self.session.ask("SELECT pg_current_wal_insert_lsn()")[0]
        seconds = self.session.seconds(sql)
        return seconds, float(self.session.ask("SELECT pg_current_wal_insert_lsn() - '%s'::pg_lsn" % before)[0])

    def add(self, results):
        """Runs enough transactions to hide the start of a session, and to make GIN empty its pending list."""
        script = "\\set key random(%d, 1099511627776)\n\\set set random(1, %d)\n" % (3 * self.domain, self.number)
        self.upkeep(results, "a key to a set", lambda peer: run(
            self.session, peer, script + peer.add + ";\n", 100 if peer.setting else 1000))  # fmt: skip

    def add_many(self, results):
        prepare = ("TRUNCATE routing_new; INSERT INTO routing_new SELECT 1 + (7 * (i %% 100) + first) %% %d, "
                   "%d + (1e12 * random())::bigint FROM generate_series(1, %d) AS i, "
                   "(SELECT (random() * %d)::int AS first) AS r; ANALYZE routing_new"
                   % (self.number, 3 * self.domain, KEYS, self.number))  # fmt: skip
        self.upkeep(results, "%d keys to 100 sets" % KEYS, lambda peer: self.change(peer.add_many), prepare)

    def insert(self, results):
        keys = (self.least + self.most) // 2
        prepare = ("TRUNCATE routing_set; INSERT INTO routing_set SELECT 2 * ((p + i * q) %% %d) FROM "
                   "generate_series(1, %d::bigint) AS i, (SELECT (random() * 1e9)::bigint AS p, "
                   "1 + (random() * (%d - 2))::bigint AS q) AS r; ANALYZE routing_set" % (self.domain, keys, self.domain))
        identities = itertools.count(1000000)
        self.upkeep(results, "a set of %d keys" % keys, lambda peer: self.change(
            peer.insert.replace(":set", str(next(identities))).format(keys=keys)), prepare)  # fmt: skip

    def drop(self, results):
        self.session.ask("DROP TABLE routing_sizes, routing_members, routing_asked, routing_new, routing_set, "
                         + ", ".join(peer.table for peer in PEERS.values()))  # fmt: skip
        self.session.connection.close(), self.indexed.connection.close()


def steps(rows):
    share = min(1, rows / 5.5e6)
    plan = []
    many = min(max(rows // 200, 500), 50000)
    each = min(rows // many, 200)
    for sets in Sets(500, max(int(2000 * share), 2), max(int(20000 * share), 20)), Sets(many, each, each):
        weight = sets.total / 1e6
        plan += [Step(title + ", " + sets.case, cost, step) for title, cost, step in (
            ("tables and indexes", 9 * weight, sets.make),
            ("one key", 1 + sets.number / 5000, sets.find),
            ("%d keys" % KEYS, 0.2 + sets.number / 2500, sets.find_all),
            ("a key added", 3, sets.add), ("%d keys added" % KEYS, 3, sets.add_many), ("a set added", 2, sets.insert),
            ("clean up", 0.5, sets.drop))]  # fmt: skip
    return plan
