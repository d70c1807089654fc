"""A session with DuckDB, to be asked and measured as one with the server."""
import glob
import json
import os
import subprocess
import tempfile

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "duckdb.mjs")
COLUMNS = """SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum)
    FROM pg_attribute WHERE attrelid = '%s'::regclass AND attnum > 0"""


class DuckDB(subprocess.Popen):
    """A process with an empty database in memory and one thread. DUCKDB is the directory of its package."""

    def __init__(self):
        pipe = subprocess.PIPE
        super().__init__(["node", PROGRAM], cwd=os.environ["DUCKDB"], stdin=pipe, stdout=pipe, text=True)

    def rows(self, sql):
        """The rows of a statement, each a list of the texts of its fields; no field may be NULL."""
        print(json.dumps(sql), file=self.stdin, flush=True)
        answer = self.stdout.readline()
        if not answer:
            raise SystemExit("DuckDB cannot run: " + sql)
        return [[str(field) for field in row] for row in json.loads(answer)]

    ask = rows

    def cpu_used(self):
        """The processor time of all its threads in seconds."""
        threads = glob.glob("/proc/%d/task/*/schedstat" % self.pid)
        return sum(int(open(thread).read().split()[0]) for thread in threads) / 1e9

    def copy(self, session, table):
        """Copies a table of the server."""
        self.ask("CREATE TABLE %s (%s)" % (table, session.ask(COLUMNS % table)[0]))
        with tempfile.NamedTemporaryFile(prefix="bloomtype.") as file:
            subprocess.run(["psql", "-Xqc", "COPY %s TO STDOUT (FORMAT csv)" % table], check=True, stdout=file)
            self.ask("COPY %s FROM '%s' (FORMAT csv, HEADER false)" % (table, file.name))

    def dropped(self, sql):
        """The number of scans that get a filter of a join, the rows that they drop, and those that they read."""
        ((_, plan),) = self.rows("EXPLAIN (ANALYZE, FORMAT json) " + sql)
        nodes = [json.loads(plan)]
        for node in nodes:
            nodes += node["children"]
        scans = [node for node in nodes if "Dynamic Filters" in node.get("extra_info", {})]
        read, kept = (sum(scan[key] for scan in scans) for key in ("operator_rows_scanned", "operator_cardinality"))
        return len(scans), read - kept, read
