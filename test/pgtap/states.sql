-- Bytes that no serialize function made, given to the deserialize functions, and what
-- they accept to the combine, final and serialize functions. Between these the state is
-- of type internal, which nothing in SQL can pass on; so the functions are declared
-- once more, with bigint in its place.
BEGIN;
SELECT plan(13);

CREATE SCHEMA states;
CREATE TABLE kind AS
SELECT DISTINCT regexp_replace(prosrc, 'serialize$', '') AS prefix, probin FROM pg_proc p
JOIN pg_depend ON classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e'
WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomtype') AND prosrc ~ 'agg_serialize$';
SELECT is(count(*), 3::bigint, 'three kinds of states') FROM kind;

CREATE FUNCTION pg_temp.execute(command text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE command; END $$;
SELECT pg_temp.execute(format($$
    CREATE FUNCTION states.%1$sdeserialize(bytea) RETURNS bigint LANGUAGE C STRICT AS %2$L, '%1$sdeserialize';
    CREATE FUNCTION states.%1$scombine(bigint, bigint) RETURNS bigint LANGUAGE C AS %2$L, '%1$scombine';
    CREATE FUNCTION states.%1$sfinal(bigint) RETURNS bloomfilter LANGUAGE C AS %2$L, '%1$sfinal';
    CREATE FUNCTION states.%1$sserialize(bigint) RETURNS bytea LANGUAGE C STRICT AS %2$L, '%1$sserialize';
    CREATE AGGREGATE states.%1$sread(bytea) (SFUNC = byteacat, STYPE = bytea, FINALFUNC = states.%1$sdeserialize);
    CREATE AGGREGATE states.%1$sfinish(bigint)
        (SFUNC = states.%1$scombine, STYPE = bigint, FINALFUNC = states.%1$sfinal);
    CREATE AGGREGATE states.%1$ssend(bigint)
        (SFUNC = states.%1$scombine, STYPE = bigint, FINALFUNC = states.%1$sserialize);
    $$, prefix, probin)) FROM kind;

-- Honest states, of each kind and condition.
CREATE AGGREGATE states.build(int) (SFUNC = bloom_agg_add, STYPE = internal, FINALFUNC = bloom_agg_serialize);
CREATE AGGREGATE states.build(int, float8) (SFUNC = bloom_agg_add, STYPE = internal, FINALFUNC = bloom_agg_serialize);
CREATE AGGREGATE states.unite(bloomfilter) (SFUNC = bloom_union_agg_add, STYPE = internal,
    FINALFUNC = bloom_union_agg_serialize);
CREATE AGGREGATE states.intersect(bloomfilter) (SFUNC = bloom_intersect_agg_add, STYPE = internal,
    FINALFUNC = bloom_intersect_agg_serialize);
CREATE TABLE filter AS
SELECT bloom_agg(x, 200) AS f, 1 AS n FROM generate_series(1, 50) x
UNION ALL SELECT bloom_agg(x, 200), 2 FROM generate_series(1, 0) x
UNION ALL SELECT bloom_agg(x, 200), 3 FROM generate_series(1, 150) x
UNION ALL SELECT bloom_agg(x, 200), 4 FROM generate_series(1, 5) x;
CREATE TABLE honest (kind text, name text, state bytea, f bytea);
INSERT INTO honest SELECT 'bloomfilter_agg_', 'own size', states.build(x), bloom_agg(x)::bytea
    FROM generate_series(1, 20) x;
INSERT INTO honest SELECT 'bloomfilter_agg_', 'sized', states.build(x, 10000), bloom_agg(x, 10000)::bytea
    FROM generate_series(1, 20) x;
INSERT INTO honest SELECT 'bloomfilter_agg_', 'dense', states.build(x, 40), bloom_agg(x, 40)::bytea
    FROM generate_series(1, 20) x;
INSERT INTO honest SELECT 'bloomfilter_union_agg_', 'value', states.unite(f), bloom_union_agg(f)::bytea
    FROM filter;
INSERT INTO honest SELECT 'bloomfilter_union_agg_', 'no size', states.unite(f), bloom_union_agg(f)::bytea
    FROM filter WHERE n = 2;
INSERT INTO honest SELECT 'bloomfilter_intersect_agg_', 'value', states.intersect(f), bloom_intersect_agg(f)::bytea
    FROM filter WHERE n <> 2;
INSERT INTO honest SELECT 'bloomfilter_intersect_agg_', 'both', states.intersect(f), bloom_intersect_agg(f)::bytea
    FROM filter;

-- '' if all is well.
CREATE FUNCTION pg_temp.outcome(kind text, state bytea, expected bytea) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    f bloomfilter;
    again bloomfilter;
    sent bytea;
BEGIN
    EXECUTE format('SELECT states.%1$sfinish(state) FROM (SELECT states.%1$sread($1) AS state) s', kind)
        INTO f USING state;
    EXECUTE format('SELECT states.%1$ssend(state) FROM (SELECT states.%1$sread($1) AS state) s', kind)
        INTO sent USING state;
    EXECUTE format('SELECT states.%1$sfinish(state) FROM (SELECT states.%1$sread($1) AS state) s', kind)
        INTO again USING sent;
    RETURN CASE WHEN f::bytea::bloomfilter <> f OR again <> f OR f::bytea <> expected THEN 'not as expected'
        ELSE 'accepted' END;
EXCEPTION WHEN invalid_binary_representation OR datatype_mismatch OR invalid_parameter_value THEN
    RETURN 'refused';
WHEN others THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END
$$;

SELECT is(pg_temp.outcome(kind, state, f), 'accepted', 'what was sent is what is read: ' || kind || ', ' || name)
FROM honest ORDER BY kind, name;

CREATE TABLE hostile AS
SELECT DISTINCT state FROM honest
UNION SELECT set_byte(state, i, change # get_byte(state, i))
    FROM honest, unnest(ARRAY[1, 4, 255]) change, generate_series(0, least(length(state), 120) - 1) i
UNION SELECT substr(state, 1, i) FROM honest, generate_series(0, least(length(state), 120)) i
UNION SELECT state || state FROM honest
UNION SELECT state || '\x00' FROM honest
UNION SELECT int8send(9223372036854775807) || state FROM honest
UNION SELECT a.state || b.state FROM honest a, honest b
UNION SELECT f FROM honest
UNION SELECT decode(md5(i::text) || md5((i + 1)::text), 'hex') FROM generate_series(1, 100) i;

CREATE TABLE outcome AS
SELECT prefix, outcome, count(*), min(left(state::text, 200)) AS example
FROM kind, hostile, pg_temp.outcome(prefix, state, NULL) outcome GROUP BY prefix, outcome;
SELECT is(array_agg(concat_ws(' ', prefix, outcome, example)) FILTER (WHERE outcome NOT IN ('accepted', 'refused')),
    NULL, format('%s hostile states are refused, or are as good as any', sum(count))) FROM outcome;
SELECT cmp_ok(count, '>', 100::bigint, format('%s states %s by %s', count, outcome, prefix)) FROM outcome
WHERE outcome = 'refused' ORDER BY prefix;
SELECT is(count(*), 3::bigint, 'and some are as good, of every kind')
FROM outcome WHERE outcome = 'accepted' AND count > 20;

SELECT * FROM finish();
ROLLBACK;
