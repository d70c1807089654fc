-- Why joins have no filter: each detail of a notice, and that joins with a filter have none.
LOAD 'bloomtype';
CREATE SCHEMA notices;
SET search_path = notices, public;
CREATE TABLE sale (id int, item int, shop int, price numeric);
INSERT INTO sale SELECT i, i % 1000, i % 100, i % 10 FROM generate_series(1, 20000) AS i;
CREATE TABLE item (id int, kind int);
INSERT INTO item SELECT i, i % 10 FROM generate_series(0, 999) AS i;
CREATE TABLE town (id int, name text);
INSERT INTO town SELECT i, 't' || i FROM generate_series(1, 20) AS i;
CREATE TABLE empty (id int);
VACUUM ANALYZE sale, item, town, empty;
SET max_parallel_workers_per_gather = 0;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET jit = off;
SET bloomtype.join_filter_notices = on;
CREATE PROCEDURE plan(query text) LANGUAGE plpgsql AS $$
DECLARE
	ignored json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO ignored;
END $$;

-- the statement: a join without a filter needs no notice of its own, and without joins there is none
CALL plan('SELECT FROM sale JOIN item ON sale.item = item.id WHERE kind = 3');
SET bloomtype.join_filters = on;
CALL plan('SELECT FROM sale JOIN item ON sale.item = item.id WHERE kind = 3');
CALL plan('SELECT FROM sale WHERE item = 3');
CALL plan('SELECT FROM item JOIN town USING (id)');
REVOKE EXECUTE ON FUNCTION bloom_join_filter FROM PUBLIC;
CALL plan('SELECT FROM sale JOIN item ON sale.item = item.id WHERE kind = 3');
GRANT EXECUTE ON FUNCTION bloom_join_filter TO PUBLIC;

-- the join
CALL plan('SELECT FROM sale LEFT JOIN item ON sale.item = item.id');
CALL plan('SELECT FROM sale JOIN item ON sale.item + 0 = item.id WHERE kind = 3');
CALL plan('SELECT FROM sale JOIN item ON sale.item = item.id WHERE kind = 3 AND price < random()');
SET enable_hashjoin = off;
SET enable_mergejoin = on;
CALL plan('SELECT FROM (SELECT * FROM sale ORDER BY item LIMIT 19000) AS sale JOIN item ON sale.item = item.id WHERE kind = 3');
SET enable_hashjoin = on;
SET enable_mergejoin = off;

-- the way to the scan
CALL plan('SELECT FROM (SELECT * FROM sale LIMIT 19000) AS sale JOIN item ON sale.item = item.id WHERE kind = 3');
CALL plan('SELECT FROM (SELECT item + 1 AS item FROM sale OFFSET 0) AS s JOIN item ON s.item = item.id WHERE kind = 3');
CALL plan('SELECT FROM (SELECT price, max(item) AS item FROM sale GROUP BY price, id) AS s
	JOIN item ON s.item = item.id WHERE kind = 3');
CALL plan('SELECT (SELECT count(*) FROM (SELECT item FROM sale GROUP BY item, id) AS s
	JOIN (SELECT id FROM item ORDER BY kind LIMIT 10) AS i ON s.item = i.id AND town.id > 0) FROM town');
CALL plan('SELECT FROM (SELECT id, count(*) FROM item GROUP BY id, kind) AS i
	WHERE id IN (SELECT item FROM sale WHERE 1000 / (price + 1) > 250)');

-- the prices
CALL plan('SELECT FROM sale JOIN item ON sale.item = item.id');
CALL plan('SELECT FROM sale JOIN item ON sale.item = item.id WHERE kind = 3 LIMIT 10');
CALL plan('SELECT FROM item LEFT JOIN town ON kind = town.id JOIN empty ON kind = empty.id JOIN sale ON empty.id = sale.item');
-- compiling the condition takes longer than it saves
SET jit = on;
SET jit_above_cost = 0;
CALL plan('SELECT FROM sale JOIN item ON sale.item = item.id WHERE kind = 3');
SET jit = off;
-- by what the catalog says of a small table
UPDATE pg_class SET reltuples = 1e9, relpages = 5 WHERE oid = 'item'::regclass;
SET work_mem = '64kB';
CALL plan('SELECT FROM sale JOIN item ON sale.item = item.id WHERE kind = 3');
SET work_mem = '8GB';
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
UPDATE pg_class SET reltuples = 1e10 WHERE oid = 'sale'::regclass;
CALL plan('SELECT FROM sale JOIN item ON sale.item = item.id WHERE kind = 3');
RESET work_mem;
SET max_parallel_workers_per_gather = 0;
ANALYZE sale, item;

-- each join has its notice, in the order of the plan
CALL plan('SELECT FROM sale LEFT JOIN item ON sale.item = item.id LEFT JOIN town ON town.id = sale.shop');

-- what forces filters leaves no price as a reason
SET bloomtype.join_filters = force;
CALL plan('SELECT FROM sale JOIN item ON sale.item = item.id');
SET client_min_messages = warning;
DROP SCHEMA notices CASCADE;
