"""Random queries that an index of bloomslices answers, and whether it answers as a sequential scan, for the tests of
sessions and of schemas. A question has two forms: the planner can use an index for one, and not for the other.
"""

import collections
import re

from session import wide
from workers import CONCURRENT

KEYS = 300  # the keys 1 .. KEYS are in many filters, 1000 * id is in few

# How the filters of the table source are made: SQL of the empty one, and how many percent of the keys it gets.
KINDS = {
    "dense": ("bloom_create(100)", 40), "dense too": ("bloom_create(100)", 25), "sparse": ("bloom_create(100)", 3),
    "empty": ("bloom_create(100)", None), "null": ("NULL::bloomfilter", None),
    "hollow": ("bloom_add(bloom_create(100), -1::bigint) & bloom_add(bloom_create(100), -2::bigint)", None),
    "larger": ("bloom_create(1000)", 60), "smaller": ("bloom_create(50)", 30), "sparse, large": ("bloom_create(30000)", 60),
    "more hashes": ("bloom_create(100, 0.0001)", 30), "fewer hashes": ("bloom_create(100, 0.2)", 40),
    "seed": ("bloom_create(100, 0.01, 'blocked', 7)", 30), "classic": ("bloom_create(100, 0.01, 'classic')", 30),
    "full": ("bloom_create(1, 0.5)", 100),
}  # fmt: skip
EACH = 20  # filters of a kind
ALIKE = "'dense', 'dense too', 'sparse', 'empty', 'null', 'hollow', 'both'"  # those that @>= compares

SOURCE = f"""
CREATE FUNCTION has(i int, j int, percent int) RETURNS boolean IMMUTABLE LANGUAGE sql
    AS 'SELECT abs(hashint4(i * 1000 + j) % 100) < percent';
CREATE TABLE source (id int PRIMARY KEY, kind text, f bloomfilter);
""" + "".join(
    f"INSERT INTO source SELECT {number} * 100 + i, '{kind}', {empty} FROM generate_series(1, {EACH}) AS i;"
    if percent is None else f"""
    INSERT INTO source SELECT {number} * 100 + i, '{kind}', (SELECT bloom_agg(key::bigint, {empty}) FROM (SELECT j AS key
        FROM generate_series(1, {KEYS}) AS j WHERE has({number} * 100 + i, j, {percent}) UNION ALL
        SELECT 1000 * ({number} * 100 + i)) AS k) FROM generate_series(1, {EACH}) AS i;"""
    for number, (kind, (empty, percent)) in enumerate(KINDS.items())) + f"""
INSERT INTO source SELECT 5000 + a.id, 'both', a.f & b.f FROM source AS a JOIN source AS b ON b.id = a.id + 100
    WHERE a.kind = 'dense';
INSERT INTO source SELECT 5100 + id, 'folded', bloom_fold(f | bloom_create(30000), 0.01) FROM source
    WHERE kind = 'sparse, large';
INSERT INTO source SELECT 5200 + i, 'self-sized', bloom_agg(j::bigint) FROM generate_series(1, {EACH}) AS i,
    generate_series(1, {KEYS}) AS j WHERE has(i, j, 30) GROUP BY i;
INSERT INTO source SELECT 5300, 'no size', (SELECT bloom_agg(1) FILTER (WHERE false));
INSERT INTO source SELECT 9000 + i, 'text', bloom_agg(j::text, 100) FROM generate_series(1, {EACH}) AS i,
    generate_series(1, {KEYS}) AS j WHERE has(i, j, 30) GROUP BY i;
CREATE TABLE keys (id int, k bigint);
INSERT INTO keys SELECT i, CASE i % 4 WHEN 0 THEN -i WHEN 1 THEN 1000 * (i / 10) ELSE 1 + i % {KEYS} END
    FROM generate_series(1, 200) AS i UNION ALL SELECT 7, NULL;
CREATE TABLE gs (id int, g bloomfilter);
INSERT INTO gs SELECT id, f FROM source WHERE kind IN ({ALIKE}) AND id % 4 = 1 UNION ALL
    SELECT 8000 + i, bloom_agg(1 + (i * 37 + j * 11) % {KEYS}::bigint, 100) FROM generate_series(1, 40) AS i,
    generate_series(1, 1 + i % 20) AS j GROUP BY i;
ANALYZE source, keys, gs;
"""  # fmt: skip

# Filters of 1 MB, and a sparse one
LARGE_SOURCE = f"""
CREATE TABLE large_source AS SELECT i AS id, 'large' AS kind, bloom_add(bloom_add(f, (1000 * i)::bigint), 7::bigint) AS f
    FROM (SELECT 1 AS i, {wide(1 << 23, 1)} AS f UNION ALL SELECT 2, {wide(1 << 23, 50)}) AS s
    UNION ALL SELECT 3, 'large', bloom_add(bloom_create(800000), 7::bigint);
"""  # fmt: skip

SCAN = "SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off; "
INDEX = "SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = {}; SET LOCAL enable_bitmapscan = {}; "

# By index, and a form of the same for which no index can be used.
Question = collections.namedtuple("Question", "kind table by_index by_scan")


def key(r):
    n = r.choice([r.randint(1, KEYS)] * 6 + [-r.randint(1, 5), 1000 * (100 * r.randrange(14) + r.randint(1, EACH))])
    return f"({n})::{r.choice(['bigint', 'bigint', 'int'] + ['smallint'] * (abs(n) < 30000))}"


def array(r, most=12):
    """SQL of an array of keys, with duplicates, nulls and absent ones."""
    if r.random() < 0.3:
        first = r.randint(1, KEYS)
        return f"ARRAY(SELECT generate_series({first}, {first + r.choice([30, 63, 64, 127, 128, 255])})::bigint)"
    some = [str(r.choice([r.randint(1, KEYS)] * 9 + [-3, 1003, "NULL"])) for _ in range(r.randint(0, most))]
    return f"ARRAY[{', '.join(some + r.sample(some, len(some) // 4))}]::bigint[]"


def number(r):
    return r.choice([0, 1, 2, 3, 5, 8, 13, 20, 40, 60])


def condition(r, f):
    """A condition on a filter, and one that says the same of it but for which there is no index."""
    kind = r.randrange(10)
    if kind <= 2:
        c = r.choice([f"{f} @> {key(r)}", f"{key(r)} <@ {f}", f"bloom_contains({f}, {key(r)})",
                      f"{f} @@ bloom_query({key(r)})"])  # fmt: skip
    elif kind == 3:
        c = f"{f} @@ {r.choice([f'bloom_query({array(r)})', f'bloom_query({array(r)}, {number(r)})'])}"
    elif kind == 4:
        c = f"bloom_contains_{r.choice(['any', 'all'])}({f}, {array(r, 4)})"
    elif kind == 5:
        keys, n = array(r), number(r)
        return f"bloom_contains_least({f}, {keys}, {n})", f"bloom_hits({f}, {keys}) >= {n}"
    elif kind <= 8:
        # The filters of a table are of one class, or the order of the conditions decides whether there is an error.
        parts = [condition(r, f) for _ in range(r.choice([2, 2, 3]))]
        word = " AND " if kind < 8 else " OR "
        return tuple("(" + word.join(f"({part[form]})" for part in parts) + ")" for form in (0, 1))
    else:
        c = f"{f} @> (SELECT k FROM keys WHERE id = {r.randint(1, 200)} LIMIT 1)"
    return c, f"({c}) IS TRUE"


def rows(r, table, f="f"):
    by_index, by_scan = condition(r, f)
    return Question("rows", table, *[f"SELECT tableoid, ctid FROM {table} WHERE {c}" for c in (by_index, by_scan)])


def partial(r, table):
    """Needs a partial index with this predicate."""
    by_index, by_scan = condition(r, "f")
    return Question("partial", table, f"SELECT tableoid, ctid FROM {table} WHERE {by_index} AND n % 3 = 0",
                    f"SELECT tableoid, ctid FROM {table} WHERE {by_scan} AND (n % 3 = 0) IS TRUE")  # fmt: skip


def expression(r, table):
    """Needs an index on (f | f), which equals f."""
    question = rows(r, table, "(f | f)")
    return Question("expression", table, question.by_index, question.by_scan.replace("(f | f)", "f"))


def superset(r, table):
    """All filters of the table must be alike."""
    if r.random() < 0.5:
        c = f"f @>= (SELECT g FROM gs WHERE id = {8000 + r.randint(1, 40)})"
        return Question("superset", table, *[f"SELECT tableoid, ctid FROM {table} WHERE {form}"
                                             for form in (c, f"({c}) IS TRUE")])  # fmt: skip
    join = f"SELECT gs.id, t.tableoid, t.ctid FROM gs JOIN {table} AS t ON {{}} WHERE gs.id % 10 = {r.randrange(10)}"
    return Question("superset", table, join.format("t.f @>= gs.g"), join.format("(t.f @>= gs.g) IS TRUE"))


def order(r, table):
    """The distances in their order, or which row has which. Rows of the last distance before a limit may differ."""
    query = r.choice([f"bloom_query({key(r)})"] + [f"bloom_query({array(r)})"] * 4 + ["(SELECT NULL::bloomquery)"])
    where = condition(r, "t.f") if r.random() < 0.4 else ("true", "true")
    limit = r.choice(["", "LIMIT 1", "LIMIT 7", "LIMIT 40", "LIMIT 5 OFFSET 3"])
    # Not ctid: PostgreSQL 15 does not know it of rows whose distance an index gave too low.
    columns = "row_number() OVER () AS n" if limit or r.random() < 0.5 else "at, id"
    distance = f"t.f <-> {query}"
    return Question("order", table, *[
        f"SELECT {columns}, d FROM (SELECT t.tableoid AS at, t.id, {distance} AS d FROM {table} AS t "
        f"WHERE {c} ORDER BY {by} {limit}) AS s" for c, by in zip(where, (distance, f"({distance}) + 0"))])  # fmt: skip


def join(r, table):
    """A nested loop with the index inside, also of a LATERAL that orders, and of EXISTS."""
    some = f"keys.id % 20 = {r.randrange(20)}"
    kind = r.randrange(3)
    if kind == 0:
        sql = f"SELECT k, t.tableoid, t.ctid FROM keys JOIN {table} AS t ON {{}} WHERE {some}"
    elif kind == 1:
        sql = f"SELECT k FROM keys WHERE {some} AND {r.choice(['', 'NOT '])}EXISTS (SELECT FROM {table} AS t WHERE {{}})"
    else:
        distance = "t.f <-> bloom_query(ARRAY[k, k + 1, k + 2, 7])"
        sql = f"""SELECT k, n, d FROM keys, LATERAL (SELECT row_number() OVER () AS n, d FROM (SELECT {distance} AS d
            FROM {table} AS t ORDER BY {{}} LIMIT 5) AS s) AS s WHERE {some}"""
        return Question("lateral", table, sql.format(distance), sql.format(f"({distance}) + 0"))
    c = r.choice(["t.f @> k", "k <@ t.f", "t.f @@ bloom_query(ARRAY[k, k + 1], 1)", "bloom_contains_all(t.f, ARRAY[k, 2])"])
    return Question("join", table, sql.format(c), sql.format(f"({c}) IS TRUE"))


def classes(r, table):
    """Keys of another class than some filters of the table have: the same rows, or the same error."""
    text = f"'{r.randint(1, KEYS)}'"
    other = r.choice([f"{text}::text", f"{text}::varchar", "1.5", "date '2020-01-01'", key(r)])
    sql = r.choice(["f @> {}", "f @@ bloom_query({})", "bloom_contains_any(f, ARRAY[{0}, {0}])",
                    "bloom_contains_least(f, ARRAY[{}], 1)", "bloom_contains_least(f, ARRAY[{}], 0)"]).format(other)
    sql = f"SELECT tableoid, ctid FROM {table} WHERE {sql}"
    return Question("classes", table, sql, sql)


def different(question):
    """Compares both forms in one statement, so in one snapshot: the number of rows, and those of one form only."""
    return f"""WITH a AS MATERIALIZED ({question.by_index}), b AS MATERIALIZED ({question.by_scan}), c AS
        ((SELECT 'not by scan' AS which, x.* FROM (TABLE a EXCEPT ALL TABLE b) AS x) UNION ALL
        (SELECT 'not by index', x.* FROM (TABLE b EXCEPT ALL TABLE a) AS x))
        SELECT (SELECT count(*) FROM a), count(*), (array_agg(c::text))[1:5] FROM c"""


class Answers:
    """What came of a question: rows is how many there are, wrong what is wrong, and state the SQLSTATE. One statement
    has one snapshot, and so have several in a transaction of REPEATABLE READ, which is for questions that may fail. There
    a lock keeps away what changes a table for all snapshots, as TRUNCATE."""

    def __init__(self, session, r, question, in_one_statement):
        self.session, self.question, self.rows, self.wrong = session, question, 0, None
        ways = [("on", "off")] if question.kind in ("order", "lateral") else [("on", "off"), ("off", "on"), ("on", "on")]
        self.settings = INDEX.format(*r.choice(ways))
        if in_one_statement:
            self.compare_in_one_statement()
        else:
            self.compare_outcomes()

    def compare_in_one_statement(self):
        lines, self.state = self.session.attempt(self.settings + different(self.question))
        if self.state == "00000":
            self.rows, wrong, examples = lines[0].split("|", 2)
            self.wrong = None if wrong == "0" else f"{wrong} rows, among them {examples}"

    def outcome(self, settings, sql):
        self.session.attempt("SAVEPOINT asked")
        lines, state = self.session.attempt(settings + sql)
        error = self.session.error.split("\n")[0] if state != "00000" else ""
        self.session.attempt("ROLLBACK TO asked; RELEASE asked")
        return sorted(lines), state, error

    def compare_outcomes(self):
        _, self.state = self.session.attempt(f"LOCK TABLE {self.question.table} IN ACCESS SHARE MODE")
        if self.state != "00000":
            return
        by_index = self.outcome(self.settings, self.question.by_index)
        by_scan = self.outcome(SCAN, self.question.by_scan)
        # One of them may meet other sessions. The first row of another element type makes the error, and each plan may
        # read the rows in another order, so that the messages may name other types.
        self.state = next((state for state in (by_index[1], by_scan[1]) if state in CONCURRENT), by_scan[1])
        self.rows = len(by_scan[0])
        if by_index[:2] != by_scan[:2] and self.state not in CONCURRENT:
            more, less = set(by_index[0]) - set(by_scan[0]), set(by_scan[0]) - set(by_index[0])
            self.wrong = f"{by_index[1:]}, by scan {by_scan[1:]}; {len(by_index[0])} rows, by scan {len(by_scan[0])}; " \
                f"not by scan: {sorted(more)[:5]}, not by index: {sorted(less)[:5]}"

    def uses_index(self):
        """Does the plan use an index of bloomslices, whose name has _f in it? Not if there is no plan."""
        lines, state = self.session.attempt(self.settings + "EXPLAIN " + self.question.by_index)
        return state == "00000" and any(re.search(r"Index Scan using \w*_f|Index Scan on \w*_f", line) for line in lines)
