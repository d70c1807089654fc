-- Join filters: where they are placed, where not, and what EXPLAIN shows. That results stay the same is tested by
-- random queries in t/join_filters.t.
LOAD 'bloomtype';
CREATE TABLE sale (id int PRIMARY KEY, item int, shop bigint, price numeric, note text);
INSERT INTO sale SELECT i, i % 1000, i % 100, i % 10, 'n' || i % 1000 FROM generate_series(1, 20000) AS i;
CREATE TABLE item (id int PRIMARY KEY, kind int, name text);
INSERT INTO item SELECT i, i % 10, 'n' || i FROM generate_series(0, 999) AS i;
CREATE TABLE brand AS SELECT 'n' || i AS name, i % 300 AS kind FROM generate_series(0, 59999) AS i;
CREATE TABLE branch AS SELECT i::smallint AS id, i % 5 AS town FROM generate_series(0, 999) AS i;
CREATE TABLE article AS SELECT i AS id, i % 10 AS kind, i % 100 AS place FROM generate_series(0, 1999) AS i;
CREATE TABLE shop (id smallint, town int);
INSERT INTO shop SELECT i, i % 5 FROM generate_series(0, 99) AS i;
CREATE INDEX ON sale (item);
CREATE TABLE part (k int, v int) PARTITION BY RANGE (v);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10);
CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (10) TO (20);
INSERT INTO part SELECT i, i % 20 FROM generate_series(1, 5000) AS i;
VACUUM ANALYZE sale, item, brand, branch, article, shop, part;
SET max_parallel_workers_per_gather = 0;
SET enable_mergejoin = off;
SET enable_nestloop = off;

-- the scans that probe a filter
CREATE FUNCTION probing(query text) RETURNS TABLE (node text, relation text) LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	RETURN QUERY SELECT scan ->> 'Node Type', coalesce(scan ->> 'Relation Name', scan ->> 'Alias')
		FROM jsonb_path_query(plan, 'strict $.** ? (@."Filter" like_regex "bloom_join_filter")') AS scan;
END
$$;
-- a plan; from PostgreSQL 18 on, EXPLAIN also shows filters at the scans: see t/join_filters.t
CREATE FUNCTION plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || query LOOP
		IF line !~ '^ *Join Filter \$\d+ On:' THEN
			RETURN NEXT line;
		END IF;
	END LOOP;
END
$$;
-- what the filters of a query did; a probe may see up to 1 % that only seem to match
CREATE FUNCTION figures(query text)
RETURNS TABLE (filter text, keys int, size int, probed int, dropped int, removed int) LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json, ANALYZE) ' || query INTO plan;
	RETURN QUERY SELECT (build ->> 'Join Filter Name') || ' ' || (build ->> 'Join Filter Built From'),
			(build -> 'Keys Added')::int, (build -> 'Filter Size')::int,
			(build -> 'Rows Probed')::int, (build -> 'Rows Dropped')::int, (build -> 'Probes Removed')::int
		FROM jsonb_path_query(plan, 'strict $.** ? (exists (@."Join Filter Built From"))') AS build;
END
$$;

-- off by default
SHOW bloomtype.join_filters;
EXPLAIN (COSTS off) SELECT count(*) FROM sale JOIN item ON sale.item = item.id WHERE kind = 3;
SET bloomtype.join_filters = maybe;
SET bloomtype.join_filters = on;
SELECT plan_of('SELECT count(*) FROM sale JOIN article ON item = article.id WHERE kind = 3');
SELECT filter, keys, size, probed, dropped BETWEEN 17500 AND 18000 AS dropped, removed
FROM figures('SELECT FROM sale JOIN article ON item = article.id WHERE kind = 3');
-- several filters on one scan, and several keys in one
SELECT plan_of('SELECT count(*) FROM sale JOIN article ON item = article.id JOIN branch ON sale.shop = branch.id WHERE kind < 2 AND town = 3');
SELECT plan_of('SELECT count(*) FROM sale JOIN article ON item = article.id AND sale.shop = place WHERE kind = 3');
-- below a group the filter works on all rows or none
SELECT plan_of('SELECT count(*) FROM (SELECT item, sum(price) FROM sale GROUP BY item) AS s JOIN item ON item.id = s.item WHERE kind = 3');

-- not worth it: all rows pass, or too few rows come
SELECT * FROM probing('SELECT FROM sale JOIN article ON item = article.id');
SELECT * FROM probing('SELECT FROM sale JOIN article ON item = article.id WHERE kind = 3 AND sale.id <= 900');
SET bloomtype.join_filter_min_rows = 50;
SELECT * FROM probing('SELECT FROM sale JOIN article ON item = article.id WHERE kind = 3 AND sale.id <= 900');
RESET bloomtype.join_filter_min_rows;
-- not where a key is expensive to hash, and other joins leave few rows before this one
SET join_collapse_limit = 1;
SELECT plan_of('SELECT count(*) FROM sale JOIN branch ON sale.shop + 0 = branch.id JOIN brand ON note = name AND kind = 3 WHERE branch.id < 300');
SELECT plan_of('SELECT count(*) FROM sale JOIN branch ON sale.shop + 0 = branch.id JOIN brand ON note = name AND kind = 3');
RESET join_collapse_limit;
-- not the second filter of a scan, if the first is expected to leave it few rows
SET bloomtype.join_filter_min_rows = 5000;
SELECT plan_of('SELECT count(*) FROM sale JOIN article ON item = article.id JOIN branch ON sale.shop = branch.id WHERE kind = 3 AND town = 3');
-- the rows of all scans of a filter count
SET bloomtype.join_filter_min_rows = 3000;
SELECT * FROM probing('SELECT FROM part JOIN article ON part.k = article.id WHERE kind = 3');
RESET bloomtype.join_filter_min_rows;

SET bloomtype.join_filters = force;
-- types of joins: those that drop rows of the outer side
SELECT type, (SELECT count(*) FROM probing('SELECT FROM sale ' || type || ' JOIN item ON sale.item = item.id')) AS probes
FROM unnest(ARRAY['INNER', 'LEFT', 'FULL']) AS type;
SELECT * FROM probing('SELECT FROM item RIGHT JOIN sale ON sale.item = item.id');
SELECT * FROM probing('SELECT FROM item LEFT JOIN sale ON sale.item = item.id');
SELECT * FROM probing('SELECT FROM sale WHERE item IN (SELECT id FROM item)');
SELECT * FROM probing('SELECT FROM sale WHERE NOT EXISTS (SELECT FROM item WHERE item.id = sale.item)');

-- a merge join the other way round: the sorted outer side is read first, and the inner side drops rows
SET enable_mergejoin = on;
SET enable_hashjoin = off;
SET enable_indexscan = off;
SELECT plan_of('SELECT count(*) FROM shop LEFT JOIN sale ON shop.id = sale.shop AND sale.price < 5');
SELECT filter, keys, probed, dropped BETWEEN 14000 AND 18000 AS dropped
FROM figures('SELECT FROM (SELECT * FROM shop WHERE id < 20) AS s LEFT JOIN sale ON s.id = sale.shop');
SELECT type, (SELECT string_agg(relation, ' ') FROM probing('SELECT FROM shop ' || type || ' JOIN sale ON shop.id = sale.shop')) AS probes
FROM unnest(ARRAY['INNER', 'LEFT', 'RIGHT', 'FULL']) AS type;
SELECT * FROM probing('SELECT FROM shop WHERE NOT EXISTS (SELECT FROM sale WHERE shop.id = sale.shop)');
SELECT * FROM probing('SELECT FROM shop WHERE EXISTS (SELECT FROM sale WHERE shop.id = sale.shop AND shop.town < price)');
-- where the share of rows that pass is unknown, only if the outer side is small beside the inner one
SET bloomtype.join_filters = on;
SELECT * FROM probing('SELECT FROM shop JOIN sale ON shop.id = sale.shop');
SELECT * FROM probing('SELECT FROM sale AS a JOIN sale ON a.shop = sale.shop');
SELECT * FROM probing('SELECT FROM (SELECT * FROM sale WHERE item = 5 OFFSET 0) AS a JOIN sale ON a.id = sale.id');
SELECT * FROM probing('SELECT FROM sale AS a WHERE NOT EXISTS (SELECT FROM sale WHERE a.id = sale.id)');
SET bloomtype.join_filters = force;
-- not if a side is not sorted: it ends where the other one does
SET enable_indexscan = on;
SET enable_seqscan = off;
SELECT * FROM probing('SELECT FROM shop JOIN sale ON shop.id = sale.item');
SELECT * FROM probing('SELECT FROM sale JOIN shop ON shop.id = sale.item');
RESET enable_seqscan;
RESET enable_hashjoin;
RESET enable_indexscan;
SET enable_mergejoin = off;

-- kinds of scans
CREATE FUNCTION probing_item(query text) RETURNS TABLE (node text, relation text) LANGUAGE sql AS $$
	SELECT * FROM probing('SELECT s.* FROM (' || query || ' OFFSET 0) AS s'
		|| ' JOIN (SELECT id FROM item WHERE id = 3 OFFSET 0) AS i ON s.item = i.id')
$$;
SELECT * FROM probing_item('SELECT item FROM sale WHERE price > 2');
SELECT * FROM probing_item('SELECT item FROM sale TABLESAMPLE system (50)');
SELECT * FROM probing_item('SELECT item FROM sale WHERE ctid = ANY (ARRAY[''(0,1)'', ''(0,2)'']::tid[])');
SELECT * FROM probing_item('SELECT item FROM generate_series(1, 9) AS g (item)');
SELECT * FROM probing_item('SELECT * FROM (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS v (item)');
SELECT * FROM probing_item('SELECT * FROM json_to_recordset(''[]'') AS j (item int)');
SELECT * FROM probing_item('WITH s AS MATERIALIZED (SELECT item FROM sale) SELECT * FROM s');
SELECT * FROM probing_item('SELECT k AS item FROM part');
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT * FROM probing_item('SELECT item FROM sale WHERE item < 500 AND price > 2');
SELECT * FROM probing_item('SELECT item FROM sale WHERE item < 500');
RESET enable_bitmapscan;
SET enable_indexscan = off;
SELECT * FROM probing_item('SELECT item FROM sale WHERE item < 500 AND price > 2');
RESET enable_indexscan;
RESET enable_seqscan;
-- a recursive query reads its own rows
SELECT * FROM probing('WITH RECURSIVE r AS (SELECT 1 AS item UNION SELECT item + 1 FROM r
	JOIN (SELECT id FROM item WHERE id < 3 OFFSET 0) AS i ON r.item = i.id) SELECT * FROM r');

-- on the way: groups, windows and distinct rows by the key
SELECT * FROM probing_item('SELECT DISTINCT item, price FROM sale');
SELECT * FROM probing_item('SELECT item, sum(price) OVER (PARTITION BY item) FROM sale');
SELECT * FROM probing_item('SELECT item FROM sale ORDER BY price');
SELECT * FROM probing_item('SELECT item, shop FROM sale UNION ALL SELECT k, v FROM part');
SELECT * FROM probing_item('SELECT item FROM sale JOIN shop ON shop.id = sale.shop');
SELECT * FROM probing_item('SELECT item FROM sale LEFT JOIN shop ON shop.id = sale.shop');
-- not by another column
SELECT * FROM probing_item('SELECT max(item) AS item FROM sale GROUP BY shop');
SELECT * FROM probing_item('SELECT item, sum(price) OVER (PARTITION BY shop) FROM sale');
SELECT * FROM probing_item('SELECT item, count(*) FROM sale GROUP BY GROUPING SETS (item, ())');
SELECT * FROM probing_item('SELECT item, row_number() OVER () FROM sale');
-- nor past limits, locks, sets and volatile functions
SELECT * FROM probing_item('SELECT item FROM sale LIMIT 100');
SELECT * FROM probing_item('SELECT item FROM sale FOR UPDATE');
SELECT * FROM probing_item('SELECT item FROM sale EXCEPT SELECT k FROM part') WHERE node <> 'Subquery Scan';
SELECT * FROM probing('SELECT FROM sale JOIN (SELECT id FROM item WHERE kind = 3 FOR UPDATE) AS i ON sale.item = i.id');
SELECT * FROM probing_item('SELECT item, random() FROM sale');
SELECT * FROM probing_item('SELECT item, generate_series(1, 2) FROM sale');
-- not a plain column
SELECT * FROM probing('SELECT FROM sale JOIN item ON sale.item + 1 = item.id');
SELECT * FROM probing('SELECT FROM sale JOIN item ON sale.item = item.id + 1 WHERE kind = 3');
-- the build evaluates no expression that the join does not: after a null key, it skips the other keys
SELECT count(*) FROM sale JOIN (SELECT nullif(id, 0) AS id, kind FROM item WHERE id < 9 OFFSET 0) AS i
	ON sale.item + 1 = i.id AND sale.shop = 12 / i.kind;

-- the result of an InitPlan never changes, if it depends on nothing else
SELECT * FROM probing('SELECT FROM (SELECT item, sum(price) FROM sale GROUP BY item) AS s
	JOIN item ON s.item = item.id WHERE kind = (SELECT min(kind) FROM item)');
SELECT * FROM probing('SELECT FROM (SELECT item, sum(price) FROM sale GROUP BY item) AS s
	JOIN item ON s.item = item.id WHERE kind = 3 FOR UPDATE OF item');
-- A join that is run again, here for each shop, has no filter below a group, which keeps its rows, unless each run has
-- the same keys: not where the order of rows decides which ones there are, or other things than parameters do.
CREATE FUNCTION inner_side(side text) RETURNS TABLE (once boolean, again boolean) LANGUAGE sql AS $$
	WITH query AS (SELECT '(SELECT item, sum(price) FROM sale GROUP BY item, shop) AS s JOIN (' || side ||
		') AS i ON s.item = i.id' AS text)
	SELECT 'sale' IN (SELECT relation FROM probing('SELECT FROM ' || text)), 'sale' IN (SELECT relation
			FROM probing('SELECT (SELECT count(*) FROM ' || text || ' AND s.sum + i.id + shop.id > 0) FROM shop'))
	FROM query
$$;
CREATE SEQUENCE numbers;
CREATE TABLE tagged AS SELECT i AS id, ARRAY[i % 500] AS tags FROM generate_series(0, 19999) AS i;
CREATE INDEX ON tagged USING gin (tags);
ANALYZE tagged;
SELECT side, found.* FROM unnest(ARRAY[
	'SELECT id FROM item WHERE kind = 3',
	'SELECT id FROM item WHERE kind = 3 ORDER BY kind OFFSET 0',
	'SELECT a.id FROM item AS a JOIN shop AS b USING (id) OFFSET 0',
	'SELECT id FROM item WHERE kind = 3 UNION ALL SELECT 5',
	'SELECT v.id FROM (VALUES (3), (5)) AS v (id)',
	'WITH kept AS MATERIALIZED (SELECT id FROM item WHERE kind = 3 LIMIT 5) SELECT id FROM kept',
	'SELECT id FROM item WHERE kind = 3 LIMIT 5',
	'SELECT id FROM item ORDER BY kind LIMIT 5',
	'SELECT id FROM item ORDER BY kind FETCH FIRST 1 ROW WITH TIES',
	'SELECT DISTINCT ON (kind) id FROM item ORDER BY kind',
	'SELECT id FROM (SELECT id, row_number() OVER (ORDER BY kind) AS n FROM item WHERE kind = 3) AS i WHERE n < 5',
	'SELECT first_value(id) OVER (ORDER BY kind) AS id FROM item WHERE kind = 3',
	'SELECT (array_agg(id))[1] AS id FROM item GROUP BY kind OFFSET 0',
	'SELECT id FROM item GROUP BY id HAVING sum(kind::float8) > 2',
	'SELECT id FROM item TABLESAMPLE system (50)',
	'SELECT id FROM item TABLESAMPLE system (50) REPEATABLE (1)',
	'SELECT last_value AS id FROM numbers',
	'SELECT oid::int AS id FROM pg_am',
	'SELECT id FROM tagged WHERE tags @> ARRAY[3]',
	'SELECT id FROM item WHERE xmax = 0',
	'SELECT id FROM item WHERE quote_ident(name) = ''n3''',
	'SELECT id FROM item WHERE kind::float8::text = ''3''',
	'SELECT id FROM item WHERE kind::text < current_setting(''work_mem'')',
	'SELECT id FROM item WHERE kind IN (SELECT kind FROM item LIMIT 2) OFFSET 0',
	'SELECT id FROM item WHERE kind NOT IN (SELECT kind FROM item LIMIT 900)']) AS side, inner_side(side) AS found;
-- a cursor that can go back runs its plan again, and one that cannot does not
BEGIN;
DECLARE forwards NO SCROLL CURSOR FOR SELECT item, id FROM (SELECT item, sum(price) FROM sale GROUP BY item) AS s
	JOIN (SELECT id FROM item ORDER BY kind LIMIT 5) AS i ON s.item = i.id;
DECLARE backwards SCROLL CURSOR FOR SELECT item, id FROM (SELECT item, sum(price) FROM sale GROUP BY item) AS s
	JOIN (SELECT id FROM item ORDER BY kind LIMIT 5) AS i ON s.item = i.id;
MOVE ALL FROM forwards;
MOVE ALL FROM backwards;
MOVE ABSOLUTE 0 FROM backwards;
MOVE ALL FROM backwards;
COMMIT;
SELECT * FROM probing('SELECT (SELECT count(*) FROM (SELECT item, sum(price) FROM sale GROUP BY item) AS s
	JOIN (SELECT id FROM item WHERE kind = (SELECT min(kind) FROM item WHERE kind > town) OFFSET 0) AS i
	ON s.item = i.id) FROM shop');
-- no key is added if the scans that would probe it are not run
PREPARE pruned(int) AS SELECT FROM (SELECT * FROM part WHERE v >= $1) AS p RIGHT JOIN item ON p.k = item.id;
SET plan_cache_mode = force_generic_plan;
SELECT filter, keys, probed FROM figures('EXECUTE pruned(19)');
SELECT filter, keys, probed FROM figures('EXECUTE pruned(99)');
RESET plan_cache_mode;
-- a join that finds no outer row does not read its inner side, unless that can do no harm
SET enable_hashagg = off;
SET enable_sort = off;
CREATE TABLE no_sale (item int PRIMARY KEY);
CREATE FUNCTION below_group(condition text) RETURNS TABLE (node text, relation text) LANGUAGE sql AS $$
	SELECT * FROM probing('SELECT FROM (SELECT item, count(*) FROM sale GROUP BY item) AS s
		JOIN item ON s.item = item.id WHERE ' || condition)
$$;
SELECT * FROM below_group('kind = 3');
SELECT * FROM below_group('10 / kind = 3');
SELECT * FROM (SELECT item, count(*) FROM no_sale GROUP BY item) AS s
	JOIN (SELECT 10 / (id - 500) + id AS id FROM item OFFSET 0) AS i ON s.item = i.id;
RESET enable_sort;
RESET enable_hashagg;
-- the columns before a key cost, if most rows do not reach the join
CREATE TABLE wide_sale AS SELECT i % 1000 AS shop, 1 AS c1, 1 AS c2, 1 AS c3, 1 AS c4, 1 AS c5, 1 AS c6, 1 AS c7, 1 AS c8,
	1 AS c9, 1 AS c10, 1 AS c11, 1 AS c12, 1 AS c13, 1 AS c14, 1 AS c15, 1 AS c16, 1 AS c17, 1 AS c18, 1 AS c19, 1 AS c20,
	1 AS c21, 1 AS c22, 1 AS c23, 1 AS c24, 1 AS c25, 1 AS c26, 1 AS c27, 1 AS c28, 1 AS c29, 1 AS c30,
	i % 1000 AS item FROM generate_series(1, 100000) AS i;
ANALYZE wide_sale;
SET bloomtype.join_filters = on;
SELECT * FROM probing('SELECT FROM wide_sale AS s JOIN article ON s.item = article.id WHERE kind = 3');
SELECT * FROM probing('SELECT FROM wide_sale AS s JOIN article ON s.item = article.id WHERE kind = 3 AND shop < 30');
SET join_collapse_limit = 1;
SELECT * FROM probing('SELECT FROM (SELECT * FROM wide_sale AS s
	WHERE NOT EXISTS (SELECT FROM item AS i WHERE i.id = s.shop AND i.kind > 0)) AS s JOIN item ON s.item = item.id WHERE kind = 3');
SELECT * FROM probing('SELECT FROM (SELECT * FROM wide_sale AS s
	WHERE NOT EXISTS (SELECT FROM item AS i WHERE i.id = s.shop AND i.kind > 0)) AS s JOIN item ON s.c1 = item.id WHERE kind = 3');
-- a join spends less on a row that it drops
SELECT * FROM probing('SELECT FROM (SELECT * FROM wide_sale AS s
	WHERE NOT EXISTS (SELECT FROM item AS i WHERE i.id = s.shop AND i.kind > 0)) AS s JOIN item ON s.c1 = item.id WHERE kind < 8');
RESET join_collapse_limit;
SET bloomtype.join_filters = force;
-- a probe that does not pay is removed, and the rest of the condition stays
SET bloomtype.join_filter_window = 10;
SELECT * FROM figures('SELECT FROM sale JOIN item ON sale.item = item.id WHERE price > 2');
SELECT count(*) FROM sale JOIN item ON sale.item = item.id WHERE price > 2;
SELECT removed FROM figures('SELECT FROM sale JOIN item ON sale.item = item.id WHERE sale.id > 2');
SELECT count(*) FROM sale JOIN item ON sale.item = item.id WHERE sale.id > 2;
-- below a group only if it has dropped no row
SELECT * FROM figures('SELECT FROM (SELECT item, sum(price) FROM sale GROUP BY item) AS s JOIN item ON item.id = s.item');
SELECT removed FROM figures('SELECT FROM (SELECT item, sum(price) FROM sale GROUP BY item) AS s
	JOIN item ON item.id = s.item WHERE kind < 9');
RESET bloomtype.join_filter_window;

-- workers below a join get a copy of the filter, if its inner side cannot change
CREATE TEMP TABLE own_item AS TABLE item;
ANALYZE own_item;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT plan_of('SELECT count(*) FROM sale JOIN own_item ON sale.item = own_item.id WHERE kind = 3');
SELECT * FROM probing('SELECT FROM (SELECT item, sum(price) FROM sale GROUP BY item) AS s
	JOIN own_item ON own_item.id = s.item WHERE kind = 3');
SELECT * FROM probing('SELECT (SELECT count(*) FROM sale JOIN (SELECT id FROM own_item WHERE kind = town OFFSET 0) AS i
	ON sale.item = i.id) FROM shop');
-- the rows of a CTE do not change, even if workers find them
SELECT * FROM probing('WITH c AS MATERIALIZED (SELECT item, count(*) FROM sale GROUP BY item)
	SELECT FROM sale WHERE item IN (SELECT item FROM c WHERE count > 1)');
RESET max_parallel_workers_per_gather;

-- a call that no plan has made is true, also beside a probe
SELECT * FROM probing($$SELECT FROM sale JOIN item ON sale.item = item.id WHERE bloom_join_filter('$0', sale.shop)$$);
-- everybody must be able to execute it, or plans do without
REVOKE EXECUTE ON FUNCTION bloom_join_filter FROM PUBLIC;
SELECT * FROM probing('SELECT FROM sale JOIN item ON sale.item = item.id');
GRANT EXECUTE ON FUNCTION bloom_join_filter TO PUBLIC;
SELECT * FROM probing('SELECT FROM sale JOIN item ON sale.item = item.id');
