"""What the extension costs over a filter in a C program, and over a set in a Python program.

The programs are outside.c, with libbloom and with the extension's own core, and outside_python.py, with Python's set
and with clients/python. They get the keys and the probes of the SQL queries in files, and all figures are processor
time. In SQL, adding a key is bloom_agg without count(*) over the same rows, and a probe is what membership.py measures:
without the scan of the probes.
"""
import os
import statistics
import subprocess
import sys
import tempfile

from results import Step

import membership
from membership import note

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
CORE = os.path.join(ROOT, "src", "core")
REFERENCE, CORE_PEER = "bloomfilter in SQL", "bloomtype's core in C"
CLIENT_KEYS = 1000000  # clients/python gets no more, because it takes microseconds for each
LEAST_KEYS = 1000000  # of fewer keys, SQL builds the filter repeatedly


def compile_driver(directory, name, *options):
    """The program, or None if it cannot be built."""
    program = os.path.join(directory, name)
    sources = [os.path.join(HERE, "outside.c"), *(os.path.join(CORE, file) for file in ("sizing.c", "sparse.c"))]
    built = subprocess.run(["gcc", "-std=gnu11", "-O2", "-I" + CORE, "-o", program, *sources, *options, "-lm"],
                           capture_output=True, text=True)  # fmt: skip
    return [program] if built.returncode == 0 else note(built.stderr.strip().split("\n")[0])


def core_command(directory):
    return compile_driver(directory, "core") or sys.exit("src/core does not compile")


def libbloom_command(directory):
    command = compile_driver(directory, "libbloom", "-DLIBBLOOM", "-lbloom")
    return command or note("libbloom is left out: install libbloom-dev")


def set_command(_directory):
    return [os.path.join(HERE, "outside_python.py"), "set"]


def client_command(_directory):
    if not os.path.exists(os.path.join(ROOT, "clients", "python", "bloomtype")):
        return note("clients/python is left out: it is not in this tree")
    return [os.path.join(HERE, "outside_python.py"), "client"]


METRICS = (("outside, add", "seconds per key", "ns"), ("outside, present keys", "seconds per key", "ns"),
           ("outside, absent keys", "seconds per key", "ns"), ("outside", "bytes", "bytes"))  # fmt: skip
PEERS = {CORE_PEER: core_command, "libbloom in C": libbloom_command, "Python set": set_command,
         "clients/python": client_command}  # fmt: skip


class Outside:
    """The figures of one number of keys."""

    def __init__(self, n):
        self.keys = membership.Set(n, case="outside")

    def make(self, _results):
        self.keys.make()
        self.directory = tempfile.TemporaryDirectory(prefix="bloomtype.")
        first, middle = (self.keys.place(row) for row in (membership.FEW, membership.FEW + self.keys.probes))
        self.files = [self.export(name, query) for name, query in (
            ("keys", "SELECT k FROM peer_keys"),
            ("present", "SELECT x FROM peer_probes WHERE ctid >= '%s' AND ctid < '%s'" % (first, middle)),
            ("absent", "SELECT x FROM peer_probes WHERE ctid >= '%s'" % middle))]  # fmt: skip

    def export(self, name, query):
        path = os.path.join(self.directory.name, name)
        with open(path, "wb") as file:
            subprocess.run(["psql", "-Xqc", "COPY (%s) TO STDOUT (FORMAT binary)" % query], check=True, stdout=file)
        return path

    def in_sql(self):
        """The same figures of the extension."""
        session, n, repeats = self.keys.scan, self.keys.n, max(1, LEAST_KEYS // self.keys.n)
        add = count = 0
        for _ in range(repeats):
            count += session.cpu_seconds("SELECT count(*) FROM peer_keys")
            add += session.cpu_seconds("SELECT bloom_agg(k, %d) IS NULL FROM peer_keys" % n)
        running = self.keys.reference
        scan = [statistics.median(times) for times in zip(*(self.keys.nanoseconds_of_scan() for _ in range(3)))]
        figures = running.figures(running.fetch(), scan)
        self.whole.append((1e9 * add / repeats / n, 1e9 * count / repeats / n))
        return (1e9 * (add - count) / repeats / n, figures.present, figures.absent, self.bytes(), running.probes,
                round(figures.false_positives * running.probes))  # fmt: skip

    def bytes(self):
        return int(self.keys.session.ask("SELECT bits / 8 FROM peer_filter, bloom_info(f)")[0])

    def measure(self, results, name, make_command):
        """Runs the SQL and a program by turns, after one round to warm up."""
        command = make_command(self.directory.name)
        if command is None:
            return
        self.whole = []
        rounds = [(self.in_sql(), self.outside(name, command)) for _ in range(membership.ROUNDS + 1)][1:]
        if name == CORE_PEER:
            self.same_filter(*rounds[0])
            self.add(results, REFERENCE, [(reference, reference) for reference, _ in rounds])
            for peer, times in zip(("bloom_agg, whole query", "count(*), whole query"), zip(*self.whole[1:])):
                results.add("outside, add", peer, self.keys.n, "seconds per key", "ns", times, [])
        self.add(results, name, rounds)

    def add(self, results, name, rounds):
        for field, (case, metric, unit) in enumerate(METRICS):
            pairs = [(reference[field], figures[field]) for reference, figures in rounds]
            results.add(case, name, self.keys.n, metric, unit, [figure for _, figure in pairs],
                        [figure / reference for reference, figure in pairs])  # fmt: skip
        (reference, figures) = rounds[0]
        results.add("outside", name, self.keys.n, "false positives", "share", [figures[5] / self.keys.probes],
                    [figures[5] / reference[5]])  # fmt: skip

    def outside(self, name, command):
        out = subprocess.run(command + self.files, check=True, capture_output=True, text=True).stdout.split()
        figures = (*map(float, out[:3]), *map(int, out[3:]))
        if figures[4] != self.keys.probes:
            raise SystemExit("%s finds %d of %d present keys" % (name, figures[4], self.keys.probes))
        return figures

    def same_filter(self, in_sql, core):
        """The core alone must have built the filter that the server built."""
        if in_sql[3:] != core[3:]:
            raise SystemExit("not the same filter: %s in SQL, %s in C" % (in_sql, core))

    def clean_up(self, _results):
        self.directory.cleanup()
        self.keys.drop()


def steps_of(outside):
    n = outside.keys.n
    title = "{:,} keys: ".format(n)
    yield Step(title + "tables and files", 2 + 2.5e-6 * n, outside.make)
    for name, make_command in PEERS.items():
        if name == "clients/python" and n > CLIENT_KEYS:
            continue
        yield Step(title + name, 5 + 1e-5 * n, lambda results, name=name, make_command=make_command: outside.measure(
            results, name, make_command))
    yield Step(title + "clean up", 0.1, outside.clean_up)


def steps(rows):
    sizes = [n for n in (10000, 1000000, 10000000) if n <= rows] or [rows]
    return [step for n in sizes for step in steps_of(Outside(n))]
