"""What the tests of bloomset share: queries that find what a set denies wrongly.

Each query compares the set with the table in one statement, so in one snapshot, and must return no row.
"""

import contextlib

from session import Session, ask, in_thread, result_of, until, wait_until_blocked
from tap import same

# A set that denies every absent value of a test: of ten thousand, one is taken for present with a probability of 0.001.
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


def settled(session, query, answers=("f",)):
    """Does a query give these lines, at once or when transactions that are under way elsewhere have ended? A set that
    was just built answers "maybe" until then."""
    with contextlib.suppress(TimeoutError):
        until(lambda: session.ask(query) == list(answers), query, 20)
        return True
    return False


# Tables with a set of their column k, and what they are asked

def contains(table, value, column="k"):
    return f"SELECT bloomset_contains('{table}', '{column}', {value})"


def by_index(index, value):
    return f"SELECT bloomset_contains('{index}'::regclass, {value})"


def scan(table, value, column="k"):
    return f"SELECT count(*) FROM {table} WHERE {column} = {value}"


def check(index):
    return f"SELECT bloomset_check('{index}'::regclass)"


def numbers(first, last):
    return f"SELECT i FROM generate_series({first}, {last}) AS i"


def make(table, rows="", columns="k bigint", options=f"{RARE}, expected_items = 100"):
    """Makes a table with a set of its column k, and these values there."""
    ask(f"CREATE TABLE {table} ({columns})")
    if rows:
        ask(f"INSERT INTO {table} (k) {rows}")
    ask(f"CREATE INDEX {table}_k ON {table} USING bloomset (k) WITH ({options})")


def finds_all(session, table, name):
    """Tests that no row that the session sees is missed, in any way to ask."""
    for kind, query in (("contains", denied), ("partitions", denied_by_partitions), ("filters", denied_by_filters)):
        same(session.ask(query(table)), [], f"{name}: {kind}")


# Trees

# A value 7 is only in the table that is not in the tree.
GROVE = f"""
DROP TABLE IF EXISTS grove, grove_1, filled, trunk CASCADE;
CREATE TABLE grove (p int, k bigint) PARTITION BY LIST (p);
CREATE TABLE grove_1 PARTITION OF grove FOR VALUES IN (1);
CREATE TABLE grove_2 PARTITION OF grove FOR VALUES IN (2{{}}) PARTITION BY LIST (p);
CREATE TABLE grove_21 PARTITION OF grove_2 FOR VALUES IN (2);
CREATE INDEX grove_k ON grove USING bloomset (k) WITH ({RARE}, expected_items = 100);
INSERT INTO grove SELECT 1 + i % 2, i FROM generate_series(100, 200) AS i;
CREATE TABLE filled (p int, k bigint);
INSERT INTO filled VALUES (7, 7);
CREATE INDEX filled_k ON filled USING bloomset (k) WITH ({RARE}, seed = 6);
"""
ELDER = f"""
DROP TABLE IF EXISTS elder, younger, stray CASCADE;
CREATE TABLE elder (k bigint);
CREATE TABLE younger () INHERITS (elder);
CREATE TABLE stray (k bigint);
INSERT INTO stray VALUES (7);
CREATE INDEX ON elder USING bloomset (k) WITH ({RARE});
CREATE INDEX ON younger USING bloomset (k) WITH ({RARE});
CREATE INDEX ON stray USING bloomset (k) WITH ({RARE});
"""


# Two calls from one place

# The calls of ask_TABLE() in one transaction come from one place. So do the two of the others, which wait in between
# for the lock that another session has. ask_undone_TABLE() rolls its first call back.
CALLS = """
CREATE OR REPLACE FUNCTION ask_{table}(x bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN bloomset_contains('{table}', 'k', x);
END $$;
CREATE OR REPLACE FUNCTION ask_twice_{table}(x bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answers text := '';
    answer boolean;
BEGIN
    FOR i IN 1..2 LOOP
        answer := bloomset_contains('{table}', 'k', x);
        answers := answers || CASE WHEN answer THEN 'yes ' ELSE 'no ' END;
        IF i = 1 THEN PERFORM pg_advisory_xact_lock(4711); END IF;
    END LOOP;
    RETURN answers;
END $$;
CREATE OR REPLACE FUNCTION ask_undone_{table}(x bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answers text := '';
    answer boolean;
BEGIN
    FOR i IN 1..2 LOOP
        BEGIN
            answer := bloomset_contains('{table}', 'k', x);
            IF i = 1 THEN RAISE EXCEPTION 'undone'; END IF;
        EXCEPTION WHEN raise_exception THEN NULL;
        END;
        answers := answers || CASE WHEN answer THEN 'yes ' ELSE 'no ' END;
        IF i = 1 THEN PERFORM pg_advisory_xact_lock(4711); END IF;
    END LOOP;
    RETURN answers;
END $$;
"""


def make_calls(table):
    ask(CALLS.format(table=table))


def between_calls(call, *statements, name):
    """Runs statements in another session between the two calls of a function. Returns what the function says, and its
    SQLSTATE."""
    with Session() as asker, Session() as other:
        other.ask("SELECT pg_advisory_lock(4711)")
        asking = in_thread(asker.attempt, call)
        wait_until_blocked(asker, other)
        states = [other.attempt(statement)[1] for statement in statements]
        same(set(states), {"00000"}, f"{name}: the other session is not held up")
        other.ask("SELECT pg_advisory_unlock(4711)")
        return result_of(asking)
