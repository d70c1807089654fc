"""The recipes of doc/counting.md at any scale, with what theory expects of them.

Each recipe is a generator of figures. test/t/counter_recipes.t runs it at a small scale and asserts its figures.
bench/counting_recipes.py runs it at a large scale and prints them. Theory is that of doc/format.md, "The rate of a
block", as test/golden/reference.py computes it. The data come from hash functions, so a figure is always the same.
"""

import collections
import math

import session  # lets the next line find reference.py
import reference as ref

RATE = 0.01
K = ref.choose_k("blocked", RATE)

# A guarantee: got must equal expected.
Exact = collections.namedtuple("Exact", "name got expected")
# Hits among tries. The expected rate differs between filters by a standard deviation, spread.
Rate = collections.namedtuple("Rate", "name hits tries expected spread")
# A figure without a bound.
Shown = collections.namedtuple("Shown", "name value")

TABLES = """
CREATE FUNCTION uniform(i bigint, seed bigint) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN (hashint8extended(i, seed) & 4294967295) / 4294967296.0::float8;
CREATE TABLE recipes (name text PRIMARY KEY, c bloomcounter NOT NULL);
"""


# Theory

class Squares:
    def __init__(self, r):
        self.r = r

    def __getitem__(self, j):
        return self.r[j] ** 2


class Loads:
    """r(j) of an error of at least e: the probability that all positions of an element carry e or more of what the
    others of its block have added: j others with counts below e from a histogram, and heavy others with more. Given
    these two numbers, the loads of different positions count as independent."""

    def __init__(self, histogram, k, e, heavy):
        light = {count: number for count, number in histogram.items() if count < e}
        total = sum(light.values())
        covers = -math.expm1(k * math.log1p(-1 / ref.BLOCK))
        self.step = [covers * light.get(load, 0) / total for load in range(e)]
        self.step[0] += 1 - covers
        self.load = [(1 - covers) ** heavy] + [0.0] * (e - 1)  # of one position, below e, for the j reached
        self.distinct = ref.block_rates(ref.BLOCK, k).distinct
        self.rates = []

    def __getitem__(self, j):
        while len(self.rates) <= j:
            reached = max(1 - sum(self.load), 0.0)
            self.rates.append(sum(d * reached**e for e, d in enumerate(self.distinct) if e > 0))
            self.load = [sum(self.load[i] * self.step[load - i] for i in range(load + 1))
                         for load in range(len(self.load))]  # fmt: skip
        return self.rates[j]


class Excess:
    """The mean of Loads over the number of light others, by the number of heavy ones."""

    def __init__(self, histogram, m, e):
        self.histogram, self.m, self.e, self.means = histogram, m, e, []
        self.light = sum(number for count, number in histogram.items() if count < e)

    def __getitem__(self, heavy):
        while len(self.means) <= heavy:
            r = Loads(self.histogram, K, self.e, len(self.means))
            self.means.append(ref.binomial_mean(self.light, self.m // ref.BLOCK, r))
        return self.means[heavy]


def excess(histogram, m, e):
    """The rate of errors of at least e in counters of elements with these counts, and what it is known to within:
    its deviation between filters, and the independence that Loads assumes."""
    heavy = sum(number for count, number in histogram.items() if count >= e)
    mean, spread = expect(Excess(histogram, m, e), m, heavy)
    return mean, math.hypot(spread, 0.1 * mean)


def expect(r, m, n):
    """The mean over filters of n elements, and the standard deviation between filters."""
    nblocks = m // ref.BLOCK
    if n == 0:
        return 0.0, 0.0
    mean = ref.binomial_mean(n, nblocks, r)
    return mean, math.sqrt(max(ref.binomial_mean(n, nblocks, Squares(r)) - mean**2, 0.0) / nblocks)


def rate(m, n, k=K):
    return expect(ref.block_rates(ref.BLOCK, k), m, n)


def size(items, p=RATE):
    return ref.choose_m("blocked", p, max(math.ceil(items), 1))


def sparse(items, m, width=4):
    return 10 * items < m * width / 8


def room(m, width=4):
    """Bytes of a dense value in memory."""
    return 4 + ref.HEADER.size + m * width // 8


def either(*rates):
    """The rate of several filters that are all asked."""
    none = math.prod(1 - mean for mean, _ in rates)
    return 1 - none, math.hypot(*(spread for _, spread in rates))


# The recipes

def numbers(s, sql):
    """The only row of a query, as numbers."""
    ((*row,),) = s.rows(sql)
    return [float(field) if "." in field or "e" in field else int(field) for field in row]


def make_requests(s, requests):
    s.rows(f"""
        DROP TABLE IF EXISTS requests, objects;
        CREATE TABLE requests AS
          SELECT i AS request, floor(exp(uniform(i, 1) * ln({requests})))::int AS object
          FROM generate_series(1, {requests}) AS i;
        CREATE TABLE objects AS
          SELECT object, count(*) AS requests, min(request) AS first FROM requests GROUP BY object;
        ANALYZE requests, objects""")
    histogram = {int(count): int(number) for count, number in
                 s.rows("SELECT requests, count(*) FROM objects GROUP BY requests")}  # fmt: skip
    return histogram, sum(histogram.values())


def one_hit_wonders(s, requests):
    histogram, objects = make_requests(s, requests)
    once, m = histogram[1], size(objects)
    s.rows(f"""
        CREATE TABLE cache (object int PRIMARY KEY, written_by int);
        DO $$
        DECLARE
          c bloomcounter := bloom_create_counter({objects});
          r requests;
        BEGIN
          FOR r IN SELECT * FROM requests ORDER BY request LOOP
            c := bloom_add(c, r.object);
            IF bloom_count(c, r.object) >= 2 THEN
              INSERT INTO cache VALUES (r.object, r.request) ON CONFLICT DO NOTHING;
            END IF;
          END LOOP;
          INSERT INTO recipes VALUES ('requested', c);
        END $$""")
    missed, wrong, saved = numbers(s, """
        SELECT count(*) FILTER (WHERE requests > 1 AND written_by IS NULL),
          count(*) FILTER (WHERE written_by = first), count(*) FILTER (WHERE written_by IS NULL)
        FROM objects LEFT JOIN cache USING (object)""")
    yield Shown("objects", objects)
    yield Shown("bytes of the counter", f"{room(m):,}")
    yield Shown("share of objects requested once", f"{once / objects:.4f}")
    yield Shown("share of writes saved", f"{saved / objects:.4f}")
    yield Exact("objects that miss their second request", missed, 0)
    fills = range(0, objects, objects // 200)
    mean = sum(0.0 if sparse(fill + 1, m) else rate(m, fill)[0] for fill in fills) / len(fills)
    yield Rate("first requests that are admitted", wrong, objects, mean, rate(m, objects)[1])

    s.rows(f"CREATE TABLE twice AS SELECT bloom_at_least(bloom_counter_agg(object, {objects}), 2) AS f FROM requests")
    missed, wrong = numbers(s, """
        SELECT count(*) FILTER (WHERE requests > 1 AND NOT f @> object),
          count(*) FILTER (WHERE requests = 1 AND f @> object) FROM objects, twice""")
    yield Exact("objects requested twice that bloom_at_least misses", missed, 0)
    yield Rate("objects requested once in bloom_at_least(c, 2)", wrong, once, *rate(m, objects - 1))
    absent = 20 * objects
    (wrong,) = numbers(s, f"SELECT count(*) FROM twice, generate_series(1, {absent}) AS i WHERE f @> -i")
    yield Rate("objects never requested in bloom_at_least(c, 2)", wrong, absent, *excess(histogram, m, 2))
    yield Exact("the stream, the aggregate and the sum of servers give the same bytes", s.ask(f"""
        SELECT count(DISTINCT c) FROM (SELECT c FROM recipes WHERE name = 'requested'
          UNION ALL SELECT bloom_counter_agg(object, {objects}) FROM requests
          UNION ALL SELECT bloom_sum_agg(c) FROM (
            SELECT bloom_counter_agg(object, {objects}) AS c FROM requests GROUP BY request % 4) AS servers) AS t"""),
        ["1"])  # fmt: skip


TICKS, LIFETIME = 40, 10


def make_events(s, events):
    s.rows(f"""
        CREATE TABLE events AS
          SELECT tick,
            {events * 3 // 5} * tick - floor({12 * events} * uniform({events} * tick + i, 2) ^ 4)::int AS session
          FROM generate_series(1, {TICKS}) AS tick, generate_series(1, {events}) AS i;
        CREATE TABLE sessions AS SELECT session, max(tick) AS last FROM events GROUP BY session;
        CREATE TABLE history (tick int PRIMARY KEY, c bloomcounter NOT NULL);
        ANALYZE events, sessions""")


def distinct_sessions(s, first, last):
    return numbers(s, f"SELECT count(DISTINCT session) FROM events WHERE tick BETWEEN {first} AND {last}")[0]


def time_to_live(s, events):
    make_events(s, events)
    alive = max(distinct_sessions(s, tick - LIFETIME, tick) for tick in range(1, TICKS + 1))
    s.rows(f"INSERT INTO recipes VALUES ('live', bloom_create_counter({alive}))")
    s.rows(f"""
        DO $$
        BEGIN
          FOR now IN 1 .. {TICKS} LOOP
            UPDATE recipes SET c = bloom_decay(c) WHERE name = 'live';
            UPDATE recipes
            SET c = (SELECT bloom_level_agg(session, {LIFETIME + 1}, recipes.c) FROM events WHERE tick = now)
            WHERE name = 'live';
            INSERT INTO history SELECT now, c FROM recipes WHERE name = 'live';
          END LOOP;
        END $$""")
    asked, missed, low = numbers(s, f"""
        SELECT count(*), count(*) FILTER (WHERE NOT c @> session),
          count(*) FILTER (WHERE bloom_count(c, session) < {LIFETIME + 1} - (h.tick - e.tick))
        FROM events AS e JOIN history AS h ON h.tick - e.tick BETWEEN 0 AND {LIFETIME}""")
    yield Shown("elements alive at most", alive)
    yield Shown("probes within the lifetime", asked)
    yield Exact("elements missed within their lifetime", missed, 0)
    yield Exact("levels below the ticks left", low, 0)
    yield Exact("the counter is the one built from the elements alive", s.ask(f"""
        SELECT count(*) FROM history AS h WHERE tick > {2 * LIFETIME} AND c <> (
          SELECT bloom_level_agg(session, {LIFETIME + 1} - (h.tick - tick), {alive}) FROM events
          WHERE tick BETWEEN h.tick - {LIFETIME} AND h.tick)"""), ["0"])  # fmt: skip
    for form in forms_that_forget(s, alive):
        yield from forgetting(s, alive, *form)


def forms_that_forget(s, alive):
    """The counter and two forms made of filters: name, SQL of the test, bytes, and the rate of an absent element at
    the last tick."""
    half = max(distinct_sessions(s, first, first + LIFETIME - 1) for first in range(1, TICKS, LIFETIME))
    slot = max(distinct_sessions(s, tick, tick) for tick in range(1, TICKS + 1))
    in_turn = f"(e.tick - 1) / {LIFETIME} = (h.tick - 1) / {LIFETIME}"
    s.rows(f"""
        CREATE TABLE rotated AS
          SELECT h.tick, bloom_agg(session, {half}, 0.005) FILTER (WHERE {in_turn}) AS f,
            bloom_agg(session, {half}, 0.005) FILTER (WHERE {in_turn} - 1) AS older
          FROM history AS h JOIN events AS e ON e.tick <= h.tick GROUP BY h.tick;
        CREATE TABLE slots AS SELECT tick, bloom_agg(session, {slot}, 0.0009) AS f FROM events GROUP BY tick""")

    def one(items, p, first, last):
        return rate(size(items, p), distinct_sessions(s, first, last), ref.choose_k("blocked", p))

    turns = [one(half, 0.005, last - LIFETIME + 1, last) for last in (TICKS - LIFETIME, TICKS)]
    slots = [one(slot, 0.0009, tick, tick) for tick in range(TICKS - LIFETIME, TICKS + 1)]
    return (
        ("the counter", "c @> session", room(size(alive)), one(alive, RATE, TICKS - LIFETIME, TICKS)),
        ("two filters", "(f @> session OR older @> session)", 2 * room(size(half, 0.005), 1), either(*turns)),
        ("a filter for each tick", f"""(SELECT bool_or(s.f @> session) FROM slots AS s
            WHERE s.tick BETWEEN history.tick - {LIFETIME} AND history.tick)""",
         (LIFETIME + 1) * room(size(slot, 0.0009), 1), either(*slots)),
    )  # fmt: skip


def forgetting(s, alive, form, found, taken, expected):
    dead, known = numbers(s, f"""
        SELECT count(*), count(*) FILTER (WHERE {found}) FROM sessions, history JOIN rotated USING (tick)
        WHERE history.tick = {TICKS} AND last < {TICKS - 2 * LIFETIME}""")
    absent = 5 * alive
    (unknown,) = numbers(s, f"""
        SELECT count(*) FROM (SELECT -1000000000 - i AS session FROM generate_series(1, {absent}) AS i) AS never,
          history JOIN rotated USING (tick) WHERE history.tick = {TICKS} AND {found}""")
    missed, least, mean, greatest = numbers(s, f"""
        SELECT count(*) FILTER (WHERE gone <= {LIFETIME}), min(gone), avg(gone), max(gone) FROM (
          SELECT session, min(history.tick - last) AS gone FROM sessions, history JOIN rotated USING (tick)
          WHERE last BETWEEN {LIFETIME + 1} AND {2 * LIFETIME} AND history.tick >= last AND NOT {found}
          GROUP BY session) AS t""")
    yield Shown(f"{form}: bytes", f"{taken:,}")
    yield Exact(f"{form}: sessions lost within their lifetime", missed, 0)
    yield Shown(f"{form}: ticks until forgotten, least, mean, greatest", f"{least}, {mean:.2f}, {greatest}")
    yield Rate(f"{form}: dead elements still found", known, dead, *expected)
    yield Rate(f"{form}: elements never seen found", unknown, absent, *expected)


def make_log(s, requests):
    s.rows(f"""
        CREATE TABLE request_log AS
          SELECT tick, CASE WHEN i > {requests} THEN -1 - i % {requests // 40}
            ELSE 1 + floor({7.5 * requests} * uniform({requests * 3 // 2} * tick + i, 3) ^ 1.5)::int END AS client
          FROM generate_series(1, 20) AS tick,
            generate_series(1, CASE WHEN tick > 5 THEN {requests * 3 // 2} ELSE {requests} END) AS i;
        CREATE TABLE exact_buckets AS
          SELECT tick, client, total - 10 * tick - min(total - n - 10 * tick) OVER so_far AS level
          FROM (SELECT tick, client, count(*) AS n, sum(count(*)) OVER (PARTITION BY client ORDER BY tick) AS total
            FROM request_log GROUP BY tick, client) AS t
          WINDOW so_far AS (PARTITION BY client ORDER BY tick);
        CREATE TABLE readings (tick int, client int, level int);
        ANALYZE request_log, exact_buckets""")


def read_buckets(s, items):
    s.rows(f"""
        DELETE FROM recipes WHERE name = 'buckets';
        INSERT INTO recipes VALUES ('buckets', bloom_create_counter({items}, counter_bits => 8));
        TRUNCATE readings;
        DO $$
        BEGIN
          FOR now IN 1 .. 20 LOOP
            UPDATE recipes SET c = bloom_decay(c, 10) WHERE name = 'buckets';
            UPDATE recipes SET c = (SELECT bloom_counter_agg(client, recipes.c) FROM request_log WHERE tick = now)
            WHERE name = 'buckets';
            INSERT INTO readings SELECT tick, client, bloom_count(c, client) FROM exact_buckets, recipes
            WHERE tick = now AND name = 'buckets';
          END LOOP;
        END $$;
        ANALYZE readings""")


def rate_limits(s, requests):
    """Each of the 20 ticks has this many requests. From tick 6 on, robots send half as many more, 20 each."""
    make_log(s, requests)
    clients, buckets, over, greatest = numbers(s, """
        SELECT (SELECT max(n) FROM (SELECT count(*) AS n FROM exact_buckets GROUP BY tick) AS t),
          count(*), count(*) FILTER (WHERE level > 30), max(level) FROM exact_buckets""")
    yield Shown("clients in a tick", clients)
    yield Shown("buckets over the limit", over)
    yield Exact("the greatest bucket fits", greatest < 255, True)
    for part in 1, 2, 4, 8, 16:
        read_buckets(s, clients // part)
        low, missed, others, false, early, high = numbers(s, """
            SELECT count(*) FILTER (WHERE r.level < e.level), count(*) FILTER (WHERE e.level > 30 AND r.level <= 30),
              count(*) FILTER (WHERE client > 0), count(*) FILTER (WHERE client > 0 AND e.level <= 30 AND r.level > 30),
              count(*) FILTER (WHERE client < 0 AND e.level <= 30 AND r.level > 30),
              count(*) FILTER (WHERE r.level > e.level)
            FROM exact_buckets AS e JOIN readings AS r USING (tick, client)""")
        form, m = f"room for 1/{part} of the clients", size(clients // part)
        yield Exact(f"{form}: buckets that read too low", low, 0)
        yield Exact(f"{form}: clients over the limit that are missed", missed, 0)
        yield Shown(f"{form}: bytes", f"{room(m, 8):,}")
        yield Shown(f"{form}: additions to a position in each tick", f"{1.5 * requests * K / m:.1f}")
        yield Shown(f"{form}: false alarms of {others} buckets of others", f"{false} ({false / others:.3%})")
        yield Shown(f"{form}: alarms for a robot too early, of {requests // 40} robots", early)
        yield Shown(f"{form}: buckets that read too high", f"{high / buckets:.2%}")


def several_sets(s, radius):
    """radius is that of the outermost zone, in cells."""
    edge, middle = 4 * radius, 2 * radius
    s.rows(f"""
        CREATE TABLE cells AS
          SELECT (x::bigint << 32) + y AS cell,
            CASE WHEN d <= {radius} / 5.0 THEN 3 WHEN d <= {radius} * 3 / 5.0 THEN 2 WHEN d <= {radius} THEN 1
              ELSE 0 END AS zone
          FROM generate_series(0, {edge - 1}) AS x, generate_series(0, {edge - 1}) AS y,
            sqrt((x - {middle}) ^ 2 + (y - {middle}) ^ 2) AS d;
        ANALYZE cells""")
    cells = [int(n) for (n,) in s.rows("SELECT count(*) FROM cells GROUP BY zone ORDER BY zone")]
    at_least = {level: sum(cells[level:]) for level in (1, 2, 3)}
    m = size(at_least[1])
    s.rows(f"INSERT INTO recipes SELECT 'zones', bloom_level_agg(cell, zone, {at_least[1]}) FROM cells WHERE zone > 0")
    s.rows("""
        CREATE TABLE zone_levels AS SELECT zone, bloom_count(c, cell) AS level, count(*) AS n
        FROM cells, recipes WHERE name = 'zones' GROUP BY 1, 2""")
    (low,) = numbers(s, "SELECT coalesce(sum(n), 0) FROM zone_levels WHERE level < zone")
    yield Shown("cells of zone 0, 1, 2, 3", cells)
    yield Shown("bytes of the counter", f"{room(m):,}")
    yield Exact("cells that read too low", low, 0)
    for zone in 0, 1, 2:
        for level in range(zone + 1, 4):
            (hits,) = numbers(s, f"""
                SELECT coalesce(sum(n), 0) FROM zone_levels WHERE zone = {zone} AND level >= {level}""")
            yield Rate(f"cells of zone {zone} that read {level} or more", hits, cells[zone], *rate(m, at_least[level]))
    yield from three_filters(s, cells, "of the same bytes", rate_of_bytes(cells, room(m)))
    yield from three_filters(s, cells, "of the same rate", RATE / 3)


def three_rooms(cells, p):
    return sum(room(size(n, p), 1) for n in cells[1:])


def rate_of_bytes(cells, most):
    """The lowest rate of a filter for each zone that takes no more bytes."""
    p = RATE
    while three_rooms(cells, p / 1.01) <= most:
        p /= 1.01
    return p


def three_filters(s, cells, name, p):
    s.rows(f"""
        DROP TABLE IF EXISTS zone_filters;
        CREATE TABLE zone_filters AS
          SELECT zone, bloom_agg(cell, n, {p!r}) AS f
          FROM cells JOIN (SELECT zone, count(*) AS n FROM cells GROUP BY zone) AS t USING (zone)
          WHERE zone > 0 GROUP BY zone""")
    (missed,) = numbers(s, "SELECT count(*) FROM cells JOIN zone_filters USING (zone) WHERE NOT f @> cell")
    (hits,) = numbers(s, """
        SELECT count(*) FROM cells WHERE zone = 0 AND (SELECT bool_or(f @> cell) FROM zone_filters)""")
    k = ref.choose_k("blocked", p)
    yield Shown(f"three filters {name}: bytes", f"{three_rooms(cells, p):,}")
    yield Exact(f"three filters {name}: cells missed", missed, 0)
    yield Rate(f"three filters {name}: cells of zone 0 found", hits, cells[0],
               *either(*(rate(size(n, p), n, k) for n in cells[1:])))  # fmt: skip


DEPTH = 4
MOST_ITEMS = 600  # within DEPTH - 1 hops, for the size of the counters

NETWORK = """
CREATE TABLE items AS
  SELECT node, 10 * node + i AS item FROM generate_series(0, {last}) AS node, generate_series(0, 9) AS i;
ALTER TABLE items ADD PRIMARY KEY (node, item);
CREATE TABLE links AS
  SELECT DISTINCT node, neighbour
  FROM generate_series(0, {last}) AS i,
    LATERAL (VALUES (i, (i + 1) % {nodes}), (i, floor({nodes} * uniform(i, 4))::int)) AS link (a, b),
    LATERAL (VALUES (a, b), (b, a)) AS both_ways (node, neighbour)
  WHERE a <> b;
ALTER TABLE links ADD PRIMARY KEY (node, neighbour);
CREATE TABLE nodes (node int PRIMARY KEY, own bloomcounter NOT NULL, c bloomcounter NOT NULL);
INSERT INTO nodes
  SELECT node, own, own
  FROM (SELECT node, bloom_level_agg(item, {depth}, {items}) AS own FROM items GROUP BY node) AS n;
CREATE TABLE distances (start int, target int, distance int, PRIMARY KEY (start, target));
ANALYZE items, links, nodes;
DO $$
BEGIN
  FOR round IN 1 .. {depth} - 1 LOOP
    UPDATE nodes SET c = own | (
      SELECT bloom_union_agg(bloom_decay(n.c))
      FROM links AS l JOIN nodes AS n ON n.node = l.neighbour
      WHERE l.node = nodes.node);
  END LOOP;
END $$;
ANALYZE nodes;
CREATE FUNCTION route(start int, wanted int) RETURNS int[] LANGUAGE plpgsql STABLE AS $$
DECLARE
  here int := start;
  path int[] := ARRAY[start];
BEGIN
  WHILE NOT EXISTS (SELECT FROM items WHERE node = here AND item = wanted) LOOP
    SELECT n.node INTO here FROM links AS l JOIN nodes AS n ON n.node = l.neighbour
    WHERE l.node = here AND n.c @> wanted AND n.node <> ALL (path)
    ORDER BY bloom_count(n.c, wanted) DESC, n.node LIMIT 1;
    IF NOT FOUND THEN
      RETURN NULL;
    END IF;
    path := path || here;
  END LOOP;
  RETURN path;
END $$
"""


def hops(links, start, limit):
    """The distance of each node within so many hops."""
    found, edge = {start: 0}, [start]
    for distance in range(1, limit + 1):
        edge = [b for a in edge for b in links[a] if b not in found and not found.update({b: distance})]
    return found


def make_network(s, nodes):
    """The neighbours of each node, and the distance of each node within DEPTH hops of it."""
    s.rows(NETWORK.format(nodes=nodes, last=nodes - 1, depth=DEPTH, items=MOST_ITEMS))
    links = collections.defaultdict(list)
    for node, neighbour in s.rows("SELECT node, neighbour FROM links"):
        links[int(node)].append(int(neighbour))
    reached = {node: hops(links, node, DEPTH) for node in links}
    s.copy("distances", ((str(start), str(target), str(distance))
                         for start, found in reached.items() for target, distance in found.items()))  # fmt: skip
    s.rows("ANALYZE distances")
    return links, reached


def attenuated(s, nodes):
    links, reached = make_network(s, nodes)
    held = {node: {level: 10 * sum(distance <= DEPTH - level for distance in found.values())
                   for level in range(1, DEPTH + 1)} for node, found in reached.items()}  # fmt: skip
    yield Shown("nodes, links", f"{nodes}, {sum(map(len, links.values())) // 2}")
    yield Shown("items within three hops, mean and most", "%.0f, %d" % (
        sum(h[1] for h in held.values()) / nodes, max(h[1] for h in held.values())))  # fmt: skip
    asked, low = numbers(s, f"""
        SELECT count(*), count(*) FILTER (WHERE bloom_count(c, item) < {DEPTH} - distance)
        FROM distances JOIN nodes ON node = start JOIN items ON items.node = target WHERE distance < {DEPTH}""")
    yield Exact(f"levels below the true ones, of {asked}", low, 0)
    yield Exact("dense counters unlike those built from the distances", s.ask(f"""
        SELECT count(*) FROM nodes, LATERAL (
          SELECT bloom_level_agg(item, {DEPTH} - distance, {MOST_ITEMS}) AS built
          FROM distances JOIN items ON items.node = target WHERE start = nodes.node AND distance < {DEPTH}) AS b
        WHERE (bloom_info(built)).representation = 'dense' AND c <> built"""), ["0"])  # fmt: skip

    m = size(MOST_ITEMS)
    dense = {int(node) for (node,) in s.rows("SELECT node FROM nodes WHERE (bloom_info(c)).representation = 'dense'")}
    rates = {node: {level: rate(m, held[node][level]) if node in dense else (0.0, 0.0) for level in held[node]}
             for node in held}  # fmt: skip
    for level in 1, 2:
        hits, tries = numbers(s, f"""
            SELECT count(*) FILTER (WHERE bloom_count(c, -i) >= {level}), count(*)
            FROM nodes, generate_series(1, 500) AS i""")
        mean = sum(rates[node][level][0] for node in held) / nodes
        # A node shares its items with the 53 nodes within three hops.
        spread = max(rates[node][level][1] for node in held) / math.sqrt(nodes / 54)
        yield Rate(f"absent items that read {level} or more at a node", hits, tries, mean, spread)
    yield from routes(s, links, rates)


def first_turns(links, rates):
    """By distance: the share of first turns that go wrong, over all pairs of nodes. A turn goes to the neighbour with
    the greatest level, the least of several."""
    wrong, pairs = collections.Counter(), collections.Counter()
    found = {node: hops(links, node, DEPTH) for node in links}
    reads = {node: [1.0] + [rates[node][level][0] for level in range(1, DEPTH + 1)] + [0.0] for node in links}
    for start in links:
        for target, distance in found[start].items():
            if distance > 0:
                level = DEPTH - (distance - 1)
                right = [n for n in links[start] if found[n].get(target) == distance - 1]
                fair = math.prod(1 - reads[n][level + (n > min(right))] for n in links[start] if n not in right)
                wrong[distance] += 1 - fair
                pairs[distance] += 1
    return {distance: wrong[distance] / pairs[distance] for distance in pairs}


def routes(s, links, rates):
    expected = first_turns(links, rates)
    for row in s.rows("""
            SELECT d.distance, count(*), count(*) FILTER (WHERE NOT EXISTS (
              SELECT FROM distances AS t WHERE t.start = turn AND t.target = d.target AND t.distance = d.distance - 1))
            FROM distances AS d, LATERAL (
              SELECT n.node AS turn FROM links AS l JOIN nodes AS n ON n.node = l.neighbour WHERE l.node = d.start
              ORDER BY bloom_count(n.c, 10 * d.target + 3) DESC, n.node LIMIT 1) AS t
            WHERE d.distance > 0 GROUP BY d.distance ORDER BY d.distance"""):
        distance, tries, wrong = map(int, row)
        # A false positive at a node counts once for each of its neighbours.
        yield Rate(f"wrong first turns, {distance} hops from the item", wrong, tries, expected[distance],
                   math.sqrt(3 * expected[distance] / tries))  # fmt: skip
    for distance, *row in s.rows("""
            SELECT distance, count(*), count(*) FILTER (WHERE cardinality(path) = distance + 1),
              count(*) FILTER (WHERE cardinality(path) > distance + 1), count(*) FILTER (WHERE path IS NULL)
            FROM (SELECT distance, route(start, 10 * target + 3) AS path FROM distances WHERE target % 20 = 0) AS r
            GROUP BY distance ORDER BY distance"""):
        yield Shown(f"routes of {distance} hops: number, shortest, longer, lost", ", ".join(row))


def counts(s, requests):
    histogram, objects = make_requests(s, requests)
    yield Shown("objects", objects)
    for width in 4, 8, 16:
        for fill in 50, 100, 200:
            items = objects * 100 // fill
            s.rows(f"""
                DROP TABLE IF EXISTS errors;
                CREATE TABLE errors AS
                SELECT requests, bloom_count(c, object) - least(requests, {2**width - 1}) AS error
                FROM objects, (SELECT bloom_counter_agg(object, bloom_create_counter({items}, {RATE}, {width})) AS c
                  FROM requests OFFSET 0) AS q""")
            form = f"{width} bits, {fill} %"
            yield Exact(f"{form}: numbers below the true", s.ask("SELECT count(*) FROM errors WHERE error < 0"), ["0"])
            if sparse(objects, size(items), width):
                yield Exact(f"{form}: sparse, errors", s.ask("SELECT count(*) FROM errors WHERE error > 0"), ["0"])
            else:
                yield from errors(s, form, histogram, size(items), 2**width - 1)


def errors(s, form, histogram, m, limit):
    one = rate(m, sum(histogram.values()) - 1)
    for e in 1, 2, 4:
        hits, tries = numbers(s, f"""
            SELECT count(*) FILTER (WHERE error >= {e}), count(*) FROM errors WHERE requests + {e} <= {limit}""")
        yield Rate(f"{form}: errors of {e} or more", hits, tries, *(one if e == 1 else excess(histogram, m, e)))
    (mean,) = numbers(s, "SELECT avg(error)::float8 FROM errors WHERE requests = 1")
    theory = one[0] + sum(excess(histogram, m, e)[0] for e in range(2, 13))
    yield Shown(f"{form}: mean error of objects requested once, theory", f"{mean:.4f}, {theory:.4f}")
    for low, high in (1, 1), (2, 3), (4, 7), (8, 14), (15, max(histogram)):
        number, wrong, mean = numbers(s, f"""
            SELECT count(*), coalesce(avg((error > 0)::int), 0)::float8, coalesce(avg(error), 0)::float8
            FROM errors WHERE requests BETWEEN {low} AND {high}""")
        yield Shown(f"{form}: {number} objects of {low} .. {high} requests: wrong, mean error",
                    f"{wrong:.4f}, {mean:.4f}")  # fmt: skip
