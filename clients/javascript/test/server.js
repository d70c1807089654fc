// A live server and this package give the same bytes, the same answers and the same estimates, and accept and refuse
// the same bytes. PGHOST, PGPORT, PGUSER and PGDATABASE name a database that has the extension.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test, { after } from "node:test";
import pg from "pg";
import { BloomCounter, BloomFilter } from "../index.js";
import { CLASS_NAMES, Random, golden } from "./support.js";

const client = new pg.Client();
await client.connect();
after(() => client.end());

async function row(sql, values = []) {
    const { rows } = await client.query({ text: sql, values, rowMode: "array" });
    return rows[0];
}

// pg_temp: the database stays as it was. Any error but a refusal of the value ends the test.
await client.query(`
    CREATE FUNCTION pg_temp.read_bytes(bytea) RETURNS text LANGUAGE plpgsql AS $$
    BEGIN RETURN $1::bloomfilter::text; EXCEPTION WHEN invalid_binary_representation THEN RETURN NULL; END $$;
    CREATE FUNCTION pg_temp.read_counter(bytea) RETURNS text LANGUAGE plpgsql AS $$
    BEGIN RETURN $1::bloomcounter::text; EXCEPTION WHEN invalid_binary_representation THEN RETURN NULL; END $$;
    CREATE FUNCTION pg_temp.read_text(text) RETURNS text LANGUAGE plpgsql AS $$
    BEGIN RETURN $1::bloomfilter::text;
    EXCEPTION WHEN invalid_binary_representation OR invalid_text_representation THEN RETURN NULL; END $$;
    CREATE TYPE pg_temp.mood AS ENUM ('sad', 'ok', 'happy', 'über');
    SET TimeZone = 'Asia/Kolkata';
    SET extra_float_digits = 1;
`);

const random = new Random(Number(process.env.SEED ?? 20240229));

const two = (number) => String(number).padStart(2, "0");
const digits = (count) => Array.from({ length: count }, () => random.below(10)).join("");
const CHARACTERS = [
    "a",
    "b",
    "Z",
    " ",
    "'",
    '"',
    "\\",
    ",",
    "{",
    "}",
    "\n",
    "\u007f",
    "ü",
    "東",
    "\u{1F418}",
    "\uffff",
    "NULL",
];

function randomText() {
    return Array.from({ length: random.below(random.pick([4, 40, 120])) }, () => random.pick(CHARACTERS)).join("");
}

function randomDate() {
    const year = random.pick([1 + random.below(4000), 1990 + random.below(40), 200000 + random.below(90000)]);
    const bc = year < 4700 && random.below(10) === 0 ? " BC" : "";
    return [`${String(year).padStart(4, "0")}-${two(1 + random.below(12))}-${two(1 + random.below(28))}`, bc];
}

function randomTime() {
    const seconds = random.pick([
        "",
        `:${two(random.below(60))}`,
        `:${two(random.below(60))}.${digits(1 + random.below(6))}`,
    ]);
    return `${two(random.below(24))}:${two(random.below(60))}${seconds}`;
}

function randomZone() {
    return random
        .pick(["Z", "+", "-"])
        .replace(/[+-]/, (sign) => `${sign}${two(random.below(15))}:${two(random.below(60))}`);
}

function randomNumeric() {
    const number = random.pick([
        `${random.below(100)}`,
        digits(1 + random.below(40)),
        `${digits(3)}.${digits(random.below(30))}`,
    ]);
    const exponent = random.pick(["", "", `e${random.below(60) - 30}`]);
    return random.pick(["", "-", "+"]) + number + exponent;
}

function randomFloat() {
    const bits = new DataView(new ArrayBuffer(8));
    bits.setBigUint64(0, random.word64());
    return random.pick([
        bits.getFloat64(0),
        random.below(100) / 8,
        -0,
        0,
        Infinity,
        NaN,
        Math.fround(random.word() / 7),
    ]);
}

function randomInterval() {
    const names = ["years", "months", "days", "hours", "minutes", "seconds", "microseconds"];
    const fields = names.filter(() => random.below(2)).map((name) => [name, random.below(5000) - 2500]);
    return Object.fromEntries(fields);
}

function randomAddress() {
    const four = `${Array.from(random.bytes(4)).join(".")}`;
    const groups = Array.from({ length: 8 }, () => random.pick([0, 0, random.below(65536)]).toString(16)).join(":");
    const six = random.pick([groups, groups.replace(/(^|:)0(:0)+(:|$)/, "::")]);
    return random.pick([four, `${four}/${random.below(33)}`, six, `${six}/${random.below(129)}`, `::ffff:${four}`]);
}

const hex = (bytes) => Buffer.from(bytes).toString("hex");
const pairs = (count) => hex(random.bytes(count)).match(/../g).join(":");
const ofText = (make) => () => {
    const text = make();
    return [text, text];
};

/** For each SQL type its element type here, and a function that makes a value and its text in SQL. */
const MAKERS = {
    smallint: ["bigint", () => [random.below(65536) - 32768]],
    integer: ["bigint", () => [random.word() | 0]],
    bigint: ["bigint", () => [BigInt.asIntN(64, random.word64() >> BigInt(random.below(64)))]],
    "double precision": ["double precision", () => [randomFloat()]],
    real: ["double precision", () => [Math.fround(random.pick([random.word() / 3, -0, Infinity, 1e-45, 0.1]))]],
    numeric: ["numeric", ofText(() => random.pick([randomNumeric, randomNumeric, () => "NaN", () => "-Infinity"])())],
    text: ["text", ofText(randomText)],
    varchar: ["text", ofText(randomText)],
    "pg_temp.mood": ["text", ofText(() => random.pick(["sad", "ok", "happy", "über"]))],
    "char(200)": ["char(n)", ofText(() => randomText() + " ".repeat(random.below(4)))],
    bytea: [
        "bytea",
        () => {
            const bytes = random.bytes(random.below(100));
            return [bytes, `\\x${hex(bytes)}`];
        },
    ],
    uuid: ["uuid", ofText(() => hex(random.bytes(16)).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-"))],
    boolean: ["boolean", () => [random.below(2) === 1]],
    date: ["date", ofText(() => random.pick([randomDate().join(""), randomDate().join(""), "infinity"]))],
    time: ["time", ofText(randomTime)],
    timetz: ["timetz", ofText(() => randomTime() + randomZone())],
    timestamp: [
        "timestamp",
        ofText(() => {
            const [date, bc] = randomDate();
            return random.pick([`${date} ${randomTime()}${bc}`, "-infinity"]);
        }),
    ],
    timestamptz: [
        "timestamptz",
        ofText(() => {
            const [date, bc] = randomDate();
            return `${date} ${randomTime()}${randomZone()}${bc}`;
        }),
    ],
    interval: [
        "interval",
        () => {
            const fields = randomInterval();
            const text = Object.entries(fields)
                .map(([name, number]) => `${number} ${name}`)
                .join(" ");
            return [fields, text || "0"];
        },
    ],
    inet: ["inet", ofText(randomAddress)],
    macaddr: ["macaddr", ofText(() => pairs(6))],
    macaddr8: ["macaddr8", ofText(() => pairs(8))],
};

function make(sqlType, count) {
    return Array.from({ length: count }, () => {
        const [value, text] = MAKERS[sqlType][1]();
        return { value, text: text ?? (Object.is(value, -0) ? "-0" : String(value)) };
    });
}

const texts = (made) => made.map(({ text }) => text);
const values = (made) => made.map(({ value }) => value);

test("every element type is made", () => {
    assert.deepEqual(new Set(Object.values(MAKERS).map(([name]) => name)), new Set(CLASS_NAMES.values()));
});

// Sizes, layouts and seeds; the elements are 1 to 300.
const FORMS = [
    { expectedItems: 2000 },
    { expectedItems: 20, falsePositiveRate: 0.3 },
    { expectedItems: 2000, layout: "classic", seed: -5n },
    { expectedItems: 40, layout: "classic", falsePositiveRate: 0.001 },
    {},
];

/** The same filter by the server. */
function aggregate(sqlType, { expectedItems, falsePositiveRate = 0.01, layout = "blocked", seed = 0n }) {
    const element = `x::${sqlType}`;
    return expectedItems === undefined
        ? `SELECT bloom_agg(${element}) FROM unnest($1::text[]) AS x`
        : `SELECT bloom_agg(${element}, bloom_create(${expectedItems}, ${falsePositiveRate}, '${layout}', ${seed}))
           FROM unnest($1::text[]) AS x`;
}

for (const [sqlType, [type]] of Object.entries(MAKERS)) {
    test(`${sqlType}: both build the same bytes, and give the same answers`, async () => {
        for (const form of FORMS) {
            const made = make(sqlType, random.pick([1, 10, 300]));
            const [byServer] = await row(aggregate(sqlType, form), [texts(made)]);
            const filter = BloomFilter.build(values(made), { ...form, type });
            assert.equal(String(filter), byServer, `${JSON.stringify(texts(made).slice(0, 20))}`);
            const asked = [...made.slice(0, 20), ...make(sqlType, 100)];
            const [answers] = await row(
                `SELECT array_agg($1::bloomfilter @> x::${sqlType} ORDER BY i)
                 FROM unnest($2::text[]) WITH ORDINALITY AS u (x, i)`,
                [byServer, texts(asked)],
            );
            const read = BloomFilter.from(byServer);
            assert.deepEqual(
                values(asked).map((value) => read.has(value)),
                answers,
            );
            assert.ok(values(made).every((value) => read.has(value)));
        }
    });
}

/** A counter by the server: of 30 expected elements, so that many numbers of a large one are shared. */
function counterOf(sqlType, levels) {
    const width = random.pick([4, 8, 16]);
    const layout = random.pick(["blocked", "classic"]);
    const create = `bloom_create_counter(30, 0.2, ${width}, '${layout}', ${random.below(9) - 4})`;
    const aggregate = levels ? "bloom_level_agg(x::type, 3," : "bloom_counter_agg(x::type,";
    const times = random.pick([1, 2, 20]);
    const rows = `FROM unnest($1::text[]) AS x, generate_series(1, ${times})`;
    return `SELECT ${aggregate.replace("type", sqlType)} ${create}) ${rows}`;
}

for (const [sqlType, [type]] of Object.entries(MAKERS)) {
    test(`${sqlType}: a counter gives the answers of the server`, async () => {
        for (const [count, levels] of [1, 5, 60].flatMap((n) => [false, true].map((levels) => [n, levels]))) {
            const made = make(sqlType, count);
            const [byServer] = await row(counterOf(sqlType, levels), [texts(made)]);
            const counter = BloomCounter.from(byServer);
            const asked = [...made.slice(0, 20), ...make(sqlType, 50)];
            const level = random.pick([1, 2, 3, 15]);
            const [counts, filter, cast] = await row(
                `SELECT array_agg(bloom_count($1::bloomcounter, x::${sqlType}) ORDER BY i),
                        bloom_at_least($1::bloomcounter, ${level})::text, $1::bloomcounter::bloomfilter::text
                 FROM unnest($2::text[]) WITH ORDINALITY AS u (x, i)`,
                [byServer, texts(asked)],
            );
            assert.deepEqual(
                values(asked).map((value) => counter.count(value)),
                counts,
            );
            assert.deepEqual([String(counter.toFilter(level)), String(counter.toFilter())], [filter, cast]);
            assert.equal(counter.type, type);
            await compareInformation(counter, byServer);
        }
    });
}

async function compareInformation(counter, text) {
    const [layout, representation, contents, width, positions, hashes, seed, cardinality, total, now, rate] = await row(
        `SELECT layout, representation, contents, counter_bits, positions::float8, hashes, seed, cardinality, total,
                current_rate, requested_rate
         FROM bloom_info($1::bloomcounter)`,
        [text],
    );
    assert.deepEqual(
        [counter.layout, counter.sparse ? "sparse" : "dense", counter.levels ? "levels" : "counts"],
        [layout, representation, contents],
    );
    assert.deepEqual(
        [counter.counterBits, counter.positions, counter.hashFunctions, String(counter.seed)],
        [width, positions, hashes, seed],
    );
    assertNear(counter.cardinality(), cardinality, "cardinality");
    assertNear(counter.falsePositiveRate(), now, "current rate");
    assertNear(counter.requestedRate, Math.fround(rate), "requested rate");
    assert.equal(total === null, counter.levels);
    assertNear(counter.levels ? 0 : counter.total(), total ?? 0, "total");
}

test("a Date is the date or the timestamp of the server", async () => {
    for (let i = 0; i < 50; i++) {
        const milliseconds = random.below(2 ** 32) * random.pick([1, 1000, 20000]) - 1e13;
        const moment = new Date(milliseconds);
        const day = new Date(Math.floor(milliseconds / 86400000) * 86400000);
        const [date, timestamp, timestamptz] = await row(
            `SELECT bloom_agg((m AT TIME ZONE 'UTC')::date), bloom_agg(m AT TIME ZONE 'UTC'), bloom_agg(m)
             FROM (SELECT timestamptz 'epoch' + $1::bigint * interval '1 millisecond') AS moments (m)`,
            [milliseconds],
        );
        assert.equal(String(BloomFilter.build([day], { type: "date" })), date);
        assert.equal(String(BloomFilter.build([moment], { type: "timestamp" })), timestamp);
        assert.equal(String(BloomFilter.build([moment], { type: "timestamptz" })), timestamptz);
    }
});

test("an interval of node-postgres is one", async () => {
    const [interval, filter] = await row(
        "SELECT i, bloom_agg(i) FROM (VALUES (interval '1 year 2 months -3 days 04:05:06.789012')) AS v (i) GROUP BY i",
    );
    assert.ok(BloomFilter.from(filter).has({ ...interval }));
    assert.ok(BloomFilter.from(filter).has(interval));
});

test("sizes are those of the server", async () => {
    // Between 1/4 and 1/2 the worst case is one block, which makes these four sizes larger.
    const cases = [
        [2389935, 0.265],
        [1901044, 0.33],
        [2916185, 0.415],
        [2639980, 0.47],
    ];
    for (let i = 0; i < 50; i++) {
        cases.push([1 + Math.floor(2 ** (random.below(2600) / 100)), 10 ** -(0.302 + random.below(8690) / 1000)]);
    }
    for (const [expectedItems, falsePositiveRate] of cases) {
        for (const layout of ["blocked", "classic"]) {
            const parameters = [expectedItems, falsePositiveRate, layout];
            // Null stands for a filter of more than 2^31 bits.
            const [byServer] = await row("SELECT bloom_create($1::float8, $2::float8, $3)", parameters).catch(
                ({ code }) => [code === "54000" ? null : code],
            );
            const create = () => String(BloomFilter.create(expectedItems, { falsePositiveRate, layout }));
            if (byServer === null) {
                assert.throws(create, /more than 2\^31 bits/, parameters.join());
            } else {
                assert.equal(create(), byServer, parameters.join());
            }
        }
    }
});

function assertNear(got, expected, what) {
    const near = Object.is(got, expected) || Math.abs(got - expected) <= 1e-9 * Math.max(1, Math.abs(expected));
    assert.ok(near, `${what}: ${got} is not ${expected}`);
}

test("what filters combine to, and what they are estimated to hold", async () => {
    let combined = 0;
    for (let i = 0; i < 150; i++) {
        const form = random.pick([...FORMS, {}]);
        const other = random.below(8) === 0 ? random.pick(FORMS) : form;
        const [a, b] = [form, other].map((options) => {
            const first = random.below(300);
            const count = random.pick([0, 1, 3, 30, 200, 3000]);
            const rate = options.falsePositiveRate ?? 0.01;
            return BloomFilter.build(
                Array.from({ length: count }, (_, j) => first + j),
                { ...options, falsePositiveRate: random.pick([rate, rate * 1.01]) },
            );
        });
        combined += await compareCombinations(a, b);
    }
    assert.ok(combined > 80, `${combined} pairs were combined`);
});

test("estimates of sets of different sizes, one a part of the other", async () => {
    const numbers = (count) => Array.from({ length: count }, (_, i) => i);
    const filters = [3, 10, 30, 60, 200, 1000].map((count) => BloomFilter.build(numbers(count)));
    filters.push(...[20, 100, 200].map((count) => BloomFilter.build(numbers(count), { expectedItems: 2000 })));
    for (const a of filters) {
        for (const b of filters) {
            await compareEstimates(a, b);
        }
    }
});

/** A result as the server gives it, or null for an error that is one here, too. */
async function both(sql, a, b, compute) {
    let expected = null;
    try {
        [expected] = await row(`SELECT ${sql} FROM (SELECT $1::bloomfilter AS a, $2::bloomfilter AS b) AS f`, [
            String(a),
            String(b),
        ]);
    } catch (error) {
        assert.ok(["22023", "42804"].includes(error.code), error.message);
        assert.throws(compute, /^(RangeError|TypeError): the filters|^RangeError: \d+ bits/, `${sql} of ${a} and ${b}`);
    }
    return expected;
}

async function compareCombinations(a, b) {
    const operations = {
        "a | b": () => a.union(b),
        "a & b": () => a.intersection(b),
        "bloom_fold(a, b)": () => a.foldTo(b),
    };
    let combined = 0;
    for (const [sql, compute] of Object.entries(operations)) {
        const expected = await both(sql, a, b, compute);
        if (expected !== null) {
            assert.equal(String(compute()), expected, `${sql} of ${a} and ${b}`);
            combined = 1;
        }
    }
    await compareEstimates(a, b);
    return combined;
}

async function compareEstimates(a, b) {
    const estimates = {
        "# a": () => a.cardinality(),
        "bloom_fpp(b)": () => b.falsePositiveRate(),
        "bloom_union_cardinality(a, b)": () => a.unionCardinality(b),
        "bloom_intersection_cardinality(a, b)": () => a.intersectionCardinality(b),
        "bloom_jaccard(a, b)": () => a.jaccard(b),
    };
    for (const [sql, compute] of Object.entries(estimates)) {
        const expected = await both(sql, a, b, compute);
        if (expected !== null) {
            assertNear(compute(), expected, `${sql} of ${a} and ${b}`);
        }
    }
}

test("the information is that of bloom_info", async () => {
    for (const form of FORMS) {
        const filter = BloomFilter.build(values(make("bigint", 50)), { ...form, type: "bigint" });
        const [layout, type, representation, bits, hashes, bytes, rate, seed] = await row(
            `SELECT layout, element_type::text, representation, bits::float8, hashes, bytes::float8, requested_rate, seed
             FROM bloom_info($1::bloomfilter)`,
            [String(filter)],
        );
        assert.deepEqual(
            [
                filter.layout,
                filter.type,
                filter.sparse ? "sparse" : "dense",
                filter.bits,
                filter.hashFunctions,
                filter.byteLength + 4,
                String(filter.seed),
            ],
            [layout, type, representation, bits, hashes, bytes, seed],
        );
        assertNear(filter.requestedRate, Math.fround(rate), "requested rate");
    }
});

function mutate(bytes) {
    let changed = Uint8Array.from(bytes);
    for (let i = random.below(3); i >= 0; i--) {
        const at = random.pick([random.below(28), random.below(Math.max(1, changed.length))]);
        switch (random.below(5)) {
            case 0:
                changed[at] ^= 1 << random.below(8);
                break;
            case 1:
                changed[at] = random.pick([0, 1, 2, 8, 16, 20, 25, 32, 64, 127, 128, 255]);
                break;
            case 2:
                changed = changed.slice(0, random.pick([at, changed.length - 8, changed.length - 1]));
                break;
            case 3:
                changed = Uint8Array.from([...changed, ...random.bytes(random.pick([1, 8, 64]))]);
                break;
            default:
                changed.copyWithin(random.below(changed.length), at, at + 8);
        }
    }
    return changed;
}

function readHere(source, reader = BloomFilter) {
    try {
        return String(reader.from(source));
    } catch (error) {
        assert.equal(error.name, "FormatError", error.stack);
        return null;
    }
}

for (const [reader, sqlFunction, ...lists] of [
    [BloomFilter, "read_bytes", "accepted", "refused", "filters", "accepted_counters"],
    [BloomCounter, "read_counter", "accepted_counters", "refused_counters", "counters", "accepted"],
]) {
    test(`both accept and refuse the same bytes: ${reader.name}`, async () => {
        const vectors = golden();
        const seeds = lists
            .flatMap((list) => vectors[list])
            .filter(({ bytes }) => bytes && bytes.length < 1000)
            .map(({ bytes }) => Buffer.from(bytes, "hex"));
        const mutants = Array.from({ length: 20000 }, () => mutate(random.pick(seeds)));
        const [byServer] = await row(
            `SELECT array_agg(pg_temp.${sqlFunction}(decode(x, 'hex')) ORDER BY i)
             FROM unnest($1::text[]) WITH ORDINALITY AS u (x, i)`,
            [mutants.map(hex)],
        );
        mutants.forEach((bytes, i) => assert.equal(readHere(bytes, reader), byServer[i], `${hex(bytes)}`));
        const accepted = byServer.filter((text) => text !== null).length;
        assert.ok(accepted > 1000 && accepted < 15000, `${accepted} of 20000 were accepted`);
    });
}

test("both accept and refuse the same text", async () => {
    const start = String(BloomFilter.build(["alice", "bob"], { expectedItems: 100 }));
    const mutants = [
        start.toUpperCase().replace("\\X", "\\x"),
        start.toUpperCase(),
        ` ${start}`,
        `${start} `,
        `${start}\n`,
        "",
        "\\x",
        "\\",
    ];
    for (let i = 0; i < 5000; i++) {
        const at = random.below(start.length + 1);
        const inserted = random.pick([..."0123456789abcdefABCDEFgGxX \\\t\u00e4", "", "00", "é", "\u0130"]);
        mutants.push(start.slice(0, at) + inserted + start.slice(random.pick([at, at + inserted.length, at + 2])));
    }
    const [byServer] = await row(
        "SELECT array_agg(pg_temp.read_text(x) ORDER BY i) FROM unnest($1::text[]) WITH ORDINALITY AS u (x, i)",
        [mutants],
    );
    mutants.forEach((text, i) => assert.equal(readHere(text), byServer[i], JSON.stringify(text)));
    assert.ok(byServer.some((text) => text === null) && byServer.filter((text) => text !== null).length > 100);
});

test("counters are transferred as text, as bytea and in binary form", async () => {
    for (const count of [2, 500]) {
        const received = await row(
            `SELECT c, c::bytea, bloomcounter_send(c)
             FROM (SELECT bloom_counter_agg(i % 100, 20) FROM generate_series(1, $1::int) AS i) AS v (c)`,
            [count],
        );
        assert.deepEqual(received.map(Buffer.isBuffer), [false, true, true]);
        const [counter, ...others] = received.map((source) => BloomCounter.from(source));
        assert.ok(others.every((other) => other.equals(counter)));
        const sent = [String(counter), Buffer.from(counter.toBytes()), received[0]];
        assert.deepEqual(await row("SELECT $1::bloomcounter = $3, $2::bloomcounter = $3", sent), [true, true]);
    }
});

test("filters are transferred as text, as bytea and in binary form", async () => {
    for (const count of [2, 5000]) {
        const filter = BloomFilter.build(
            Array.from({ length: count }, (_, i) => i),
            { expectedItems: 5000 },
        );
        const query = "SELECT $1::bloomfilter = bloom_agg(i, 5000) FROM generate_series(0, $2 - 1) AS i";
        assert.deepEqual(await row(query, [String(filter), count]), [true]);
        // node-postgres sends a Buffer in binary form. It reads no results in binary form: send() stands for them.
        assert.deepEqual(await row(query, [Buffer.from(filter.toBytes()), count]), [true]);
        assert.deepEqual(await row(query.replace("::", "::bytea::"), [Buffer.from(filter.toBytes()), count]), [true]);
        const received = await row(
            "SELECT $1::bloomfilter, f::bytea, bloomfilter_send(f) FROM (SELECT $1::bloomfilter AS f) AS v",
            [String(filter)],
        );
        assert.deepEqual(received.map(Buffer.isBuffer), [false, true, true]);
        received.forEach((source) => assert.ok(BloomFilter.from(source).equals(filter)));
    }
});

test("the examples of README.md run, and give what their comments say", async () => {
    const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
    const blocks = Array.from(readme.matchAll(/^```js\n(.*?)^```$/gms), ([, code]) => code);
    let claims = 0;
    const check = async (got, expected) => {
        claims++;
        const result = await got;
        assert.equal(result?.rows ? Object.values(result.rows[0])[0] : result, expected, `claim ${claims}`);
    };
    const body = blocks
        .join("")
        .replace(/^import .*$/gm, "")
        .replace(/^(?!const )(.*); \/\/ (true|false|[\d.]+)/gm, "await check($1, $2); //")
        .replace(/(?<=new pg\.Client\(\);)/, "clients.push(client);");
    const clients = [];
    const AsyncFunction = check.constructor;
    const names = ["pg", "BloomCounter", "BloomFilter", "check", "clients"];
    await new AsyncFunction(...names, body)(pg, BloomCounter, BloomFilter, check, clients);
    await Promise.all(clients.map((connected) => connected.end()));
    assert.equal(claims, 11);
});
