"""The tables and functions that the programs of probing.t use."""

from probing_pool import KEYS
from session import CHEAP_WORKERS, Session

SCHEMA = ROLE = "bloomtype_probing"
COPIES = 30  # of each key in a table for parallel workers
DOMAIN_KEY = 3  # the key that a domain's check probes

Session.settings = CHEAP_WORKERS + """
SET client_min_messages = error;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SET probing.watch = '';
SET probing.said = '';
"""

# One table whose partitions store filters in different ways. The third has tuples so large that even the smallest
# filter is put out of line.
PARTITIONS = {"outside": (1, 5), "packed": (6, 10), "tight": (11, 15), "inside": (16, 19)}
STORAGE = {"outside": "EXTERNAL", "packed": "EXTENDED", "tight": "EXTERNAL", "inside": "PLAIN"}
IDS = range(1, 20)
INSIDE_LIMIT = 5000  # bytes: fits into a page
# further stored filters: broken ones have negative ids, those of the pool begin here
POOL_IDS = 1000
BROKEN = (-1, -2, -3)

SETUP = f"""
DROP ROLE IF EXISTS {ROLE};
CREATE ROLE {ROLE};
GRANT USAGE ON SCHEMA {SCHEMA} TO {ROLE};

CREATE TABLE pool (id int PRIMARY KEY, class text, f bloomfilter);
CREATE TABLE keys (n int, i int, b bigint, t text) WITH (parallel_workers = 2);
INSERT INTO keys SELECT n, n, n, 'k' || n FROM generate_series(1, {KEYS}) AS n;
CREATE TABLE many_keys (LIKE keys) WITH (parallel_workers = 2);
INSERT INTO many_keys SELECT keys.* FROM keys, generate_series(1, {COPIES});

CREATE TABLE stored (id int PRIMARY KEY, class text, f bloomfilter COMPRESSION pglz,
    padding text GENERATED ALWAYS AS (CASE WHEN id BETWEEN 11 AND 15 THEN repeat(' ', 2100) END) STORED)
    PARTITION BY RANGE (id);
""" + "".join(
    f"CREATE TABLE {name} PARTITION OF stored FOR VALUES FROM ({first}) TO ({last + 1})"
    f" WITH (parallel_workers = 2{', toast_tuple_target = 128' if name == 'tight' else ''});\n"
    f"ALTER TABLE {name} ALTER f SET STORAGE {STORAGE[name]}, ALTER padding SET STORAGE PLAIN;\n"
    for name, (first, last) in PARTITIONS.items()
) + f"""
-- Filters that cannot be read: the wrong length, at once and in slices, and another version.
CREATE TABLE broken (id int PRIMARY KEY, f bloomfilter);
CREATE FUNCTION forge(bytea, int) RETURNS bloomfilter LANGUAGE internal IMMUTABLE STRICT AS 'bytea_substr_no_len';

CREATE VIEW everything AS
    SELECT id, f FROM stored UNION ALL SELECT -id, f FROM broken UNION ALL SELECT {POOL_IDS} + id, f FROM pool;

-- One call site for all filters of a transaction.
CREATE TYPE pair AS (id int, f bloomfilter);
CREATE DOMAIN with_bigint AS bloomfilter CHECK (VALUE @> {DOMAIN_KEY});
CREATE DOMAIN with_text AS bloomfilter CHECK (VALUE @> 'k{DOMAIN_KEY}');

-- Probes a row's filters before and after an update, if probing.watch asks for it.
CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    said text := '';
    whose bloomfilter;
BEGIN
    IF current_setting('probing.watch') = '' THEN
        RETURN NEW;
    END IF;
    FOR n IN 1 .. {KEYS} LOOP
        FOR i IN 1 .. 3 LOOP
            BEGIN
                IF n = 9 AND i = 3 THEN
                    NEW.f := NEW.f::bytea::bloomfilter;
                END IF;
                IF current_setting('probing.watch') = 'bigint' THEN
                    said := said || letter(CASE i WHEN 2 THEN OLD.f ELSE NEW.f END @> n);
                ELSIF i = 2 THEN
                    said := said || letter('k' || n <@ OLD.f);
                ELSE
                    said := said || letter('k' || n <@ NEW.f);
                END IF;
            EXCEPTION WHEN datatype_mismatch THEN
                said := said || 'e';
            END;
        END LOOP;
    END LOOP;
    PERFORM set_config('probing.said', current_setting('probing.said') || said, false);
    RETURN NEW;
END $$;
CREATE FUNCTION letter(boolean) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT coalesce(left($1::text, 1), 'n') $$;
CREATE TRIGGER before BEFORE UPDATE ON stored FOR EACH ROW EXECUTE FUNCTION watch();
CREATE TRIGGER after AFTER UPDATE ON stored FOR EACH ROW EXECUTE FUNCTION watch();

ALTER TABLE stored ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON stored TO {ROLE};
CREATE POLICY holds ON stored FOR SELECT TO {ROLE} USING (CASE class
    WHEN 'bigint' THEN f @> current_setting('probing.key')::bigint
    WHEN 'text' THEN 'k' || current_setting('probing.key') <@ f END);
"""

# @T@ is the type of the elements, @KEY@ makes one of a number n. A source says where the value comes from: 0 its TOAST
# pointer, if it has one, 1 a copy in memory, 2 its text. A site says which call site asks: see the CASE.
FUNCTIONS = """
CREATE TABLE checked_@T@ (f bloomfilter, k @T@, CHECK (f @> k));

CREATE FUNCTION parameter(f bloomfilter, k @T@) RETURNS boolean LANGUAGE plpgsql AS
$$ BEGIN RETURN k <@ f; END $$;
CREATE FUNCTION inlined(f bloomfilter, k @T@) RETURNS boolean IMMUTABLE LANGUAGE sql AS
$$ SELECT f @> k $$;
CREATE FUNCTION called(f bloomfilter, k @T@) RETURNS boolean IMMUTABLE SECURITY DEFINER LANGUAGE sql AS
$$ SELECT f @> k $$;

CREATE FUNCTION probe_@T@(ids int[], sources int[], sites int[], numbers int[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text := '';
    answer boolean;
    zero int := 0;
    n int;
    k @T@;
    g bloomfilter;
    r record;
    p pair;
    several bloomfilter[];
BEGIN
    FOR j IN 1 .. cardinality(ids) LOOP
        n := numbers[j];
        k := @KEY@;
        BEGIN
            CASE sources[j]
                WHEN 0 THEN SELECT f INTO g FROM everything WHERE id = ids[j];
                WHEN 1 THEN SELECT f::bytea::bloomfilter INTO g FROM everything WHERE id = ids[j];
                WHEN 2 THEN SELECT f::text::bloomfilter INTO g FROM everything WHERE id = ids[j];
            END CASE;
            CASE sites[j]
                WHEN 0 THEN answer := g @> k;
                WHEN 1 THEN answer := k <@ g;
                WHEN 2 THEN answer := bloom_contains(g, k);
                WHEN 3 THEN
                    SELECT 0, g AS f INTO r;
                    answer := r.f @> k;
                WHEN 4 THEN
                    p.f := g;
                    answer := p.f @> k;
                WHEN 5 THEN
                    several[1 + n % 3] := g;
                    answer := several[1 + n % 3] @> k;
                WHEN 6 THEN EXECUTE 'SELECT $1 @> $2' INTO answer USING g, k;
                WHEN 7 THEN answer := (SELECT f FROM everything WHERE id = ids[j]) @> k;
                WHEN 8 THEN SELECT f @> k INTO answer FROM everything WHERE id = ids[j];
                WHEN 9 THEN answer := parameter(g, k);
                WHEN 10 THEN answer := g @> ANY (ARRAY[k, NULL, k]);
                WHEN 11 THEN answer := called(g, k);
                WHEN 12 THEN answer := g @> k AND 1 / zero > 0;
                WHEN 13 THEN answer := CASE WHEN g IS NOT NULL THEN g::with_@T@ IS NOT NULL END;
                WHEN 14 THEN answer := g @> CASE WHEN n > 0 THEN k ELSE NULL END OR g @> k;
            END CASE;
            said := said || letter(answer);
        EXCEPTION
            WHEN datatype_mismatch THEN said := said || 'e';
            WHEN data_corrupted OR invalid_binary_representation THEN said := said || 'x';
            WHEN division_by_zero THEN said := said || 'z';
            WHEN check_violation THEN said := said || 'c';
        END;
    END LOOP;
    RETURN said;
END $$;

-- The same without a block that could catch an error.
CREATE FUNCTION plainly_@T@(ids int[], numbers int[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text := '';
    k @T@;
    g bloomfilter;
    n int;
    r record;
BEGIN
    FOR j IN 1 .. cardinality(ids) LOOP
        n := numbers[j];
        k := @KEY@;
        g := NULL;
        FOR r IN SELECT f FROM everything WHERE id = ids[j] LOOP
            g := r.f;
        END LOOP;
        said := said || letter(g @> k);
    END LOOP;
    RETURN said;
END $$;

-- Updates that fail or not, and the same probes after each, inside and outside the block.
CREATE FUNCTION churn_@T@(targets int[], filters int[], fail boolean[],
    ids int[], sources int[], sites int[], numbers int[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text := '';
BEGIN
    FOR u IN 1 .. cardinality(targets) LOOP
        BEGIN
            UPDATE stored SET (f, class) = (SELECT f, class FROM pool WHERE id = filters[u]) WHERE id = targets[u];
            said := said || probe_@T@(ids, sources, sites, numbers);
            IF fail[u] THEN
                RAISE division_by_zero;
            END IF;
        EXCEPTION WHEN division_by_zero THEN
            NULL;
        END;
        said := said || probe_@T@(ids, sources, sites, numbers);
    END LOOP;
    RETURN said;
END $$;
"""
# The procedure's transactions end between its probes; its variables stay.
FUNCTIONS += """
CREATE PROCEDURE commit_@T@(targets int[], filters int[], fail boolean[],
    ids int[], sources int[], sites int[], numbers int[], INOUT said text) LANGUAGE plpgsql AS $$
DECLARE
    n int;
    k @T@;
    g bloomfilter;
    before bloomfilter;
BEGIN
    FOR u IN 1 .. cardinality(targets) LOOP
        UPDATE stored SET (f, class) = (SELECT f, class FROM pool WHERE id = filters[u]) WHERE id = targets[u];
        said := said || probe_@T@(ids, sources, sites, numbers);
        SELECT f INTO before FROM pool WHERE id = filters[u];
        IF fail[u] THEN
            ROLLBACK;
        ELSE
            COMMIT;
        END IF;
        said := said || probe_@T@(ids, sources, sites, numbers);
        SELECT f INTO g FROM pool WHERE id = filters[u] AND class = '@T@';
        FOR m IN 1 .. 4 LOOP
            n := m;
            k := @KEY@;
            said := said || letter(CASE WHEN m < 4 AND g IS NOT NULL THEN before ELSE g END @> k);
        END LOOP;
    END LOOP;
END $$;
"""
SITES = range(15)


def set_up(pool):
    """Makes everything and stores the pool."""
    broken = [f.bytes for f in (next(f for f in pool if f.family == name) for name in ("20 kB", "4 kB", "80 kB"))]
    broken = [broken[0][:-64], broken[1][:-1], b"\2" + broken[2][1:]]
    with Session(SETUP) as session:
        for element_type, made in ("bigint", "n"), ("text", "'k' || n"):
            session.ask(FUNCTIONS.replace("@T@", element_type).replace("@KEY@", made))
        session.copy("pool", ([str(f.number), f.element_type, f.text] for f in pool))
        for i, data in enumerate(broken):
            session.ask(f"INSERT INTO broken VALUES ({i + 1}, forge('\\x{data.hex()}', 1))")
        session.ask("ANALYZE pool, keys, many_keys")
