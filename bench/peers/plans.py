"""Sessions for the cases of `script/bench peers`, and checks that a query runs by the plan that its case names."""
import measure
from session import in_order  # measure lets this line find it

SERIAL = "max_parallel_workers_per_gather = 0", "jit = off", "client_min_messages = warning"


def connect(*settings):
    """A session without parallel workers, unless a setting allows them."""
    return measure.Session(*SERIAL, *settings)


def expect(session, sql, *wanted):
    """Stops unless the plan has these nodes, top down. Each is a dictionary of properties; a tuple lists
    alternatives."""
    plan = session.explain(sql)
    if not in_order(plan, wanted):
        raise SystemExit("the plan of %s has no %s:\n%s" % (sql, wanted, "\n".join(map(str, plan))))


def agree(case, *answers):
    """Stops unless all answers are the same."""
    if any(answer != answers[0] for answer in answers):
        raise SystemExit("%s: the peers disagree: %s" % (case, ", ".join(str(answer)[:200] for answer in answers)))
