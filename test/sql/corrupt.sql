-- Stored values that are not filters. Only a superuser can create them.
CREATE FUNCTION forge(bytea, int) RETURNS bloomfilter LANGUAGE internal IMMUTABLE STRICT AS 'bytea_substr_no_len';
CREATE TABLE forged AS SELECT
	forge('\x0100', 1) AS short,
	forge('\x02000106140000000ad7233c00000000000000000000000000000000', 1) AS version;
-- two hashes, the greater one first, in 2^20 bits
SELECT forge(decode('0100010614000000' || '0ad7233c0000000000000000' || '0000100000000000' || 'ffffffffffffffff' ||
	'ffffffffffffff7f', 'hex'), 1) AS disorder,
	(SELECT bloom_agg(x) FROM generate_series(1, 100000) x) AS dense INTO TABLE disordered;

-- every function reports them
SELECT short FROM forged;
SELECT version::bytea FROM forged;
SELECT short @> 1 FROM forged;
SELECT bloom_add(version, 1) FROM forged;
SELECT short | version FROM forged;
SELECT # short FROM forged;
SELECT bloom_info(version) FROM forged;
SELECT bloom_fold(short, 0.1) FROM forged;
SELECT bloom_union_agg(short) FROM forged;
SELECT bloom_intersect_agg(version) FROM forged;
SELECT bloom_agg(1, short) FROM forged;
-- hashes out of order are an error where the order matters, and harmless elsewhere
SELECT bloom_union_cardinality(disorder, dense) FROM disordered;
SELECT dense @>= disorder AS answered FROM disordered;
SELECT octet_length((disorder | dense)::bytea) > 0 AS answered FROM disordered;
SELECT octet_length((disorder | disorder)::bytea) > 0 AS answered FROM disordered;
SELECT octet_length((disorder & dense)::bytea) > 0 AS answered FROM disordered;
SELECT disorder @> 1 AS answered FROM disordered;
SELECT octet_length(bloom_add(disorder, 1)::bytea) > 0 AS answered FROM disordered;
SELECT octet_length(bloom_agg(x, disorder)::bytea) > 0 AS answered FROM disordered, generate_series(1, 10) x;
-- a value of which only the first bytes are read
CREATE TABLE long AS SELECT forge('\x02000106140000000ad7233c0000000000000000' || decode(repeat('00', 20000), 'hex'),
	1) AS f;
SELECT f @> 1 FROM long;
-- a truncated serialized aggregate state, and a support function outside an aggregate
CREATE FUNCTION read_state(bytea) RETURNS bigint LANGUAGE C STRICT AS '$libdir/bloomtype', 'bloomfilter_agg_deserialize';
CREATE AGGREGATE read_states(bytea) (SFUNC = byteacat, STYPE = bytea, FINALFUNC = read_state);
SELECT read_states('\x0100');
SELECT read_state('\x');
DROP AGGREGATE read_states(bytea);
DROP FUNCTION read_state(bytea);
DROP TABLE forged, disordered, long;
DROP FUNCTION forge(bytea, int);
