"""Is it in the set? A stored filter against what else PostgreSQL has for it.

Sets of 10^4, 10^5, ... keys up to the number of rows. The keys are 64-bit numbers that look random, so their order in
the table is not their order. The probes are a table too: present keys, then absent ones, both drawn at random.

One query measures a peer. It asks for one key, then for many present keys, then for many absent keys, and returns a row
for each. The first row has the time of what a query builds before its first answer, such as a hash table; the others
reuse it. A stored filter is copied from its table after some probes, so there the first row asks for FEW keys. The time
for each key comes from the other rows, without the time to scan the probes. A cursor fetches one row after the other,
so that the processor time of the server process is known after each. Everything is in the cache of the operating
system, so that a quiet machine takes hardly longer than that.
"""
import os
import re
import statistics
import typing

from results import Step

from measure import Session

# A synchronized scan does not begin at the first row, whose place is asked for.
SETTINGS = ("max_parallel_workers_per_gather = 0", "jit = off", "cursor_tuple_fraction = 1",
            "synchronize_seqscans = off")  # fmt: skip
PLENTY = SETTINGS + ("work_mem = '4GB'",)  # for one hash table of 100 million keys
LOOK_UPS = SETTINGS + ("enable_seqscan = off",)
SECONDS = 0.2  # for the probes of a slow peer, which get fewer
FEW = 20000  # enough for the copy of a filter of 200 MB
ROUNDS = 5
ARRAY_KEYS = 1000000  # with more keys, planning takes longer than the query
END = "(4000000000,1)"
IN = "x IN (SELECT k FROM peer_keys)"
# OFFSET keeps the planner from making a join of it.
LOOK_UP = "EXISTS (SELECT FROM peer_keys WHERE k = x OFFSET 0)"
BIGINT = "hashint8extended({}, 0)"
TEXT = 'md5(({})::text) COLLATE "C"'


class Peer(typing.NamedTuple):
    name: str
    condition: str  # on the probe x
    plan: dict  # what the plan has, see expect()
    settings: tuple = SETTINGS
    make: tuple = ()  # statements, run once for each set
    relation: str = None  # what they make, with the bytes on disk
    start: str = None  # a statement that a session needs first
    builds: bool = False  # something in each query
    first: int = 1  # probes until that is there
    most: int = None  # keys
    extension: str = None


def index(name, method, plan, extension=None, make=()):
    """The plan of a look-up by an index of this method."""
    create = "CREATE INDEX peer_index ON peer_keys USING " + method
    return Peer(name, LOOK_UP, {"Index_Name": "^peer_index$", **plan}, LOOK_UPS, (*make, create), "peer_index",
                extension=extension)  # fmt: skip


def stored(name, table, rate):
    """The plan of a filter in a table, which is the result of an InitPlan."""
    create = "CREATE UNLOGGED TABLE %s AS SELECT bloom_agg(k, {n}, %g) AS f FROM peer_keys" % (table, rate)
    return Peer(name, "(SELECT f FROM %s) @> x" % table,
                {"Subplan_Name": "InitPlan", "Filter": r"^\(\$0 @> x\)$|InitPlan"},
                make=(create,), relation=table, builds=True, first=FEW)  # fmt: skip


STORED = stored("bloomfilter stored", "peer_filter", 0.01)
BTREE = index("btree index", "btree (k)", {"Node_Type": "^Index Only Scan$"})
HASH = index("hash index", "hash (k)", {"Node_Type": "^Index Scan$"})
# A round takes minutes at 100 million keys.
SEMI_JOIN = Peer("semi-join", IN, {"Node_Type": "^Hash Join$", "Join_Type": "^Semi$"}, PLENTY, builds=True,
                 most=10000000)  # fmt: skip
PEERS = (
    STORED,
    # rate 1e-6 has 55 million elements at most
    stored("bloomfilter stored, 1e-6", "peer_strict", 1e-6)._replace(most=50000000),
    Peer("bloomfilter built by the query", "(SELECT bloom_agg(k, {n}) FROM peer_keys) @> x",
         {"Subplan_Name": "InitPlan", "Strategy": "^Plain$"}, PLENTY, builds=True),
    # PostgreSQL hashes only an array known to the planner
    Peer("= ANY (array)", "x = ANY (peer_array())", {"Filter": r"x = ANY \('\{"}, PLENTY, builds=True, most=ARRAY_KEYS,
         make=("CREATE OR REPLACE FUNCTION peer_array() RETURNS bigint[] IMMUTABLE LANGUAGE sql "
               "AS 'SELECT array_agg(k) FROM peer_keys'",)),
    # 1 GB of memory at 10 million keys
    Peer("hashed IN", "(%s) IS TRUE" % IN, {"Filter": "hashed SubPlan"}, PLENTY, builds=True, most=10000000),
    SEMI_JOIN,
    BTREE,
    HASH,
    index("contrib/bloom", "bloom (k)", {"Node_Type": "^Bitmap Index Scan$"}, "bloom",
          ("DROP OPERATOR FAMILY IF EXISTS peer_ops USING bloom CASCADE",
           "CREATE OPERATOR FAMILY peer_ops USING bloom",
           "CREATE OPERATOR CLASS peer_ops DEFAULT FOR TYPE int8 USING bloom FAMILY peer_ops "
           "AS OPERATOR 1 =(int8, int8), FUNCTION 1 hashint8(int8)")),
    # The filter of a range has room for as many keys as 16 pages can have; one of 128 pages exceeds a page.
    index("BRIN bloom", "brin (k int8_bloom_ops(n_distinct_per_range = -1)) WITH (pages_per_range = 16)",
          {"Node_Type": "^Bitmap Index Scan$"}),
    # 1 GB of memory at 10 million keys
    Peer("PL/Python set", "peer_member(x)", {"Filter": r"^peer_member\(x\)$"}, extension="plpython3u", most=10000000,
         make=("CREATE OR REPLACE FUNCTION peer_load(keys bigint[]) RETURNS void LANGUAGE plpython3u "
               "AS 'GD[\"keys\"] = set(keys)'",
               "CREATE OR REPLACE FUNCTION peer_member(x bigint) RETURNS boolean LANGUAGE plpython3u STABLE STRICT "
               "AS 'return x in GD[\"keys\"]'"),
         start="SELECT peer_load(array_agg(k)) FROM peer_keys"),
)  # fmt: skip


ALL, NONE = (Peer("scan", "x IS %s NULL" % word, {}) for word in ("NOT", ""))


def expect(session, sql, **wanted):
    """Stops unless the plan scans the probes by ranges of TIDs and has nodes with these properties, given as regular
    expressions."""
    plan = session.explain(sql)
    for name, pattern in {"TID_Cond": "ctid", **wanted}.items():
        if not any(re.search(pattern, str(node.get(name.replace("_", " "), ""))) for node in plan):
            raise SystemExit("no %s \"%s\" in the plan of: %s\n%s" % (name, pattern, sql, str(plan)[:4000]))


def note(text):
    print("  " + text, flush=True)


class Set:
    """A set of n keys, its table, and the tables of its probes."""

    def __init__(self, n, key=BIGINT, case="membership"):
        self.n, self.key, self.case = n, key, case
        # present keys, and as many absent ones; so many that what they touch of a large set exceeds the caches
        self.probes = max(250000, n // 50)
        self.places = {FEW + 2 * self.probes: END}

    def make(self, _results=None):
        session = self.session = Session(*PLENTY, "client_min_messages = warning")
        drop(session)
        key = self.key.format("i")
        session.ask("CREATE UNLOGGED TABLE peer_keys AS "
                    "SELECT %s AS k FROM generate_series(1, %d::bigint) AS i" % (key, self.n))  # fmt: skip
        session.ask("SELECT setseed(0.5)")
        session.ask("CREATE UNLOGGED TABLE peer_probes AS SELECT %s AS x FROM "
                    "(SELECT (CASE WHEN p > %d THEN %d ELSE 1 END) + floor(random() * %d)::bigint AS i "
                    "FROM generate_series(1, %d) AS p) AS p" % (
                        key, FEW + self.probes, self.n + 1, self.n, FEW + 2 * self.probes))  # fmt: skip
        session.ask("VACUUM ANALYZE peer_keys"), session.ask("VACUUM ANALYZE peer_probes")
        self.scan = Session(*SETTINGS)
        self.reference = self.running(STORED)

    def running(self, peer):
        """The peer, ready to answer: what it needs is built."""
        if peer.extension:
            self.session.ask("CREATE EXTENSION IF NOT EXISTS " + peer.extension)
        made = [1000 * self.session.cpu_seconds(sql.format(n=self.n)) for sql in peer.make]
        session = Session(*peer.settings)
        built = sum(made)
        if peer.start:
            built += 1000 * session.cpu_seconds(peer.start)
        expect(session, self.statement(peer, 1), **peer.plan)
        return Running(self, peer, session, built)

    def statement(self, peer, probes):
        """Asks for the first key, for some present keys, and for as many absent ones; returns the hits of each."""
        absent = FEW + self.probes
        ranges = (0, peer.first), (FEW, FEW + probes), (absent, absent + probes)
        parts = ", ".join("('%s'::tid, '%s'::tid)" % (self.place(low), self.place(high)) for low, high in ranges)
        return ("SELECT hits FROM (VALUES %s) AS part (low, high), LATERAL (SELECT count(*) AS hits FROM peer_probes "
                "WHERE ctid >= low AND ctid < high AND %s) AS counted" % (
                    parts, peer.condition.format(n=self.n)))  # fmt: skip

    def place(self, row):
        """The TID of a row of the probes."""
        if row not in self.places:
            self.places[row] = self.session.ask("SELECT ctid FROM peer_probes OFFSET %d LIMIT 1" % row)[0]
        return self.places[row]

    def nanoseconds_of_scan(self):
        """The time to scan one present and one absent key, without asking anything: a condition that all or none
        meet, because counting the hits takes time, too."""
        return [1e9 * fetch(self.scan, self.statement(peer, self.probes))[1][part] / self.probes
                for part, peer in ((1, ALL), (2, NONE))]  # fmt: skip

    def query(self):
        """The name of the case that takes a query as a whole."""
        return "{:,} probes".format(2 * self.probes)

    def false_positives(self, table):
        """The share of hits among many absent keys, each asked once."""
        many = max(self.n, 1000000)
        (hits,) = self.session.ask(
            "SELECT count(*) FROM generate_series(%d, %d::bigint) AS i WHERE (SELECT f FROM %s) @> %s" % (
                3 * self.n, 3 * self.n + many - 1, table, self.key.format("i")))  # fmt: skip
        return int(hits) / many

    def drop(self, _results=None):
        for session in self.session, self.scan, self.reference.session:
            session.connection.close()
        with Session("client_min_messages = warning") as session:
            drop(session)


def drop(session):
    session.ask("DROP FUNCTION IF EXISTS peer_array, peer_load, peer_member")
    session.ask("DROP TABLE IF EXISTS peer_keys, peer_probes, peer_filter, peer_strict")


def fetch(session, sql):
    """The three rows of a statement, the processor time in seconds for each, and that for planning."""
    session.ask("BEGIN")
    planning = session.cpu_seconds("DECLARE peer CURSOR FOR " + sql)
    hits, used = [], [session.cpu_used()]
    for _ in range(3):
        hits.append(int(session.ask("FETCH peer")[0]))
        used.append(session.cpu_used())
    session.ask("COMMIT")
    return hits, [after - before for before, after in zip(used, used[1:])], planning


class Figures(typing.NamedTuple):
    present: float  # nanoseconds for each key
    absent: float
    planning: float  # milliseconds
    first: float  # milliseconds until the first answer
    query: float  # milliseconds for all
    false_positives: float


class Running:
    """A peer that answers for a set."""

    def __init__(self, keys, peer, session, built):
        self.keys, self.peer, self.session, self.built = keys, peer, session, built
        self.probes = self.affordable()
        self.sql = keys.statement(peer, self.probes)

    def affordable(self):
        """The number of probes of each kind: all if the query builds something, else what SECONDS allow."""
        probes, most = 1, self.keys.probes
        while probes < most and not self.peer.builds:
            sql = self.keys.statement(self.peer, probes)
            used = sum(fetch(self.session, sql)[1][1:])
            if used > SECONDS / 20:
                return max(1, min(most, int(probes * SECONDS / used)))
            probes = min(8 * probes, most)
        return most

    def fetch(self):
        return fetch(self.session, self.sql)

    def figures(self, fetched, scan):
        """The figures from what was fetched, without the nanoseconds to scan a present and an absent key."""
        hits, seconds, planning = fetched
        if hits[:2] != [self.peer.first, self.probes]:
            raise SystemExit("%s finds %d of %d present keys" % (self.peer.name, hits[1], self.probes))
        # at least 0.1, because the difference of two times may be less than their error
        present, absent = (max(0.1, 1e9 * seconds[part] / self.probes - scan[part - 1]) for part in (1, 2))
        first = max(0, seconds[0] - (self.peer.first - 1) * seconds[1] / self.probes)
        whole = planning + first + seconds[1] + seconds[2]
        return Figures(present, absent, 1000 * planning, 1000 * first, 1000 * whole, hits[2] / self.probes)

    def memory(self):
        """The bytes of private memory that a fresh session takes at most."""
        with Session(*self.peer.settings) as session:
            session.ask("SELECT count(x) FROM peer_probes"), session.ask("SELECT bloom_create(10) @> 1")
            before = session.memory()
            if self.peer.start:
                session.ask(self.peer.start)
            session.ask(self.sql)
            after = session.memory()
        return max(0, after["VmHWM"] - after["VmRSS"]) + max(0, after["RssAnon"] - before["RssAnon"])


def rounds(keys, running):
    """The times of scans, and the figures of the reference and those of a peer, taken by turns after one round to warm
    up."""
    taken = []
    for _ in range(ROUNDS + 1):
        scan, reference = keys.nanoseconds_of_scan(), keys.reference.fetch()
        taken.append((scan, reference, reference if running is keys.reference else running.fetch()))
    scans = [scan for scan, _, _ in taken[1:]]
    scan = [statistics.median(times) for times in zip(*scans)]
    return scans, [(keys.reference.figures(reference, scan), running.figures(fetched, scan))
                   for _, reference, fetched in taken[1:]]  # fmt: skip


def add_times(results, keys, running, taken):
    peer = running.peer

    def add(case, metric, unit, field):
        pairs = [(getattr(figures, field), getattr(reference, field)) for reference, figures in taken]
        results.add("%s, %s" % (keys.case, case), peer.name, keys.n, metric, unit, [figure for figure, _ in pairs],
                    [figure / reference for figure, reference in pairs])  # fmt: skip

    add("present keys", "seconds per key", "ns", "present")
    add("absent keys", "seconds per key", "ns", "absent")
    if running.probes == keys.probes:
        add(keys.query(), "time", "ms", "query")
    if peer.most == ARRAY_KEYS:
        results.add(keys.case, peer.name, keys.n, "planning", "ms", [figures.planning for _, figures in taken], [])
    if peer.builds:
        first = [figures.first for _, figures in taken]
        results.add(keys.case, peer.name, keys.n, "build in each query", "ms", first, [])
    if peer.relation or peer.start:
        ratio = running.built / keys.reference.built
        results.add(keys.case, peer.name, keys.n, "build once", "ms", [running.built], [ratio])


def add_sizes(results, keys, running, taken):
    """The metrics that do not vary. keys.reference has its own figures from the first step."""
    peer = running.peer
    size = keys.session.ask("SELECT pg_total_relation_size('%s')" % peer.relation)[0] if peer.relation else 0
    share = keys.false_positives(peer.relation) if "stored" in peer.name else statistics.median(
        figures.false_positives for _, figures in taken)  # fmt: skip
    figures = {"bytes": int(size), "memory": running.memory(), "false positives": share}
    if running is keys.reference:
        keys.reference_sizes = figures
    for metric, figure in figures.items():
        reference = keys.reference_sizes[metric]
        results.add(keys.case, peer.name, keys.n, metric, "share" if metric == "false positives" else "bytes", [figure],
                    [figure / reference] if reference else [])  # fmt: skip


def measure_peer(results, keys, peer):
    if peer.most and keys.n > peer.most:
        return note("%s is left out above %s keys" % (peer.name, "{:,}".format(peer.most)))
    if peer.extension and not keys.session.ask(
            "SELECT 1 FROM pg_available_extensions WHERE name = '%s'" % peer.extension):  # fmt: skip
        return note("%s is left out: no extension %s here" % (peer.name, peer.extension))
    running = keys.reference if peer is STORED else keys.running(peer)
    scans, taken = rounds(keys, running)
    if peer is STORED:
        add_keys(results, keys, scans)
    add_times(results, keys, running, taken)
    add_sizes(results, keys, running, taken)
    if running is not keys.reference:
        running.session.connection.close()
        keys.session.ask("DROP INDEX IF EXISTS peer_index")
    return None


def add_keys(results, keys, scans):
    """What the figures are to be compared with: the scan that they leave out, and the table of the keys."""
    priority = os.getpriority(os.PRIO_PROCESS, keys.session.pid)
    if priority:
        note("the server runs at nice %d" % priority)
    for kind, times in zip(("present", "absent"), zip(*scans)):
        results.add("%s, scan left out" % keys.case, kind + " keys", keys.n, "seconds per key", "ns", times, [])
    sizes = "SELECT pg_total_relation_size('peer_keys'), pg_size_bytes(current_setting('shared_buffers'))"
    for name, size in zip(("table of the keys", "shared_buffers"), keys.session.rows(sizes)[0]):
        results.add(keys.case, name, keys.n, "bytes", "bytes", [int(size)], [])


def spilling(results, keys):
    """The semi-join in 4 MB, which builds its hash table again for each part: one part with all probes."""
    session = Session(*SETTINGS, "work_mem = '4MB'")
    sql = "SELECT count(*) FROM peer_probes WHERE "
    join, bloom = sql + IN, sql + STORED.condition
    plan = session.explain(join, ", ANALYZE, TIMING OFF")
    batches = max(node.get("Hash Batches", 0) for node in plan)
    if batches < 2:
        return note("semi-join, work_mem 4 MB is left out: the hash table of %s keys fits" % "{:,}".format(keys.n))
    if not any(node.get("Join Type") == "Semi" for node in plan):
        raise SystemExit("no hash semi-join: %s" % plan)
    session.ask(bloom), session.ask(join)
    pairs = [(1000 * session.cpu_seconds(bloom), 1000 * session.cpu_seconds(join)) for _ in range(ROUNDS)]
    results.add("%s, %s" % (keys.case, keys.query()), "semi-join, work_mem 4 MB", keys.n, "time", "ms",
                [join for _, join in pairs], [join / bloom for bloom, join in pairs])  # fmt: skip
    note("semi-join, work_mem 4 MB: %d batches; its reference is the stored filter in 4 MB, too" % batches)
    return session.connection.close()


def steps_of(keys, peers, factor=1):
    millions = factor * keys.n / 1e6
    title = "{:,} keys{}: ".format(keys.n, "" if keys.key is BIGINT else " of 32 bytes")
    yield Step(title + "tables and filter", 2 + 1.3 * millions, keys.make)
    for peer in peers:
        weight = 4 + millions * (0 if peer.most and keys.n > peer.most else 2 if peer.builds else 1)
        yield Step(title + peer.name, weight, lambda results, peer=peer: measure_peer(results, keys, peer))
        if peer is SEMI_JOIN and keys.n <= peer.most:
            yield Step(title + "semi-join, work_mem 4 MB", 2 + 2 * millions, lambda results: spilling(results, keys))
    yield Step(title + "clean up", 0.1, keys.drop)


def sizes(rows, least=10000):
    powers = [10**digits for digits in range(4, 9) if 10**digits <= rows]
    return powers or [min(rows, least)]


def steps(rows):
    plan = [step for n in sizes(rows) for step in steps_of(Set(n), PEERS)]
    if rows >= 10000000:
        plan += steps_of(Set(10000000, TEXT, "membership, texts of 32 bytes"), (STORED, BTREE, HASH), 2)
    return plan
