"""Random queries whose joins are run again while an inner side may return other rows than before, as SQL allows: it
picks rows among ties. The answer does not depend on the pick. This follows from the tables:

- picked has the rows x = 0 to ROWS - 1. Its key k differs from row to row. x % GROUPS is the group d of a row, and
  d % TIES its tie t, so that the rows of a group have one t.
- kept has each key that an inner side can have, and others, each EACH times. So an inner side of n rows has n * EACH
  partners there. Among the rows for each key and v it has as many, and n among those for each key. Their counts c have
  the sum n * EACH.
- all_pairs and codes have each x once, the tables pairs_0, ... some. So a join by x with one of the first two keeps
  the number of rows.
- the sum of f in a group is one of the sums in the table sums, in whatever order it is computed.

An inner side is a Relation, which knows what is fixed of its rows: their number, the sum of t if it does not depend on
the pick, and all x if nothing has been picked.
"""

from typing import NamedTuple, Optional

from join_queries import Choices

ROWS, GROUPS, TIES, KEYS, EACH, WIDTH = 600, 100, 4, 1300, 2, 800
GROWN = 240  # rows of the temporary table that grows between runs of a join
MOST_SUM = 40  # more than the sum of a group's f, in any order
SOME = (200, 4), (600, 2), (100, 1), (400, 3)  # pairs_0, ... lack the x below the first that the second divides
COLUMNS = {"x": "int", "t": "int", "d": "int", "k": "int", "f": "float8", "pad": "text"}
WORK_MEM = "64kB", "64kB", "100kB", "160kB", "256kB", "512kB", "1MB", "1MB", "4MB"
INDEXES = {"gist": ("gist (p)", "WHERE p <@ box(point(-1, -1), point(9, 9))"), "hash index": ("hash (z)", "WHERE z = 1"),
           "gist order": ("gist (p)", "ORDER BY p <-> point(9, 9)"),
           "spgist order": ("spgist (p)", "ORDER BY p <-> point(9, 9)")}  # fmt: skip

# What a query has, and how often
BASES = {"table": 10, "union": 2, "condition": 3, "sample": 1, "repeatable sample": 1, **dict.fromkeys(INDEXES, 0.7)}
PICKS_OF_ANY = {"limit": 6, "offset": 2, "fetch": 2, "unordered": 4, "row_number": 3}
PICKS_OF_DISTINCT = {"limit of groups": 2}
PICKS_OF_KNOWN = {"ties": 1}
PICKS_OF_GROUPS = {"distinct on": 5, "row_number of groups": 2, "first_value": 1, "last_value": 1, "array_agg": 3,
                   "string_agg": 1}  # fmt: skip
OUTER = {"table": 2, "groups": 6, "groups of two": 3, "distinct": 2, "sort": 3, "window": 1, "material": 2, "hash": 3,
         "cte": 1, "filtered": 2, "union": 1, "groups of union": 1}  # fmt: skip
JOINS = {"inner": 6, "semi": 3, "left": 1, "three": 1.5}
PLACES = {"join": 3, "result": 2, "outer": 1, "inner": 1}  # of a condition on g
SHAPES = {"scalar": 6, "where": 1, "case": 1, "lateral": 3, "lateral rows": 2, "loop": 1, "memoize": 1, "recursive": 1,
          "once": 0.7}  # fmt: skip
ROW_SHAPES = "lateral rows", "loop", "once"  # these return a row for each row of the join
CURSORS = {"forward": 6, "scroll": 3, "hold": 1}
KINDS = {"base": BASES, "pick": [*PICKS_OF_ANY, *PICKS_OF_DISTINCT, *PICKS_OF_KNOWN, *PICKS_OF_GROUPS, "sum", "setting",
                                 "materialized"],
         "outer": OUTER, "join": JOINS, "place": PLACES, "shape": SHAPES, "cursor": [*CURSORS, "rows"]}  # fmt: skip


def tables():
    row = f"""x, x % {GROUPS} % {TIES} AS t, x % {GROUPS} AS d, x * 37 % {ROWS} AS k,
        CASE x / {GROUPS} WHEN 0 THEN 1e17 WHEN 1 THEN -1e17 ELSE 1 END::float8 AS f, repeat('y', {WIDTH}) AS pad"""
    yield "SET statement_timeout = 0"
    yield f"CREATE TABLE picked AS SELECT {row} FROM generate_series(0, {ROWS} - 1) AS x ORDER BY hashint4(x)"
    yield f"""CREATE TABLE kept AS SELECT k, v, k % 50 AS w, repeat('z', 100) AS pad
        FROM generate_series(0, {KEYS} - 1) AS k, generate_series(1, {EACH}) AS v ORDER BY hashint4(k * {EACH} + v)"""
    yield f"""CREATE TABLE sums AS SELECT d, s::float8 FROM generate_series(0, {GROUPS} - 1) AS d,
        generate_series(0, {MOST_SUM}) AS s"""
    yield "CREATE TABLE weights AS SELECT w FROM generate_series(0, 49) AS w"
    yield f"CREATE TABLE all_keys AS SELECT k FROM generate_series(0, {KEYS}) AS k ORDER BY hashint4(k)"
    yield f"CREATE TABLE all_pairs AS SELECT x FROM generate_series(0, {ROWS * 3}) AS x ORDER BY hashint4(x)"
    yield f"""CREATE TABLE codes AS SELECT x, repeat('c', {WIDTH}) AS pad FROM generate_series(0, {ROWS}) AS x
        ORDER BY hashint4(x + 1)"""
    for number, (first, divisor) in enumerate(SOME):
        yield f"""CREATE TABLE pairs_{number} AS SELECT x FROM all_pairs
            WHERE x < {ROWS} AND NOT (x < {first} AND x % {divisor} = 0)"""
    yield "CREATE TABLE drivers AS SELECT 1 + i % 3 AS g FROM generate_series(0, 8) AS i"
    # raises the cost of what must be read before the first row, so that a join may read its inner side first, but not
    # by so much that the planner takes all ways to join for equally expensive
    yield """CREATE FUNCTION costly(int) RETURNS int LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE COST 150
        AS 'int4abs'"""
    # inserts rows that the running query does not see, and moves those that it sees within an index
    yield f"""CREATE FUNCTION grow(g int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
        BEGIN
            INSERT INTO grown SELECT {row}, point((x * g) % 7, 0), 1 FROM generate_series(0, {GROWN} - 1) AS x;
            RETURN 0;
        END $$"""
    yield """CREATE FUNCTION lock_rows(g int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
        BEGIN
            PERFORM FROM grown WHERE x < g * 80 FOR UPDATE;
            RETURN 0;
        END $$"""
    yield "ANALYZE"


def grown_table(kind):
    """The table that grow() lets grow, with an index of this kind, which a query will use."""
    columns = ", ".join(COLUMNS)
    return [f"CREATE TEMP TABLE grown AS SELECT {columns}, point(t, 0) AS p, 1 AS z FROM picked WHERE x < {GROWN}",
            f"CREATE INDEX ON grown USING {INDEXES[kind][0]}", "ANALYZE grown",
            "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = on"]  # fmt: skip


def columns_of(name, form="{}.{}"):
    return ", ".join(form.format(name, column) for column in COLUMNS)


class Relation(NamedTuple):
    """A query with all columns."""

    sql: str
    xs: Optional[tuple]  # those of all rows, if they are known
    count: int
    total: Optional[int]  # the sum of t, if it is known
    distinct: bool = True  # are the rows?


def exact(sql, xs):
    return Relation(sql, tuple(xs), len(xs), sum(x % TIES for x in xs))


class Join(NamedTuple):
    """A query with a join that depends on g: one that returns an answer, and one that returns the join's rows."""

    query: str
    answer: Optional[str]
    rows: str
    size: Optional[int]  # the number of rows


class Statement(NamedTuple):
    setup: list  # of commands
    sql: str
    rows: Optional[list]  # that it must return, if that is known
    cursor: list  # of commands that use the cursor c, or none


class Queries(Choices):
    """Grows queries from a seed."""

    def __init__(self, seed):
        super().__init__(seed)
        self.kinds = set()  # what the query has
        self.setup = []
        self.grows = self.is_set = False
        self.correlated = None  # a condition that the inner side must have

    def kind(self, group, weights):
        (chosen,) = self.random.choices(list(weights), list(weights.values()))
        self.kinds.add(f"{group}: {chosen}")
        return chosen

    # Inner sides

    def growing(self, kind):
        """A table whose index scans return rows in another order after it has grown."""
        self.grows = True
        self.setup = grown_table(kind)
        count = self.random.randint(30, GROWN - 50)
        return Relation(f"SELECT {', '.join(COLUMNS)} FROM grown {INDEXES[kind][1]} LIMIT {count}", None, count, None)

    def sample(self, is_repeatable):
        """So few of its rows that each sample has more."""
        method, most = self.one(("bernoulli (60)", 200), ("system (70)", 80))
        count = self.random.randint(20, most)
        repeatable = f" REPEATABLE ({self.random.randint(0, 9)})" if is_repeatable else ""
        return Relation(f"SELECT * FROM picked TABLESAMPLE {method}{repeatable} LIMIT {count}", None, count, None)

    def base(self):
        kind = self.kind("base", BASES)
        if kind == "table" or (kind in INDEXES and self.grows):
            return exact("SELECT * FROM picked", range(ROWS))
        if kind == "union":
            return exact("SELECT * FROM picked WHERE x % 3 = 0 UNION ALL SELECT * FROM picked WHERE x % 3 > 0", range(ROWS))
        if kind == "condition":
            first = self.random.randint(100, ROWS)
            return exact(f"SELECT * FROM picked WHERE x < {first}", range(first))
        return self.growing(kind) if kind in INDEXES else self.sample(kind == "repeatable sample")

    def sorted(self, relation):
        """Below a join: its filter may remove itself, which changes the rows to sort, and so the order of ties."""
        order = self.one("t", "d", "t", "f")
        return relation._replace(sql=f"SELECT * FROM ({relation.sql}) AS {self.name()} ORDER BY {order} OFFSET 0")

    def joined(self, relation):
        """With a table that has each x, or some if all x are known."""
        left, right = self.name(), self.name()
        columns, kind = columns_of(left), self.one("JOIN", "JOIN", "JOIN", "LEFT JOIN")
        if self.maybe(0.4):
            relation = self.sorted(relation)
        if relation.xs is not None and self.maybe(0.5):
            number = self.random.randrange(len(SOME))
            first, divisor = SOME[number]
            table, kind = f"pairs_{number}", "JOIN"
            relation = exact(relation.sql, [x for x in relation.xs if x >= first or x % divisor])
        else:
            table = self.one("all_pairs", "all_pairs", "codes")
        if table == "codes":
            columns = columns.replace(f"{left}.pad", f"{right}.pad")
        return relation._replace(sql=f"SELECT {columns} FROM ({relation.sql}) AS {left} {kind} {table} AS {right}"
                                 f" ON {left}.x = {right}.x")  # fmt: skip

    def source(self, depth):
        """What to pick from."""
        relation = self.base() if depth <= 1 or self.maybe(0.4) else self.pick(depth - 1)
        if self.correlated and self.maybe(0.7):
            condition, self.correlated = self.correlated, None
            relation = relation._replace(sql=f"SELECT * FROM ({relation.sql}) AS {self.name()} WHERE t {condition}")
        return self.joined(relation) if self.maybe(0.65) else relation

    def few(self, most):
        """How many of so many rows to pick: often so few that a filter of them pays."""
        return min(most, self.one(1, 20, 60, 100, 100, 120, 150, 200, 250, 300) + self.random.randint(0, 20))

    def with_ties(self, relation, source, count):
        """All rows with a tie are picked, or none."""
        last = max(sorted(x % TIES for x in relation.xs)[:count], default=-1)
        return exact(f"{source} ORDER BY t FETCH FIRST {count} ROWS WITH TIES", [x for x in relation.xs if x % TIES <= last])

    def counted(self, relation):
        """A number of rows of any relation, in the order of t, or as they come."""
        name, number = self.name(), self.name()
        source = f"SELECT {columns_of(name)} FROM ({relation.sql}) AS {name}"
        kind = self.kind("pick", PICKS_OF_ANY | (PICKS_OF_DISTINCT if relation.distinct else {})
                         | (PICKS_OF_KNOWN if relation.xs is not None else {}))  # fmt: skip
        skip = self.random.randint(0, relation.count // 2) if kind in ("offset", "fetch") else 0
        count = self.few(relation.count - skip)
        if kind == "ties":
            return self.with_ties(relation, source, count)
        sql = {"limit": f"{source} ORDER BY {name}.t LIMIT {count}",
               "offset": f"{source} ORDER BY {name}.t LIMIT {count} OFFSET {skip}",
               "fetch": f"{source} ORDER BY {name}.t OFFSET {skip} ROWS FETCH FIRST {count} ROWS ONLY",
               "unordered": f"{source} LIMIT {count}",
               "limit of groups": f"{source} GROUP BY {columns_of(name)} LIMIT {count}",
               "row_number": f"SELECT {columns_of(number)} FROM (SELECT {columns_of(name)}, row_number() OVER"
                             f" (ORDER BY {name}.t) AS n FROM ({relation.sql}) AS {name}) AS {number}"
                             f" WHERE {number}.n <= {count}"}[kind]  # fmt: skip
        total = None
        if relation.xs is not None and kind not in ("unordered", "limit of groups"):
            total = sum(sorted(x % TIES for x in relation.xs)[skip : skip + count])
        return Relation(sql, None, count, total, relation.distinct)

    def grouped(self, relation):
        """A row of each group, or a few, of a relation whose x are known."""
        groups, name, number = {}, self.name(), self.name()
        for x in relation.xs:
            groups[x % GROUPS] = groups.get(x % GROUPS, 0) + 1
        source = f"({relation.sql}) AS {name}"
        if self.maybe(0.5):
            source = f"(SELECT * FROM {source} ORDER BY {self.one('t', 'd')} OFFSET 0) AS {name}"
        kind = self.kind("pick", PICKS_OF_GROUPS)
        if kind == "row_number of groups":
            most, order = self.random.randint(1, 3), self.one("", f" ORDER BY {name}.t")
            counts = {d: min(most, count) for d, count in groups.items()}
            sql = (f"SELECT {columns_of(number)} FROM (SELECT {columns_of(name)}, row_number() OVER"
                   f" (PARTITION BY {name}.d{order}) AS n FROM {source}) AS {number} WHERE {number}.n <= {most}")  # fmt: skip
            return Relation(sql, None, sum(counts.values()), sum(d % TIES * count for d, count in counts.items()))
        if kind in ("first_value", "last_value"):
            columns = columns_of(name, kind + "({0}.{1}) OVER w AS {1}")
            sql = f"SELECT {columns} FROM {source} WINDOW w AS (PARTITION BY {name}.d ORDER BY {name}.t)"
            return Relation(sql, None, relation.count, relation.total, False)
        strings = ", ".join(f"split_part(string_agg({name}.{column}::text, ' '), ' ', 1)::{kind_of} AS {column}"
                            for column, kind_of in COLUMNS.items())  # fmt: skip
        sql = {"distinct on": f"SELECT DISTINCT ON ({name}.d) {columns_of(name)} FROM {source} ORDER BY {name}.d",
               "array_agg": f"SELECT {columns_of(name, '(array_agg({0}.{1}))[1] AS {1}')} FROM {source} GROUP BY {name}.d",
               "string_agg": f"SELECT {strings} FROM {source} GROUP BY {name}.d"}[kind]  # fmt: skip
        return Relation(sql, None, len(groups), sum(d % TIES for d in groups))

    def pick(self, depth):
        relation = self.source(depth)
        if relation.xs is not None and len(relation.xs) > GROUPS and self.maybe(0.45):
            relation = self.grouped(relation)
        elif self.maybe(0.97):
            relation = self.counted(relation)
        if self.maybe(0.05):
            self.kinds.add("pick: materialized")
            relation = relation._replace(sql=f"WITH m AS MATERIALIZED ({relation.sql}) SELECT * FROM m")
        return relation

    # Outer sides

    def outer(self, correlated):
        """Nodes that keep rows between runs: a query with k, c and pad, and how many rows it has for a key."""
        kind = self.kind("outer", OUTER)
        costly = f"costly({self.one('v', 'w', 'k')}) >= 0" if self.maybe(0.85) else "true"
        kept = f"kept WHERE {costly}" + (" AND v + {g} >= 0" if correlated else "")
        pad = self.one("pad", "repeat(pad, 5)")
        plain = f"SELECT k, 1 AS c, {pad} AS pad FROM {kept}"
        grouped = f"SELECT k, count(*) AS c, max({pad}) AS pad FROM"
        union = f"(SELECT k, v, w, pad FROM {kept} AND v < 2 UNION ALL SELECT k, v, w, pad FROM {kept} AND v >= 2) AS u"
        return {"table": (plain, EACH),
                "groups": (f"{grouped} {kept} GROUP BY k", 1),
                "groups of two": (f"{grouped} {kept} GROUP BY k, v", EACH),
                "distinct": (f"SELECT DISTINCT k, v, 1 AS c, {pad} AS pad FROM {kept}", EACH),
                "sort": (f"{plain} ORDER BY w OFFSET 0", EACH),
                "window": (f"SELECT k, count(*) OVER (PARTITION BY k) / {EACH} AS c, {pad} AS pad FROM {kept}", EACH),
                "material": ("SELECT k, one AS c, pad FROM (VALUES (1)) AS o (one)"
                             f" JOIN (SELECT * FROM {kept}) AS m ON one + v > 0 OFFSET 0", EACH),
                "hash": (f"SELECT k, 1 AS c, pad FROM weights JOIN (SELECT * FROM {kept}) AS h USING (w)"
                         + self.one("", " OFFSET 0"), EACH),
                "cte": (f"WITH m AS MATERIALIZED ({plain}) SELECT * FROM m", EACH),
                "filtered": (f"{grouped} all_keys JOIN (SELECT * FROM {kept}) AS h USING (k) GROUP BY k", 1),
                "union": (f"SELECT k, 1 AS c, pad FROM {union}", EACH),
                "groups of union": (f"{grouped} {union} GROUP BY k", 1)}[kind]  # fmt: skip

    # Joins

    def condition(self, place):
        """What in a join depends on g: a condition, and what to add to a result."""
        if place == "result":
            return "true", " + 0 * {g}"
        pads = self.one("", " + length(i.pad)", " + length(i.pad) + length(p.pad)")
        return f"p.c{pads} + {{g}} >= 0" if place == "join" else "true", ""

    def sums(self):
        """By the sum of floats, which are rounded in the order of the input."""
        self.kinds.add("pick: sum")
        condition, addition = self.condition(self.one("join", "result"))
        condition = condition.replace(" + length(p.pad)", "")
        inner = self.one("SELECT * FROM picked", f"SELECT {columns_of('a')} FROM picked AS a JOIN all_pairs USING (x)")
        if self.maybe(0.6):
            inner = f"SELECT * FROM ({inner}) AS a ORDER BY {self.one('t', 'd')} OFFSET 0"
        join = f"""(SELECT d, s, count(*) AS c FROM sums WHERE costly(d) >= 0 GROUP BY d, s) AS p
            JOIN (SELECT d, sum(f) AS s, min(pad) AS pad FROM ({inner}) AS b GROUP BY d) AS i USING (d, s)
            WHERE {condition}"""
        return Join(f"SELECT count(*){addition} || ' ' || min(length(i.pad)) FROM {join}", f"{GROUPS} {WIDTH}",
                    f"SELECT p.c + length(i.pad){addition} AS c FROM {join} OFFSET 0", GROUPS)  # fmt: skip

    def most(self):
        return f"SET test.most = {self.random.randint(20, 300)}"

    def setting(self):
        """With rows chosen by a setting, which changes while a cursor is open. The answer is not known."""
        self.kinds.add("pick: setting")
        self.is_set, self.setup = True, [self.most()]
        place = self.kind("place", {"join": 1, "result": 1, "outer": 1})
        condition, addition = self.condition(place)
        join = f"""({self.outer(place == 'outer')[0]}) AS p
            JOIN (SELECT * FROM picked WHERE x < current_setting('test.most')::int) AS i USING (k) WHERE {condition}"""
        return Join(f"SELECT count(*){addition} || ' ' || min(length(i.pad)) FROM {join}", None,
                    f"SELECT p.c + length(i.pad){addition} AS c FROM {join} OFFSET 0", None)  # fmt: skip

    def join(self):
        if self.maybe(0.1):
            return self.one(self.sums, self.setting)()
        place = self.kind("place", PLACES)
        self.correlated = "+ {g} >= 0" if place == "inner" else None
        inner = self.pick(self.random.choices([1, 2, 3], [4, 4, 2])[0])
        outer, each = self.outer(place == "outer")
        condition, addition = self.condition("join" if self.correlated else place)
        sums = f"coalesce(sum(p.c), 0) || ' ' || {'coalesce(sum(i.t), 0)' if inner.total is not None else 0}"
        width = self.one("i.pad", "i.pad || left(p.pad, 0)", "i.pad || left(p.pad, 0)")
        shown = f"count(*){addition} || ' ' || {sums} || ' ' || coalesce(min(length({width})), {WIDTH})"
        answer = f"{inner.count * each} {inner.count * EACH} {(inner.total or 0) * each} {WIDTH}"
        row = f"p.c + length(i.pad) + length(p.pad){addition} AS c"
        join = f"({outer}) AS p JOIN ({inner.sql}) AS i ON i.k = p.k"
        kind = self.kind("join", JOINS)
        if kind == "semi" and inner.distinct:
            join = f"({outer}) AS p"
            # with a second condition the planner cannot make it an inner join
            condition = f"EXISTS (SELECT FROM ({inner.sql}) AS i WHERE i.k = p.k AND length(i.pad) + p.c > 0 AND {condition})"
            shown, row = f"count(*){addition} || ' ' || coalesce(sum(p.c), 0)", f"p.c{addition} AS c"
            answer = f"{inner.count * each} {inner.count * EACH}"
        elif kind == "left":
            join, condition = f"({inner.sql}) AS i LEFT JOIN ({outer}) AS p ON i.k = p.k AND {condition}", "true"
            shown, answer = f"{shown} || ' ' || count(*) - count(p.k)", f"{answer} 0"
        elif kind == "three":
            join += f" JOIN {self.one('codes', 'all_pairs')} AS z ON z.x = i.x"
        return Join(f"SELECT {shown} FROM {join} WHERE {condition}", answer,
                    f"SELECT {row} FROM {join} WHERE {condition} OFFSET 0", inner.count * each)  # fmt: skip

    # Statements

    def text(self, shape, join):
        """The join for each g, and how often."""
        runs = self.random.randint(2, 4)
        drive = f"generate_series(1, {runs}) AS g"
        if self.grows:
            drive = f"(SELECT g, grow(g) AS grown FROM {drive} OFFSET 0) AS driver"
        query = join.query.format(g="0" if shape == "recursive" else "g")
        rows = join.rows.format(g="g" if shape == "lateral rows" else "0")
        if shape == "memoize":
            return f"SELECT l.* FROM drivers AS d (g), LATERAL ({query}) AS l", 9
        if shape == "once":
            return f"SELECT 1 FROM ({rows}) AS l", 1
        return {"scalar": f"SELECT ({query}) FROM {drive}",
                "where": f"SELECT a FROM {drive}, LATERAL (SELECT ({query}) AS a OFFSET 0) AS l WHERE a > ''",
                "case": f"SELECT CASE WHEN g > 0 THEN ({query}) ELSE 'none' END FROM {drive}",
                "lateral": f"SELECT l.* FROM {drive}, LATERAL ({query}) AS l",
                "lateral rows": f"SELECT g FROM {drive}, LATERAL ({rows}) AS l",
                "loop": f"SELECT g FROM {drive} LEFT JOIN ({rows}) AS l ON l.c + g > 0",
                "recursive": f"WITH RECURSIVE r (g, a) AS (SELECT 0, '' UNION ALL SELECT g + 1, l.a FROM r,"
                             f" LATERAL ({query}) AS l (a) WHERE g < {runs}) SELECT a FROM r WHERE g > 0",
                }[shape], runs  # fmt: skip

    def changes(self, command):
        """A command of a cursor, and settings that change after it."""
        return [command, f"SET work_mem = '{self.one(*WORK_MEM)}'", *([self.most()] if self.is_set else [])]

    def commands(self, shape, runs, size):
        """What a session does with the cursor c."""
        if shape in ROW_SHAPES:
            self.kinds.add("cursor: rows")
            commands = self.changes(f"FETCH {self.random.randint(1, max(1, (size or 100) * runs))} FROM c")
            return [*commands, *self.one([], [], [], self.changes("MOVE ABSOLUTE 0 FROM c")), "FETCH ALL FROM c"]
        kind = self.kind("cursor", CURSORS)
        if kind == "hold":
            return [*self.changes("FETCH 1 FROM c"), "COMMIT", "FETCH ALL FROM c"]
        commands = self.changes(f"FETCH {self.random.randint(1, runs - 1)} FROM c")
        if kind == "scroll":
            for _ in range(self.random.randint(1, 3)):
                commands += self.changes(self.one(
                    "FETCH BACKWARD 1 FROM c", "MOVE BACKWARD 1 FROM c", "FETCH ABSOLUTE 1 FROM c", "FETCH 1 FROM c",
                    "FETCH RELATIVE 0 FROM c", "MOVE ABSOLUTE 0 FROM c", "FETCH LAST FROM c"))  # fmt: skip
        return [*commands, *self.one([], self.changes("FETCH 1 FROM c")), "FETCH ALL FROM c"]

    def statement(self):
        join, shape = self.join(), self.kind("shape", SHAPES)
        sql, runs = self.text(shape, join)
        commands = self.commands(shape, runs, join.size) if self.maybe(0.6) else []
        if join.answer is None:
            rows = None
        elif shape in ROW_SHAPES:
            # the LEFT JOIN of a loop has a row for no row, too
            size = max(join.size, shape == "loop")
            rows = [str(g) for g in range(1, runs + 1) for _ in range(size)]
        else:
            rows = [join.answer] * runs
        return Statement(self.setup, sql, rows, commands)

    def settings(self):
        """How to plan and run a query: alike with filters and without."""
        joins = self.one((0, 1, 0), (0, 1, 0), (0, 1, 1), (0, 1, 1), (0, 0, 1), (1, 1, 1))
        on = {**dict(zip(("enable_nestloop", "enable_hashjoin", "enable_mergejoin"), joins)), "enable_hashagg": 0.85,
              "enable_material": 0.4, "enable_memoize": 0.6, "enable_sort": 0.9, "enable_incremental_sort": 0.5,
              "enable_seqscan": 0.95, "enable_parallel_hash": 0.5, "parallel_leader_participation": 0.5}  # fmt: skip
        work_mem, workers = self.one("64kB", self.one(*WORK_MEM)), 2 if self.maybe(0.05) else 0
        return [*(f"SET {name} = {'on' if self.maybe(share) else 'off'}" for name, share in on.items()),
                f"SET work_mem = '{work_mem}'", "SET hash_mem_multiplier = 1",
                f"SET max_parallel_workers_per_gather = {workers}"]  # fmt: skip

    def filter_settings(self):
        window = self.one(1, 8, 16, 32, 50, 50, 128, 128, 512, 4096)
        return [f"SET bloomtype.join_filter_window = {window}", "SET bloomtype.join_filter_min_rows = 0"]
