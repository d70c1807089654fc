"""Ratios of work to its baseline, by turns: time, processor time and WAL of parts that a user names.

The table of a part has a row for each ratio, with minimum, median and maximum. A goal applies to the median as it is
printed. The last column is the median ratio of the processor time of the backends, which other processes disturb less;
needs Linux. All plans are serial with SETTINGS.
"""
import fractions
import statistics

from measure import Session

TURNS = 5
SETTINGS = ("max_parallel_workers_per_gather = 0", "max_parallel_maintenance_workers = 0", "jit = off",
            "synchronize_seqscans = off")  # fmt: skip

PARTS = {}


def part(function):
    PARTS[function.__name__] = function
    return function


def milliseconds(seconds):
    return "%.4g ms" % (1000 * seconds)


def kilobytes(number):
    return "%.4g kB" % (number / 1024)


def fraction(number):
    return "%.3g %%" % (100 * number)


def heading(name):
    print("\n%s\n%-72s %11s %11s   %-23s   %-16s %s" % (
        name, "", "baseline", "work", "ratio min/med/max", "goal", "ratio of CPU"), flush=True)  # fmt: skip


def show(name, pairs, form, goal="", inverse=False, cpu=()):
    """Prints the ratios work / baseline of pairs (baseline, work), or baseline / work, whether the median meets a
    goal such as "<= 1/17", and the median ratio of pairs of processor times."""
    ratios, cpu_ratios = (sorted(base / work if inverse else work / base for base, work in each) for each in (pairs, cpu))
    low, middle, high = ("%.3g" % ratio for ratio in (ratios[0], statistics.median(ratios), ratios[-1]))
    verdict = ""
    if goal:
        sign, number = goal.split()
        limit = fractions.Fraction(number)
        met = float(middle) <= limit if sign == "<=" else float(middle) >= limit
        verdict = "met" if met else "MISSED"
    base, work = (form(statistics.median(values)) for values in zip(*pairs))
    of_cpu = "%.3g" % statistics.median(cpu_ratios) if cpu else ""
    print("%-72s %11s %11s   %7s %7s %7s   %-9s %-6s %s" % (
        name, base, work, low, middle, high, goal, verdict, of_cpu), flush=True)  # fmt: skip


def show_times(name, pairs, goal="", inverse=False):
    """The same for pairs of (seconds, seconds of the processor, ...)."""
    show(name, [(base[0], work[0]) for base, work in pairs], milliseconds, goal, inverse,
         cpu=[(base[1], work[1]) for base, work in pairs])  # fmt: skip


def note(name, value):
    print("%-72s %s" % (name, value), flush=True)


def wal_position(session):
    return int(session.ask("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")[0])


def timed(session, *statements):
    """The seconds of statements, each a transaction, and those of the backend's processor."""
    before = session.cpu_used()
    seconds = sum(session.seconds(sql) for sql in statements)
    return seconds, session.cpu_used() - before


def spent(session, *statements):
    """The same, and the bytes of WAL."""
    before = wal_position(session)
    return *timed(session, *statements), wal_position(session) - before


def spent_by_turns(session, base, work, before="SELECT"):
    """Pairs of what two statements spend, each pair after the statements that it begins with."""
    pairs = []
    for _ in range(TURNS):
        session.ask(before)
        session.ask("CHECKPOINT")
        pairs.append((spent(session, base), spent(session, work)))
    return pairs


def show_spent(name, pairs, time_goal="", wal_goal=""):
    show_times(name, pairs, time_goal)
    show("  its WAL", [(base[2], work[2]) for base, work in pairs], kilobytes, wal_goal)


def compare(name, base, work, goal="", *, session=None, other=None):
    """The time of two queries by turns."""
    session = session or Session(*SETTINGS)
    other = other or session
    session.ask(base), other.ask(work)  # warm up
    show_times(name, [(timed(session, base), timed(other, work)) for _ in range(TURNS)], goal)


def expect(session, sql, *wanted):
    """Stops unless the plan has these nodes, or scans these indexes."""
    plan = session.explain(sql)
    found = {node[name] for node in plan for name in ("Node Type", "Index Name") if name in node}
    if not found.issuperset(wanted):
        raise SystemExit("no %s in the plan of %s: %s" % (wanted, sql, sorted(found)))
