"""Timing SQL against a baseline: interleaved runs, and the ratio of each pair."""
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "t"))
import session  # noqa: E402


class Session(session.Session):
    """A session with measurements of its backend."""

    def __init__(self, *settings):
        super().__init__("".join("SET %s;" % setting for setting in settings))

    def seconds(self, sql):
        start = time.perf_counter()
        self.ask(sql)
        return time.perf_counter() - start

    def cpu_used(self):
        """The processor time in seconds that the backend has used, once it is idle; needs Linux."""
        directory = "/proc/%d/" % self.pid
        while open(directory + "stat").read().rpartition(")")[2].split()[0] == "R":
            pass
        return self.cpu_so_far()

    def cpu_so_far(self):
        """The same while it works."""
        with open("/proc/%d/schedstat" % self.pid) as schedstat:
            return int(schedstat.read().split()[0]) / 1e9

    def cpu_seconds(self, sql):
        """The processor time of the backend, which other processes disturb less."""
        start = self.cpu_used()
        self.ask(sql)
        return self.cpu_used() - start

    def memory(self):
        """Peak and present private memory of the backend in bytes, where /proc tells."""
        with open("/proc/%d/status" % self.pid) as status:
            fields = dict(re.findall(r"(\w+):\s+(\d+) kB", status.read()))
        return {name: 1024 * int(fields[name]) for name in ("VmHWM", "VmRSS", "RssAnon")}


def postmaster(session):
    with open("/proc/%d/stat" % session.pid) as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


def cpu_used(session):
    """The processor time of a backend and of all processes that the server has waited for, as for workers."""
    own = session.cpu_used()
    with open("/proc/%d/stat" % postmaster(session)) as stat:
        children = stat.read().rpartition(")")[2].split()[13:15]
    return own + sum(map(int, children)) / os.sysconf("SC_CLK_TCK")


def spent_with(session, sql, setting):
    """The seconds of a statement, those of processors, and its rows."""
    session.ask("SET " + setting)
    before, start = cpu_used(session), time.perf_counter()
    result = session.rows(sql)
    seconds = time.perf_counter() - start
    return seconds, cpu_used(session) - before, result


def interval(values):
    """The median with the narrowest interval between order statistics that holds it with at least 95 %."""
    values = sorted(values)
    n, tail, k = len(values), 2.0 ** -len(values), 0
    while k + 1 < n / 2 and 2 * (tail + math.comb(n, k + 1) * 2.0**-n) <= 0.05:
        k += 1
        tail += math.comb(n, k) * 2.0**-n
    return statistics.median(values), values[k], values[-1 - k]


def heading():
    print("%-64s %9s %9s   %-20s %s" % ("work against its baseline", "baseline", "work", "ratio min/med/max", "goal"))


def report(name, base, work, ratios, goal, met):
    low, middle, high = min(ratios), statistics.median(ratios), max(ratios)
    print("%-64s %6.0f ms %6.0f ms   %5.2f %5.2f %5.2f    %-8s %s" % (
        name, 1000 * statistics.median(base), 1000 * statistics.median(work), low, middle, high, goal,
        "" if goal == "" else "met" if met(middle) else "MISSED"), flush=True)


def compare(name, baseline, work, goal, *, session=None, other=None, repeats=5, faster=False):
    """Runs both by turns. The ratio is work / baseline and should be at most goal, if there is one; or, with faster,
    it is baseline / work and should be at least goal."""
    session = session or Session("max_parallel_workers_per_gather = 0", "jit = off")
    other = other or session
    session.ask(baseline), other.ask(work)  # warm up
    pairs = [(session.seconds(baseline), other.seconds(work)) for _ in range(repeats)]
    base, taken = zip(*pairs)
    if goal is None:
        report(name, base, taken, [w / b for b, w in pairs], "", None)
    elif faster:
        report(name, base, taken, [b / w for b, w in pairs], ">= %g" % goal, lambda r: r >= goal)
    else:
        report(name, base, taken, [w / b for b, w in pairs], "<= %g" % goal, lambda r: r <= goal)


def rows(default=10000000):
    return int(os.environ.get("ROWS", default))


def pgbench(session, script, transactions, clients=1, protocol="prepared"):
    """Repeats a transaction; returns its time in seconds, and its WAL in bytes."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        before = session.ask("SELECT pg_current_wal_insert_lsn()")[0]
        output = subprocess.run(["pgbench", "-n", "-M", protocol, "-c", str(clients), "-j", str(clients),
                                 "-t", str(transactions // clients), "-f", file.name], check=True, text=True,
                                stdout=subprocess.PIPE).stdout  # fmt: skip
    after = session.ask("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '%s')" % before)[0]
    return 1 / float(re.search(r"tps = ([\d.]+)", output).group(1)), float(after) / transactions


def transactions_heading():
    print("%-64s %9s %9s   %-23s   %9s %9s   %s" % (
        "work : baseline, milliseconds of a transaction", "baseline", "work", "ratio min/med/max",
        "WAL, base", "WAL, work", "goal"))  # fmt: skip


def report_transactions(name, pairs, goal=None):
    """Shows the ratio of the times of each pair of runs of pgbench, and the WAL of one transaction."""
    ratios = sorted(work[0] / base[0] for base, work in pairs)
    middle = statistics.median(ratios)
    verdict = "<= %g %s" % (goal, "met" if middle <= goal else "MISSED") if goal else ""
    print("%-64s %9.3f %9.3f   %7.2f %7.2f %7.2f   %9.0f %9.0f   %s" % (
        name, *(1000 * statistics.median(pair[i][0] for pair in pairs) for i in (0, 1)), ratios[0], middle, ratios[-1],
        *(statistics.median(pair[i][1] for pair in pairs) for i in (0, 1)), verdict), flush=True)  # fmt: skip
