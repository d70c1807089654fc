#!/usr/bin/python3 -B
"""Compares doc/reference.md with the catalog and with the server.

Every object of the extension must have its synopsis on the page, exactly as the catalog has it, and every synopsis on
the page must be an object's. What the page says of properties, parameters, null arguments and errors is checked, too:
each example of an error is run, for counters also where it shows filters, and each function that an entry sends to the
errors of elements or of combining raises them. Prints TAP; connects as psql does.
"""

import pathlib
import re

from session import psycopg
from tap import done, ok, same

PAGE = pathlib.Path(__file__).resolve().parents[2] / "doc" / "reference.md"
ELEMENT_ERRORS = "[elements](#element-errors)"
COMBINING_ERRORS = "[combining](#combining)"

# What an example calls for filters, and the same for counters.
COUNTERPARTS = {"bloom_create": "bloom_create_counter", "bloom_bytes": "bloom_counter_bytes",
                "bloom_agg": "bloom_counter_agg", "bloomfilter": "bloomcounter"}
# Arguments by name, for a call that fails only because of its element.
ARGUMENTS = {"filter": "bloom_add(bloom_create(10), 1)", "counter": "bloom_add(bloom_create_counter(10), 1)",
             "expected_items": "10", "false_positive_rate": "0.1", "counter_bits": "4", "times": "1", "level": "1"}
# Filters that do not combine.
MISMATCHES = [("22023", "bloom_create(1000)", "bloom_create(1500)"),
              ("22023", "bloom_create(10)", "bloom_create(10, seed => 1)"),
              ("42804", "bloom_add(bloom_create(10), 1)", "bloom_add(bloom_create(10), 'a'::text)")]
WIDTHS = ("22023", "bloom_create_counter(10)", "bloom_create_counter(10, counter_bits => 8)")

MEMBERS = """
WITH member AS (
  SELECT classid, objid FROM pg_depend JOIN pg_extension e ON refobjid = e.oid
  WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND extname = 'bloomtype'),
function AS (
  SELECT p.*, format('%s(%s) → %s', proname, pg_get_function_arguments(oid), pg_get_function_result(oid)) AS synopsis
  FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid)
"""
# The synopsis of each object, and that of the function behind an operator or a cast.
OBJECTS = MEMBERS + """
SELECT 'function' AS kind, synopsis, NULL AS function FROM function
UNION ALL
SELECT 'operator', concat_ws(' ', nullif(oprleft, 0)::regtype, oprname, oprright::regtype, '→', oprresult::regtype),
  synopsis
FROM member JOIN pg_operator o ON classid = 'pg_operator'::regclass AND objid = o.oid
  LEFT JOIN function f ON f.oid = oprcode
UNION ALL
SELECT 'cast', format('CAST (%s AS %s)', castsource::regtype, casttarget::regtype), synopsis
FROM member JOIN pg_cast c ON classid = 'pg_cast'::regclass AND objid = c.oid LEFT JOIN function f ON f.oid = castfunc
WHERE castcontext = 'e' AND castfunc <> 0
UNION ALL
SELECT 'operator class', format('OPERATOR CLASS %s%s FOR TYPE %s USING %s', opcname,
  CASE WHEN opcdefault THEN ' DEFAULT' END, opcintype::regtype, amname), NULL
FROM member JOIN pg_opclass c ON classid = 'pg_opclass'::regclass AND objid = c.oid JOIN pg_am a ON a.oid = opcmethod
UNION ALL
SELECT 'access method', 'ACCESS METHOD ' || amname, NULL
FROM member JOIN pg_am a ON classid = 'pg_am'::regclass AND objid = a.oid
UNION ALL
-- The server makes the array type.
SELECT 'type', 'TYPE ' || typname, NULL
FROM member JOIN pg_type t ON classid = 'pg_type'::regclass AND objid = t.oid WHERE typelem = 0
"""
# Objects that the query above leaves out. An operator family comes with its operator class.
LEFT_OUT = MEMBERS + """
SELECT pg_describe_object(classid, objid, 0) FROM member
WHERE CASE classid::regclass::text
  WHEN 'pg_cast' THEN NOT EXISTS (SELECT FROM pg_cast c WHERE c.oid = objid AND castfunc <> 0 AND castcontext = 'e')
  ELSE classid::regclass::text NOT IN ('pg_type', 'pg_proc', 'pg_operator', 'pg_opclass', 'pg_opfamily', 'pg_am') END
"""
FUNCTIONS = MEMBERS + """
SELECT synopsis, proname AS name, prokind = 'a' AS is_aggregate, provolatile, proisstrict, proparallel, proleakproof,
  proargtypes::regtype[]::text[] AS types,
  ARRAY(SELECT argument FROM unnest(proargnames) WITH ORDINALITY AS v (argument, n)
        WHERE coalesce(proargmodes[n], 'i') = 'i' AND argument <> '' ORDER BY n) AS parameters,
  ARRAY(SELECT argument FROM unnest(proargnames) WITH ORDINALITY AS v (argument, n)
        WHERE proargmodes[n] = 'o' ORDER BY n) AS columns
FROM function
"""


def rows_of(text, header):
    """The cells of all tables of a text that have this header."""
    rows = []
    for body in re.findall(r"^" + re.escape(header) + r"\n\|[-| ]+\|\n((?:\|.*\n)+)", text, re.M):
        rows += [[cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
                 for line in body.splitlines()]
    return rows


def code(cell):
    return re.findall(r"`([^`]+)`", cell)


def synopses_of(text):
    """The synopses of a text, each on one line."""
    lines = []
    for block in re.findall(r"^```synopsis\n(.*?)^```$", text, re.M | re.S):
        for line in block.splitlines():
            if lines and lines[-1].count("(") > lines[-1].count(")"):
                lines[-1] += (" " if line[0] == " " and lines[-1][-1] != "(" else "") + line.strip()
            else:
                lines.append(line)
    return lines


def errors_of(text):
    """The SQLSTATE, the cause and the examples of each error that a text lists."""
    errors = []
    for state, body in re.findall(r"^- `(\w{5})` if (.*(?:\n  .*)*)", text, re.M):
        cause, _, examples = " ".join(body.split()).partition(": `")
        errors.append((state, cause, code("`" + examples)))
    return errors


def for_counters(example):
    return re.sub(r"\b(%s)\b" % "|".join(COUNTERPARTS), lambda match: COUNTERPARTS[match[0]], example)


class Entry:
    def __init__(self, section, text):
        self.section = section
        self.title, self.text = text.split("\n", 1)
        self.synopses = synopses_of(self.text)
        self.errors = errors_of(self.text)
        self.has_counters = any("bloomcounter" in synopsis for synopsis in self.synopses)


class Page:
    def __init__(self, text):
        self.text = text
        self.sections = {part.split("\n", 1)[0]: part for part in re.split(r"^## ", text, flags=re.M)[1:]}
        self.entries = [Entry(name, entry) for name, part in self.sections.items() if name != "Elements"
                        for entry in re.split(r"^### ", part, flags=re.M)[1:]]
        self.support = [" ".join(span.split()) for span in code(self.sections["Support functions"]) if "→" in span]


def check_synopses(page, objects):
    shown = [synopsis for entry in page.entries for synopsis in entry.synopses] + page.support
    for row in objects:
        same(shown.count(row.synopsis), 1, f"the page has this {row.kind} once: {row.synopsis}")
    same(sorted(set(shown) - {row.synopsis for row in objects}), [], "every synopsis of the page is an object's")


def check_properties(page, functions):
    """The table of properties, whose rows name the exceptions."""
    holds = {
        "IMMUTABLE": lambda row: row.provolatile == "i",
        "STRICT": lambda row: row.proisstrict,
        "PARALLEL SAFE": lambda row: row.proparallel == "s",
        "LEAKPROOF": lambda row: row.proleakproof,
    }
    table = {code(cells[0])[0]: cells[1] for cells in rows_of(page.text, "| property | functions |")}
    same(sorted(table), sorted(holds), "the table of properties has its rows")
    names = {row.name for row in functions}
    for name, text in table.items():
        exceptions = {word for word in code(text) if word in names}
        stated = {"all": names - exceptions, "none": set()}[re.match(r"\w+", text)[0]]
        same(stated, {row.name for row in functions if holds[name](row)}, f"which functions are {name}")
    same({row.name for row in functions if row.provolatile == "v"}, {"bloomset_new", "bloomset_check", "bloomset_handler", "bloomslices_check", "bloomslices_handler", "bloomslices_merge"},
         "which functions are VOLATILE")


def check_form(entry, objects):
    """What every entry has."""
    title = entry.title
    ok(entry.synopses and "**Cost.**" in entry.text, f"{title}: has a synopsis and a cost")
    same([row.synopsis for row in objects
          if row.synopsis in entry.synopses and row.function and row.function not in entry.synopses], [],
         f"{title}: has the functions of its operators and casts")


def check_functions(entry, functions):
    """What an entry says of its functions."""
    title = entry.title
    same({"**Null.**" not in entry.text}, {row.proisstrict for row in functions},
         f"{title}: says what becomes of null where it is not strict")
    same({row.is_aggregate for row in functions}, {entry.section == "Aggregates"},
         f"{title}: stands where it belongs, among aggregates or functions")
    same(ELEMENT_ERRORS in entry.text, any("element" in row.parameters for row in functions),
         f"{title}: has the errors of elements if it takes one")
    described = rows_of(entry.text, "| filter | counter | meaning |")
    for at, kind in enumerate(["bloomfilter", "bloomcounter"]):
        columns = [name for row in functions if row.types[:1] == [kind] for name in row.columns]
        same([name for cells in described for name in code(cells[at])], columns,
             f"{title}: describes each column of the result for a {kind}")


def check_parameters(page, functions):
    """The one table that describes the parameters of all entries."""
    shown = [name for cells in rows_of(page.text, "| parameter | values |") for name in code(cells[0])]
    same(sorted(shown), sorted({name for row in functions for name in row.parameters}),
         "the page describes each named parameter once")


def state_of(connection, statement):
    """The SQLSTATE that a statement ends with, None if it succeeds."""
    try:
        with connection.transaction():
            connection.execute(statement)
    except psycopg.Error as problem:
        return problem.sqlstate
    return None


def check_errors(page, connection):
    conditions = rows_of(page.sections["Errors"], "| SQLSTATE | condition | when |")
    for cells in conditions:
        (state,), (condition,) = code(cells[0]), code(cells[1])
        same(state_of(connection, f"DO $$ BEGIN RAISE {condition}; END $$"), state, f"{condition} is {state}")

    errors = errors_of(page.text)
    same({state for state, _, _ in errors} - {code(cells[0])[0] for cells in conditions}, set(),
         "the table of errors has all SQLSTATEs")
    same([cause for name, part in page.sections.items() if name != "Elements"
          for _, cause, examples in errors_of(part) if not examples], [], "each error has an example")
    only_filters = [error for entry in page.entries if not entry.has_counters for error in entry.errors]
    for error in errors:
        state, _, examples = error
        if error not in only_filters:
            examples = examples + [for_counters(example) for example in examples if "counter" not in example]
        for example in dict.fromkeys(examples):
            same(state_of(connection, "SELECT " + example), state, f"error of SELECT {example}")


def check_element_errors(functions, connection):
    """Every function that takes an element refuses a type, and a type that the value does not hold."""
    for row in functions:
        elements = [("ARRAY[1]", "0A000")]
        if {"filter", "counter"} & set(row.parameters):
            elements.append(("'a'::text", "42804"))
        for element, state in elements:
            arguments = ", ".join((ARGUMENTS | {"element": element})[name] for name in row.parameters)
            same(state_of(connection, f"SELECT {row.name}({arguments})"), state, f"error of {row.name}({arguments})")


def check_combining_errors(functions, connection):
    """Every operation on two values, and every aggregate of values, refuses those that do not combine."""
    for row in functions:
        mismatches = MISMATCHES
        if row.types[0] == "bloomcounter":
            mismatches = [tuple(map(for_counters, mismatch)) for mismatch in MISMATCHES] + [WIDTHS]
        for state, a, b in mismatches:
            call = f"(v) FROM (VALUES ({a}), ({b})) AS t (v)" if row.is_aggregate else f"({a}, {b})"
            same(state_of(connection, f"SELECT {row.name}{call}"), state, f"error of {row.name}{call}")


def main():
    page = Page(PAGE.read_text(encoding="utf-8"))
    with psycopg.connect(autocommit=True, client_encoding="UTF8") as connection:
        rows = connection.cursor(row_factory=psycopg.rows.namedtuple_row)
        rows.execute("SELECT set_config('search_path', extnamespace::regnamespace || ', public', false)"
                     " FROM pg_extension WHERE extname = 'bloomtype'")
        objects = rows.execute(OBJECTS).fetchall()
        functions = rows.execute(FUNCTIONS).fetchall()
        ok(len(objects) > 50, "the extension has objects")
        same(rows.execute(LEFT_OUT).fetchall(), [], "every object of the extension has a synopsis")

        check_synopses(page, objects)
        check_properties(page, functions)
        same({entry.section for entry in page.entries if "```sql\n" not in page.sections[entry.section]}, set(),
             "every section with entries has an example")
        described = []
        for entry in page.entries:
            check_form(entry, objects)
            if own := [row for row in functions if row.synopsis in entry.synopses]:
                described += own
                check_functions(entry, own)
                if COMBINING_ERRORS in entry.text:
                    check_combining_errors(own, connection)
        check_parameters(page, described)
        check_element_errors([row for row in described if "element" in row.parameters], connection)
        check_errors(page, connection)
    done()


main()
