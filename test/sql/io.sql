-- Text and binary forms: one encoding, which every way of input validates.
\set VERBOSITY default

-- the empty filter without a size, and small filters of both layouts
SELECT bloom_agg(x) FROM (SELECT 1 AS x WHERE false) AS none;
SELECT bloom_create(10);
SELECT bloom_create(10, 0.001, 'classic', -1);

-- every form reads back unchanged
CREATE TEMP TABLE filters (name text, f bloomfilter);
INSERT INTO filters VALUES
	('unsized', (SELECT bloom_agg(x) FROM generate_series(1, 0) x)),
	('empty', bloom_create(1000)),
	('sparse', (SELECT bloom_agg(x, 1000) FROM generate_series(1, 5) x)),
	('eight', (SELECT bloom_agg(x, 1000) FROM generate_series(1, 8) x)),
	('dense', (SELECT bloom_agg(x, 1000) FROM generate_series(1, 1000) x)),
	('classic', (SELECT bloom_agg(x, bloom_create(1000, 0.01, 'classic')) FROM generate_series(1, 1000) x)),
	('toasted', (SELECT bloom_agg(x) FROM generate_series(1, 100000) x));
SELECT name, octet_length(f::bytea) AS bytes,
	f::text::bloomfilter = f AS text,
	f::bytea::bloomfilter = f AS bytea,
	bloomfilter_send(f) = f::bytea AS send,
	f::text = f::bytea::text AS same_digits
FROM filters;

-- upper-case digits are valid
SELECT upper(substr(f::text, 3)) <> substr(f::text, 3) AS has_letters,
	('\x' || upper(substr(f::text, 3)))::bloomfilter = f AS equal
FROM filters WHERE name = 'sparse';

-- binary copy: both shells are children of this backend, so $PPID names the same file
CREATE TEMP TABLE received (LIKE filters);
COPY filters TO PROGRAM 'cat >bloomtype.$PPID' (FORMAT binary);
COPY received FROM PROGRAM 'cat bloomtype.$PPID; rm bloomtype.$PPID' (FORMAT binary);
SELECT count(*) AS received FROM filters f JOIN received r ON r.name = f.name AND r.f::bytea = f.f::bytea;
CREATE TEMP TABLE wire AS SELECT 'version 2' AS name, set_byte(f::bytea, 0, 2) AS bytes FROM filters WHERE name = 'sparse';
COPY wire TO PROGRAM 'cat >bloomtype.$PPID' (FORMAT binary);
COPY received FROM PROGRAM 'cat bloomtype.$PPID; rm bloomtype.$PPID' (FORMAT binary);

-- one byte more than the largest filter has
SELECT repeat('a', 268435485)::bytea::bloomfilter;

-- text that is not a filter
SELECT ''::bloomfilter;
SELECT 'alice'::bloomfilter;
SELECT '01000106'::bloomfilter;
SELECT '\x0'::bloomfilter;
SELECT '\x0g'::bloomfilter;
SELECT '\x01 00'::bloomfilter;
SELECT '\x'::bloomfilter;

-- bytes that are not a filter: each breaks one rule, which the error names
CREATE FUNCTION pg_temp.why(b bytea) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
	why text;
BEGIN
	PERFORM b::bloomfilter;
	RETURN 'accepted';
EXCEPTION WHEN invalid_binary_representation THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, why = PG_EXCEPTION_DETAIL;
	RETURN CASE WHEN message = 'invalid value for type bloomfilter' THEN why ELSE message END;
END
$$;
CREATE FUNCTION pg_temp.patched(f bloomfilter, at int, patch text) RETURNS bytea
LANGUAGE sql AS $$ SELECT overlay(f::bytea PLACING decode(patch, 'hex') FROM at + 1) $$;
SELECT name, at, patch, pg_temp.why(pg_temp.patched(f, at, patch))
FROM filters JOIN (VALUES
	(1, 'sparse', 0, '00'), (2, 'sparse', 0, '02'),
	(3, 'sparse', 1, '02'),
	(4, 'sparse', 2, '05'), (5, 'sparse', 2, '81'), (6, 'sparse', 2, '03'), (7, 'dense', 2, '02'),
	(8, 'sparse', 3, '00'), (9, 'sparse', 3, '21'),
	(10, 'sparse', 4, '15'), (11, 'sparse', 4, 'ffffffff'), (12, 'sparse', 4, '00'), (13, 'dense', 4, '00'),
	(14, 'sparse', 8, '00000000'), (15, 'sparse', 8, '0000803f'), (16, 'sparse', 8, '0000c07f'),
	(17, 'sparse', 8, '0000807f'), (18, 'sparse', 8, '0ad723bc'),
	(19, 'sparse', 20, '01'), (20, 'classic', 20, '20'),
	(21, 'sparse', 20, '0002008000'), (22, 'sparse', 20, 'ffffffffffffffff'), (23, 'sparse', 20, '00feffffffffffff'),
	(24, 'sparse', 20, '0000'), (25, 'sparse', 20, '0001'), (26, 'eight', 20, '0002'),
	(27, 'dense', 20, '0000'), (28, 'dense', 20, '0002'),
	(29, 'sparse', 35, 'ff'), (30, 'sparse', 36, '0000000000000000'),
	(31, 'unsized', 4, '14'), (32, 'unsized', 2, '00'), (33, 'unsized', 2, '03'), (34, 'empty', 2, '00')
) AS p (number, name, at, patch) USING (name)
ORDER BY number;
-- one byte too many or too few, and a duplicate hash
SELECT name, pg_temp.why(f::bytea || '\x00') AS longer, pg_temp.why(substr(f::bytea, 1, octet_length(f::bytea) - 1))
	AS shorter
FROM filters;
SELECT pg_temp.why(f::bytea || substr(f::bytea, octet_length(f::bytea) - 7)) AS last_hash_twice FROM filters
	WHERE name = 'sparse';
SELECT pg_temp.why(substr(f::bytea, 1, size)) FROM filters, (VALUES (0), (1), (27)) AS v (size) WHERE name = 'dense';
