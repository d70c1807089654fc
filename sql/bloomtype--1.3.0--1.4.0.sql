/* bloomtype: Bloom filters for PostgreSQL */

\echo Use "ALTER EXTENSION bloomtype UPDATE" to load this file. \quit

-- Only plans call this function, with a filter that the executor has.
CREATE FUNCTION bloom_join_filter(internal, VARIADIC "any") RETURNS boolean
	AS 'MODULE_PATHNAME', 'join_filter_probe' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_join_filter(internal, "any") IS
	'may a hash join find a match for these keys? False is certain, true is probable';
