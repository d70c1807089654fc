/* bloomtype: Bloom filters for PostgreSQL */

\echo Use "ALTER EXTENSION bloomtype UPDATE" to load this file. \quit

--
-- bloomslices: an index over filters
--

CREATE FUNCTION bloomslices_handler(internal) RETURNS index_am_handler
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON FUNCTION bloomslices_handler(internal) IS
	'index access method handler';

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
