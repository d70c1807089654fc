#!/usr/bin/python3 -B
"""Random interleavings of updates, rollbacks and probes: a call site never takes one filter for another.

A random program replaces, deletes, moves and rolls back stored filters, and probes them meanwhile in every way that SQL
has. The expected answers come from a model of the stored filters and from test/golden/reference.py; the server's
answers are never compared with each other. Filters come in families whose members have one header and one length but
other bits, in every form of storage; answers from another filter than the one probed are soon wrong.

    PROBING_SEED      another seed than the usual one
    PROBING_PROGRAMS  the number of programs
    PROBING_ONLY      the number of a single one, to repeat a failure
"""

import collections
import json
import os
import random

from probing_pool import FAMILIES, make_pool
from probing_programs import PARALLEL, Program
from probing_tables import ROLE, set_up
from session import Session, ask, has, own_schema
from tap import clean_up_when_terminated, done, note, ok, part

SEED = os.environ.get("PROBING_SEED", "probing")
PROGRAMS = int(os.environ.get("PROBING_PROGRAMS", 16))


class Score:
    def __init__(self):
        self.answers, self.faults = 0, []


def run_program(number, pool, scores):
    statements = Program(random.Random(f"{SEED} {number}"), pool).make()
    again = f"PROBING_SEED={SEED} PROBING_ONLY={number}"
    faults = []
    with Session() as session:
        for i, statement in enumerate(statements):
            lines, state = session.attempt(statement.sql)
            if state == "lost":
                faults.append(f"{again}: the session ended at statement {i + 1}:\n{session.error}")
                break
            score = scores[statement.situation]
            score.answers += statement.answers
            fault = statement.fault(lines, state)
            if fault:
                before = "\n".join(f"{s.sql[:300]};" for s in statements[max(0, i - 6) : i])
                faults.append(f"{again}, statement {i + 1}:\n{before}\n{statement.sql[:1500]};\n{fault}")
                score.faults.append(faults[-1])
                if state != statement.state:
                    break  # the model no longer fits
    name = f"program {number}: {len(statements)} statements"
    ok(not faults, name, f"{len(faults)} are wrong", *faults[:2])


def test_pool(pool):
    """The programs rely on this."""
    denied = [(f.number, n) for f in pool for n in f.members if f.says[f.element_type, n] != "t"]
    ok(not denied, "the reference denies no member", denied)
    alike = collections.Counter((f.bytes[:28], len(f.bytes)) for f in pool if f.element_type)
    distinct = {f.bytes for f in pool}
    twins = sum(number for number in alike.values() if number > 1)
    ok(twins >= 4 * len(FAMILIES) and len(distinct) == len(pool), "most have twins of one header and other bits", alike)
    stored = ask("SELECT id, encode(f::bytea, 'hex') FROM pool ORDER BY id")
    ok(stored == [f"{f.number}|{f.bytes.hex()}" for f in pool], "filters are stored as they were made")


def test_plans():
    with Session(PARALLEL) as session:
        for name, query in {
            "of an InitPlan": "SELECT count(*) FROM many_keys AS x WHERE (SELECT f FROM stored WHERE id = 1) @> x.b",
            "of a join": """SELECT s.id, count(*) FROM stored AS s, keys AS x
                WHERE s.id = ANY ('{1,2,7,8,12}') AND s.f @> x.b GROUP BY s.id ORDER BY s.id""",
        }.items():
            plan = session.explain(query)
            gathers = any(has(node, {"Node Type": ("Gather", "Gather Merge")}) for node in plan)
            ok(gathers, f"workers probe filters {name}", json.dumps(plan))
    program = Program(random.Random(1), [])
    with Session() as session:
        for outside in True, False:
            plan = session.explain(program.nested([1, 2], "bigint", outside))
            (join,) = (node for node in plan if node["Node Type"] == "Nested Loop")
            first = "filters" if outside else "keys"
            found = "keys" if join["Plans"][0].get("Relation Name") == "keys" else "filters"
            ok(found == first, f"joins are nested with {first} outside", json.dumps(plan))


def test_storage(pool):
    """Every form of storage. The size that a value takes beyond its bytes shows its form."""
    wanted = {
        1: ("few hashes", "short"), 2: ("1 kB", "inline"), 3: ("20 kB", "out of line"),
        6: ("30 kB of zeros", "compressed inline"), 7: ("200 kB of zeros", "compressed out of line"),
        8: ("80 kB, half zeros", "compressed out of line, in many pieces"),
        11: ("1 kB", "out of line"), 12: ("a word", "out of line"), 16: ("4 kB", "inline"),
    }  # fmt: skip
    numbers = {id_: next(f.number for f in pool if f.family == family) for id_, (family, _) in wanted.items()}
    program = Program(random.Random(1), pool)
    program.rows = dict(numbers)
    ask("TRUNCATE stored")
    ask(program.insert())
    forms = ask(
        "SELECT id, CASE WHEN pg_column_compression(f) IS NULL THEN"
        "  CASE pg_column_size(f) - octet_length(f::bytea) WHEN 0 THEN 'out of line' WHEN 1 THEN 'short'"
        "   WHEN 4 THEN 'inline' END"
        " WHEN pg_column_size(f) > 8000 THEN 'compressed out of line, in many pieces'"
        " WHEN pg_column_size(f) > 2000 THEN 'compressed out of line' ELSE 'compressed inline' END"
        " FROM stored ORDER BY id"
    )
    expected = [f"{id_}|{form}" for id_, (_, form) in wanted.items()]
    ok(forms == expected, "values are stored in every form", f"got      {forms}", f"expected {expected}")


def test_programs(pool):
    scores = collections.defaultdict(Score)
    only = os.environ.get("PROBING_ONLY")
    for number in [int(only)] if only else range(1, PROGRAMS + 1):
        run_program(number, pool, scores)
    for situation, score in sorted(scores.items()):
        answers = f", {score.answers} answers" if score.answers else ""
        ok(not score.faults, f"{situation}{answers}", f"{len(score.faults)} are wrong", *score.faults[:1])
    note(f"{sum(score.answers for score in scores.values())} answers")


def main():
    clean_up_when_terminated()
    note(f"PROBING_SEED={SEED}")
    pool = make_pool(random.Random(f"{SEED} pool"))
    try:
        with own_schema():
            set_up(pool)
            part(test_pool, pool)
            part(test_plans)
            part(test_storage, pool)
            part(test_programs, pool)
    finally:
        ask(f"DROP ROLE IF EXISTS {ROLE}")
    done()


main()
