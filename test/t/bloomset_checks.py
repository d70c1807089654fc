"""What the tests of bloomset share: queries that find what a set denies wrongly, and sessions that wait for each other.

Each query compares the set with the table in one statement, so in one snapshot, and must return no row.
"""

import contextlib
import time

PATIENCE = 60  # seconds that a test waits for another session

# A set that denies every absent value of a test: of a million, one is taken for present with a probability of 0.001.
RARE = "false_positive_rate = 1e-7"


def values(table, column, condition="true"):
    """The values of a column that the statement's snapshot sees."""
    return f"(SELECT DISTINCT {column} AS v FROM {table} WHERE {column} IS NOT NULL AND {condition} OFFSET 0) AS s"


def denied(table, column="k", condition="true"):
    """What bloomset_contains denies although the table has it."""
    return f"SELECT v FROM {values(table, column, condition)} WHERE NOT bloomset_contains('{table}', '{column}', v)"


def denied_by_index(index, table, column="k", condition="true"):
    return f"SELECT v FROM {values(table, column, condition)} WHERE NOT bloomset_contains('{index}'::regclass, v)"


def leaf_values(table, column, condition="true"):
    return f"(SELECT DISTINCT {column} AS v, tableoid AS leaf FROM {table} " \
        f"WHERE {column} IS NOT NULL AND {condition} OFFSET 0) AS s"


def denied_by_partitions(table, column="k", condition="true"):
    """The values whose leaf bloomset_partitions does not name."""
    return f"SELECT v, leaf::regclass FROM {leaf_values(table, column, condition)} WHERE NOT EXISTS " \
        f"(SELECT FROM bloomset_partitions('{table}', '{column}', v) AS p (maybe) WHERE maybe = leaf)"


def denied_by_filters(table, column="k", condition="true"):
    """The values that no filter of their leaf contains."""
    return f"SELECT v, leaf::regclass FROM {leaf_values(table, column, condition)} WHERE NOT EXISTS " \
        f"(SELECT FROM bloomset_filters('{table}', '{column}') AS f WHERE f.partition = leaf AND f.filter @> v)"


def denied_by_scan(table, column="k", condition="true"):
    """The values whose rows an index scan does not find. The second subquery cannot use the set."""
    count = f"(SELECT count(*) FROM {table} AS t WHERE "
    return f"SELECT v FROM {values(table, column, condition)} WHERE {count} t.{column} = v) <> " \
        f"{count} t.{column} IS NOT DISTINCT FROM v)"


# The planner uses a set wherever it can.
USE_SETS = "SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off;"

VALID_SETS = """
SELECT c.oid FROM pg_class AS c JOIN pg_am AS a ON a.oid = c.relam JOIN pg_index AS i ON i.indexrelid = c.oid
WHERE a.amname = 'bloomset' AND c.relkind = 'i' AND i.indisvalid AND i.indrelid = '{}'::regclass ORDER BY c.oid
"""


def until(true, what, seconds=PATIENCE):
    """Waits until a function returns true."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not after {seconds} s: {what}")
        time.sleep(0.01)


def wait_until_blocked(watcher, blocked, by=None):
    """Waits until a session waits for a lock of another, or of any."""
    pids = f"pg_blocking_pids({blocked.pid})"
    query = f"SELECT {by.pid} = ANY ({pids})" if by else f"SELECT {pids} <> '{{}}'"
    until(lambda: watcher.ask(query) == ["t"], f"session {blocked.pid} waits")


def settled(session, query, answers=("f",)):
    """Does a query give these lines, at once or when transactions that are under way elsewhere have ended? A set that was
    just built answers "maybe" until then."""
    with contextlib.suppress(TimeoutError):
        until(lambda: session.ask(query) == list(answers), query, 20)
        return True
    return False
