"""Random queries with hash joins and merge joins, over tables whose keys have the traps of equality: integers of three widths, numerics
that are equal in several scales, -0 and NaN, texts under a collation that ignores case, and NULL.

A result has no order, and no column that shows which of several equal values it has. A query sends a notice for each
group: its key and a number that depends on all rows of the group.
"""

import random

# Of sessions that compare queries with join filters and without.
SETTINGS = """SET client_min_messages = error; SET statement_timeout = '60s'; SET jit = off;
    SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0;
    SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; LOAD 'bloomtype';"""
RESULT_OF_TIMEOUT = "57014"

# Rows of each table, and the number of keys that they have.
ROWS = {"huge": (2000, 1500), "large": (800, 500), "small": (200, 150), "tiny": (20, 40), "empty": (0, 1)}
PARTITIONED = {"hashed": (800, 400), "ranged": (800, 400)}
# Pairs of columns that may be joined: each is a class of types that are equal across.
CLASSES = [("a", "b", "c"), ("n",), ("f", "r"), ("t",), ("g",), ("d",)]
COLUMNS = "id", "a", "b", "c", "n", "f", "r", "t", "g", "d", "v"
SHOWN = {"n": "trim_scale({})", "f": "{} + 0", "r": "{} + 0", "g": "lower({})"}

TABLE = """(id int, a smallint, b int, c bigint, n numeric, f float8, r float4, t text, g text COLLATE loose, d date,
    v int)"""


def fill(table, rows, keys, salt):
    """Each table has the keys next to 0, so that a part of them matches; some are NULL."""
    key = f"(hashint4(i + {salt} * 7919) & 1048575) % {keys}"
    return f"""INSERT INTO {table} SELECT i, k, k, k, CASE WHEN i % 3 = 0 THEN k::numeric(9, 2) ELSE k END,
        CASE abs(k) % 50 WHEN 7 THEN 'NaN' WHEN 8 THEN '-0' WHEN 9 THEN 0 ELSE k::float8 END,
        CASE abs(k) % 50 WHEN 7 THEN 'NaN' WHEN 8 THEN 0 WHEN 9 THEN '-0' ELSE k::float4 END,
        't' || k, CASE WHEN i % 2 = 0 THEN 'g' ELSE 'G' END || k, date '2026-01-01' + k, i % 10
        FROM generate_series(1, {rows}) AS i, LATERAL (SELECT nullif({key}, {keys // 2}) - {keys // 4} AS k) AS key"""


def tables():
    yield "SET statement_timeout = 0"
    yield "CREATE COLLATION loose (PROVIDER = icu, LOCALE = 'und-u-ks-level2', DETERMINISTIC = false)"
    # keeps a relation away from workers, and so a Gather below its hash join
    yield """CREATE FUNCTION leader_only(int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT LEAKPROOF PARALLEL RESTRICTED
        AS 'BEGIN RETURN $1; END'"""
    yield """CREATE FUNCTION noted(key text, number int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
        AS 'BEGIN RAISE NOTICE ''%: %'', key, number; RETURN number; END'"""
    yield "CREATE SEQUENCE calls"
    yield "SELECT nextval('calls')"
    for salt, (table, (rows, keys)) in enumerate(ROWS.items()):
        yield f"CREATE TABLE {table} {TABLE}"
        yield fill(table, rows, keys, salt)
    yield f"CREATE TABLE hashed {TABLE} PARTITION BY HASH (b)"
    yield f"CREATE TABLE ranged {TABLE} PARTITION BY RANGE (b)"
    for part in range(3):
        yield f"CREATE TABLE hashed_{part} PARTITION OF hashed FOR VALUES WITH (MODULUS 3, REMAINDER {part})"
        yield f"CREATE TABLE ranged_{part} PARTITION OF ranged FOR VALUES FROM ({part * 100}) TO ({part * 100 + 100})"
    yield "CREATE TABLE ranged_rest PARTITION OF ranged DEFAULT"
    for salt, (table, (rows, keys)) in enumerate(PARTITIONED.items()):
        yield fill(table, rows, keys, salt + 20)
    yield "CREATE INDEX ON huge (b)"
    yield "CREATE INDEX ON large (c, b)"
    yield "ANALYZE"


class Choices:
    """What grows queries from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = 0

    def one(self, *choices):
        return self.random.choice(choices)

    def maybe(self, share):
        return self.random.random() < share

    def name(self):
        self.names += 1
        return f"q{self.names}"


class Queries(Choices):
    """Grows queries from a seed."""

    def __init__(self, seed):
        super().__init__(seed)
        self.rescanned = False

    def table(self):
        return self.random.choices([*ROWS, *PARTITIONED], [5, 5, 4, 2, 1, 3, 3])[0]

    def condition(self, name):
        return self.one(f"{name}.v < {self.random.randint(1, 9)}", f"{name}.b % 3 = {self.random.randint(0, 2)}",
                        f"{name}.b < {self.random.randint(1, 150)}", f"{name}.id % 7 <> 1", "true", "true",
                        self.leader_only(name))  # fmt: skip

    def leader_only(self, name):
        return f"leader_only({name}.v) < {self.random.randint(1, 9)}"

    def noted(self, name, keys, number):
        """Not where it would be for each row of another relation."""
        if self.rescanned:
            return f"({number})::int"
        shown = ", ".join(SHOWN.get(key, "{}").format(key) for key in keys)
        return f"noted(concat_ws(' ', '{name}', {shown}), ({number})::int)"

    def grouped(self, relation, name, keys):
        computed = {"v": f"{self.noted(name, keys, 'count(*)')} AS v"}
        columns = ", ".join(c if c in keys else computed.get(c, f"min({c}) AS {c}") for c in COLUMNS)
        having = self.one("", "", " HAVING count(*) > 1")
        return (f"SELECT {columns} FROM {relation} AS {name} WHERE {self.condition(name)}"
                f" GROUP BY {', '.join(keys)}{having}")  # fmt: skip

    def windowed(self, relation, name, keys):
        columns = ", ".join(COLUMNS[:-1])
        total = self.one("count(*) OVER w", "sum(v) OVER w", "dense_rank() OVER (w ORDER BY v)")
        return (f"SELECT {columns}, {self.noted(name, keys, total)} AS v FROM {relation} AS {name} WHERE {self.condition(name)}"
                f" WINDOW w AS (PARTITION BY {', '.join(keys)})")  # fmt: skip

    def subquery(self, depth):
        """A query with all columns; where it must not be flattened, OFFSET 0."""
        name, relation = self.name(), self.relation(depth - 1)
        keys = self.random.sample(COLUMNS[1:10], self.random.randint(1, 3))
        columns = ", ".join(COLUMNS)
        kind = self.random.randrange(8)
        if kind == 0:
            return self.grouped(relation, name, keys)
        if kind == 1:
            return self.windowed(relation, name, keys)
        if kind == 2:
            return f"SELECT DISTINCT {columns} FROM {relation} AS {name} WHERE {self.condition(name)}"
        if kind == 3:
            other = self.name()
            return (f"SELECT {columns} FROM {relation} AS {name} UNION ALL"
                    f" SELECT {columns} FROM {self.relation(depth - 1)} AS {other}"
                    f" WHERE {self.condition(other)}")  # fmt: skip
        if kind == 4:
            return (f"SELECT {', '.join(COLUMNS[:-1])}, v + 0 * nextval('calls')::int AS v"
                    f" FROM {relation} AS {name} OFFSET 0")  # fmt: skip
        if kind == 5:
            return (f"SELECT {columns} FROM {relation} AS {name} WHERE {self.condition(name)}"
                    f" ORDER BY {keys[0]} OFFSET 0")  # fmt: skip
        if kind == 6:
            return self.join(depth - 1)
        return f"SELECT {columns} FROM {relation} AS {name} WHERE {self.condition(name)} OFFSET 0"

    def relation(self, depth):
        if depth <= 0 or self.maybe(0.5):
            return self.table()
        return f"({self.subquery(depth)})"

    def equal(self, left, right):
        """Join conditions on one to three classes of keys."""
        count = self.random.choices([1, 2, 3], [6, 3, 1])[0]
        return " AND ".join(
            f"{left}.{self.one(*columns)} = {right}.{self.one(*columns)}"
            for columns in self.random.sample(CLASSES[:2] + CLASSES[:1] + CLASSES, count)
        )

    def joined(self, names, depth):
        """One more relation in FROM, or a condition on those before."""
        left, right = self.random.choice(names), self.name()
        kind = self.random.choices(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LATERAL"], [8, 3, 2, 1, 2])[0]
        rescanned, self.rescanned = self.rescanned, self.rescanned or kind == "LATERAL"
        if kind == "LATERAL":
            inner = self.name()
            text = (f" JOIN LATERAL (SELECT * FROM {self.relation(depth)} AS {inner} WHERE {inner}.v <= {left}.v"
                    f" AND {self.condition(inner)} OFFSET 0) AS {right} ON {self.equal(left, right)}")  # fmt: skip
        else:
            text = f" {kind} {self.relation(depth)} AS {right} ON {self.equal(left, right)}"
            if kind == "JOIN":
                text += f" AND {self.one(self.condition(right), self.condition(right), self.leader_only(right))}"
        names.append(right)
        self.rescanned = rescanned
        return text

    def correlated(self, name, depth):
        """A subquery that runs for each row, with a join inside."""
        first, second = self.name(), self.name()
        return (f"(SELECT count(*) FROM {self.relation(depth)} AS {first} JOIN {self.relation(depth)} AS {second}"
                f" ON {self.equal(first, second)} WHERE {self.one(first, second)}.v < {name}.v)")  # fmt: skip

    def filters(self, names, depth):
        """Semi- and anti-joins."""
        name, inner = self.random.choice(names), self.name()
        return self.one("", " NOT ") + (f"EXISTS (SELECT FROM {self.relation(depth)} AS {inner}"
                                        f" WHERE {self.equal(name, inner)} AND {self.condition(inner)})")  # fmt: skip

    def join(self, depth):
        """A query with all columns, of the first relation."""
        names = [self.name()]
        text = f"{self.relation(depth)} AS {names[0]}"
        for _ in range(self.random.choices([0, 1, 2, 3], [2, 6, 4, 2])[0]):
            text += self.joined(names, depth)
        conditions = [self.condition(self.random.choice(names))]
        while self.maybe(0.35 if len(names) > 1 else 0.8) and len(conditions) < 4:
            conditions.append(self.filters(names, depth))
        columns = ", ".join(f"{self.one(*names)}.{column}" for column in COLUMNS)
        return f"SELECT {columns} FROM {text} WHERE {' AND '.join(conditions)}"

    def join_above_groups(self, depth):
        """A query with all columns, of groups that a filter may leave out: its condition raises no error."""
        groups, inner, name, key = self.name(), self.name(), self.name(), self.one("a", "b", "c")
        below = self.one(self.table(), f"({self.join(depth - 1)})")
        columns = ", ".join(f"{groups}.{column}" for column in COLUMNS)
        return (f"SELECT {columns} FROM ({self.one(self.grouped, self.windowed)(below, name, [key])}) AS {groups}"
                f" JOIN {self.one('small', 'tiny', 'large')} AS {inner} ON {groups}.{key} = {inner}.{key}"
                f" AND {inner}.v < {self.random.randint(1, 9)}")  # fmt: skip

    def query(self):
        name = self.name()
        shown = [SHOWN.get(column, "{}").format(f"{name}.{column}") for column in COLUMNS]
        source = self.join_above_groups(2) if self.maybe(0.25) else self.join(2)
        if self.maybe(0.15):
            shown.append(self.correlated(name, 0))
        text = f"SELECT {', '.join(shown)} FROM ({source}) AS {name}"
        if self.maybe(0.1):
            text = (f"WITH {name} AS MATERIALIZED ({source}) SELECT x.id, y.v FROM {name} AS x"
                    f" JOIN {name} AS y ON {self.equal('x', 'y')} AND x.v = y.v AND x.id <= y.id")  # fmt: skip
        return text

    def settings(self):
        """How to plan and run a query: alike with filters and without."""
        result = ["SET work_mem = '%s'" % self.one("64kB", "64kB", "4MB"), "SET hash_mem_multiplier = 1"]
        result += [f"SET {name} = {self.one('on', 'off')}" for name in (
            "enable_mergejoin", "enable_nestloop", "enable_hashagg", "enable_sort", "enable_partitionwise_join",
            "enable_partitionwise_aggregate", "enable_memoize", "enable_material", "enable_parallel_hash",
            "enable_seqscan", "parallel_leader_participation")]  # fmt: skip
        result.append(f"SET max_parallel_workers_per_gather = {self.one(0, 2, 2)}")
        result.append(f"SET max_parallel_workers = {self.one(8, 8, 0)}")
        if self.maybe(0.3):
            result.append("SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_mergejoin = on")
            result.append(f"SET enable_sort = on; SET enable_indexscan = {self.one('on', 'off')}")
        return result

    def filter_settings(self):
        window = self.one(1, 2, 8, 50, 4096)
        return ["SET bloomtype.join_filters = force", f"SET bloomtype.join_filter_window = {window}"]
