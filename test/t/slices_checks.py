"""What the tests of bloomslices share: filters, and whether an index answers as a scan of its table does."""

# In both, the second condition cannot use an index.
DIFFERENT = """
WITH by_index AS MATERIALIZED (SELECT id FROM {0} WHERE f @> {1}), by_scan AS MATERIALIZED
(SELECT id FROM {0} WHERE (f @> {1}) IS TRUE)
(TABLE by_index EXCEPT TABLE by_scan) UNION ALL (TABLE by_scan EXCEPT TABLE by_index)
UNION ALL SELECT -count(*) FROM by_index HAVING count(*) <> (SELECT count(*) FROM by_scan)"""


def differences(session, table, keys):
    """Queries whose answers by index and by scan differ, and errors."""
    wrong = []
    for key in keys:
        lines, state = session.attempt(DIFFERENT.format(table, key))
        if lines or state != "00000":
            wrong.append(f"{table} @> {key}: {lines[:5]} {session.error if state != '00000' else ''}")
    return wrong


def check(session, index):
    _, state = session.attempt(f"SELECT bloomslices_check('{index}')")
    return [] if state == "00000" else [f"{index}: {session.error}"]


def filters(keys, n, expected, rate="0.01", seed=0, layout="blocked", first=0):
    """SQL that yields n filters f, numbered id from first + 1 on; filter i has the keys 1000 * i + 1 .. + keys."""
    return f"""SELECT s + {first} AS id, bloom_agg((1000 * s + i)::bigint, bloom_create({expected}, {rate}, '{layout}', {seed}))
        AS f FROM generate_series(1, {n}) AS s, generate_series(1, {keys}) AS i GROUP BY s"""
