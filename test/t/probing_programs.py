"""Random programs for probing.t: a few hundred statements for one session, and the right answers. A model follows the
stored filters through savepoints and rollbacks, and the answers come from reference.py.
"""

from probing_pool import KEYS, TYPES
from probing_tables import BROKEN, COPIES, DOMAIN_KEY, IDS, INSIDE_LIMIT, PARTITIONS, POOL_IDS, ROLE, SITES

PARALLEL = "SET max_parallel_workers_per_gather = 2"
STEPS = 90  # of a program


class Statement:
    """A statement, its expected error, and its expected lines, or a function that returns what is wrong with them."""

    def __init__(self, situation, sql, expected=(), answers=0, state="00000"):
        self.situation, self.sql, self.expected, self.answers, self.state = situation, sql, expected, answers, state

    def fault(self, lines, state):
        if state != self.state:
            return f"got      SQLSTATE {state}\nexpected SQLSTATE {self.state}"
        if callable(self.expected):
            return self.expected(lines)
        expected = list(self.expected)
        return None if lines == expected else f"got      {lines}\nexpected {expected}"


def letter(expression):
    return f"coalesce(left(({expression})::text, 1), 'n')"


def braces(values):
    return "'{" + ",".join(str(v).lower() for v in values) + "}'"


class Program:
    def __init__(self, rng, pool):
        self.rng, self.pool = rng, {f.number: f for f in pool}
        self.rows = {}  # id: number in the pool, or None for NULL
        self.stack = []  # of a transaction and its savepoints: name, rows, cursors
        self.cursors = {}  # name: answers to come
        self.held = set()  # names of those that outlive their transaction
        self.names = 0
        self.statements = []

    # the model

    def value(self, id_):
        """The stored filter, "x" if it is broken, None for NULL or no row."""
        if id_ < 0:
            return "x"
        number = id_ - POOL_IDS if id_ > POOL_IDS else self.rows.get(id_)
        return self.pool.get(number)

    def answer(self, id_, element_type, n):
        value = self.value(id_)
        return "n" if value is None else value if value == "x" else value.says[element_type, n]

    def suits(self, id_, element_type):
        value = self.value(id_)
        return value is None or value.element_type in ("", element_type)

    def some_ids(self, element_type, least=1):
        """Rows that elements of that type can probe without an error."""
        suitable = [id_ for id_ in self.rows if self.suits(id_, element_type)]
        if len(suitable) < least:
            self.replace_some(element_type)
            return self.some_ids(element_type, least)
        return sorted(self.rng.sample(suitable, self.rng.randint(least, len(suitable))))

    def some_filter(self, id_, element_type=None):
        fits = [
            f.number
            for f in self.pool.values()
            if (id_ < PARTITIONS["inside"][0] or len(f.bytes) <= INSIDE_LIMIT)
            and (element_type is None or f.element_type == element_type)
        ]
        number = self.rows.get(id_)
        if number is not None and self.rng.random() < 0.4:  # one of the same header and length
            family = self.pool[number].family, self.pool[number].element_type
            fits = [n for n in fits if (self.pool[n].family, self.pool[n].element_type) == family] or fits
        return self.rng.choice(fits)

    def some_type(self):
        return self.rng.choice(("bigint", "bigint", "text"))

    # statements

    def say(self, situation, sql, expected=(), answers=0, state="00000"):
        self.statements.append(Statement(situation, sql, expected, answers, state))

    def do(self, sql):
        self.say("updates", sql)

    def probe(self, situation, sql, answers):
        """A statement that gives a string of answers."""
        answers = "".join(answers)
        self.say(situation, sql, [answers], len(answers))

    def failing(self, situation, sql, state):
        if self.stack:
            self.do("SAVEPOINT failing")
        self.say(situation, sql, (), 1, state)
        if self.stack:
            self.do("ROLLBACK TO failing")
            self.do("RELEASE failing")

    def contains(self, f, k):
        return self.rng.choice((f"({f} @> {k})", f"({f} @> {k})", f"({k} <@ {f})", f"bloom_contains({f}, {k})"))

    def column(self, element_type, table="x"):
        return table + "." + ("t" if element_type == "text" else self.rng.choice("ib"))

    def literal(self, element_type, n):
        if element_type == "text":
            return self.rng.choice((f"'k{n}'", f"'k{n}'::text", f"'k{n}'::varchar"))
        return self.rng.choice((f"{n}", f"{n}::bigint", f"{n}::smallint"))

    # changes of filters

    def fill(self):
        self.do("TRUNCATE stored")
        for id_ in IDS:
            self.rows[id_] = self.some_filter(id_, self.rng.choice(("bigint", "bigint", "text")))
        self.do(self.insert())

    def insert(self):
        values = ", ".join(f"({id_}, {number})" for id_, number in self.rows.items())
        return (
            f"INSERT INTO stored SELECT v.id, class, f FROM (VALUES {values}) AS v (id, number)"
            " JOIN pool ON pool.id = number"
        )

    def replace_some(self, element_type=None):
        id_ = self.rng.choice(IDS)
        number = self.some_filter(id_, element_type)
        kind = self.rng.randrange(7) if element_type is None else 0
        source = self.rng.choice(("f", "f", "f::bytea::bloomfilter", "bloom_union(f, f)"))
        chosen = f"SELECT id, class, {source} AS f FROM pool WHERE id = {number}"
        if kind == 0:
            self.do(f"DELETE FROM stored WHERE id = {id_}")
            self.do(f"INSERT INTO stored SELECT {id_}, class, f FROM ({chosen}) AS c")
        elif kind == 1:
            self.do(
                f"INSERT INTO stored SELECT {id_}, class, f FROM ({chosen}) AS c"
                " ON CONFLICT (id) DO UPDATE SET (class, f) = (excluded.class, excluded.f)"
            )
        elif kind == 2:
            if id_ in self.rows:
                number = None
            self.do(f"UPDATE stored SET (class, f) = (NULL, NULL) WHERE id = {id_}")
        elif kind == 3:
            self.do(f"DELETE FROM stored WHERE id = {id_}")
            self.rows.pop(id_, None)
            return
        else:
            self.do(f"UPDATE stored SET (class, f) = (c.class, c.f) FROM ({chosen}) AS c WHERE stored.id = {id_}")
        if id_ in self.rows or kind < 2:
            self.rows[id_] = number

    def swap(self):
        first, last = self.rng.choice(list(PARTITIONS.values()))
        a, b = self.rng.sample(range(first, last + 1), 2)
        self.do(
            "UPDATE stored SET (class, f) = (o.class, o.f) FROM stored AS o"
            f" WHERE (stored.id, o.id) IN (({a}, {b}), ({b}, {a}))"
        )
        if a in self.rows and b in self.rows:
            self.rows[a], self.rows[b] = self.rows[b], self.rows[a]

    def rewrite(self):
        name = self.rng.choice(list(PARTITIONS))
        kind = self.rng.randrange(3)
        if kind == 0 and not self.cursors:
            self.do(f"TRUNCATE {name}")
            first, last = PARTITIONS[name]
            self.rows = {id_: number for id_, number in self.rows.items() if not first <= id_ <= last}
            for id_ in self.rng.sample(range(first, last + 1), 3):
                self.rows[id_] = self.some_filter(id_)
                self.do(f"INSERT INTO stored SELECT {id_}, class, f FROM pool WHERE id = {self.rows[id_]}")
        elif not self.stack:
            self.do(self.rng.choice((f"VACUUM FULL {name}", f"CLUSTER {name} USING {name}_pkey", f"VACUUM {name}")))

    # transactions

    def remember(self, name):
        self.stack.append((name, dict(self.rows), dict(self.cursors)))

    def transaction(self):
        if not self.stack:
            self.do("BEGIN")
            self.remember("")
            return
        kind = self.rng.random()
        if kind < 0.4 and len(self.stack) < 5:
            self.names += 1
            self.do(f"SAVEPOINT s{self.names}")
            self.remember(f"s{self.names}")
        elif kind < 0.8 and len(self.stack) > 1:
            at = self.rng.randrange(1, len(self.stack))
            name, rows, cursors = self.stack[at]
            if self.rng.random() < 0.75:
                self.do(f"ROLLBACK TO {name}")
                del self.stack[at + 1 :]
                self.rows, self.cursors = dict(rows), dict(cursors)
            else:
                self.do(f"RELEASE {name}")
                del self.stack[at:]
        elif kind > 0.9:
            self.end(self.rng.choice(("COMMIT", "ROLLBACK")))

    def end(self, how):
        self.do(how)
        if how == "ROLLBACK":
            _, self.rows, self.cursors = self.stack[0]
        self.cursors = {name: answers for name, answers in self.cursors.items() if name in self.held}
        self.stack = []

    def settings(self):
        self.do(f"SET work_mem = '{self.rng.choice(('64kB', '64kB', '300kB', '64MB'))}'")
        self.do(f"SET plan_cache_mode = {self.rng.choice(('auto', 'force_generic_plan', 'force_custom_plan'))}")

    # probes

    def nested(self, ids, element_type, filters_outside):
        """Rows of id, n and the answer, from a nested loop of filters and keys."""
        chosen = f"id = ANY ({braces(ids)})"
        if filters_outside:
            tables = f"stored AS s, LATERAL (SELECT * FROM keys WHERE n <> -s.id OFFSET 0) AS x WHERE s.{chosen}"
        else:
            tables = f"keys AS x, LATERAL (SELECT * FROM stored WHERE id <> -x.n AND {chosen} OFFSET 0) AS s"
        a = letter(self.contains("s.f", self.column(element_type)))
        return f"SELECT s.id, x.n, {a} AS a FROM {tables}"

    def gather(self, columns, answer, tables):
        """The answers of a query as one string, in the order of these columns, not in that of the probes."""
        query = f"SELECT {columns}, {answer} AS a FROM {tables} OFFSET 0"
        return f"SELECT string_agg(a, '' ORDER BY {columns}) FROM ({query}) AS q"

    def all_answers(self, ids, element_type):
        return [self.answer(id_, element_type, n) for id_ in ids for n in range(1, KEYS + 1)]

    def probe_nested(self):
        element_type = self.some_type()
        ids = self.some_ids(element_type)
        outside = self.rng.random() < 0.5
        query = self.nested(ids, element_type, outside)
        self.probe(
            f"joins, {'filters' if outside else 'keys'} outside",
            f"SELECT string_agg(a, '' ORDER BY id, n) FROM ({query} OFFSET 0) AS q",
            self.all_answers(ids, element_type),
        )

    def probe_turns(self):
        """Stored filters and their copies in memory by turns; and arrays of filters."""
        element_type = self.some_type()
        ids = self.some_ids(element_type)
        chosen = f"FROM stored WHERE id = ANY ({braces(ids)})"
        rows = f"SELECT id, 0 AS place, f {chosen} UNION ALL SELECT id, 1, f::bytea::bloomfilter {chosen}"
        if self.rng.random() < 0.5:
            rows += (
                " UNION ALL SELECT u.id, 2, u.f FROM"
                f" (SELECT array_agg(id ORDER BY id) AS i, array_agg(f ORDER BY id) AS f {chosen}) AS v,"
                " LATERAL unnest(v.i, v.f) AS u (id, f)"
            )
        copies = 3 if "unnest" in rows else 2
        a = letter(self.contains("v.f", self.column(element_type)))
        query = (
            f"SELECT v.id, v.place, x.n, {a} AS a"
            f" FROM (SELECT * FROM ({rows}) AS u ORDER BY id, place) AS v, keys AS x"
        )
        if self.rng.random() < 0.7:  # keys outside
            query = (
                f"SELECT v.id, v.place, x.n, {a} AS a FROM keys AS x,"
                f" LATERAL (SELECT * FROM ({rows}) AS u WHERE id <> -x.n ORDER BY id, place) AS v"
            )
        expected = [
            self.answer(id_, element_type, n) for id_ in ids for _ in range(copies) for n in range(1, KEYS + 1)
        ]
        sql = f"SELECT string_agg(a, '' ORDER BY id, place, n) FROM ({query} OFFSET 0) AS q"
        self.probe("stored and in memory by turns", sql, expected)

    def probe_init_plan(self):
        element_type = self.some_type()
        (id_, *_) = self.some_ids(element_type)
        asked = self.contains(f"(SELECT f FROM stored WHERE id = {id_})", self.column(element_type))
        if self.rng.random() < 0.5:
            self.probe(
                "a filter in an InitPlan",
                self.gather("n", letter(asked), "keys AS x"),
                self.all_answers([id_], element_type),
            )
        else:
            found = [n for n in range(1, KEYS + 1) if self.answer(id_, element_type, n) == "t"]
            sql = f"SELECT string_agg(n::text, ',' ORDER BY n) FROM keys AS x WHERE {asked}"
            self.say("a filter in an InitPlan", sql, [",".join(map(str, found))], KEYS)

    def probe_parallel(self):
        element_type = self.some_type()
        ids = self.some_ids(element_type)
        hits = {id_: self.all_answers([id_], element_type).count("t") for id_ in ids}
        column = self.column(element_type)
        self.do(PARALLEL)
        if self.rng.random() < 0.5:
            asked = self.contains(f"(SELECT f FROM stored WHERE id = {ids[0]})", column)
            total = COPIES * hits[ids[0]]
            sql = f"SELECT count(*) FROM many_keys AS x WHERE {asked}"
            self.say("parallel workers", sql, [str(total)], COPIES * KEYS)
        else:
            asked = self.contains("s.f", column)
            lines = [f"{id_}|{hits[id_]}" for id_ in ids if hits[id_]]
            sql = (
                "SELECT s.id, count(*) FROM stored AS s, keys AS x"
                f" WHERE s.id = ANY ({braces(ids)}) AND {asked} GROUP BY s.id ORDER BY s.id"
            )
            self.say("parallel workers", sql, lines, KEYS * len(ids))
        self.do("SET max_parallel_workers_per_gather = 0")

    def probe_prepared(self):
        element_type = self.some_type()
        for _ in range(6):
            n = self.rng.randint(1, KEYS)
            k = f"'k{n}'" if element_type == "text" else n
            (id_, *_) = self.some_ids(element_type)
            sql = f"EXECUTE one_{element_type} ({id_}, {k})"
            self.probe("prepared statements", sql, self.answer(id_, element_type, n))
        for _ in range(2):
            small = [f for f in self.pool.values() if f.element_type == element_type and len(f.bytes) < 200]
            f = self.rng.choice(small)
            answers = [f.says[element_type, n] for n in range(1, KEYS + 1)]
            self.probe("prepared statements", f"EXECUTE given_{element_type} ('\\x{f.bytes.hex()}')", answers)

    def prepare(self):
        for element_type in TYPES:
            column = "t" if element_type == "text" else "b"
            self.do(
                f"PREPARE one_{element_type} (int, {element_type}) AS"
                f" SELECT {letter('f @> $2')} FROM stored WHERE id = $1"
            )
            self.do(
                f"PREPARE given_{element_type} (bloomfilter) AS SELECT string_agg(a, '' ORDER BY n)"
                f" FROM (SELECT n, {letter(f'{column} <@ $1')} AS a FROM keys OFFSET 0) AS q"
            )

    def spec(self, element_type, length):
        """Probes for the functions in PL/pgSQL: few filters, probed again and again. Most have no errors, because an
        error ends a call site: PL/pgSQL gives up the state of an expression that failed in this transaction."""
        errors = self.rng.random() < 0.2
        few = self.rng.choice((1, 2, 3, 6, 12))
        candidates = [*IDS, *IDS, *(POOL_IDS + number for number in self.pool)]
        ids = self.rng.choices(candidates, k=few)
        ids += [self.rng.choice([i for i in self.rows] or [1])]
        if self.rng.random() < 0.5:
            number = self.rng.choice(list(self.pool))
            like = (self.pool[number].family, self.pool[number].element_type)
            ids += [POOL_IDS + n for n, f in self.pool.items() if (f.family, f.element_type) == like]
        if errors:
            ids.append(self.rng.choice(BROKEN))
        else:
            ids = [id_ for id_ in ids if self.suits(id_, element_type)] or self.some_ids(element_type)
        site = self.rng.choice(SITES)
        chosen = [self.rng.choice(ids) for _ in range(length)]
        if self.rng.random() < 0.3:
            chosen = [id_ for id_ in chosen for _ in range(2)]
        sources = [self.rng.choice((0, 0, 0, 1, 1, 2)) for _ in chosen]
        sites = [self.rng.choice((0, 0, site, site, self.rng.choice(SITES))) for _ in chosen]
        numbers = [DOMAIN_KEY if site == 13 else self.rng.randint(1, KEYS) for site in sites]
        return chosen, sources, sites, numbers

    def spec_answers(self, element_type, spec):
        for id_, _, site, n in zip(*spec):
            a = self.answer(id_, element_type, n)
            yield {10: {"f": "n"}, 12: {"t": "z", "n": "z"}, 13: {"f": "c"}}.get(site, {}).get(a, a)

    def probe_in_function(self):
        element_type = self.some_type()
        spec = self.spec(element_type, 24)
        arrays = ", ".join(braces(s) for s in spec)
        answers = self.spec_answers(element_type, spec)
        self.probe("PL/pgSQL", f"SELECT probe_{element_type}({arrays})", answers)

    def probe_plainly(self):
        element_type = self.some_type()
        ids = self.some_ids(element_type)
        others = [POOL_IDS + n for n, f in self.pool.items() if f.element_type == element_type]
        ids += self.rng.sample(others, 4)
        ids = [self.rng.choice(ids) for _ in range(16)]
        numbers = [self.rng.randint(1, KEYS) for _ in ids]
        answers = [self.answer(id_, element_type, n) for id_, n in zip(ids, numbers)]
        sql = f"SELECT plainly_{element_type}({braces(ids)}, {braces(numbers)})"
        self.probe("PL/pgSQL that catches nothing", sql, answers)
        if self.rng.random() < 0.3:
            f = self.rng.choice([f for f in self.pool.values() if f.element_type not in ("", element_type)])
            ids.insert(self.rng.randrange(16), POOL_IDS + f.number)
            numbers.append(1)
            sql = f"SELECT plainly_{element_type}({braces(ids)}, {braces(numbers)})"
            self.failing("PL/pgSQL that catches nothing", sql, "42804")
            if self.stack:
                ids.remove(POOL_IDS + f.number)
                answers = [self.answer(id_, element_type, n) for id_, n in zip(ids, reversed(numbers))]
                sql = f"SELECT plainly_{element_type}({braces(ids)}, {braces(reversed(numbers))})"
                self.probe("PL/pgSQL that catches nothing", sql, answers)

    def probe_churn(self):
        element_type = self.some_type()
        spec = self.spec(element_type, 10)
        targets = self.rng.choices([id_ for id_ in spec[0] if id_ in IDS] or IDS, k=4)
        filters = [self.some_filter(id_, self.rng.choice((element_type, element_type, None))) for id_ in targets]
        fail = [self.rng.random() < 0.5 for _ in targets]
        commits = not self.stack and self.rng.random() < 0.7
        answers = []
        for id_, number, fails in zip(targets, filters, fail):
            before = dict(self.rows)
            if id_ in self.rows:
                self.rows[id_] = number
            answers += self.spec_answers(element_type, spec)
            if fails:
                self.rows = before
            answers += self.spec_answers(element_type, spec)
            if commits:
                fits = self.pool[number].element_type == element_type
                answers += [self.pool[number].says[element_type, n] if fits else "n" for n in range(1, 5)]
        arrays = ", ".join(braces(s) for s in (targets, filters, fail, *spec))
        if commits:
            self.probe("commits in a procedure", f"CALL commit_{element_type}({arrays}, '')", answers)
        else:
            self.probe("updates and rollbacks in PL/pgSQL", f"SELECT churn_{element_type}({arrays})", answers)

    def open_cursor(self):
        if not self.stack or len(self.cursors) > 2:
            return
        element_type = self.some_type()
        ids = self.some_ids(element_type)
        self.names += 1
        name = f"c{self.names}"
        hold = ""
        if self.rng.random() < 0.4:
            hold = "WITH HOLD "
            self.held.add(name)
        self.do(f"DECLARE {name} CURSOR {hold}FOR {self.nested(ids, element_type, self.rng.random() < 0.4)}")
        self.cursors[name] = {
            (id_, n): self.answer(id_, element_type, n) for id_ in ids for n in range(1, KEYS + 1)
        }

    def fetch(self):
        if not self.cursors:
            self.open_cursor()
            return
        name = self.rng.choice(list(self.cursors))
        answers = self.cursors[name]
        rest = self.rng.random() < 0.2
        most = len(answers) if rest else self.rng.randint(1, 20)

        def fault(lines):
            for line in lines:
                id_, n, a = line.split("|")
                expected = answers.pop((int(id_), int(n)), "nothing more")
                if a != expected:
                    return f"got      {line}\nexpected {expected}"
            return "rows are missing" if answers and (rest or len(lines) < most) else None

        self.say("cursors", f"FETCH {'ALL' if rest else most} FROM {name}", fault, 0 if rest else most)

    def probe_array(self):
        element_type = self.some_type()
        ids = self.some_ids(element_type)
        chosen = self.rng.sample(range(1, KEYS + 1), self.rng.randint(1, 4))
        array = "ARRAY[" + ", ".join(self.literal(element_type, n) for n in chosen) + f"]::{element_type}[]"
        if self.rng.random() < 0.5:
            array = f"(SELECT array_agg({self.column(element_type)}) FROM keys AS x WHERE n = ANY ({braces(chosen)}))"
            array += "::" + element_type + "[]"
        every = self.rng.random() < 0.5
        asked = letter(f"f @> {'ALL' if every else 'ANY'} ({array})")
        answers = []
        for id_ in ids:
            said = [self.answer(id_, element_type, n) for n in chosen]
            answers.append(said[0] if said[0] == "n" else "ft"[(all if every else any)(a == "t" for a in said)])
        sql = self.gather("id", asked, f"stored WHERE id = ANY ({braces(ids)})")
        self.probe("ANY and ALL of an array of keys", sql, answers)
        # an array of filters, one after the other at a single call site
        asked = letter(f"{self.column(element_type)} <@ ALL (SELECT f FROM stored WHERE id = ANY ({braces(ids)}))")
        if self.rng.random() < 0.7:
            filters = f"ARRAY(SELECT f FROM stored WHERE id = ANY ({braces(ids)}))"
            asked = letter(f"{self.column(element_type)} <@ ALL ({filters})")
        answers = []
        for n in range(1, KEYS + 1):
            said = {self.answer(id_, element_type, n) for id_ in ids}
            answers.append("f" if "f" in said else "n" if "n" in said else "t")
        sql = self.gather("n", asked, "keys AS x")
        self.probe("an array of filters", sql, answers)

    def probe_literal(self):
        element_type = self.some_type()
        ids = self.some_ids(element_type)
        n, m = self.rng.sample(range(1, KEYS + 1), 2)
        first = self.contains("f", self.literal(element_type, n))
        second = self.contains("f", self.literal(element_type, m))
        answers = [self.answer(id_, element_type, n) for id_ in ids]
        others = [self.answer(id_, element_type, m) for id_ in ids]
        if self.rng.random() < 0.6:
            asked, situation = letter(first), "a literal key"
        elif self.rng.random() < 0.5:
            asked, situation = letter(f"{first} OR {second}"), "OR"
            answers = [max(a, b) if a != "n" else a for a, b in zip(answers, others)]
        else:
            asked, situation = letter(f"CASE WHEN id % 2 = 0 THEN {first} ELSE {second} END"), "CASE"
            answers = [b if id_ % 2 else a for id_, a, b in zip(ids, answers, others)]
        sql = self.gather("id", asked, f"stored WHERE id = ANY ({braces(ids)})")
        self.probe(situation, sql, answers)

    def probe_mismatch(self):
        """Some row of a query has a filter of another class."""
        element_type = self.some_type()
        wrong = [id_ for id_ in self.rows if not self.suits(id_, element_type)]
        if wrong:
            ids = sorted({*self.some_ids(element_type), *wrong})
            sql = f"SELECT string_agg(a, '') FROM ({self.nested(ids, element_type, True)} OFFSET 0) AS q"
            self.failing("another class", sql, "42804")
            asked = self.contains("f", self.literal(element_type, self.rng.randint(1, KEYS)))
            sql = self.gather("id", letter(asked), f"stored WHERE id = ANY ({braces(ids)})")
            self.failing("another class", sql, "42804")

    def probe_in_sql_function(self):
        element_type = self.some_type()
        ids = self.some_ids(element_type)[:5]
        name = self.rng.choice(("inlined", "called", "parameter"))
        column = "x.t" if element_type == "text" else "x.b"
        a = letter(f"{name}(s.f, {column})")
        sql = self.gather("id, n", a, f"keys AS x, stored AS s WHERE id = ANY ({braces(ids)})")
        situation = "PL/pgSQL called by row" if name == "parameter" else f"an SQL function, {name}"
        self.probe(situation, sql, self.all_answers(ids, element_type))

    def probe_trigger(self):
        element_type = self.some_type()
        id_ = self.rng.choice(list(self.rows) or [1])
        if id_ not in self.rows:
            return
        old = self.rows[id_]
        new = self.some_filter(id_)
        self.rows[id_] = new
        self.do(f"SET probing.watch = '{element_type}'")
        self.do("SET probing.said = ''")
        n = self.rng.randint(1, KEYS)
        returning = letter(f"f @> {self.literal(element_type, n)}")
        mismatch = not self.suits(id_, element_type)
        sql = f"UPDATE stored SET (class, f) = (SELECT class, f FROM pool WHERE id = {new}) WHERE id = {id_}"
        if mismatch:
            self.do(sql)
        else:
            self.probe("RETURNING", f"{sql} RETURNING {returning}", self.answer(id_, element_type, n))
        sees = [self.pool[new] if i != 2 else self.pool.get(old) for _ in range(KEYS) for i in (1, 2, 3)]
        numbers = [n for n in range(1, KEYS + 1) for _ in range(3)]
        answers = ["n" if f is None else f.says[element_type, n] for f, n in zip(sees, numbers)]
        self.probe("triggers", "SELECT current_setting('probing.said')", answers * 2)
        self.do("SET probing.watch = ''")

    def probe_check(self):
        element_type = self.some_type()
        ids = self.some_ids(element_type)
        table = f"checked_{element_type}"
        pairs = [(id_, n) for id_ in ids for n in range(1, KEYS + 1)]
        good = [p for p in pairs if self.answer(p[0], element_type, p[1]) in "tn"]
        bad = [p for p in pairs if self.answer(p[0], element_type, p[1]) == "f"]

        def insert(pairs):
            places = ", ".join(f"({i}, {id_}, {n})" for i, (id_, n) in enumerate(pairs))
            column = "x.t" if element_type == "text" else "x.b"
            return (
                f"INSERT INTO {table} SELECT f, {column} FROM (SELECT * FROM (VALUES {places}) AS p (place, id, n)"
                " ORDER BY place) AS p JOIN stored AS s USING (id) JOIN keys AS x USING (n)"
            )

        self.rng.shuffle(good)
        if good:
            self.say("CHECK", insert(good[:60]), (), len(good[:60]))
        if bad:
            self.failing("CHECK", insert(good[:10] + [self.rng.choice(bad)]), "23514")
        self.do(f"DELETE FROM {table}")

    def probe_policy(self):
        n = self.rng.randint(1, KEYS)
        found = [id_ for id_, f in self.rows.items() if f and self.pool[f].element_type
                 and self.answer(id_, self.pool[f].element_type, n) == "t"]  # fmt: skip
        self.do(f"SET probing.key = {n}")
        self.do(f"SET ROLE {ROLE}")
        sql = "SELECT string_agg(id::text, ',' ORDER BY id) FROM stored"
        self.say("a policy", sql, [",".join(map(str, sorted(found)))], len(self.rows))
        self.do("RESET ROLE")

    STEPS = (
        [replace_some] * 8 + [swap, rewrite, settings] + [transaction] * 9
        + [probe_nested] * 4 + [probe_turns] * 3 + [probe_init_plan] * 2 + [probe_prepared]
        + [probe_in_function] * 6 + [probe_plainly] * 2 + [probe_churn] * 2 + [open_cursor] + [fetch] * 4
        + [probe_array] * 2 + [probe_literal] * 3 + [probe_mismatch, probe_in_sql_function, probe_trigger]
        + [probe_check, probe_policy]
    )  # fmt: skip

    def make(self):
        self.fill()
        self.prepare()
        self.settings()
        for i in range(STEPS):
            self.rng.choice(self.STEPS)(self)
            if i % (STEPS // 2) == 5:  # workers take their time to start
                self.probe_parallel()
        if self.stack:
            self.end("COMMIT")
        for element_type in TYPES:  # the final state
            self.probe_nested()
        return self.statements
