#!/usr/bin/python3 -B
# needs: the installation of PostgreSQL, whose library it hides
"""What doc/operations.md says of a server without the library: who can still connect, what still works on tables with our
indexes, and the ways out. Connects as libpq does, as a superuser.
"""

import contextlib
import os
import re
import subprocess
from pathlib import Path

from session import psycopg
from tap import clean_up_when_terminated, done, ok, part, same, skip

DATABASE = f"bloomtype_uninstall_{os.getpid()}"
SOMEBODY = f"bloomtype_somebody_{os.getpid()}"
PAGE = Path(__file__).resolve().parents[2] / "doc" / "operations.md"
MISSING = "58P01"
NOTHING_PRELOADED = "-c session_preload_libraries="

SETUP = """
CREATE EXTENSION bloomtype;
CREATE TABLE users (id int PRIMARY KEY, name text);
INSERT INTO users SELECT i, 'user' || i FROM generate_series(1, 1000) AS i;
CREATE INDEX users_name_set ON users USING bloomset (name);
CREATE TABLE segments (id int PRIMARY KEY, seen bloomfilter);
INSERT INTO segments SELECT i, bloom_agg(j, 100) FROM generate_series(1, 10) AS i, generate_series(1, 90) AS j GROUP BY i;
CREATE INDEX segments_seen ON segments USING bloomslices (seen);
CREATE TABLE plain (id int, f bloomfilter);
INSERT INTO plain SELECT id, seen FROM segments;
"""


def connect(database=DATABASE, **parameters):
    connection = psycopg.connect(autocommit=True, dbname=database, **parameters)
    connection.add_notice_handler(lambda _: None)
    return connection


def refusal(**parameters):
    """The message with which the server refuses a connection, None if it does not."""
    try:
        with connect(**parameters):
            return None
    except psycopg.OperationalError as error:
        return str(error)


def state_of(connection, statement):
    """The SQLSTATE that a statement ends with, None if it succeeds."""
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement)
    except psycopg.Error as error:
        return error.sqlstate
    return None


def outside(connection, statement):
    """The same for a statement that runs outside of transactions."""
    try:
        connection.execute(statement)
    except psycopg.Error as error:
        return error.sqlstate
    return None


@contextlib.contextmanager
def hidden(library):
    os.rename(library, library + ".hidden")
    try:
        yield
    finally:
        os.rename(library + ".hidden", library)


def check_lockout(db, library):
    loads = f"session_preload_libraries of database {DATABASE}"
    db.execute(f"ALTER DATABASE {DATABASE} SET session_preload_libraries = bloomtype")
    db.execute(f"ALTER DATABASE {DATABASE} SET bloomtype.join_filters = on")
    with connect() as own:
        rows = own.execute("SELECT object, statement FROM bloom_dependents() WHERE kind = 'setting'").fetchall()
        same([row for row in rows if DATABASE in row[0]],
             [(loads, f"ALTER DATABASE {DATABASE} RESET session_preload_libraries"),
              (f"bloomtype.join_filters of database {DATABASE}", f"ALTER DATABASE {DATABASE} RESET bloomtype.join_filters")],
             "bloom_dependents() lists the settings")  # fmt: skip
    with hidden(library):
        for user in ({}, {"user": SOMEBODY}):
            who = user.get("user") and "another role" or "a superuser"
            ok("could not access file" in (refusal(**user) or ""), f"without the library, {who} cannot connect")
        same(refusal(options=NOTHING_PRELOADED), None, "a superuser can, with an empty session_preload_libraries")
        ok("permission denied" in (refusal(user=SOMEBODY, options=NOTHING_PRELOADED) or ""), "another role cannot")
        with connect(options=NOTHING_PRELOADED) as own:
            same(own.execute("SELECT statement FROM bloom_dependents() WHERE object = %s", [loads]).fetchall(),
                 [(f"ALTER DATABASE {DATABASE} RESET session_preload_libraries",)], "bloom_dependents() needs no library")
        with connect(db.info.dbname, user=SOMEBODY) as other:
            same(state_of(other, f"ALTER DATABASE {DATABASE} RESET session_preload_libraries"), "42501",
                 "the owner of the database cannot reset the setting")  # fmt: skip
        db.execute(f"ALTER DATABASE {DATABASE} RESET session_preload_libraries")
        same([refusal(), refusal(user=SOMEBODY)], [None, None], "after RESET from another database, all can connect")
    db.execute(f"ALTER DATABASE {DATABASE} RESET ALL")


FAIL = [
    "SELECT id FROM users", "INSERT INTO users VALUES (0, 'nobody')", "UPDATE users SET id = -1 WHERE id = 1",
    "DELETE FROM users WHERE id = 1", "ANALYZE users", "TRUNCATE users", "DROP INDEX users_name_set", "DROP TABLE users",
    "REINDEX TABLE users", "ALTER TABLE users DROP COLUMN name", "SELECT id FROM segments", "DROP INDEX segments_seen",
    "SELECT f FROM plain", "DROP EXTENSION bloomtype CASCADE",
]  # fmt: skip
WORK = [
    "COPY users TO PROGRAM 'cat >/dev/null'", "COPY segments (id) TO PROGRAM 'cat >/dev/null'", "SELECT id FROM plain",
    "INSERT INTO plain SELECT * FROM plain", "DROP TABLE plain", "SELECT * FROM bloom_dependents()",
]  # fmt: skip


def dump():
    return subprocess.run(["pg_dump", "--file=/dev/null", DATABASE], stderr=subprocess.PIPE, text=True, check=False)


def check_tables(library):
    with hidden(library), connect() as own:
        for statement in FAIL:
            same(state_of(own, statement), MISSING, f"fails without the library: {statement}")
        same(outside(own, "VACUUM users"), MISSING, "fails without the library: VACUUM users")
        for statement in WORK:
            same(state_of(own, statement), None, f"works without the library: {statement}")
        ok("could not access file" in dump().stderr, "pg_dump fails")
    with connect() as own:
        for statement in FAIL:
            same(state_of(own, statement), None, f"works when the library is back: {statement}")
    same(dump().returncode, 0, "so does pg_dump")


def recipe():
    """The block that drops the extension without the library, without BEGIN and COMMIT."""
    blocks = re.findall(r"^```sql no-run\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    (found,) = [sql for sql in blocks if "brinhandler" in sql]
    return re.sub(r"^(BEGIN|COMMIT);\n", "", found, flags=re.M)


def check_way_out(library):
    with hidden(library), connect() as own:
        with own.transaction():
            own.execute(recipe())
        same(own.execute("SELECT count(*), count(name) FROM users").fetchone(), (1000, 1000), "the recipe leaves the tables")
        for statement in FAIL[1:6]:
            same(state_of(own, statement), None, f"then this works: {statement}")
        same(own.execute("SELECT * FROM segments ORDER BY id LIMIT 1").fetchall(), [(1,)], "the filters are gone")
        same(dump().returncode, 0, "pg_dump works")
        same(own.execute("SELECT count(*) FROM pg_class WHERE relname IN ('users_name_set', 'segments_seen')").fetchone(), (0,),
             "so are the indexes")  # fmt: skip
    with connect() as own:
        own.execute("CREATE EXTENSION bloomtype; CREATE INDEX ON users USING bloomset (name)")
        same(own.execute("SELECT bloomset_contains('users', 'name', 'user7')").fetchone(), (True,),
             "with the library the extension can be created again")  # fmt: skip


def main():
    clean_up_when_terminated()
    with psycopg.connect(autocommit=True) as db:
        db.add_notice_handler(lambda _: None)
        (directory,) = db.execute("SELECT setting FROM pg_config WHERE name = 'PKGLIBDIR'").fetchone()
        libraries = [str(path) for path in Path(directory).glob("bloomtype.*") if path.suffix in (".so", ".dylib")]
        if len(libraries) != 1 or not os.access(directory, os.W_OK):
            skip("a server without the library", "the server's directory of libraries cannot be written to")
            done()
        db.execute(f"CREATE ROLE {SOMEBODY} LOGIN")
        db.execute(f"CREATE DATABASE {DATABASE} OWNER {SOMEBODY}")
        try:
            with connect() as own:
                own.execute(SETUP)
            part(check_lockout, db, libraries[0])
            part(check_tables, libraries[0])
            part(check_way_out, libraries[0])
        finally:
            db.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
            db.execute(f"DROP ROLE {SOMEBODY}")
    done()


main()
