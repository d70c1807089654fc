-- Types and collations in which different texts are equal. Needs UTF8, ICU and citext.
SELECT getdatabaseencoding() <> 'UTF8'
	OR NOT EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu')
	OR NOT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'citext') AS skip \gset
\if :skip
\quit
\endif

CREATE COLLATION ignore_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
SELECT bloom_add(bloom_create(1), 'a'::text COLLATE ignore_case);
SELECT bloom_create(1) @> ('a'::text COLLATE ignore_case);
DROP COLLATION ignore_case;

-- a type that ignores case and has an implicit cast to text
CREATE EXTENSION citext;
SELECT bloom_add(bloom_create(1), 'Alice'::citext);
SELECT bloom_create(1) @> 'Alice'::citext;
SELECT 'Alice'::citext <@ bloom_create(1);
SELECT bloom_add(bloom_create(1), 'Alice'::citext::text) @> 'Alice' AS cast_by_hand;

-- a column that becomes citext keeps the file of its set
CREATE TABLE aliases (name text);
CREATE INDEX aliases_name_set ON aliases USING bloomset (name);
INSERT INTO aliases VALUES ('Alice');
ALTER TABLE aliases ALTER name TYPE citext;
SELECT count(*) FROM aliases WHERE name = 'alice';
SELECT bloomset_contains('aliases', 'name', 'alice');
INSERT INTO aliases VALUES ('Bob');
DROP INDEX aliases_name_set;
INSERT INTO aliases VALUES ('Bob');
DROP TABLE aliases;
DROP EXTENSION citext;
