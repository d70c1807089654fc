/* bloomtype: Bloom filters for PostgreSQL */

\echo Use "ALTER EXTENSION bloomtype UPDATE" to load this file. \quit

--
-- Folding counters
--

CREATE FUNCTION bloom_fold(counter bloomcounter, false_positive_rate float8) RETURNS bloomcounter
	AS 'MODULE_PATHNAME', 'bloomcounter_fold' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION bloom_fold(bloomcounter, float8) IS
	'fold a counter to the smallest size that keeps a false-positive rate';

CREATE FUNCTION bloom_fold(counter bloomcounter, "like" bloomcounter) RETURNS bloomcounter
	AS 'MODULE_PATHNAME', 'bloomcounter_fold_like' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION bloom_fold(bloomcounter, bloomcounter) IS
	'bring a counter to the size and requested rate of another, so that they combine';

--
-- The width of the numbers as an argument of the aggregates
--

CREATE FUNCTION bloom_counter_agg_add(internal, anycompatible, float8, float8, integer) RETURNS internal
	AS 'MODULE_PATHNAME', 'bloomcounter_agg_sized' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_counter_agg_add(internal, anycompatible, float8, float8, integer) IS
	'aggregate transition function';

CREATE AGGREGATE bloom_counter_agg(
	element anycompatible, expected_items float8, false_positive_rate float8, counter_bits integer
) (
	SFUNC = bloom_counter_agg_add, STYPE = internal, SSPACE = 400,
	FINALFUNC = bloom_counter_agg_final, COMBINEFUNC = bloom_counter_agg_combine,
	SERIALFUNC = bloom_counter_agg_serialize, DESERIALFUNC = bloom_counter_agg_deserialize,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_counter_agg(anycompatible, float8, float8, integer) IS
	'counts of all non-null values, with 4, 8 or 16 bits for each number';

CREATE FUNCTION bloom_level_agg_add(internal, anycompatible, integer, float8, float8, integer) RETURNS internal
	AS 'MODULE_PATHNAME', 'bloomcounter_level_agg_sized' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_level_agg_add(internal, anycompatible, integer, float8, float8, integer) IS
	'aggregate transition function';

CREATE AGGREGATE bloom_level_agg(
	element anycompatible, level integer, expected_items float8, false_positive_rate float8, counter_bits integer
) (
	SFUNC = bloom_level_agg_add, STYPE = internal, SSPACE = 400,
	FINALFUNC = bloom_counter_agg_final, COMBINEFUNC = bloom_level_agg_combine,
	SERIALFUNC = bloom_counter_agg_serialize, DESERIALFUNC = bloom_counter_agg_deserialize,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_level_agg(anycompatible, integer, float8, float8, integer) IS
	'greatest level of each non-null value, with 4, 8 or 16 bits for each number';

--
-- bloomset: an index that is the Bloom filter of a column
--

CREATE FUNCTION bloomset_handler(internal) RETURNS index_am_handler
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON FUNCTION bloomset_handler(internal) IS
	'index access method handler';

CREATE ACCESS METHOD bloomset TYPE INDEX HANDLER bloomset_handler;
COMMENT ON ACCESS METHOD bloomset IS
	'Bloom filter of a column';

CREATE OPERATOR CLASS bool_ops DEFAULT FOR TYPE boolean USING bloomset AS
	OPERATOR 1 =;
CREATE OPERATOR CLASS bytea_ops DEFAULT FOR TYPE bytea USING bloomset AS
	OPERATOR 1 =;

CREATE OPERATOR FAMILY integer_ops USING bloomset;
CREATE OPERATOR CLASS int2_ops DEFAULT FOR TYPE smallint USING bloomset FAMILY integer_ops AS
	OPERATOR 1 =;
CREATE OPERATOR CLASS int4_ops DEFAULT FOR TYPE integer USING bloomset FAMILY integer_ops AS
	OPERATOR 1 =;
CREATE OPERATOR CLASS int8_ops DEFAULT FOR TYPE bigint USING bloomset FAMILY integer_ops AS
	OPERATOR 1 =;
ALTER OPERATOR FAMILY integer_ops USING bloomset ADD
	OPERATOR 1 =(smallint, integer),
	OPERATOR 1 =(smallint, bigint),
	OPERATOR 1 =(integer, smallint),
	OPERATOR 1 =(integer, bigint),
	OPERATOR 1 =(bigint, smallint),
	OPERATOR 1 =(bigint, integer);


CREATE OPERATOR FAMILY float_ops USING bloomset;
CREATE OPERATOR CLASS float4_ops DEFAULT FOR TYPE real USING bloomset FAMILY float_ops AS
	OPERATOR 1 =;
CREATE OPERATOR CLASS float8_ops DEFAULT FOR TYPE double precision USING bloomset FAMILY float_ops AS
	OPERATOR 1 =;
ALTER OPERATOR FAMILY float_ops USING bloomset ADD
	OPERATOR 1 =(real, double precision),
	OPERATOR 1 =(double precision, real);

CREATE OPERATOR CLASS numeric_ops DEFAULT FOR TYPE numeric USING bloomset AS
	OPERATOR 1 =;

CREATE OPERATOR FAMILY text_ops USING bloomset;
CREATE OPERATOR CLASS text_ops DEFAULT FOR TYPE text USING bloomset FAMILY text_ops AS
	OPERATOR 1 =;
CREATE OPERATOR CLASS name_ops DEFAULT FOR TYPE name USING bloomset FAMILY text_ops AS
	OPERATOR 1 =;
ALTER OPERATOR FAMILY text_ops USING bloomset ADD
	OPERATOR 1 =(text, name),
	OPERATOR 1 =(name, text);

CREATE OPERATOR CLASS bpchar_ops DEFAULT FOR TYPE character USING bloomset AS
	OPERATOR 1 =;
CREATE OPERATOR CLASS uuid_ops DEFAULT FOR TYPE uuid USING bloomset AS
	OPERATOR 1 =;
CREATE OPERATOR CLASS date_ops DEFAULT FOR TYPE date USING bloomset AS
	OPERATOR 1 =;
CREATE OPERATOR CLASS time_ops DEFAULT FOR TYPE time USING bloomset AS
	OPERATOR 1 =;
CREATE OPERATOR CLASS timetz_ops DEFAULT FOR TYPE time with time zone USING bloomset AS
	OPERATOR 1 =;
CREATE OPERATOR CLASS timestamp_ops DEFAULT FOR TYPE timestamp USING bloomset AS
	OPERATOR 1 =;
CREATE OPERATOR CLASS timestamptz_ops DEFAULT FOR TYPE timestamp with time zone USING bloomset AS
	OPERATOR 1 =;
CREATE OPERATOR CLASS interval_ops DEFAULT FOR TYPE interval USING bloomset AS
	OPERATOR 1 =;
CREATE OPERATOR CLASS inet_ops DEFAULT FOR TYPE inet USING bloomset AS
	OPERATOR 1 =;
CREATE OPERATOR CLASS macaddr_ops DEFAULT FOR TYPE macaddr USING bloomset AS
	OPERATOR 1 =;
CREATE OPERATOR CLASS macaddr8_ops DEFAULT FOR TYPE macaddr8 USING bloomset AS
	OPERATOR 1 =;

COMMENT ON OPERATOR CLASS bool_ops USING bloomset IS 'Bloom filter of boolean';
COMMENT ON OPERATOR FAMILY bool_ops USING bloomset IS 'Bloom filter of boolean';
COMMENT ON OPERATOR CLASS bytea_ops USING bloomset IS 'Bloom filter of bytea';
COMMENT ON OPERATOR FAMILY bytea_ops USING bloomset IS 'Bloom filter of bytea';
COMMENT ON OPERATOR FAMILY integer_ops USING bloomset IS 'Bloom filter of integers';
COMMENT ON OPERATOR CLASS int2_ops USING bloomset IS 'Bloom filter of smallint';
COMMENT ON OPERATOR CLASS int4_ops USING bloomset IS 'Bloom filter of integer';
COMMENT ON OPERATOR CLASS int8_ops USING bloomset IS 'Bloom filter of bigint';
COMMENT ON OPERATOR FAMILY float_ops USING bloomset IS 'Bloom filter of floating-point numbers';
COMMENT ON OPERATOR CLASS float4_ops USING bloomset IS 'Bloom filter of real';
COMMENT ON OPERATOR CLASS float8_ops USING bloomset IS 'Bloom filter of double precision';
COMMENT ON OPERATOR CLASS numeric_ops USING bloomset IS 'Bloom filter of numeric';
COMMENT ON OPERATOR FAMILY numeric_ops USING bloomset IS 'Bloom filter of numeric';
COMMENT ON OPERATOR FAMILY text_ops USING bloomset IS 'Bloom filter of text';
COMMENT ON OPERATOR CLASS text_ops USING bloomset IS 'Bloom filter of text';
COMMENT ON OPERATOR CLASS name_ops USING bloomset IS 'Bloom filter of name';
COMMENT ON OPERATOR CLASS bpchar_ops USING bloomset IS 'Bloom filter of character(n)';
COMMENT ON OPERATOR FAMILY bpchar_ops USING bloomset IS 'Bloom filter of character(n)';
COMMENT ON OPERATOR CLASS uuid_ops USING bloomset IS 'Bloom filter of uuid';
COMMENT ON OPERATOR FAMILY uuid_ops USING bloomset IS 'Bloom filter of uuid';
COMMENT ON OPERATOR CLASS date_ops USING bloomset IS 'Bloom filter of date';
COMMENT ON OPERATOR FAMILY date_ops USING bloomset IS 'Bloom filter of date';
COMMENT ON OPERATOR CLASS time_ops USING bloomset IS 'Bloom filter of time';
COMMENT ON OPERATOR FAMILY time_ops USING bloomset IS 'Bloom filter of time';
COMMENT ON OPERATOR CLASS timetz_ops USING bloomset IS 'Bloom filter of time with time zone';
COMMENT ON OPERATOR FAMILY timetz_ops USING bloomset IS 'Bloom filter of time with time zone';
COMMENT ON OPERATOR CLASS timestamp_ops USING bloomset IS 'Bloom filter of timestamp';
COMMENT ON OPERATOR FAMILY timestamp_ops USING bloomset IS 'Bloom filter of timestamp';
COMMENT ON OPERATOR CLASS timestamptz_ops USING bloomset IS 'Bloom filter of timestamp with time zone';
COMMENT ON OPERATOR FAMILY timestamptz_ops USING bloomset IS 'Bloom filter of timestamp with time zone';
COMMENT ON OPERATOR CLASS interval_ops USING bloomset IS 'Bloom filter of interval';
COMMENT ON OPERATOR FAMILY interval_ops USING bloomset IS 'Bloom filter of interval';
COMMENT ON OPERATOR CLASS inet_ops USING bloomset IS 'Bloom filter of inet';
COMMENT ON OPERATOR FAMILY inet_ops USING bloomset IS 'Bloom filter of inet';
COMMENT ON OPERATOR CLASS macaddr_ops USING bloomset IS 'Bloom filter of macaddr';
COMMENT ON OPERATOR FAMILY macaddr_ops USING bloomset IS 'Bloom filter of macaddr';
COMMENT ON OPERATOR CLASS macaddr8_ops USING bloomset IS 'Bloom filter of macaddr8';
COMMENT ON OPERATOR FAMILY macaddr8_ops USING bloomset IS 'Bloom filter of macaddr8';

CREATE FUNCTION bloomset_contains(relation regclass, "column" name, value anycompatible) RETURNS boolean
	AS 'MODULE_PATHNAME', 'bloomset_contains_column' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bloomset_contains(regclass, name, anycompatible) IS
	'may the column of a table have a value, by its bloomset indexes?';

CREATE FUNCTION bloomset_contains(index regclass, value anycompatible) RETURNS boolean
	AS 'MODULE_PATHNAME', 'bloomset_contains_index' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bloomset_contains(regclass, anycompatible) IS
	'may a bloomset index have a value?';

-- A parallel worker cannot read temporary tables, of which bloomset_contains() says "maybe".
CREATE FUNCTION bloomset_partitions(relation regclass, "column" name, value anycompatible) RETURNS SETOF regclass
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 100 ROWS 3;
COMMENT ON FUNCTION bloomset_partitions(regclass, name, anycompatible) IS
	'partitions or child tables that may have a value, by their bloomset indexes';

CREATE FUNCTION bloomset_filters(
	relation regclass, "column" name,
	OUT partition regclass, OUT generation integer, OUT filter bloomfilter
) RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 1000 ROWS 1;
COMMENT ON FUNCTION bloomset_filters(regclass, name) IS
	'the bloomset indexes of a column as filters, one row for each table and generation';

CREATE FUNCTION bloomset_info(
	index regclass,
	OUT elements bigint, OUT capacity bigint, OUT generations integer, OUT requested_rate real,
	OUT current_rate float8, OUT bytes bigint, OUT reindex_pays boolean
) AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 1000;
COMMENT ON FUNCTION bloomset_info(regclass) IS
	'size, contents and false-positive rate of a bloomset index';

CREATE FUNCTION bloomset_check(index regclass) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 10000;
COMMENT ON FUNCTION bloomset_check(regclass) IS
	'raises an error if a row of the table is missing from a bloomset index';
REVOKE EXECUTE ON FUNCTION bloomset_check(regclass) FROM PUBLIC;
