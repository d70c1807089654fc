"""What the tests of the aggregates share: sessions with settings for plans, the reference's answers, comparisons."""

import functools
import hashlib
import json
import math
from dataclasses import replace

import session
from session import CHEAP_WORKERS, Session, ask, each, in_order, psycopg
from tap import ok
import reference as ref

Session.settings = """
SET client_min_messages = error;
SET default_statistics_target = 10;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
"""
PARALLEL = CHEAP_WORKERS + "SET max_parallel_workers_per_gather = 4;"
PARTITIONWISE = "SET enable_partitionwise_aggregate = on; SET cpu_tuple_cost = 10;"
TO_SPILL = "SET work_mem = '64kB'; SET hash_mem_multiplier = 1; SET enable_sort = off;"

# Properties of nodes of a plan.
HASHED, SORTED = {"Node Type": "Aggregate", "Strategy": "Hashed"}, {"Node Type": "Aggregate", "Strategy": "Sorted"}
FINAL, PARTIAL = {"Partial Mode": "Finalize"}, {"Partial Mode": "Partial"}
APPEND, GATHER = {"Node Type": ("Append", "Merge Append")}, {"Node Type": ("Gather", "Gather Merge")}
FORCED = {"Single Copy": True}
ANALYZE = ", ANALYZE, TIMING OFF"


def ask_one(statement, settings=""):
    """The fields of a statement that gives one row."""
    (line,) = ask(statement, settings)
    return line.split("|")


def copy(table, rows):
    with Session() as one:
        one.copy(table, rows)


def explained(query, settings="", options=""):
    """The plan of a query, and its lines."""
    with Session(settings) as one:
        return one.explain(query, options), one.ask(query)


def forced_parallel():
    """Settings under which every plan runs in a worker."""
    (version,) = ask_one("SHOW server_version_num")
    name = "debug_parallel_query" if int(version) >= 160000 else "force_parallel_mode"
    return f"SET {name} = on; SET max_parallel_workers_per_gather = 2;"


def sha256(f):
    return None if f is None else hashlib.sha256(f.encode()).hexdigest()


def sha256_sql(f):
    return f"encode(sha256(({f})::bytea), 'hex')"


def answers(lines):
    """What each line says about the key that it begins with."""
    return dict(line.rsplit("|", 1) for line in lines)


def same_answers(got, expected, name):
    """Compares two dictionaries."""
    wrong = [key for key in expected if got.get(key) != expected[key]] + [k for k in got if k not in expected]
    detail = [f"{key}: got {got.get(key)}, expected {expected.get(key)}" for key in wrong[:5]]
    ok(not wrong, name, f"{len(wrong)} of {len(expected)} differ", *detail)


def check_plan(nodes, wanted, name):
    ok(in_order(nodes, wanted), f"{name}: plan", wanted, json.dumps(nodes))


def spills(nodes):
    """Did any process write to disk?"""
    return any(process.get("Disk Usage", 0) > 0 for node in nodes for process in (node, *node.get("Workers", ())))


# The reference, with a memory of slow results.

own_m = functools.lru_cache(None)(ref.choose_own_m)


@functools.lru_cache(None)
def created(layout, p, items, seed=0):
    return ref.create(layout, p, items=items, seed=seed)


def self_sized(p, element_class, hashes, seed=0):
    unsized = ref.empty(p, seed=seed)
    if not hashes:
        return unsized
    return replace(unsized, m=own_m(p, len(set(hashes)))).with_hashes(element_class, hashes)


def self_sized_call(x, p):
    return f"bloom_agg({x})" if p == 0.01 else f"bloom_agg({x}, NULL, {p!r})"


def hashes_of(numbers):
    return [ref.hash_of(ref.int8(number)) for number in numbers]


def onto(base, element_class, hashes):
    """The result of bloom_agg over elements with these hashes, computed with the base's seed."""
    if base.without_size:
        return self_sized(base.p, element_class, hashes, base.seed)
    return base.with_hashes(element_class if hashes else base.element_class, hashes)


def random_number(rng, lowest, highest):
    """Evenly spread over the orders of magnitude."""
    return math.exp(rng.uniform(math.log(lowest), math.log(highest)))


def check_refused(statement, why, name, settings=""):
    try:
        ask(statement, settings)
        ok(False, f"{name}: refused")
    except psycopg.Error as problem:
        ok(why in str(problem), f"{name}: refused", problem)


def lower_costs():
    """Makes the planner split even many small groups between workers."""
    each(*(f"ALTER FUNCTION bloom_agg_{name} COST 1" for name in ("combine", "serialize", "deserialize")))


def run(*tests):
    session.run(lower_costs, *tests)
