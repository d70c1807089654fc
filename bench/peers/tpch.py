"""Tables like those of TPC-H, without partsupp.

The proportions of the tables and the ranges of the values follow the specification. The values come from hashes, so
every run has the same rows. Texts are shorter, and o_totalprice is not the sum of the lines.
"""
LINES = 6000000  # of lineitem at scale factor 1

REGIONS = "AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"
SEGMENTS = "AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"
PRIORITIES = "1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"
TYPES = (("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
         ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
         ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"))  # fmt: skip
CONTAINERS = ("SM", "LG", "MED", "JUMBO", "WRAP"), ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")
MODES = "REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"
RETAIL = "((90000 + {0} / 10 % 20001 + 100 * ({0} % 1000)) / 100.0)::numeric(15,2)"


def pick(seed, n, key="i"):
    """An integer from 0 to n - 1 for each key."""
    return f"((hashint8extended({key}, {seed}) & 2147483647) % {n})::int"


def one_of(seed, names, key="i"):
    return f"""('{{{",".join(f'"{name}"' for name in names)}}}'::text[])[1 + {pick(seed, len(names), key)}]"""


def words(seed, groups):
    return " || ' ' || ".join(one_of(seed + i, group) for i, group in enumerate(groups))


def table(name, key, rows, columns):
    series = f"generate_series(1, {rows}::bigint) AS i"
    return f"CREATE UNLOGGED TABLE {name} AS SELECT {columns} FROM {series}; ALTER TABLE {name} ADD PRIMARY KEY ({key})"


def dimensions(lines):
    """SQL for each table but lineitem."""

    def scaled(n):
        return max(n * lines // LINES, 25)

    customers, parts, suppliers, orders = map(scaled, (150000, 200000, 10000, 1500000))
    custkey = f"(1 + {pick(14, customers)})"
    return {
        "region": table("region", "r_regionkey", 5, f"i::int - 1 AS r_regionkey, ('{{{','.join(REGIONS)}}}'::text[])[i] AS r_name"),
        "nation": table("nation", "n_nationkey", 25,
                        "i::int - 1 AS n_nationkey, 'NATION ' || i AS n_name, (i::int - 1) % 5 AS n_regionkey"),
        "supplier": table("supplier", "s_suppkey", suppliers, f"""i::int AS s_suppkey,
            'Supplier#' || lpad(i::text, 9, '0') AS s_name, {pick(1, 25)} AS s_nationkey, md5(i::text) AS s_address"""),
        "part": table("part", "p_partkey", parts, f"""i::int AS p_partkey, md5(i::text) AS p_name,
            'Brand#' || 1 + {pick(2, 5)} || 1 + {pick(3, 5)} AS p_brand, {words(4, TYPES)} AS p_type,
            1 + {pick(7, 50)} AS p_size, {words(8, CONTAINERS)} AS p_container, {RETAIL.format("i")} AS p_retailprice"""),
        "customer": table("customer", "c_custkey", customers, f"""i::int AS c_custkey,
            'Customer#' || lpad(i::text, 9, '0') AS c_name, md5(i::text) AS c_address, {pick(10, 25)} AS c_nationkey,
            (({pick(11, 1099999)} - 99999) / 100.0)::numeric(15,2) AS c_acctbal, {one_of(12, SEGMENTS)} AS c_mktsegment,
            md5((-i)::text) AS c_comment"""),
        # Of 32 order keys, 8 are used. A third of the customers has no order.
        "orders": table("orders", "o_orderkey", orders, f"""((i - 1) / 8 * 32 + (i - 1) % 8 + 1)::int AS o_orderkey,
            greatest({custkey} - ({custkey} % 3 = 0)::int, 1) AS o_custkey,
            CASE WHEN {pick(15, 2406)} < 1142 THEN 'F' WHEN {pick(15, 2406)} < 1263 THEN 'P' ELSE 'O' END AS o_orderstatus,
            ({pick(16, 50000000)} / 100.0)::numeric(15,2) AS o_totalprice, date '1992-01-01' + {pick(15, 2406)} AS o_orderdate,
            {one_of(17, PRIORITIES)} AS o_orderpriority, 0 AS o_shippriority, md5(i::text) || md5((-i)::text) AS o_comment"""),
    }  # fmt: skip


def lineitem(lines):
    """SQL for lineitem, without an index. An order has 1 to 7 lines."""
    suppliers, parts = max(10000 * lines // LINES, 25), max(200000 * lines // LINES, 25)
    return f"""
        CREATE UNLOGGED TABLE lineitem AS
        SELECT l_orderkey, l_linenumber, l_partkey, l_suppkey, l_quantity::numeric(15,2),
          (l_quantity * {RETAIL.format("l_partkey")})::numeric(15,2) AS l_extendedprice,
          ({pick(22, 11)} / 100.0)::numeric(15,2) AS l_discount, ({pick(23, 9)} / 100.0)::numeric(15,2) AS l_tax,
          CASE WHEN receipt > date '1995-06-17' THEN 'N' WHEN i % 2 = 0 THEN 'R' ELSE 'A' END AS l_returnflag,
          CASE WHEN ship > date '1995-06-17' THEN 'O' ELSE 'F' END AS l_linestatus,
          ship AS l_shipdate, o_orderdate + 30 + {pick(24, 61)} AS l_commitdate, receipt AS l_receiptdate,
          {one_of(25, MODES)} AS l_shipmode, md5(i::text) AS l_comment
        FROM (SELECT o_orderkey AS l_orderkey, l_linenumber, i, o_orderdate, 1 + {pick(18, parts)} AS l_partkey,
                1 + {pick(19, suppliers)} AS l_suppkey, 1 + {pick(20, 50)} AS l_quantity,
                o_orderdate + 1 + {pick(21, 121)} AS ship, o_orderdate + 2 + {pick(21, 121)} + {pick(26, 30)} AS receipt
              FROM (SELECT o_orderkey, o_orderdate, l_linenumber, 8 * o_orderkey::bigint + l_linenumber AS i
                    FROM orders, generate_series(1, 1 + {pick(13, 7, "o_orderkey")}) AS l_linenumber OFFSET 0) AS o
              OFFSET 0) AS v"""
