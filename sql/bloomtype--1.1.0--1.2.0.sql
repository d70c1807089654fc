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
