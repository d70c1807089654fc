#!/usr/bin/python3 -B
"""The memory that probing takes: the copies of stored filters stay within work_mem, all call sites share them, and they
end with the transaction; and answers stay right while copies come and go.
"""

from session import CHEAP_WORKERS, Session, ask, each, run, sanitized
from tap import note, ok, same
import reference as ref

Session.settings = CHEAP_WORKERS + """
SET client_min_messages = error;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
"""


FLAT = """
CREATE TABLE flat (id int PRIMARY KEY, f bloomfilter);
INSERT INTO flat SELECT id, bloom_agg(x, 16000)
    FROM generate_series(1, 12) AS id, generate_series(1, 3000) AS x GROUP BY id;
CREATE FUNCTION used(OUT bytes bigint, OUT anonymous bigint) LANGUAGE sql AS $$
    SELECT (SELECT sum(total_bytes) FROM pg_backend_memory_contexts),
        1024 * (SELECT m[1]::bigint FROM regexp_matches(pg_read_file('/proc/self/status'), 'RssAnon:\\s*(\\d+)') AS m)
$$;
-- Replaces twelve filters in every round and probes each again and again, and two by turns, of which one is in memory.
-- Returns the number of elements that a filter holds and denied.
CREATE FUNCTION probe_flat(rounds int, keys int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    r record;
    g bloomfilter;
    several record;
    denied bigint := 0;
BEGIN
    FOR i IN 1 .. rounds LOOP
        BEGIN
            UPDATE flat SET f = bloom_add(f, -i);
            FOR r IN SELECT id, f FROM flat LOOP
                g := r.f;
                FOR k IN 1 .. keys LOOP
                    denied := denied + (NOT g @> k)::int;
                END LOOP;
                denied := denied + (NOT g @> -i)::int;
            END LOOP;
            SELECT a.f AS a, b.f::bytea::bloomfilter AS b INTO several FROM flat AS a, flat AS b
                WHERE a.id = 1 + i % 12 AND b.id = 12 - i % 12;
            FOR k IN 1 .. keys LOOP
                denied := denied + (NOT several.a @> k)::int
                    + (NOT CASE k % 2 WHEN 0 THEN several.a ELSE several.b END @> k)::int;
            END LOOP;
            IF i % 5 = 0 THEN
                RAISE division_by_zero;
            END IF;
        EXCEPTION WHEN division_by_zero THEN
            NULL;
        END;
    END LOOP;
    RETURN denied;
END $$;
"""


def test_changing_filters():
    """A million probes of stored filters that change, in one transaction: the memory of a session stays flat."""
    ask(FLAT)
    results = each(
        "SET work_mem = '512kB'",
        "BEGIN",
        "DECLARE slices CURSOR FOR SELECT f @> i FROM generate_series(1, 10000) AS i, flat",
        "DECLARE copies CURSOR FOR SELECT f @> i FROM generate_series(1, 100000) AS i, flat WHERE id <= 6",
        "MOVE 5000 FROM slices", "MOVE 5000 FROM copies",
        "SELECT probe_flat(5, 100)",
        "SELECT * FROM used()",
        "MOVE 30000 FROM slices", "MOVE 500000 FROM copies",
        "SELECT probe_flat(25, 1700)",
        "SELECT * FROM used()",
    )  # fmt: skip
    ok(len(results) == 12, "a million probes: run")
    same([results[i] for i in (6, 10)], [["0"], ["0"]], "a million probes: no element denied")
    before, after = ([int(field) for field in results[i][0].split("|")] for i in (7, 11))
    grown = [(b - a) / 1024 for a, b in zip(before, after)]
    note(f"after a million probes, memory contexts have {grown[0]:+.0f} kB, anonymous memory {grown[1]:+.0f} kB")
    ok(grown[0] < 200 and (grown[1] < 2000 or sanitized()), "a million probes: memory stays flat", grown)


WEIGHTS = """
CREATE TABLE heavy (id int PRIMARY KEY, plain bloomfilter, packed bloomfilter);
ALTER TABLE heavy ALTER packed SET STORAGE EXTENDED;
CREATE FUNCTION probe_heavy(packs boolean, rounds int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    r record;
    g bloomfilter;
    found bigint := 0;
BEGIN
    FOR i IN 1 .. rounds LOOP
        FOR r IN SELECT id, CASE WHEN packs THEN packed ELSE plain END AS f FROM heavy ORDER BY id LOOP
            g := r.f;
            FOR k IN 1 .. 200 LOOP
                found := found + (g @> k)::int;
            END LOOP;
        END LOOP;
    END LOOP;
    RETURN found;
END $$;
"""


def test_work_mem():
    """The copies take work_mem, or one copy more than that, whatever they take when stored. A filter is copied when as
    much of it has been read for single probes, long before 200 of them."""
    size, filters, rounds = 1 << 20, 6, 4
    zeros = f"'\\x{header_of(size).hex()}'::bytea || decode(repeat('00', {size}), 'hex')"
    ask(f"""{WEIGHTS}
        INSERT INTO heavy SELECT id, f, f
        FROM generate_series(1, {filters}) AS id, CAST({zeros} AS bloomfilter) AS f""")
    for packs in (False, True):
        for work_mem, copies in (("64kB", 1), (f"{size * 7 // 2048}kB", 3), ("64MB", filters)):
            _, _, _, (before,), found, (after,) = each(
                f"SELECT probe_heavy({packs}, 1)", f"SET work_mem = '{work_mem}'", "BEGIN", "SELECT bytes FROM used()",
                f"SELECT probe_heavy({packs}, {rounds})", "SELECT bytes FROM used()",
            )  # fmt: skip
            kept = (int(after) - int(before)) / size
            name = f"{filters} filters of 1 MB, {'compressed' if packs else 'plain'}, work_mem {work_mem}"
            good = found == ["0"] and copies - 0.5 < kept < copies + 0.5
            ok(good, f"{name}: keeps {copies}", f"{kept:.2f} MB", found)


# The copies that all call sites share.

HALF = 6 << 20  # bytes of the large filter that are ones; the others are zeros
PARTS, SPREAD, MANY_KEYS, KEPT = 365, 36500, 480, "bloomtype stored%"
SHARED = f"""
CREATE TABLE many_keys (b bigint) WITH (parallel_workers = 2);
INSERT INTO many_keys SELECT i % 16 FROM generate_series(1, {MANY_KEYS}) AS i;
CREATE TABLE large (id int PRIMARY KEY, f bloomfilter);
CREATE TABLE spread (part int, k bigint) PARTITION BY LIST (part);
DO $$ BEGIN
    FOR i IN 0 .. {PARTS - 1} LOOP
        EXECUTE format('CREATE TABLE spread_%1$s PARTITION OF spread FOR VALUES IN (%1$s)', i);
    END LOOP;
END $$;
INSERT INTO spread SELECT i % {PARTS}, i FROM generate_series(1, {SPREAD}) AS i;
CREATE FUNCTION memory(OUT contexts bigint, OUT copies bigint, OUT now bigint, OUT most bigint) LANGUAGE sql AS $$
    SELECT (SELECT sum(total_bytes) FROM pg_backend_memory_contexts),
        (SELECT count(*) FROM pg_backend_memory_contexts WHERE name LIKE '{KEPT}'),
        kb[1] * 1024, (kb[1] + kb[2] - kb[3]) * 1024
    FROM (SELECT array_agg(m[1]::bigint) AS kb FROM pg_read_file('/proc/self/status') AS status,
        unnest('{{RssAnon,VmHWM,VmRSS}}'::text[]) AS name, regexp_matches(status, name || ':\\s*(\\d+)') AS m) AS s
$$;
-- Reads all pages of a TOAST table, so that the process's memory already includes them.
CREATE FUNCTION touch(regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE (SELECT format('SELECT sum(length(chunk_data)) FROM %s', reltoastrelid::regclass) FROM pg_class WHERE oid = $1);
END $$;
CREATE FUNCTION ten_sites(f bloomfilter) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    found bigint := 0;
BEGIN
    FOR k IN 1 .. 2000 LOOP
        {" ".join("found := found + (f @> k)::int;" for _ in range(10))}
    END LOOP;
    RETURN found;
END $$;
-- Odd filters hold everything, even ones nothing.
CREATE TABLE opposites (id int PRIMARY KEY, f bloomfilter);
CREATE FUNCTION get(i int) RETURNS bloomfilter LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT f FROM opposites WHERE id = i);
END $$;
-- One call site has a shortcut to the first filter while another one meets all others.
CREATE FUNCTION two_sites(often boolean) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    a bloomfilter := (SELECT f FROM opposites WHERE id = 1);
    g bloomfilter;
    r record;
    wrong int := 0;
BEGIN
    FOR i IN 1 .. 2 LOOP
        FOR k IN 1 .. 300 LOOP
            wrong := wrong + (NOT a @> k)::int;
        END LOOP;
        FOR r IN SELECT id, f FROM opposites WHERE id > 1 ORDER BY id LOOP
            g := r.f;
            FOR k IN 1 .. 300 LOOP
                wrong := wrong + ((g @> k) <> (r.id % 2 = 1))::int
                    + CASE WHEN often OR k = 300 THEN (NOT a @> k)::int ELSE 0 END;
            END LOOP;
        END LOOP;
    END LOOP;
    RETURN wrong;
END $$;
CREATE PROCEDURE commits(INOUT copies bigint, INOUT after bigint, INOUT wrong int) LANGUAGE plpgsql AS $$
BEGIN
    wrong := two_sites(true);
    SELECT m.copies INTO copies FROM memory() AS m;
    COMMIT;
    SELECT m.copies INTO after FROM memory() AS m;
END $$;
CREATE TABLE thousands (id int, f bloomfilter);
INSERT INTO thousands SELECT i, f FROM generate_series(1, 3000) AS i,
    (SELECT bloom_agg(j, 10000000) AS f FROM generate_series(1, 1200) AS j) AS v;
"""


def stored(table, id_, header, *runs):
    """An INSERT of a filter whose bits are runs of one byte."""
    data = " || ".join(f"decode(repeat('{byte:02x}', {count}), 'hex')" for byte, count in runs)
    return f"INSERT INTO {table} VALUES ({id_}, ('\\x{header.hex()}'::bytea || {data})::bloomfilter)"


def header_of(size):
    return ref.Filter("blocked", 6, ref.single(0.01), 0, 8 * size, ref.CLASSES["bigint"], None, b"").encode()


def set_up_shared():
    size = 1 << 20
    each(SHARED, stored("large", 1, header_of(2 * HALF), (255, HALF), (0, HALF)),
         *(stored("opposites", i, header_of(size), (255 * (i % 2), size)) for i in range(1, 9)))  # fmt: skip


def steps(name, *statements):
    """Runs statements, each with its expected lines, or None for any; returns their lines."""
    results, wrong = [], []
    with Session() as session:
        for sql, wanted in statements:
            lines, state = session.attempt(sql)
            results.append(lines)
            if wanted is not None and lines != wanted or state == "lost":
                wrong.append(f"{sql}\ngot      {lines}, SQLSTATE {state}\nexpected {wanted}\n{session.error}")
    ok(not wrong, name, *wrong[:2])
    return results


def test_shared_memory():
    """A filter of 12 MB at many call sites: one copy."""
    bits = b"\xff" * HALF + bytes(HALF)
    large = ref.Filter("blocked", 6, ref.single(0.01), 0, 16 * HALF, ref.CLASSES["bigint"], None, bits)
    holds = [large.contains(ref.element("bigint", k)) for k in range(1, SPREAD + 1)]
    found, ten = sum(holds), 10 * sum(holds[:2000])
    lines = steps(
        "one filter, 365 partitions and ten expressions: the answers are right",
        ("SET work_mem = '4MB'", []), ("SELECT touch('large')", None), ("SELECT count(*) FROM spread WHERE k > 0", None),
        ("BEGIN", []),
        ("SELECT * FROM memory()", None),
        ("SELECT count(*) FROM spread WHERE (SELECT f FROM large) @> k", [str(found)]),
        ("SELECT * FROM memory()", None),
        ("SELECT ten_sites(f) FROM large", [str(ten)]),
        ("SELECT * FROM memory()", None),
        ("COMMIT", []),
        ("SELECT * FROM memory()", None),
    )  # fmt: skip
    before, partitions, expressions, after = ([int(n) for n in lines[i][0].split("|")] for i in (4, 6, 8, 10))
    for name, there in ("365 partitions", partitions), ("ten expressions", expressions):
        contexts, now, most = ((there[i] - before[j]) / 2**20 for i, j in ((0, 0), (2, 2), (3, 2)))
        note(f"{name}: memory contexts {contexts:+.1f} MB, anonymous memory {now:+.1f} MB, at most {most:+.1f} MB")
        ok(11 <= contexts < 14 and there[1] == 2, f"{name}: one copy", contexts, there)
        ok(most < 20 or sanitized(), f"{name}: no more than work_mem and 16 MB", most)
    ok(after[1] == 0 and after[0] - before[0] < 2**20, "the copy ends with the transaction", before, after)


def test_compressed_in_row():
    """Probes for an array's elements all belong to one row, so memory must not be kept until the row ends."""
    lines = steps(
        "a filter of 128 kB compressed in its row, 5,000 elements",
        ("CREATE TEMP TABLE packed (f bloomfilter)", []), ("ALTER TABLE packed ALTER f SET STORAGE main", []),
        ("INSERT INTO packed SELECT (decode('01000006140000000ad7233c0000000000000000', 'hex') || "
         "decode('0000100000000000' || repeat('00', 131072), 'hex'))::bloomfilter", []),
        ("SELECT pg_column_size(f) < 2000 FROM packed", ["t"]),
        ("SELECT * FROM memory()", None),
        ("SELECT f @> ANY (ARRAY(SELECT generate_series(1, 5000))) FROM packed", ["f"]),
        ("SELECT * FROM memory()", None),
    )  # fmt: skip
    before, after = ([int(n) for n in lines[i][0].split("|")] for i in (4, 6))
    grown = (after[3] - before[3]) / 2**20
    ok(grown < 20 or sanitized(), "memory does not grow with the elements", f"{grown:.0f} MB")


def test_end_of_transaction():
    none, kept, gone = "SELECT two_sites(true)", ("SELECT copies FROM memory()", ["2"]), ("SELECT copies FROM memory()", ["0"])
    probe = (none, ["0"])
    steps(
        "copies end with a transaction, however it ends",
        ("SET work_mem = '4MB'", []), probe, gone,
        ("BEGIN", []), probe, kept, ("COMMIT", []), gone,
        ("BEGIN", []), probe, kept, ("ROLLBACK", []), gone,
        ("BEGIN", []), ("SAVEPOINT a", []), probe, ("ROLLBACK TO a", []), kept, probe, ("COMMIT", []), gone,
        ("BEGIN", []), probe, ("SELECT 1 / 0", []), ("COMMIT", []), gone,
        ("SELECT two_sites(false) / 0", []), gone,
        ("CALL commits(0, 0, 0)", ["2|0|0"]), gone,
        ("SET max_parallel_workers_per_gather = 2", []),
        ("SELECT count(*) FROM many_keys AS x WHERE (SELECT f FROM opposites WHERE id = 1) @> x.b", [str(MANY_KEYS)]), gone,
    )  # fmt: skip
    steps(
        "a cursor WITH HOLD says the same after its transaction",
        ("SET work_mem = '4MB'", []), ("BEGIN", []),
        ("DECLARE c CURSOR WITH HOLD FOR SELECT count(*) FILTER (WHERE f @> k), id FROM opposites, generate_series(1, 300) AS k"
         " GROUP BY id ORDER BY id", []),
        ("FETCH 2 FROM c", ["300|1", "0|2"]), kept, ("COMMIT", []), gone,
        ("UPDATE opposites SET f = f", []),
        ("FETCH ALL FROM c", [f"{300 * (i % 2)}|{i}" for i in range(3, 9)]), gone, ("CLOSE c", []),
    )  # fmt: skip
    # Two expressions copy their filters in turn, each into the place where the other's copy was a transaction earlier.
    steps(
        "commits in a DO block",
        ("SET work_mem = '4MB'", []),
        ("DO $$ DECLARE wrong int := 0; BEGIN FOR i IN 1 .. 9 LOOP FOR k IN 1 .. 600 LOOP"
         " IF (k <= 300) = (i % 2 = 1) THEN wrong := wrong + (NOT get(1) @> k)::int;"
         " ELSE wrong := wrong + (get(2) @> k)::int; END IF; END LOOP;"
         " IF i % 3 = 0 THEN ROLLBACK; ELSE COMMIT; END IF; END LOOP;"
         " PERFORM set_config('probing.said', wrong::text, false); END $$", []),
        ("SELECT current_setting('probing.said')", ["0"]), gone,
    )  # fmt: skip


def test_eviction():
    for work_mem in "64kB", "2500kB", "3500kB", "64MB":
        steps(
            f"two call sites by turns and eight filters, work_mem {work_mem}",
            (f"SET work_mem = '{work_mem}'", []),
            ("SELECT two_sites(true)", ["0"]), ("SELECT two_sites(false)", ["0"]),
            ("BEGIN", []), ("SELECT two_sites(false)", ["0"]), ("SET work_mem = '1200kB'", []),
            ("SELECT two_sites(true)", ["0"]), ("SELECT two_sites(false)", ["0"]), ("COMMIT", []),
        )  # fmt: skip
    probe = "SELECT count(*) FROM gone, generate_series(1, 300) AS k WHERE f @> k"
    other = "(SELECT f FROM opposites WHERE id = 2)"
    steps(
        "a filter that is dropped or replaced in its transaction",
        ("BEGIN", []), ("CREATE TABLE gone AS SELECT f FROM opposites WHERE id = 1", []), (probe, ["300"]),
        ("SAVEPOINT s", []), ("DROP TABLE gone", []),
        (f"CREATE TABLE gone AS SELECT {other} AS f", []), (probe, ["0"]),
        ("ROLLBACK TO s", []), (probe, ["300"]),
        (f"UPDATE gone SET f = {other}", []), (probe, ["0"]),
        ("ROLLBACK TO s", []), (probe, ["300"]),
        ("TRUNCATE gone", []), (f"INSERT INTO gone SELECT {other}", []), (probe, ["0"]), ("ROLLBACK", []),
    )  # fmt: skip


def test_many_filters():
    """The notes about thousands of filters without a copy are bounded, too."""
    used = f"SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE name LIKE '{KEPT}'"
    for work_mem, most in (("1MB", 160), ("64kB", 64)):
        lines = steps(
            f"one key in 3,000 filters, work_mem {work_mem}",
            (f"SET work_mem = '{work_mem}'", []), ("BEGIN", []),
            ("SELECT count(*) FROM thousands WHERE f @> 1", ["3000"]),
            ("SELECT count(*) FROM thousands WHERE f @> -1", ["0"]), (used, None), ("COMMIT", []),
        )  # fmt: skip
        bytes_ = int(lines[4][0])
        ok(bytes_ < most * 1024, f"one key in 3,000 filters, work_mem {work_mem}: at most {most} kB", bytes_)


run(test_changing_filters, test_work_mem, set_up_shared, test_shared_memory, test_compressed_in_row,
    test_end_of_transaction, test_eviction, test_many_filters)  # fmt: skip
