/* bloomtype: Bloom filters for PostgreSQL */

\echo Use "ALTER EXTENSION bloomtype UPDATE" to load this file. \quit

--
-- Queries: several keys, and how many of them a filter must contain
--

CREATE TYPE bloomquery;

CREATE FUNCTION bloomquery_in(cstring) RETURNS bloomquery
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloomquery_in(cstring) IS 'I/O';

CREATE FUNCTION bloomquery_out(bloomquery) RETURNS cstring
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloomquery_out(bloomquery) IS 'I/O';

CREATE FUNCTION bloomquery_recv(internal) RETURNS bloomquery
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloomquery_recv(internal) IS 'I/O';

CREATE FUNCTION bloomquery_send(bloomquery) RETURNS bytea
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloomquery_send(bloomquery) IS 'I/O';

CREATE TYPE bloomquery (
	INPUT = bloomquery_in,
	OUTPUT = bloomquery_out,
	RECEIVE = bloomquery_recv,
	SEND = bloomquery_send,
	STORAGE = extended
);
COMMENT ON TYPE bloomquery IS 'keys, and how many of them a filter must contain';

-- STABLE, because a label of an enum can be renamed.
CREATE FUNCTION bloom_query(keys anycompatible) RETURNS bloomquery
	AS 'MODULE_PATHNAME', 'bloomquery_make' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bloom_query(anycompatible) IS
	'a key, or all elements of an array, as a query for filters that contain them';

CREATE FUNCTION bloom_query(keys anycompatiblearray, at_least integer) RETURNS bloomquery
	AS 'MODULE_PATHNAME', 'bloomquery_make_least' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bloom_query(anycompatiblearray, integer) IS
	'a query for filters that contain at least so many of the keys';

CREATE FUNCTION bloom_query_sel(internal, oid, internal, integer) RETURNS float8
	AS 'MODULE_PATHNAME', 'bloomfilter_matches_sel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_query_sel(internal, oid, internal, integer) IS
	'restriction selectivity of @@ for filters';

CREATE FUNCTION bloom_contains_support(internal) RETURNS internal
	AS 'MODULE_PATHNAME', 'bloomfilter_contains_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_contains_support(internal) IS
	'planner support of functions that test for keys';

CREATE FUNCTION bloom_matches(filter bloomfilter, query bloomquery) RETURNS boolean
	AS 'MODULE_PATHNAME', 'bloomfilter_matches' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10
	SUPPORT bloom_contains_support;
COMMENT ON FUNCTION bloom_matches(bloomfilter, bloomquery) IS 'implementation of @@ operator';

CREATE OPERATOR @@ (
	LEFTARG = bloomfilter, RIGHTARG = bloomquery, FUNCTION = bloom_matches,
	RESTRICT = bloom_query_sel, JOIN = bloom_contains_joinsel
);
COMMENT ON OPERATOR @@ (bloomfilter, bloomquery) IS
	'contains as many keys as the query asks for: false is certain, true is probable';

CREATE FUNCTION bloom_absent(filter bloomfilter, query bloomquery) RETURNS integer
	AS 'MODULE_PATHNAME', 'bloomfilter_absent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10
	SUPPORT bloom_contains_support;
COMMENT ON FUNCTION bloom_absent(bloomfilter, bloomquery) IS 'implementation of <-> operator';

CREATE OPERATOR <-> (
	LEFTARG = bloomfilter, RIGHTARG = bloomquery, FUNCTION = bloom_absent
);
COMMENT ON OPERATOR <-> (bloomfilter, bloomquery) IS
	'number of keys that are certainly absent';

CREATE FUNCTION bloom_hits(filter bloomfilter, keys anycompatiblearray) RETURNS integer
	AS 'MODULE_PATHNAME', 'bloomfilter_hits' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10
	SUPPORT bloom_contains_support;
COMMENT ON FUNCTION bloom_hits(bloomfilter, anycompatiblearray) IS
	'number of keys that the filter contains, duplicates each';

CREATE FUNCTION bloom_contains_any(filter bloomfilter, keys anycompatiblearray) RETURNS boolean
	AS 'MODULE_PATHNAME', 'bloomfilter_contains_any' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10
	SUPPORT bloom_contains_support;
COMMENT ON FUNCTION bloom_contains_any(bloomfilter, anycompatiblearray) IS
	'does the filter contain one of the keys?';

CREATE FUNCTION bloom_contains_all(filter bloomfilter, keys anycompatiblearray) RETURNS boolean
	AS 'MODULE_PATHNAME', 'bloomfilter_contains_all' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10
	SUPPORT bloom_contains_support;
COMMENT ON FUNCTION bloom_contains_all(bloomfilter, anycompatiblearray) IS
	'does the filter contain all keys?';

CREATE FUNCTION bloom_contains_least(filter bloomfilter, keys anycompatiblearray, at_least integer) RETURNS boolean
	AS 'MODULE_PATHNAME', 'bloomfilter_contains_least' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10
	SUPPORT bloom_contains_support;
COMMENT ON FUNCTION bloom_contains_least(bloomfilter, anycompatiblearray, integer) IS
	'does the filter contain at least so many of the keys?';

ALTER FUNCTION bloom_contains(bloomfilter, anycompatible) SUPPORT bloom_contains_support;
ALTER FUNCTION bloom_contained(anycompatible, bloomfilter) SUPPORT bloom_contains_support;

--
-- bloomslices: an index over filters
--

CREATE FUNCTION bloomslices_handler(internal) RETURNS index_am_handler
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON FUNCTION bloomslices_handler(internal) IS
	'index access method handler of bloomslices';

CREATE ACCESS METHOD bloomslices TYPE INDEX HANDLER bloomslices_handler;
COMMENT ON ACCESS METHOD bloomslices IS
	'bit slices of Bloom filters';

CREATE OPERATOR CLASS bloomfilter_ops DEFAULT FOR TYPE bloomfilter USING bloomslices AS
	OPERATOR 1 @@ (bloomfilter, bloomquery),
	OPERATOR 2 @>= (bloomfilter, bloomfilter),
	OPERATOR 3 <-> (bloomfilter, bloomquery) FOR ORDER BY pg_catalog.integer_ops;
COMMENT ON OPERATOR CLASS bloomfilter_ops USING bloomslices IS
	'bit slices of bloomfilter';
COMMENT ON OPERATOR FAMILY bloomfilter_ops USING bloomslices IS
	'bit slices of bloomfilter';

CREATE FUNCTION bloomslices_info(
	index regclass,
	OUT element_type regtype, OUT bits bigint, OUT hashes integer, OUT requested_rate real, OUT seed bigint,
	OUT slabs bigint, OUT rows bigint, OUT rechecked bigint, OUT dead bigint, OUT pages bigint, OUT bytes bigint
) AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 1000;
COMMENT ON FUNCTION bloomslices_info(regclass) IS
	'parameters, contents and size of a bloomslices index';

CREATE FUNCTION bloomslices_check(index regclass) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 10000;
COMMENT ON FUNCTION bloomslices_check(regclass) IS
	'raises an error if a bloomslices index does not agree with its table';
REVOKE EXECUTE ON FUNCTION bloomslices_check(regclass) FROM PUBLIC;

CREATE FUNCTION bloomslices_merge(index regclass) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 10000;
COMMENT ON FUNCTION bloomslices_merge(regclass) IS
	'merges slabs of a bloomslices index, as VACUUM does';
