/* bloomtype: Bloom filters for PostgreSQL */

\echo Use "ALTER EXTENSION bloomtype UPDATE" to load this file. \quit

-- From here on functions such as bloom_add exist for filters and counters. A
-- preferred type resolves an untyped argument of such a function to a filter, as
-- before. ALTER TYPE cannot set this property.
UPDATE pg_catalog.pg_type SET typispreferred = true
WHERE oid OPERATOR(pg_catalog.=) 'bloomfilter'::pg_catalog.regtype;

--
-- The type bloomcounter
--

CREATE TYPE bloomcounter;

CREATE FUNCTION bloomcounter_in(cstring) RETURNS bloomcounter
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloomcounter_in(cstring) IS 'I/O';

CREATE FUNCTION bloomcounter_out(bloomcounter) RETURNS cstring
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloomcounter_out(bloomcounter) IS 'I/O';

CREATE FUNCTION bloomcounter_recv(internal) RETURNS bloomcounter
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloomcounter_recv(internal) IS 'I/O';

CREATE FUNCTION bloomcounter_send(bloomcounter) RETURNS bytea
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloomcounter_send(bloomcounter) IS 'I/O';

CREATE TYPE bloomcounter (
	INPUT = bloomcounter_in,
	OUTPUT = bloomcounter_out,
	RECEIVE = bloomcounter_recv,
	SEND = bloomcounter_send,
	ALIGNMENT = double,
	STORAGE = external
);
COMMENT ON TYPE bloomcounter IS
	'counting Bloom filter: a number for each element, never below the true one';

CREATE FUNCTION bloom_counter_from_bytea(bytea) RETURNS bloomcounter
	AS 'MODULE_PATHNAME', 'bloomcounter_from_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_counter_from_bytea(bytea) IS 'convert binary form to counter, with validation';

CREATE FUNCTION bloom_to_bytea(bloomcounter) RETURNS bytea
	AS 'MODULE_PATHNAME', 'bloomcounter_to_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_to_bytea(bloomcounter) IS 'convert counter to binary form';

CREATE FUNCTION bloom_to_filter(bloomcounter) RETURNS bloomfilter
	AS 'MODULE_PATHNAME', 'bloomcounter_to_filter' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_to_filter(bloomcounter) IS 'filter of the elements that a counter contains';

CREATE CAST (bytea AS bloomcounter) WITH FUNCTION bloom_counter_from_bytea(bytea);
COMMENT ON CAST (bytea AS bloomcounter) IS 'convert binary form to counter, with validation';

CREATE CAST (bloomcounter AS bytea) WITH FUNCTION bloom_to_bytea(bloomcounter);
COMMENT ON CAST (bloomcounter AS bytea) IS 'convert counter to binary form';

CREATE CAST (bloomcounter AS bloomfilter) WITH FUNCTION bloom_to_filter(bloomcounter);
COMMENT ON CAST (bloomcounter AS bloomfilter) IS 'filter of the elements that a counter contains';

--
-- Creating counters and changing the numbers of elements
--

CREATE FUNCTION bloom_create_counter(
	expected_items float8,
	false_positive_rate float8 DEFAULT 0.01,
	counter_bits integer DEFAULT 4,
	layout text DEFAULT 'blocked',
	seed bigint DEFAULT 0)
	RETURNS bloomcounter
	AS 'MODULE_PATHNAME', 'bloomcounter_create' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_create_counter(float8, float8, integer, text, bigint) IS
	'empty counter for a number of distinct elements and a false-positive rate';

CREATE FUNCTION bloom_counter_bytes(
	expected_items float8,
	false_positive_rate float8 DEFAULT 0.01,
	counter_bits integer DEFAULT 4,
	layout text DEFAULT 'blocked')
	RETURNS bigint
	AS 'MODULE_PATHNAME', 'bloomcounter_bytes' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_counter_bytes(float8, float8, integer, text) IS
	'size in bytes of a full counter for a number of distinct elements';

CREATE FUNCTION bloom_add(counter bloomcounter, element anycompatible, times integer DEFAULT 1) RETURNS bloomcounter
	AS 'MODULE_PATHNAME', 'bloomcounter_add' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_add(bloomcounter, anycompatible, integer) IS
	'add an element to a counter a number of times; a null element adds nothing';

CREATE FUNCTION bloom_remove(counter bloomcounter, element anycompatible, times integer DEFAULT 1) RETURNS bloomcounter
	AS 'MODULE_PATHNAME', 'bloomcounter_remove' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_remove(bloomcounter, anycompatible, integer) IS
	'remove an element from a counter a number of times; a null element removes nothing';

CREATE FUNCTION bloom_raise(counter bloomcounter, element anycompatible, level integer) RETURNS bloomcounter
	AS 'MODULE_PATHNAME', 'bloomcounter_raise' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_raise(bloomcounter, anycompatible, integer) IS
	'raise the number of an element to a level; a null element raises nothing';

CREATE FUNCTION bloom_decay(counter bloomcounter, by integer DEFAULT 1) RETURNS bloomcounter
	AS 'MODULE_PATHNAME', 'bloomcounter_decay' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_decay(bloomcounter, integer) IS
	'lower all numbers of a counter, but not below 0';

--
-- Membership and numbers of a counter
--

CREATE FUNCTION bloom_contains(counter bloomcounter, element anycompatible) RETURNS boolean
	AS 'MODULE_PATHNAME', 'bloomcounter_contains' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 4;
COMMENT ON FUNCTION bloom_contains(bloomcounter, anycompatible) IS
	'does the counter contain the element? false is certain, true is probable';

CREATE FUNCTION bloom_contained(element anycompatible, counter bloomcounter) RETURNS boolean
	AS 'MODULE_PATHNAME', 'bloomcounter_contained' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 4;
COMMENT ON FUNCTION bloom_contained(anycompatible, bloomcounter) IS 'implementation of <@ operator';

CREATE OPERATOR @> (
	LEFTARG = bloomcounter, RIGHTARG = anycompatible, FUNCTION = bloom_contains,
	COMMUTATOR = <@, RESTRICT = bloom_contains_sel, JOIN = bloom_contains_joinsel
);
COMMENT ON OPERATOR @> (bloomcounter, anycompatible) IS
	'contains: false is certain, true is probable';

CREATE OPERATOR <@ (
	LEFTARG = anycompatible, RIGHTARG = bloomcounter, FUNCTION = bloom_contained,
	COMMUTATOR = @>, RESTRICT = bloom_contains_sel, JOIN = bloom_contains_joinsel
);
COMMENT ON OPERATOR <@ (anycompatible, bloomcounter) IS
	'is contained by: false is certain, true is probable';

CREATE FUNCTION bloom_count(counter bloomcounter, element anycompatible) RETURNS integer
	AS 'MODULE_PATHNAME', 'bloomcounter_count' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 4;
COMMENT ON FUNCTION bloom_count(bloomcounter, anycompatible) IS
	'number of an element, never below the true one; the greatest that fits means that or more';

CREATE FUNCTION bloom_at_least(counter bloomcounter, level integer) RETURNS bloomfilter
	AS 'MODULE_PATHNAME', 'bloomcounter_at_least' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_at_least(bloomcounter, integer) IS
	'filter of the elements whose number is at least a level';

--
-- Algebra of counters
--

CREATE FUNCTION bloom_sum(bloomcounter, bloomcounter) RETURNS bloomcounter
	AS 'MODULE_PATHNAME', 'bloomcounter_sum' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_sum(bloomcounter, bloomcounter) IS
	'counter of the sums of the numbers of both counters';

CREATE OPERATOR + (
	LEFTARG = bloomcounter, RIGHTARG = bloomcounter, FUNCTION = bloom_sum, COMMUTATOR = +
);
COMMENT ON OPERATOR + (bloomcounter, bloomcounter) IS 'sum';

CREATE FUNCTION bloom_difference(bloomcounter, bloomcounter) RETURNS bloomcounter
	AS 'MODULE_PATHNAME', 'bloomcounter_difference' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_difference(bloomcounter, bloomcounter) IS
	'remove the contents of the second counter from the first';

CREATE OPERATOR - (
	LEFTARG = bloomcounter, RIGHTARG = bloomcounter, FUNCTION = bloom_difference
);
COMMENT ON OPERATOR - (bloomcounter, bloomcounter) IS 'difference';

CREATE FUNCTION bloom_union(bloomcounter, bloomcounter) RETURNS bloomcounter
	AS 'MODULE_PATHNAME', 'bloomcounter_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_union(bloomcounter, bloomcounter) IS
	'counter of the greater numbers of both counters';

CREATE OPERATOR | (
	LEFTARG = bloomcounter, RIGHTARG = bloomcounter, FUNCTION = bloom_union, COMMUTATOR = |
);
COMMENT ON OPERATOR | (bloomcounter, bloomcounter) IS 'union: the greater numbers';

CREATE FUNCTION bloom_intersection(bloomcounter, bloomcounter) RETURNS bloomcounter
	AS 'MODULE_PATHNAME', 'bloomcounter_intersection' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_intersection(bloomcounter, bloomcounter) IS
	'counter of the lesser numbers of both counters';

CREATE OPERATOR & (
	LEFTARG = bloomcounter, RIGHTARG = bloomcounter, FUNCTION = bloom_intersection, COMMUTATOR = &
);
COMMENT ON OPERATOR & (bloomcounter, bloomcounter) IS 'intersection: the lesser numbers';

--
-- Comparison of counters, bytewise as for filters
--

CREATE FUNCTION bloom_eq(bloomcounter, bloomcounter) RETURNS boolean
	AS 'byteaeq' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_eq(bloomcounter, bloomcounter) IS 'implementation of = operator';

CREATE FUNCTION bloom_ne(bloomcounter, bloomcounter) RETURNS boolean
	AS 'byteane' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_ne(bloomcounter, bloomcounter) IS 'implementation of <> operator';

CREATE OPERATOR = (
	LEFTARG = bloomcounter, RIGHTARG = bloomcounter, FUNCTION = bloom_eq,
	COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES
);
COMMENT ON OPERATOR = (bloomcounter, bloomcounter) IS 'equal: same bytes';

CREATE OPERATOR <> (
	LEFTARG = bloomcounter, RIGHTARG = bloomcounter, FUNCTION = bloom_ne,
	COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel
);
COMMENT ON OPERATOR <> (bloomcounter, bloomcounter) IS 'not equal';

CREATE FUNCTION bloom_lt(bloomcounter, bloomcounter) RETURNS boolean
	AS 'bytealt' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_lt(bloomcounter, bloomcounter) IS 'implementation of < operator';

CREATE FUNCTION bloom_le(bloomcounter, bloomcounter) RETURNS boolean
	AS 'byteale' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_le(bloomcounter, bloomcounter) IS 'implementation of <= operator';

CREATE FUNCTION bloom_gt(bloomcounter, bloomcounter) RETURNS boolean
	AS 'byteagt' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_gt(bloomcounter, bloomcounter) IS 'implementation of > operator';

CREATE FUNCTION bloom_ge(bloomcounter, bloomcounter) RETURNS boolean
	AS 'byteage' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_ge(bloomcounter, bloomcounter) IS 'implementation of >= operator';

CREATE FUNCTION bloom_cmp(bloomcounter, bloomcounter) RETURNS integer
	AS 'byteacmp' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_cmp(bloomcounter, bloomcounter) IS 'less-equal-greater';

CREATE OPERATOR < (
	LEFTARG = bloomcounter, RIGHTARG = bloomcounter, FUNCTION = bloom_lt,
	COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);
COMMENT ON OPERATOR < (bloomcounter, bloomcounter) IS 'less than, in bytewise order';

CREATE OPERATOR <= (
	LEFTARG = bloomcounter, RIGHTARG = bloomcounter, FUNCTION = bloom_le,
	COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);
COMMENT ON OPERATOR <= (bloomcounter, bloomcounter) IS 'less than or equal, in bytewise order';

CREATE OPERATOR > (
	LEFTARG = bloomcounter, RIGHTARG = bloomcounter, FUNCTION = bloom_gt,
	COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);
COMMENT ON OPERATOR > (bloomcounter, bloomcounter) IS 'greater than, in bytewise order';

CREATE OPERATOR >= (
	LEFTARG = bloomcounter, RIGHTARG = bloomcounter, FUNCTION = bloom_ge,
	COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel
);
COMMENT ON OPERATOR >= (bloomcounter, bloomcounter) IS 'greater than or equal, in bytewise order';

CREATE OPERATOR CLASS bloomcounter_ops
	DEFAULT FOR TYPE bloomcounter USING btree AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >,
	FUNCTION 1 bloom_cmp(bloomcounter, bloomcounter),
	FUNCTION 2 bloom_sortsupport(internal);
COMMENT ON OPERATOR CLASS bloomcounter_ops USING btree IS
	'bytewise order of counters, for sorting, DISTINCT and merge joins';
COMMENT ON OPERATOR FAMILY bloomcounter_ops USING btree IS
	'bytewise order of counters, for sorting, DISTINCT and merge joins';

CREATE FUNCTION bloom_hash(bloomcounter) RETURNS integer
	AS 'hashvarlena' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_hash(bloomcounter) IS 'hash';

CREATE FUNCTION bloom_hash_extended(bloomcounter, bigint) RETURNS bigint
	AS 'hashvarlenaextended' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_hash_extended(bloomcounter, bigint) IS 'hash with seed';

CREATE OPERATOR CLASS bloomcounter_ops
	DEFAULT FOR TYPE bloomcounter USING hash AS
	OPERATOR 1 =,
	FUNCTION 1 bloom_hash(bloomcounter),
	FUNCTION 2 bloom_hash_extended(bloomcounter, bigint);
COMMENT ON OPERATOR CLASS bloomcounter_ops USING hash IS
	'equality of counters, for hash joins and hashed grouping';
COMMENT ON OPERATOR FAMILY bloomcounter_ops USING hash IS
	'equality of counters, for hash joins and hashed grouping';

--
-- Estimates and information about a counter
--

CREATE FUNCTION bloom_cardinality(bloomcounter) RETURNS float8
	AS 'MODULE_PATHNAME', 'bloomcounter_cardinality' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_cardinality(bloomcounter) IS
	'estimated number of distinct elements of a counter; Infinity if no position is 0';

CREATE OPERATOR # (RIGHTARG = bloomcounter, FUNCTION = bloom_cardinality);
COMMENT ON OPERATOR # (NONE, bloomcounter) IS 'estimated number of distinct elements';

CREATE FUNCTION bloom_total(bloomcounter) RETURNS float8
	AS 'MODULE_PATHNAME', 'bloomcounter_total' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_total(bloomcounter) IS
	'estimated number of elements of a counter, with repetitions';

CREATE FUNCTION bloom_fpp(bloomcounter) RETURNS float8
	AS 'MODULE_PATHNAME', 'bloomcounter_fpp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_fpp(bloomcounter) IS 'current false-positive rate of a counter';

CREATE FUNCTION bloom_info(
	counter bloomcounter,
	OUT layout text,
	OUT element_type regtype,
	OUT representation text,
	OUT contents text,
	OUT counter_bits integer,
	OUT positions bigint,
	OUT hashes integer,
	OUT positions_set bigint,
	OUT saturated bigint,
	OUT fill float8,
	OUT full_blocks bigint,
	OUT cardinality float8,
	OUT total float8,
	OUT capacity bigint,
	OUT requested_rate real,
	OUT current_rate float8,
	OUT bytes bigint,
	OUT overfull boolean,
	OUT seed bigint)
	RETURNS record
	AS 'MODULE_PATHNAME', 'bloomcounter_info' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION bloom_info(bloomcounter) IS 'parameters, contents and condition of a counter';

--
-- Aggregates that count elements
--

CREATE FUNCTION bloom_counter_agg_add(internal, anycompatible) RETURNS internal
	AS 'MODULE_PATHNAME', 'bloomcounter_agg_self_sized' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_counter_agg_add(internal, anycompatible) IS 'aggregate transition function';

CREATE FUNCTION bloom_counter_agg_add(internal, anycompatible, float8) RETURNS internal
	AS 'MODULE_PATHNAME', 'bloomcounter_agg_sized' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_counter_agg_add(internal, anycompatible, float8) IS 'aggregate transition function';

CREATE FUNCTION bloom_counter_agg_add(internal, anycompatible, float8, float8) RETURNS internal
	AS 'MODULE_PATHNAME', 'bloomcounter_agg_sized' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_counter_agg_add(internal, anycompatible, float8, float8) IS 'aggregate transition function';

CREATE FUNCTION bloom_counter_agg_add(internal, anycompatible, bloomcounter) RETURNS internal
	AS 'MODULE_PATHNAME', 'bloomcounter_agg_extend' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_counter_agg_add(internal, anycompatible, bloomcounter) IS 'aggregate transition function';

CREATE FUNCTION bloom_counter_agg_combine(internal, internal) RETURNS internal
	AS 'MODULE_PATHNAME', 'bloomcounter_agg_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20;
COMMENT ON FUNCTION bloom_counter_agg_combine(internal, internal) IS 'aggregate combine function';

CREATE FUNCTION bloom_level_agg_combine(internal, internal) RETURNS internal
	AS 'MODULE_PATHNAME', 'bloomcounter_level_agg_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20;
COMMENT ON FUNCTION bloom_level_agg_combine(internal, internal) IS 'aggregate combine function';

CREATE FUNCTION bloom_counter_agg_serialize(internal) RETURNS bytea
	AS 'MODULE_PATHNAME', 'bloomcounter_agg_serialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 20;
COMMENT ON FUNCTION bloom_counter_agg_serialize(internal) IS 'aggregate serialization function';

CREATE FUNCTION bloom_counter_agg_deserialize(bytea, internal) RETURNS internal
	AS 'MODULE_PATHNAME', 'bloomcounter_agg_deserialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 20;
COMMENT ON FUNCTION bloom_counter_agg_deserialize(bytea, internal) IS 'aggregate deserialization function';

CREATE FUNCTION bloom_counter_agg_final(internal) RETURNS bloomcounter
	AS 'MODULE_PATHNAME', 'bloomcounter_agg_final' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_counter_agg_final(internal) IS 'aggregate final function';

-- Strict, as bloom_agg_extend_final is: over no rows there is no counter to extend.
CREATE FUNCTION bloom_counter_agg_extend_final(internal) RETURNS bloomcounter
	AS 'MODULE_PATHNAME', 'bloomcounter_agg_final' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_counter_agg_extend_final(internal) IS 'aggregate final function';

CREATE AGGREGATE bloom_counter_agg(element anycompatible) (
	SFUNC = bloom_counter_agg_add, STYPE = internal, SSPACE = 400,
	FINALFUNC = bloom_counter_agg_final, COMBINEFUNC = bloom_counter_agg_combine,
	SERIALFUNC = bloom_counter_agg_serialize, DESERIALFUNC = bloom_counter_agg_deserialize,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_counter_agg(anycompatible) IS
	'counts of all non-null values, sized for the number of distinct ones at a false-positive rate of 1 %';

CREATE AGGREGATE bloom_counter_agg(element anycompatible, expected_items float8) (
	SFUNC = bloom_counter_agg_add, STYPE = internal, SSPACE = 400,
	FINALFUNC = bloom_counter_agg_final, COMBINEFUNC = bloom_counter_agg_combine,
	SERIALFUNC = bloom_counter_agg_serialize, DESERIALFUNC = bloom_counter_agg_deserialize,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_counter_agg(anycompatible, float8) IS
	'counts of all non-null values, sized for a number of distinct values at 1 %; NULL sizes it automatically';

CREATE AGGREGATE bloom_counter_agg(element anycompatible, expected_items float8, false_positive_rate float8) (
	SFUNC = bloom_counter_agg_add, STYPE = internal, SSPACE = 400,
	FINALFUNC = bloom_counter_agg_final, COMBINEFUNC = bloom_counter_agg_combine,
	SERIALFUNC = bloom_counter_agg_serialize, DESERIALFUNC = bloom_counter_agg_deserialize,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_counter_agg(anycompatible, float8, float8) IS
	'counts of all non-null values, sized for a number of distinct values and a false-positive rate';

-- No combine function: the state begins with the counter's own numbers, and
-- combining several states would add them more than once.
CREATE AGGREGATE bloom_counter_agg(element anycompatible, counter bloomcounter) (
	SFUNC = bloom_counter_agg_add, STYPE = internal, SSPACE = 400,
	FINALFUNC = bloom_counter_agg_extend_final,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_counter_agg(anycompatible, bloomcounter) IS
	'copy of a counter with all non-null values added; NULL over no rows';

--
-- Aggregates that keep the greatest level of each element
--

CREATE FUNCTION bloom_level_agg_add(internal, anycompatible, integer) RETURNS internal
	AS 'MODULE_PATHNAME', 'bloomcounter_level_agg_self_sized' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_level_agg_add(internal, anycompatible, integer) IS 'aggregate transition function';

CREATE FUNCTION bloom_level_agg_add(internal, anycompatible, integer, float8) RETURNS internal
	AS 'MODULE_PATHNAME', 'bloomcounter_level_agg_sized' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_level_agg_add(internal, anycompatible, integer, float8) IS
	'aggregate transition function';

CREATE FUNCTION bloom_level_agg_add(internal, anycompatible, integer, float8, float8) RETURNS internal
	AS 'MODULE_PATHNAME', 'bloomcounter_level_agg_sized' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_level_agg_add(internal, anycompatible, integer, float8, float8) IS
	'aggregate transition function';

CREATE FUNCTION bloom_level_agg_add(internal, anycompatible, integer, bloomcounter) RETURNS internal
	AS 'MODULE_PATHNAME', 'bloomcounter_level_agg_extend' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bloom_level_agg_add(internal, anycompatible, integer, bloomcounter) IS
	'aggregate transition function';

CREATE AGGREGATE bloom_level_agg(element anycompatible, level integer) (
	SFUNC = bloom_level_agg_add, STYPE = internal, SSPACE = 400,
	FINALFUNC = bloom_counter_agg_final, COMBINEFUNC = bloom_level_agg_combine,
	SERIALFUNC = bloom_counter_agg_serialize, DESERIALFUNC = bloom_counter_agg_deserialize,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_level_agg(anycompatible, integer) IS
	'greatest level of each non-null value, sized for the number of distinct ones at a false-positive rate of 1 %';

CREATE AGGREGATE bloom_level_agg(element anycompatible, level integer, expected_items float8) (
	SFUNC = bloom_level_agg_add, STYPE = internal, SSPACE = 400,
	FINALFUNC = bloom_counter_agg_final, COMBINEFUNC = bloom_level_agg_combine,
	SERIALFUNC = bloom_counter_agg_serialize, DESERIALFUNC = bloom_counter_agg_deserialize,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_level_agg(anycompatible, integer, float8) IS
	'greatest level of each non-null value, sized for a number of distinct values at 1 %; NULL sizes it automatically';

CREATE AGGREGATE bloom_level_agg(
	element anycompatible, level integer, expected_items float8, false_positive_rate float8
) (
	SFUNC = bloom_level_agg_add, STYPE = internal, SSPACE = 400,
	FINALFUNC = bloom_counter_agg_final, COMBINEFUNC = bloom_level_agg_combine,
	SERIALFUNC = bloom_counter_agg_serialize, DESERIALFUNC = bloom_counter_agg_deserialize,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_level_agg(anycompatible, integer, float8, float8) IS
	'greatest level of each non-null value, sized for a number of distinct values and a false-positive rate';

CREATE AGGREGATE bloom_level_agg(element anycompatible, level integer, counter bloomcounter) (
	SFUNC = bloom_level_agg_add, STYPE = internal, SSPACE = 400,
	FINALFUNC = bloom_counter_agg_extend_final, COMBINEFUNC = bloom_level_agg_combine,
	SERIALFUNC = bloom_counter_agg_serialize, DESERIALFUNC = bloom_counter_agg_deserialize,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_level_agg(anycompatible, integer, bloomcounter) IS
	'copy of a counter with all non-null values raised to their levels; NULL over no rows';

--
-- Aggregates over counters
--

CREATE FUNCTION bloom_sum_agg_add(bloomcounter, bloomcounter) RETURNS bloomcounter
	AS 'MODULE_PATHNAME', 'bloomcounter_sum_agg_add' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_sum_agg_add(bloomcounter, bloomcounter) IS 'aggregate transition and combine function';

CREATE FUNCTION bloom_sum_agg_final(bloomcounter) RETURNS bloomcounter
	AS 'MODULE_PATHNAME', 'bloomcounter_combine_agg_final' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_sum_agg_final(bloomcounter) IS 'aggregate final function';

CREATE AGGREGATE bloom_sum_agg(bloomcounter) (
	SFUNC = bloom_sum_agg_add, STYPE = bloomcounter, SSPACE = 10000,
	FINALFUNC = bloom_sum_agg_final, COMBINEFUNC = bloom_sum_agg_add,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_sum_agg(bloomcounter) IS 'sum of all non-null counters';

CREATE FUNCTION bloom_union_agg_add(bloomcounter, bloomcounter) RETURNS bloomcounter
	AS 'MODULE_PATHNAME', 'bloomcounter_union_agg_add' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_union_agg_add(bloomcounter, bloomcounter) IS 'aggregate transition and combine function';

CREATE FUNCTION bloom_union_agg_final(bloomcounter) RETURNS bloomcounter
	AS 'MODULE_PATHNAME', 'bloomcounter_combine_agg_final' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_union_agg_final(bloomcounter) IS 'aggregate final function';

CREATE AGGREGATE bloom_union_agg(bloomcounter) (
	SFUNC = bloom_union_agg_add, STYPE = bloomcounter, SSPACE = 10000,
	FINALFUNC = bloom_union_agg_final, COMBINEFUNC = bloom_union_agg_add,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_union_agg(bloomcounter) IS 'union of all non-null counters';
