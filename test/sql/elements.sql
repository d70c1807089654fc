-- Elements: values that are equal in SQL are one element, whatever their type or bytes.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE DOMAIN feeling AS mood;

SELECT bloom_agg(x) @> 7::int2 AS int2, bloom_agg(x) @> 7 AS int4, bloom_agg(x) @> 7::int8 AS int8,
	bloom_agg(x) @> 7::positive AS domain, bloom_agg(x) @> (-7)::int2 AS other
FROM (VALUES (7::bigint)) AS v (x);
SELECT bloom_agg(x) @> 1.5::float4 AS float4, bloom_agg(x) @> '-0'::float8 AS minus_zero, bloom_agg(x) @> 'NaN'::float4 AS nan
FROM unnest('{1.5,0,NaN}'::float8[]) AS v (x);
SELECT bloom_agg(x) @> 1.00 AS scale, bloom_agg(x) @> 1e0::numeric(20, 10) AS long_scale, bloom_agg(x) @> 1.01 AS other
FROM (VALUES (1.0)) AS v (x);
SELECT bloom_agg(x) @> 'ab'::char(5) AS padded, bloom_agg(x) @> 'ab'::varchar AS varchar,
	bloom_agg(x) @> 'ab'::name AS name, bloom_agg(x) @> 'ab ' AS trailing_blank
FROM (VALUES ('ab'::char(2))) AS v (x);
SELECT bloom_agg(x) @> 'happy' AS label, bloom_agg(x) @> 'happy'::mood AS enum,
	bloom_agg(x) @> 'happy'::feeling AS domain,
	bloom_agg(x) @> 'sad'::mood AS other
FROM (VALUES ('happy'::mood)) AS v (x);
SELECT bloom_agg(x) @> interval '30 days' AS days, bloom_agg(x) @> interval '720 hours' AS hours,
	bloom_agg(x) @> interval '1 month -1 day 24 hours' AS mixed, bloom_agg(x) @> interval '29 days' AS other,
	bloom_agg(x) @> interval '-1 day +23:00' AS negative
FROM unnest('{1 month,-01:00}'::interval[]) AS v (x);
SELECT bloom_agg(x) @> cidr '10.0.0.0/8' AS cidr, bloom_agg(x) @> inet '10.0.0.0' AS host
FROM (VALUES (inet '10.0.0.0/8')) AS v (x);

-- the class of each type
SELECT t, element_type
FROM (VALUES
	('smallint', bloom_add(bloom_create(1), 1::smallint)),
	('real', bloom_add(bloom_create(1), 1::real)),
	('numeric', bloom_add(bloom_create(1), 1::numeric)),
	('varchar', bloom_add(bloom_create(1), 'x'::varchar)),
	('name', bloom_add(bloom_create(1), 'x'::name)),
	('mood', bloom_add(bloom_create(1), 'ok'::mood)),
	('bytea', bloom_add(bloom_create(1), '\x00'::bytea)),
	('uuid', bloom_add(bloom_create(1), gen_random_uuid())),
	('boolean', bloom_add(bloom_create(1), true)),
	('date', bloom_add(bloom_create(1), current_date)),
	('time', bloom_add(bloom_create(1), '12:00'::time)),
	('timetz', bloom_add(bloom_create(1), '12:00+00'::timetz)),
	('timestamp', bloom_add(bloom_create(1), localtimestamp)),
	('timestamptz', bloom_add(bloom_create(1), now())),
	('interval', bloom_add(bloom_create(1), '1 day'::interval)),
	('cidr', bloom_add(bloom_create(1), '10.0.0.0/8'::cidr)),
	('macaddr', bloom_add(bloom_create(1), '08:00:2b:01:02:03'::macaddr)),
	('macaddr8', bloom_add(bloom_create(1), '08:00:2b:01:02:03:04:05'::macaddr8))) AS v (t, f),
	bloom_info(f);

-- types that cannot be hashed by value, with the hints
SELECT bloom_agg(x) FROM (VALUES (json '{}')) AS v (x);
SELECT bloom_agg(x) FROM (VALUES (ARRAY[1])) AS v (x);
SELECT bloom_add(bloom_create(1), 1::oid);
SELECT bloom_create(1) @> B'101';
SELECT bloom_create(1) @> (a COLLATE "C" || b COLLATE "POSIX") FROM (VALUES ('a', 'b')) AS v (a, b);
CREATE TEMP TABLE two_collations (a text COLLATE "C", b text COLLATE "POSIX");
INSERT INTO two_collations VALUES ('a', 'b');
SELECT bloom_create(1) @> (a || b) FROM two_collations;

-- elements that are stored compressed or out of line, or with a short header
CREATE TEMP TABLE stored (compressed text, external text, padded char(3000), bytes bytea, digits numeric, short numeric,
	address inet);
ALTER TABLE stored ALTER external SET STORAGE external;
INSERT INTO stored VALUES (repeat('a', 5000), repeat('b', 5000), 'c', decode(repeat('64', 5000), 'hex'),
	(repeat('9', 5000) || '.50')::numeric, 1.50, '10.0.0.1');
SELECT pg_column_compression(compressed) IS NOT NULL AND pg_column_compression(padded) IS NOT NULL AND
	pg_column_compression(bytes) IS NOT NULL AND pg_column_size(external) = 5000 AS as_meant FROM stored;
SELECT bloom_add(bloom_create(1), repeat('a', 5000)) = bloom_add(bloom_create(1), compressed) AS compressed,
	bloom_add(bloom_create(1), repeat('b', 5000)) = bloom_add(bloom_create(1), external) AS external,
	bloom_add(bloom_create(1), 'c'::bpchar) = bloom_add(bloom_create(1), padded) AS padded,
	bloom_add(bloom_create(1), decode(repeat('64', 5000), 'hex')) = bloom_add(bloom_create(1), bytes) AS bytes,
	bloom_add(bloom_create(1), (repeat('9', 5000) || '.5')::numeric) = bloom_add(bloom_create(1), digits) AS digits,
	bloom_add(bloom_create(1), 1.5) = bloom_add(bloom_create(1), short) AS short,
	bloom_add(bloom_create(1), '10.0.0.1'::inet) = bloom_add(bloom_create(1), address) AS address
FROM stored;
DROP TABLE stored;

-- a filter has elements of one class
SELECT bloom_agg(x) @> 'seven' FROM (VALUES (7)) AS v (x);
SELECT bloom_agg(x) @> 7.0 FROM (VALUES (7)) AS v (x);
-- the hint names only casts that keep equal values equal
SELECT bloom_agg(x) @> 7::float8 FROM (VALUES (7)) AS v (x);
SELECT bloom_agg(x) @> 7::float8 FROM (VALUES (7.0)) AS v (x);
SELECT bloom_agg(x) @> timestamptz '2024-01-01' FROM (VALUES (timestamp '2024-01-01')) AS v (x);
SELECT bloom_agg(x) @> timestamptz '2024-01-01' FROM (VALUES (date '2024-01-01')) AS v (x);
SELECT bloom_create(1) @> bloom_create(1);
SELECT bloom_agg(bloom_create(1));
SELECT bloom_agg(x) @> 'ab'::char(2) FROM (VALUES ('ab'::text)) AS v (x);
SELECT bloom_add(bloom_add(bloom_create(10), 1), 'one');
SELECT bloom_agg(x, bloom_add(bloom_create(10), 'one')) FROM (VALUES (1)) AS v (x);
-- an empty filter has no class yet, and contains nothing
SELECT bloom_create(10) @> 7 AS "int", bloom_create(10) @> 'seven' AS text;

DROP DOMAIN feeling, positive;
DROP TYPE mood;
