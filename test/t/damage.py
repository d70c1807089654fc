"""What the tests of damaged indexes share: damages of the pages of a file, and a server on which one of many indexes has
each. A damage is a function of the pages and the number of the index, which changes the pages.

The server stops with everything written while files are damaged. The LSN at the start of a page is PostgreSQL's own
affair: if it is wrong, the page cannot be written.
"""

import collections
import os
import random
import resource
import struct
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "durability"))
from durable import DATABASE, Server, own_directory  # noqa: E402
from session import psycopg  # noqa: E402
from tap import note, ok, same  # noqa: E402

PAGE = 8192
HEADER = 24  # of every page of PostgreSQL; what follows is the index's own
CONTENTS = 64  # where the contents begin behind the fields of a page, in both access methods
WORDS = [struct.pack("<I", word) for word in (0, 1, 3, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)]
NOISE = random.Random("noise").randbytes(PAGE)
MOST = 2  # faults of a case that are shown
TIMEOUT = 20  # seconds; a statement on an index this small that takes longer hangs
CORRUPTED = {"XX001", "XX002"}

# A case that lies may lose rows without an error.
Case = collections.namedtuple("Case", "name damage lies", defaults=[False])


# Damages

def put(page, at, data):
    return page[:at] + data + page[at + len(data):]


def overwrite(number, at, data):
    def damage(pages, _):
        pages[number] = put(pages[number], at, data)

    return damage


def zero(number):
    return overwrite(number, 0, bytes(PAGE))


def flip(number, at, bit):
    def damage(pages, _):
        pages[number] = put(pages[number], at, bytes([pages[number][at] ^ 1 << bit]))

    return damage


def repeat(a, b):
    def damage(pages, _):
        pages[b] = pages[a]

    return damage


def swap(a, b):
    def damage(pages, _):
        pages[a], pages[b] = pages[b], pages[a]

    return damage


def cut(keep):
    def damage(pages, _):
        del pages[keep:]

    return damage


def tear(pages, _):
    """The file ends within a page."""
    pages[-1] = pages[-1][: PAGE - 100]


def extend(*more):
    def damage(pages, _):
        pages.extend(more)

    return damage


def page_cases(some, lengths):
    """Damages of whole pages: some of those of the file, and lengths that it may have."""
    cases = [Case(f"page {n} is zero", zero(n)) for n in some]
    cases += [Case(f"page {n} is noise", overwrite(n, 8, NOISE[8:])) for n in some]
    cases += [Case(f"pages {a} and {b} are swapped", swap(a, b)) for a in some for b in some if a < b]
    cases += [Case(f"page {b} is a copy of page {a}", repeat(a, b)) for a in some for b in some if a != b]
    cases += [Case(f"the file has {n} pages", cut(n)) for n in lengths]
    return cases + [Case("the last page is torn", tear), Case("noise behind the end", extend(NOISE, bytes(PAGE)))]


def number_cases(rng, n, places, size, numbers, most):
    """Wrong numbers of a size at places of page n, most of them in each place."""
    return [Case(f"page {n}, bytes {at} to {at + size - 1}: {data.hex()}", overwrite(n, at, data))
            for at in places for data in rng.sample(numbers, most)]  # fmt: skip


def flip_case(n, at, bit, lies=False):
    return Case(f"page {n}, byte {at}, bit {bit} flipped{', lies' if lies else ''}", flip(n, at, bit), lies)


def lower_of(page):
    """pd_lower, where the numbers of a page end."""
    return struct.unpack_from("<H", page, 12)[0]


# Files

def pages_of(path):
    with open(path, "rb") as file:
        data = file.read()
    return [data[start:start + PAGE] for start in range(0, len(data), PAGE)]


def write(path, pages):
    with open(path, "r+b") as file:
        file.write(b"".join(pages))
        file.truncate()


class Damaged:
    """A server with an index on each table t0, t1 ...; each case damages one of them.

    fill(session) makes all indexes anew; wrong(case, number, self.statements) is what is wrong with what statements on
    index number say; index is the format of the names of the indexes, and method the access method.
    """

    def __init__(self, method, tables, index, schema, fill, examine):
        # Damaged numbers may ask for much space.
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 20, hard))
        self.method, self.tables, self.index, self.fill, self.examine = method, tables, index, fill, examine
        self.said = collections.Counter()
        self.server = Server(own_directory(), "server")
        no_checksums = ["--no-data-checksums"] if self.server.major >= 18 else []
        self.server.init(*no_checksums, autovacuum="off", shared_buffers="32MB").start()
        self.server.run("createdb", DATABASE)
        self.server.sql(schema)

    def path(self, name):
        return os.path.join(self.server.data, self.server.value(f"SELECT pg_relation_filepath('{name}')"))

    def prepare(self):
        """Makes all indexes anew, and stops the server with everything written; returns their files."""
        with self.server.connect() as session:
            self.fill(session)
            session.ask("CHECKPOINT")
        paths = [self.path(self.index.format(number)) for number in range(self.tables)]
        self.server.stop()
        return paths

    def damage(self, paths, cases, numbers):
        for case, number in zip(cases, numbers):
            pages = pages_of(paths[number])
            case.damage(pages, number)
            write(paths[number], pages)
        self.server.start()

    def session(self):
        return self.server.connect(f"SET statement_timeout = '{TIMEOUT}s';")

    def statements(self, statements, is_wrong=lambda sql, lines: False):
        """Runs statements in one session. Each must work, and then say what is not wrong, or find the damage."""
        wrong = []
        with self.session() as session:
            for sql in statements:
                lines, state = session.attempt(sql)
                self.said[state] += 1
                if state not in CORRUPTED and state != "00000":
                    wrong.append(f"{state}: {sql}: {session.error}")
                elif state == "00000" and is_wrong(sql, lines):
                    wrong.append(f"wrong answer: {sql}: {lines}")
                if state == "lost":
                    break
        return wrong

    def repair(self, number):
        index = self.index.format(number)
        with self.session() as session:
            states = [session.attempt(sql)[1]
                      for sql in (f"REINDEX INDEX {index}", f"SELECT {self.method}_check('{index}')")]  # fmt: skip
        return [] if states == ["00000"] * 2 else [f"REINDEX: {states}"]

    def alive(self):
        try:
            return self.server.value("SELECT 1") == "1"
        except psycopg.Error:
            return False

    def run_cases(self, cases, numbers):
        """Damages one index for each case, as many cases at a time as there are numbers of indexes."""
        faults = collections.defaultdict(list)
        for start in range(0, len(cases), len(numbers)):
            batch = cases[start:start + len(numbers)]
            self.damage(self.prepare(), batch, numbers)
            for case, number in zip(batch, numbers):
                wrong = self.examine(case, number)
                if not self.alive():
                    wrong.append("the server has crashed")
                    self.server.running.remove(self.server)
                    self.server.start()
                faults[case.name] += wrong + self.repair(number)
        return faults

    def report(self, cases, name, numbers=None):
        faults = self.run_cases(cases, numbers or list(range(self.tables)))
        bad = {case: wrong for case, wrong in faults.items() if wrong}
        ok(not bad, f"{len(cases)} {name}: each statement works or says that the index is corrupted", f"{len(bad)} cases",
           *[f"{case}: {line[:250]}" for case, wrong in bad.items() for line in wrong[:MOST]])  # fmt: skip

    def lost_bits(self, pages):
        """The check finds what no reader can: one of these pages of each index has lost its bits."""
        paths = self.prepare()
        self.damage(paths, [Case("", overwrite(n, CONTENTS, bytes(PAGE - CONTENTS))) for n in pages], range(len(pages)))
        with self.server.connect() as session:
            states = {session.attempt(f"SELECT {self.method}_check('{self.index.format(number)}')")[1]
                      for number in range(len(pages))}  # fmt: skip
        same(states, {"XX002"}, f"{self.method}_check finds lost bits")

    def end(self):
        note("SQLSTATEs: " + " ".join(f"{state}: {count}" for state, count in sorted(self.said.items())))
        ok(self.said["XX002"] > 100, "damage is found", self.said)
        signs = "PANIC", "TRAP:", "was terminated by signal"
        crashes = [line for line in self.server.log() if any(sign in line for sign in signs)]
        same(crashes, [], "the server has not crashed")
        self.server.stop()
