-- What the extension puts into a database: every object says what it is, and the
-- planner is told what it may do with it.
BEGIN;
SELECT plan(32);

CREATE VIEW member AS
SELECT classid, objid, pg_describe_object(classid, objid, 0) AS what
FROM pg_depend
WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomtype');

SELECT cmp_ok(count(*), '>', 50::bigint, 'the extension has members') FROM member;

-- An array type is made by the server.
SELECT is(array_agg(what ORDER BY what) FILTER (WHERE obj_description(objid, classid::regclass::name) IS NULL), NULL,
    'every object has a comment')
FROM member WHERE what <> 'type bloomfilter[]';

SELECT is(array_agg(p.oid::regprocedure::text) FILTER (WHERE proname !~ '^bloom'), NULL,
    'names of functions begin with bloom')
FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid;
SELECT is(array_agg(p.oid::regprocedure::text) FILTER (WHERE proparallel <> 's'), NULL,
    'every function is parallel safe')
FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid;
-- Selectivity depends on statistics.
SELECT is(array_agg(p.oid::regprocedure::text) FILTER (WHERE (provolatile <> 'i') <> (proname ~ 'sel$')), NULL,
    'every function but estimators is immutable')
FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid;
SELECT is(array_agg(p.oid::regprocedure::text) FILTER (WHERE prosrc ~ '^bloom_'), NULL,
    'no C symbol begins with bloom_')
FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid JOIN pg_language l ON l.oid = prolang
     AND lanname = 'c';

SELECT is(typstorage::text || typalign::text, 'ed', 'the type is stored out of line, uncompressed, aligned to 8')
FROM pg_type WHERE typname = 'bloomfilter';
SELECT ok(typsend <> 0 AND typreceive <> 0 AND typlen = -1, 'the type has a binary form') FROM pg_type
WHERE typname = 'bloomfilter';

SELECT has_operator('bloomfilter', '@>', 'anycompatible', 'boolean');
SELECT ok(bloom_add(bloom_create(1), 'a') @> 'a', 'an untyped literal is text, on the right');
SELECT has_operator('anycompatible', '<@', 'bloomfilter', 'boolean');
SELECT ok('a' <@ bloom_add(bloom_create(1), 'a'), 'and on the left');
SELECT has_operator('bloomfilter', op, 'bloomfilter', result)
FROM (VALUES ('|', 'bloomfilter'), ('&', 'bloomfilter'), ('@>=', 'boolean'), ('<=@', 'boolean'), ('=', 'boolean'),
     ('<>', 'boolean'), ('<', 'boolean'), ('<=', 'boolean'), ('>', 'boolean'), ('>=', 'boolean')) v (op, result);
SELECT has_leftop('#', 'bloomfilter', 'double precision');

SELECT is(array_agg(o.oid::regoperator::text) FILTER (WHERE oprrest = 0 OR oprjoin = 0 OR oprcom = 0), NULL,
    'membership has a commutator and estimators')
FROM member JOIN pg_operator o ON classid = 'pg_operator'::regclass AND objid = o.oid WHERE oprname IN ('@>', '<@');

SELECT is(array_agg(p.oid::regprocedure::text ORDER BY p.oid::regprocedure::text),
    '{"bloom_agg(anycompatible)","bloom_agg(anycompatible,bloomfilter)","bloom_agg(anycompatible,double precision)","bloom_agg(anycompatible,double precision,double precision)",bloom_intersect_agg(bloomfilter),bloom_union_agg(bloomfilter)}',
    'the aggregates')
FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid AND prokind = 'a';
SELECT is(count(*), 6::bigint, 'every aggregate can be computed in parts by workers')
FROM member JOIN pg_aggregate a ON classid = 'pg_proc'::regclass AND objid = a.aggfnoid
WHERE aggcombinefn <> 0 AND aggtransspace > 0 AND CASE aggtranstype::regtype::text
    WHEN 'internal' THEN aggserialfn <> 0 AND aggdeserialfn <> 0
    WHEN 'bloomfilter' THEN aggserialfn = 0 AND aggdeserialfn = 0 END;

-- A filter can be stored, indexed by and dumped.
CREATE TABLE stored (id int, f bloomfilter DEFAULT bloom_create(10));
INSERT INTO stored DEFAULT VALUES;
SELECT ok(f = bloom_create(10), 'a filter can be the default of a column') FROM stored;
SELECT lives_ok('CREATE INDEX ON stored ((bloom_cardinality(f))); CREATE INDEX ON stored (id) WHERE f @> 42',
    'indexes can use it');
SELECT is((SELECT array_agg(x) FROM unnest(ARRAY[bloom_create(1), bloom_create(2)]) x)::text,
    ARRAY[bloom_create(1), bloom_create(2)]::text::bloomfilter[]::text, 'arrays of filters');
SELECT is((ROW (1, bloom_create(5)))::text, '(1,"\' || bloom_create(5)::text || '")', 'filters in records');

SELECT is(bloom_create(expected_items => 10, seed => 7, layout => 'classic', false_positive_rate => 0.1),
    bloom_create(10, 0.1, 'classic', 7), 'parameters have names');
SELECT is(bloom_bytes(expected_items => 10, false_positive_rate => 0.1), bloom_bytes(10, 0.1),
    'those of bloom_bytes, too');

SELECT * FROM finish();
ROLLBACK;
