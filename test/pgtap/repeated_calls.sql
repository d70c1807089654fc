-- A call that is repeated answers for its new arguments. PL/pgSQL keeps the state of
-- an expression for a whole transaction, so a function must not use what it cached
-- there for other arguments.
BEGIN;
SELECT plan(21);

SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0;

-- Each of these has one call site for all filters and elements.
CREATE FUNCTION pg_temp.contains(f bloomfilter, x int) RETURNS bool LANGUAGE plpgsql AS
$$ BEGIN RETURN f @> x; END $$;
CREATE FUNCTION pg_temp.contains(f bloomfilter, x text) RETURNS bool LANGUAGE plpgsql AS
$$ BEGIN RETURN f @> x; END $$;
CREATE FUNCTION pg_temp.contained(f bloomfilter, x int) RETURNS bool LANGUAGE plpgsql AS
$$ BEGIN RETURN x <@ f; END $$;
CREATE FUNCTION pg_temp.function(f bloomfilter, x int) RETURNS bool LANGUAGE plpgsql AS
$$ BEGIN RETURN bloom_contains(f, x); END $$;
CREATE FUNCTION pg_temp.function(f bloomfilter, x text) RETURNS bool LANGUAGE plpgsql AS
$$ BEGIN RETURN bloom_contains(f, x); END $$;
CREATE FUNCTION pg_temp.any(f bloomfilter, x int) RETURNS bool LANGUAGE plpgsql AS
$$ BEGIN RETURN f @> ANY (ARRAY[x, x]); END $$;
CREATE FUNCTION pg_temp.sql(f bloomfilter, x int) RETURNS bool LANGUAGE sql AS
$$ SELECT f @> x LIMIT 1 $$;
CREATE FUNCTION pg_temp.query(f bloomfilter, x int) RETURNS bool LANGUAGE plpgsql AS
$$ BEGIN RETURN (SELECT f @> x FROM pg_class LIMIT 1); END $$;
CREATE FUNCTION pg_temp.add(f bloomfilter, x int) RETURNS bloomfilter LANGUAGE plpgsql AS
$$ BEGIN RETURN bloom_add(f, x); END $$;
CREATE FUNCTION pg_temp.fold(f bloomfilter, p float8) RETURNS bloomfilter LANGUAGE plpgsql AS
$$ BEGIN RETURN bloom_fold(f, p); END $$;
CREATE FUNCTION pg_temp.make(n bigint, p float8, l text, s bigint) RETURNS bloomfilter LANGUAGE plpgsql AS
$$ BEGIN RETURN bloom_create(n, p, l, s); END $$;
CREATE FUNCTION pg_temp.sets(a bloomfilter, b bloomfilter) RETURNS text LANGUAGE plpgsql AS
$$ BEGIN RETURN concat_ws(' ', # a, bloom_fpp(a), a | b, a & b, a @>= b, a <=@ b, a = b, bloom_jaccard(a, b),
    (bloom_info(b)).bits, bloom_union_cardinality(a, b)); END $$;

-- Every filter with every element, in an order that changes both, one or neither.
-- Sparse filters are exact, so the right answers are known.
CREATE TABLE filter AS
SELECT id, n, bloom_agg(i, 1000) AS f
FROM (VALUES (1, 0), (2, 1), (3, 2), (4, 3), (5, 15), (6, 40), (7, 100)) v (id, n)
LEFT JOIN generate_series(1, 100) i ON i <= n GROUP BY id, n;
CREATE TABLE probe AS
SELECT id, n, f, x, x BETWEEN 1 AND n AS want,
       row_number() OVER (ORDER BY md5(id || ' ' || x || ' ' || again)) AS place
FROM filter, unnest(ARRAY[-1, 1, 2, 3, 4, 15, 16, 40, 41, 100, 101]) x, generate_series(1, 3) again;
CREATE TABLE out_of_line AS SELECT id, bloom_agg(id * 10000 + i, 3000) AS f
    FROM generate_series(1, 4) id, generate_series(1, 3000) i GROUP BY id;

SELECT is(array_agg(format('%s in 1 .. %s: %s', x, n, got) ORDER BY place) FILTER (WHERE got IS DISTINCT FROM want),
    NULL, what || ' in PL/pgSQL')
FROM (SELECT '@>' AS what, *, pg_temp.contains(f, x) AS got FROM (SELECT * FROM probe ORDER BY place OFFSET 0) p
      UNION ALL SELECT '<@', *, pg_temp.contained(f, x) FROM (SELECT * FROM probe ORDER BY place OFFSET 0) p
      UNION ALL SELECT 'bloom_contains', *, pg_temp.function(f, x)
          FROM (SELECT * FROM probe ORDER BY place OFFSET 0) p
      UNION ALL SELECT '@> ANY', *, pg_temp.any(f, x) FROM (SELECT * FROM probe ORDER BY place OFFSET 0) p
      UNION ALL SELECT 'SQL function', *, pg_temp.sql(f, x) FROM (SELECT * FROM probe ORDER BY place OFFSET 0) p
      UNION ALL SELECT 'query', *, pg_temp.query(f, x) FROM (SELECT * FROM probe ORDER BY place OFFSET 0) p) s
GROUP BY what ORDER BY what;

SELECT is(array_agg(format('%s in 1 .. %s: %s', x, n, got) ORDER BY place) FILTER (WHERE got IS DISTINCT FROM want),
    NULL, what || ' of text in PL/pgSQL')
FROM (SELECT '@>' AS what, *, pg_temp.contains(t, x::text) AS got
      FROM (SELECT *, (SELECT bloom_agg(i::text, 1000) FROM generate_series(1, n) i) AS t FROM probe
           ORDER BY place OFFSET 0) p
      UNION ALL
      SELECT 'bloom_contains', *, pg_temp.function(t, x::text)
      FROM (SELECT *, (SELECT bloom_agg(i::text, 1000) FROM generate_series(1, n) i) AS t FROM probe
           ORDER BY place OFFSET 0) p) s
GROUP BY what ORDER BY what;

-- One filter in a variable, many elements; one element, many filters.
CREATE FUNCTION pg_temp.one_filter() RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
    f bloomfilter := (SELECT bloom_agg(i, 10000) FROM generate_series(2, 200, 2) i);
    wrong int[] := '{}';
BEGIN
    FOR i IN 1..200 LOOP
        IF (f @> i) <> (i % 2 = 0) THEN
            wrong := wrong || i;
        END IF;
    END LOOP;
    RETURN wrong;
END
$$;
SELECT is(pg_temp.one_filter(), '{}', 'a loop over elements');
CREATE FUNCTION pg_temp.one_element() RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
    f bloomfilter := bloom_create(10000);
    wrong int[] := '{}';
    before bool;
BEGIN
    FOR i IN 1..60 LOOP
        before := f @> 30;
        f := bloom_add(f, i);
        IF before <> (i > 30) THEN
            wrong := wrong || i;
        END IF;
    END LOOP;
    RETURN wrong;
END
$$;
SELECT is(pg_temp.one_element(), '{}', 'a loop over filters');
CREATE FUNCTION pg_temp.stored_filters() RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    r record;
    g bloomfilter;
    x int;
    wrong text[] := '{}';
BEGIN
    FOR i IN 1..3 LOOP
        FOR r IN SELECT id, f FROM out_of_line ORDER BY md5(i || ' ' || id) LOOP
            g := r.f;
            FOR j IN 1..4 LOOP
                x := r.id * 10000 + i * 10 + j;
                IF NOT g @> x OR NOT r.f @> (r.id * 10000 + i * 10 + j)
                    OR NOT (SELECT f @> x FROM out_of_line WHERE id = r.id) THEN
                    wrong := wrong || format('%s in %s', x, r.id);
                END IF;
            END LOOP;
        END LOOP;
    END LOOP;
    RETURN wrong;
END
$$;
SELECT is(pg_temp.stored_filters(), '{}', 'a loop over stored filters and elements');

-- If the type of the element changes, the call must raise the error.
CREATE FUNCTION pg_temp.polymorphic(f bloomfilter, x anyelement) RETURNS bool LANGUAGE plpgsql AS
$$ BEGIN RETURN f @> x; END $$;
SELECT is(array_agg(pg_temp.polymorphic(bloom_add(bloom_create(1000), 7), x)), '{t,f}',
    'a polymorphic function, integers') FROM unnest('{7,8}'::int[]) x;
SELECT is(array_agg(pg_temp.polymorphic(bloom_add(bloom_create(1000), 'a'::text), x)), '{t,f}',
    'a polymorphic function, text') FROM unnest('{a,b}'::text[]) x;
SELECT throws_ok('SELECT pg_temp.polymorphic(bloom_add(bloom_create(1000), 7), ''a''::text)', '42804', NULL,
    'a polymorphic function, the wrong class');
CREATE FUNCTION pg_temp.mixed() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    f bloomfilter;
    answers text := '';
BEGIN
    FOR i IN 1..4 LOOP
        f := CASE WHEN i % 2 = 1 THEN bloom_add(bloom_create(1000), 7)
                  ELSE bloom_add(bloom_create(1000), '7'::text) END;
        BEGIN
            answers := answers || CASE WHEN f @> 7 THEN 't' ELSE 'f' END;
        EXCEPTION WHEN datatype_mismatch THEN
            answers := answers || 'e';
        END;
    END LOOP;
    RETURN answers;
END
$$;
SELECT is(pg_temp.mixed(), 'tete', 'a filter of another class at the same call site is an error every time');

-- The other functions, against the same expression in a query of its own.
SELECT is(array_agg(place ORDER BY place) FILTER (WHERE pg_temp.add(f, x)::bytea <> bloom_add(f, x)::bytea), NULL,
    'bloom_add in PL/pgSQL')
FROM (SELECT * FROM probe ORDER BY place OFFSET 0) p;
SELECT is(array_agg(p ORDER BY p) FILTER (WHERE pg_temp.fold(f, p)::bytea <> bloom_fold(f, p)::bytea), NULL,
    'bloom_fold in PL/pgSQL')
FROM (SELECT bloom_agg(i, NULL, 0.0001) AS f FROM generate_series(1, 3000) i) s,
     unnest(ARRAY[0.001, 0.1, 0.01, 0.4, 0.001]::float8[]) p;
SELECT is(array_agg(n ORDER BY n) FILTER (WHERE pg_temp.make(n, p, l, s)::bytea <> bloom_create(n, p, l, s)::bytea),
    NULL, 'bloom_create in PL/pgSQL')
FROM unnest(ARRAY[1, 100, 5000]) n, unnest(ARRAY[0.1, 0.001]) p, unnest('{blocked,classic}'::text[]) l,
     unnest(ARRAY[0, -1]) s;
SELECT is(count(*) FILTER (WHERE pg_temp.sets(a.f, b.f) <>
                                 concat_ws(' ', # a.f, bloom_fpp(a.f), a.f | b.f, a.f & b.f, a.f @>= b.f, a.f <=@ b.f,
                                           a.f = b.f, bloom_jaccard(a.f, b.f), (bloom_info(b.f)).bits,
                                           bloom_union_cardinality(a.f, b.f))),
    0::bigint, 'functions of two filters in PL/pgSQL')
FROM filter a, filter b WHERE a.id > 1 AND b.id > 1;

-- A prepared statement with a generic plan.
PREPARE ask (bloomfilter, int) AS SELECT $1 @> $2;
SET LOCAL plan_cache_mode = force_generic_plan;
CREATE FUNCTION pg_temp.asked() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answers text := '';
    answer bool;
    x int;
BEGIN
    FOREACH x IN ARRAY ARRAY[1, 2, 3, 4, 3, 1] LOOP
        EXECUTE format('EXECUTE ask(%L, %s)', (SELECT bloom_agg(i, 1000) FROM generate_series(2, 3) i), x)
            INTO answer;
        answers := answers || CASE WHEN answer THEN 't' ELSE 'f' END;
    END LOOP;
    RETURN answers;
END
$$;
SELECT is(pg_temp.asked(), 'fttftf', 'a prepared statement');

-- Aggregates in a loop.
CREATE FUNCTION pg_temp.aggregates() RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
    f bloomfilter;
    wrong int[] := '{}';
BEGIN
    FOR i IN 1..30 LOOP
        f := (SELECT bloom_agg(j, (i * 100)::bigint, 1.0 / (i + 2)) FROM generate_series(1, i) j);
        IF # f <> i OR (bloom_info(f)).bits <> (bloom_info(bloom_create(i * 100, 1.0 / (i + 2)))).bits THEN
            wrong := wrong || i;
        END IF;
    END LOOP;
    RETURN wrong;
END
$$;
SELECT is(pg_temp.aggregates(), '{}', 'bloom_agg with other parameters each time');

SELECT * FROM finish();
ROLLBACK;
