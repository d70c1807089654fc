// What the package does without a server: values and types, sparse and dense, combining, errors, and hostile bytes.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import os from "node:os";
import test from "node:test";
import { BloomFilter, FormatError } from "../index.js";
import { mixed } from "../src/hash-set.js";
import { found, locate } from "../src/positions.js";
import { CLASS_NAMES, HEADER_BYTES, header, modelPositions, Random } from "./support.js";

function dense(parameters, byte) {
    const head = header(parameters);
    const bytes = new Uint8Array(HEADER_BYTES + parameters.m / 8).fill(byte, HEADER_BYTES);
    bytes.set(head);
    return bytes;
}

function sparse(parameters, hashes) {
    const bytes = new Uint8Array(HEADER_BYTES + 8 * hashes.length);
    bytes.set(header({ ...parameters, flags: 1 }));
    hashes.forEach((hash, i) => new DataView(bytes.buffer).setBigUint64(HEADER_BYTES + 8 * i, hash, true));
    return bytes;
}

function numbers(first, last) {
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

test("an empty filter contains nothing and has no type", () => {
    const filter = BloomFilter.create(1000);
    assert.deepEqual([filter.has("a"), filter.has(1), filter.has(Uint8Array.of(1))], [false, false, false]);
    assert.deepEqual([filter.type, filter.sparse, filter.byteLength], [null, true, 28]);
    assert.deepEqual([filter.cardinality(), filter.falsePositiveRate()], [0, 0]);
});

test("an empty filter refuses what no first element can be, and what its type cannot be", () => {
    const empties = [BloomFilter.create(10), BloomFilter.build([])];
    for (const empty of [...empties, ...empties.map((filter) => BloomFilter.from(filter.toBytes()))]) {
        for (const value of [{}, 1.5, NaN, new Date(0), [1], Symbol("x"), () => 1, null, undefined]) {
            assert.throws(() => empty.has(value), TypeError, String(value));
        }
        for (const value of ["\ud800", "a\0b", 2n ** 63n]) {
            assert.throws(() => empty.has(value), RangeError, String(value));
        }
    }
});

test("a type that is named when a filter is read is its type", () => {
    const empty = BloomFilter.create(10).toBytes();
    const dates = BloomFilter.from(empty, { type: "date" });
    assert.deepEqual([dates.type, dates.has(new Date(0))], ["date", false]);
    assert.throws(() => dates.has(1), TypeError);
    assert.equal(dates.add("2024-02-29").has("2024-02-29"), true);
    assert.equal(dates.equals(BloomFilter.from(dates.toBytes(), { type: "date" })), true);
    assert.throws(() => BloomFilter.from(dates.toBytes(), { type: "time" }), {
        name: "TypeError",
        message: "the filter holds elements of type date, not time",
    });
    assert.throws(() => BloomFilter.from(empty, { type: "jsonb" }), RangeError);
    assert.throws(() => BloomFilter.from(empty, "date"), /TypeError: the options are/);
});

test("a declared type reads values before the first element, and is not in the bytes", () => {
    const filter = BloomFilter.create(1000, { type: "uuid" });
    assert.equal(filter.type, "uuid");
    assert.throws(() => filter.has("alice"), TypeError);
    assert.throws(() => filter.add(7), TypeError);
    assert.equal(filter.has("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), false);
    assert.ok(filter.equals(BloomFilter.create(1000)));
    assert.equal(filter.copy().type, "uuid");
});

test("a declared type stays in a combination, and combines with no other type", () => {
    const [declared, untyped] = [BloomFilter.create(1000, { type: "uuid" }), BloomFilter.create(1000)];
    for (const result of [
        declared.union(untyped),
        untyped.union(declared),
        untyped.intersection(declared),
        declared.foldTo(BloomFilter.create(2000)),
        untyped.foldTo(declared),
        BloomFilter.build([], { type: "uuid" }).foldTo(untyped),
        untyped.union(BloomFilter.build([], { type: "uuid" })),
        BloomFilter.build([]).intersection(declared),
        BloomFilter.build([]).union(BloomFilter.build([], { type: "uuid", falsePositiveRate: 0.1 })),
        untyped.foldTo(BloomFilter.build([], { type: "uuid" })),
    ]) {
        assert.equal(result.type, "uuid");
        assert.throws(() => result.has("alice"), TypeError);
        assert.throws(() => result.add("alice"), result.bits > 0 ? TypeError : RangeError);
    }
    const one = BloomFilter.build([1], { expectedItems: 1000 });
    assert.throws(() => declared.union(one), /TypeError: the filters hold elements of types uuid and bigint/);
    assert.throws(() => one.foldTo(declared), /TypeError: the filters hold elements of types bigint and uuid/);
    const unsized = BloomFilter.build([], { type: "uuid" });
    for (const combine of ["union", "intersection", "foldTo"]) {
        assert.throws(() => one[combine](unsized), /TypeError: the filters hold elements of types bigint and uuid/);
    }
});

test("one element", () => {
    const filter = BloomFilter.create(1).add("alice");
    assert.deepEqual([filter.has("alice"), filter.has("bob"), filter.cardinality()], [true, false, 1]);
    assert.deepEqual([filter.type, filter.sparse, filter.byteLength], ["text", true, 36]);
    assert.equal(filter.falsePositiveRate(), 2 ** -64);
});

test("a filter becomes dense when hashes take as much room as bits", () => {
    const filter = BloomFilter.create(8);
    const states = numbers(1, 9).map((i) => filter.add(i).sparse);
    assert.deepEqual(states, [true, true, true, true, true, true, true, false, false]);
    assert.equal(filter.byteLength, 28 + 64);
    assert.ok(numbers(1, 9).every((i) => filter.has(i)));
    assert.ok(BloomFilter.create(1, { layout: "classic", falsePositiveRate: 0.1 }).add(1).sparse === false);
});

test("adding an element again changes nothing", () => {
    for (const n of [5, 500]) {
        const filter = BloomFilter.build(numbers(1, n), { expectedItems: 8 });
        const before = filter.toBytes();
        assert.deepEqual(filter.addAll(numbers(1, n)).toBytes(), before);
    }
});

test("order and repetition do not change the bytes", () => {
    for (const n of [10, 1000]) {
        const one = BloomFilter.build(numbers(1, n), { expectedItems: 1000 });
        const other = BloomFilter.build([...numbers(1, n).reverse(), ...numbers(1, n)], { expectedItems: 1000 });
        assert.ok(one.equals(other));
    }
});

test("build takes any iterable, and of no elements gives an empty filter", () => {
    const expected = BloomFilter.build(["a", "b"]);
    function* generate() {
        yield* ["a", "b"];
    }
    for (const iterable of [
        new Set(["a", "b"]),
        new Map([
            ["a", 1],
            ["b", 2],
        ]).keys(),
        generate(),
        "ab",
    ]) {
        assert.ok(BloomFilter.build(iterable).equals(expected));
    }
    assert.ok(BloomFilter.build([], { expectedItems: 10 }).equals(BloomFilter.create(10)));
    assert.deepEqual([BloomFilter.build([]).bits, BloomFilter.build([]).hashFunctions], [0, 6]);
    assert.equal(BloomFilter.build([], { type: "date" }).type, "date");
});

test("a filter that sizes itself has the least power of two of blocks", () => {
    // At 1 % an element takes 10157 / 1024 bits, so 51 elements fit into a block and 52 do not.
    const sizes = [1, 51, 52, 103, 104, 10000].map((n) => BloomFilter.build(numbers(1, n)).bits / 512);
    assert.deepEqual(sizes, [1, 1, 2, 2, 4, 256]);
});

test("the false-positive rate is the one that was asked for", () => {
    for (const layout of ["blocked", "classic"]) {
        const filter = BloomFilter.build(numbers(1, 20000), { expectedItems: 20000, layout });
        const positives = numbers(-100000, -1).filter((i) => filter.has(i)).length;
        // 100,000 probes at 1 % are 1000 with a standard deviation of 31, plus that of the filter itself.
        assert.ok(positives < 1150 && positives > 850, `${layout}: ${positives}`);
        assert.ok(Math.abs(filter.falsePositiveRate() - 0.01) < 0.0007, `${layout}: ${filter.falsePositiveRate()}`);
        assert.ok(Math.abs(filter.cardinality() - 20000) < 300, `${layout}: ${filter.cardinality()}`);
    }
});

test("an unknown option is an error", () => {
    assert.throws(() => BloomFilter.create(10, { rate: 0.1 }), /TypeError: the options are/);
    assert.throws(() => BloomFilter.build([1], { expectedItems: 10, falsepositiverate: 0.1 }), /TypeError: the options are/);
    assert.throws(() => BloomFilter.create(10, 0.1), /TypeError: the options are/);
});

test("options that are no object are an error", () => {
    for (const options of [100, 0.1, "classic", null, true, [100], new Map([["expectedItems", 100]]), () => 1]) {
        assert.throws(() => BloomFilter.build([1, 2], options), /TypeError: the options are/, String(options));
        assert.throws(() => BloomFilter.create(10, options), /TypeError: the options are/, String(options));
    }
});

test("a rate that rounds to a limit is within it", () => {
    for (const falsePositiveRate of [1e-9, 0.5]) {
        const { requestedRate } = BloomFilter.create(10, { falsePositiveRate });
        assert.equal(BloomFilter.create(10, { falsePositiveRate: requestedRate }).requestedRate, requestedRate);
    }
    assert.equal(BloomFilter.create(10, { falsePositiveRate: 0.5 + 2 ** -25 }).requestedRate, 0.5);
});

test("a saturated filter contains everything and has no estimate", () => {
    for (const layout of [0, 1]) {
        const full = BloomFilter.from(dense({ layout, m: 1024 }, 255));
        const part = BloomFilter.from(dense({ layout, m: 1024 }, 1));
        assert.deepEqual([full.has(1), full.has(-1)], [true, true]);
        assert.deepEqual([full.cardinality(), full.falsePositiveRate()], [Infinity, 1]);
        assert.deepEqual([full.unionCardinality(part), full.intersectionCardinality(part)], [Infinity, NaN]);
        assert.ok(Number.isNaN(part.jaccard(full)));
    }
});

test("a dense filter without bits is an empty intersection", () => {
    const none = BloomFilter.from(dense({ m: 512 }, 0));
    assert.deepEqual([none.has(1), none.cardinality(), none.falsePositiveRate(), none.sparse], [false, 0, 0, false]);
    assert.ok(Object.is(none.cardinality(), 0));
    assert.equal(none.jaccard(none), 1);
});

test("positions are those of exact arithmetic, up to the largest size", () => {
    const random = new Random(1);
    for (const layout of ["blocked", "classic"]) {
        for (const unitsOfBits of [1, 3, 127, 65537, 2 ** 21 - 1, 2 ** 21 + 1, 2 ** 22 - 1, 2 ** 22]) {
            const m =
                layout === "blocked"
                    ? 512 * unitsOfBits
                    : Math.min(2 ** 31, 64 * 8 * unitsOfBits - (unitsOfBits % 2) * 64);
            const bytes = sparse({ layout: Number(layout === "classic"), cls: 0, m, k: 32 }, []);
            for (let i = 0; i < 200; i++) {
                const value = random.word64();
                const filter = BloomFilter.from(bytes);
                const got = filter.positions(value >> 1n);
                const hash = new DataView(filter.add(value >> 1n).toBytes().buffer).getBigUint64(HEADER_BYTES, true);
                // Where one hash does not fit beside m bits, the filter is dense and has no hash.
                if (filter.sparse) {
                    assert.deepEqual(got, modelPositions(hash, { layout, m, k: 32 }));
                }
                assert.ok(got.every((position) => position >= 0 && position < m));
            }
        }
    }
});

/** The inverse of an odd number modulo 2^32, by Newton's iteration. */
function inverse(odd) {
    let x = odd;
    for (let i = 0; i < 5; i++) {
        x = BigInt.asUintN(32, x * (2n - odd * x));
    }
    return x;
}

test("blocks are those of exact arithmetic where a double rounds to the next block", () => {
    for (let blocks = 2n ** 22n - 1n; blocks > 2n ** 22n - 2000n; blocks -= 2n) {
        // The product of high and blocks ends in 2^32 - 1. Above 2^53 it is no double.
        const high = BigInt.asUintN(32, -inverse(blocks));
        const m = Number(blocks) * 512;
        locate(0, m, 3, Number(high), 12345);
        assert.deepEqual(
            Array.from(found.subarray(0, 3)),
            modelPositions((high << 32n) | 12345n, { layout: "blocked", m, k: 3 }),
        );
    }
});

test("the hashes of a hostile filter do not meet in a few slots of the table", () => {
    for (const highUnit of [1, 2 ** 8, 2 ** 16, 2 ** 24]) {
        for (const lowUnit of [1, 2 ** 8, 2 ** 16, 2 ** 24]) {
            const slots = new Set();
            for (let i = 0; i < 4096; i++) {
                slots.add(mixed((i >> 6) * highUnit, (i & 63) * lowUnit) >>> 19);
            }
            // 4096 random hashes take 8192 (1 - e^-0.5) = 3223 of 8192 slots.
            assert.ok(slots.size > 2400, `${highUnit}, ${lowUnit}: ${slots.size}`);
        }
    }
});

test("the text of a large filter takes little more memory than its characters", () => {
    const program = `
        import { BloomFilter } from ${JSON.stringify(new URL("../index.js", import.meta.url))};
        const values = Array.from({ length: 530000 }, (_, i) => i);
        const filter = BloomFilter.build(values, { expectedItems: 3.4e6 });
        console.log(String(filter).length === 2 + 2 * filter.byteLength, filter.byteLength > 2 ** 22);`;
    const options = ["--max-old-space-size=64", "--input-type=module", "--eval", program];
    assert.equal(execFileSync(process.execPath, options, { encoding: "utf8" }), "true true\n");
});

test("the largest filter", { skip: os.freemem() < 1.5e9 && "there is less than 1.5 GB of memory" }, () => {
    const m = 2 ** 31;
    const filter = BloomFilter.from(dense({ layout: 1, k: 32, m }, 0));
    filter.addAll(numbers(1, 1000));
    assert.ok(numbers(1, 1000).every((i) => filter.has(i)) && !filter.has(0));
    assert.ok(filter.positions(1).every((position) => filter.bit(position)));
    assert.ok(Math.abs(filter.cardinality() - 1000) < 1);
    assert.throws(() => filter.bit(m), RangeError);
});

test("the largest sizes that can be created, and one more", () => {
    assert.equal(BloomFilter.create(216e6).bits, 2 ** 31);
    assert.throws(() => BloomFilter.create(217e6), /RangeError: the filter would have more than 2\^31 bits/);
    assert.throws(() => BloomFilter.create(1e300, { layout: "classic" }), /more than 2\^31 bits/);
    assert.throws(() => BloomFilter.create(Infinity), /more than 2\^31 bits/);
});

test("parameters out of range are errors", () => {
    for (const items of [0, 0.5, -1, NaN, "10", undefined, 10n]) {
        assert.throws(() => BloomFilter.create(items), /RangeError: expectedItems/);
    }
    for (const expectedItems of [0, NaN, "10", 10n, null]) {
        assert.throws(() => BloomFilter.build([1], { expectedItems }), /RangeError: expectedItems/);
    }
    for (const falsePositiveRate of [0, 1, 0.6, 9e-10, NaN, "0.1", null]) {
        assert.throws(() => BloomFilter.create(10, { falsePositiveRate }), /RangeError: the false-positive rate/);
    }
    for (const layout of ["round", "BLOCKED", 0, null]) {
        assert.throws(() => BloomFilter.create(10, { layout }), /RangeError: layout/);
    }
    for (const seed of [1.5, 2 ** 53, 2n ** 64n, -(2n ** 63n) - 1n, "1", null]) {
        assert.throws(() => BloomFilter.create(10, { seed }), /RangeError: seed/);
    }
    for (const type of ["jsonb", "real", "", null]) {
        assert.throws(() => BloomFilter.create(10, { type }), /RangeError: the element type/);
    }
    assert.throws(() => BloomFilter.build([1], { layout: "classic" }), /RangeError: .*sizes itself/);
    assert.throws(() => new BloomFilter(), TypeError);
});

test("a fraction of an element is rounded up, and a seed may be signed or unsigned", () => {
    assert.ok(BloomFilter.create(51.5, { layout: "classic" }).equals(BloomFilter.create(52, { layout: "classic" })));
    const [signed, unsigned] = [-1n, 2n ** 64n - 1n].map((seed) => BloomFilter.create(10, { seed }).add(1));
    assert.ok(signed.equals(unsigned));
    assert.equal(unsigned.seed, -1n);
});

// Values of a type that are one element.
const EQUAL = {
    bigint: [
        [1, 1n],
        [-1, -1n],
        [0, -0, 0n],
        [2 ** 53 - 1, 9007199254740991n],
        [-(2 ** 40), -1099511627776n],
    ],
    "double precision": [
        [0, -0],
        [NaN, new Float64Array(new BigUint64Array([0xfff8000000000001n]).buffer)[0]],
        [1.5, 3 / 2],
    ],
    numeric: [
        [1, 1n, "1", "1.00", "01", "+1", "1.", "10e-1", "0.1e1"],
        [0, "0", "-0", "0.00", ".0", "0e5"],
        ["0.5", ".5", "5e-1", "00.50"],
        ["-12.5", "-12.50", "-1250e-2"],
        [100, "1e2", "100.0"],
        ["NaN", "nan"],
        ["Infinity", "inf", "+infinity"],
        ["-Infinity", "-INF"],
        ["1e20", 100000000000000000000n],
        ["0.000001", "1e-6", "0.00000100"],
        [-7, "-7.0"],
    ],
    text: [["alice"], ["\u{1F418}", "\uD83D\uDC18"], [""], ["a "]],
    "char(n)": [
        ["a", "a ", "a   "],
        ["", " "],
        [" a", " a "],
        ["a\t", "a\t "],
    ],
    bytea: [[Uint8Array.of(1, 2), Uint8Array.of(1, 2).buffer, Buffer.from([1, 2]), Uint8Array.of(0, 1, 2).subarray(1)]],
    uuid: [
        [
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            Uint8Array.from(Buffer.from("a0eebc999c0b4ef8bb6d6bb9bd380a11", "hex")),
        ],
    ],
    boolean: [[true], [false]],
    date: [
        ["2024-02-29", new Date("2024-02-29T00:00:00Z")],
        ["0001-12-31 BC", new Date("0000-12-31T00:00:00Z")],
        ["infinity"],
    ],
    time: [
        ["12:00", "12:00:00", "12:00:00.0"],
        ["24:00", "23:59:60"],
    ],
    timetz: [
        ["12:00+01", "12:00:00 +01:00"],
        ["12:00Z", "12:00+00", "12:00-00:00"],
    ],
    timestamp: [
        ["2024-02-29 12:34:56.789", "2024-02-29T12:34:56.789000", new Date("2024-02-29T12:34:56.789Z")],
        ["-infinity"],
    ],
    timestamptz: [
        [
            "2024-02-29T12:34:56Z",
            "2024-02-29 13:34:56+01",
            "2024-02-29 07:04:56-05:30",
            new Date("2024-02-29T12:34:56Z"),
        ],
    ],
    interval: [
        [{ months: 1 }, { days: 30 }, { days: 29, hours: 24 }, { years: 1, months: -11 }],
        [{ seconds: 0.5 }, { milliseconds: 500 }, { microseconds: 500000 }],
        [{}, { hours: 1, minutes: -60 }],
        [{ hours: 2562047788 }, { days: 106751991, hours: 4 }],
    ],
    inet: [
        ["192.168.0.1", "192.168.0.1/32"],
        ["::1", "0:0:0:0:0:0:0:1", "::0001/128"],
        ["10.0.0.0/8"],
        ["2001:DB8::ffff", "2001:db8:0:0::ffff"],
        ["::ffff:1.2.3.4", "::ffff:102:304"],
        ["::", "0::0"],
        ["1::", "1:0::"],
    ],
    macaddr: [["08:00:2b:01:02:03", "08-00-2B-01-02-03", "08002b010203"]],
    macaddr8: [["08:00:2b:01:02:03:04:05", "08-00-2b-01-02-03-04-05"]],
};

test("every type has equal values", () => {
    assert.deepEqual(new Set(Object.keys(EQUAL)), new Set(CLASS_NAMES.values()));
});

for (const [type, groups] of Object.entries(EQUAL)) {
    test(`values of ${type} that are one element`, () => {
        const hashes = groups.map((values) => {
            const texts = values.map((value) => String(BloomFilter.create(1000, { type }).add(value)));
            assert.deepEqual(new Set(texts).size, 1, values.join(" | "));
            assert.ok(values.every((value) => BloomFilter.from(texts[0]).has(value)));
            return texts[0];
        });
        assert.equal(new Set(hashes).size, groups.length, "different elements have different hashes");
    });
}

// Values that a filter of the type does not read.
const REFUSED = {
    bigint: ["7", 1.5, NaN, Infinity, 2 ** 53, true, new Date(0), 2n ** 63n, -(2n ** 63n) - 1n, {}, [1]],
    "double precision": ["1.5", 1n, true, new Date(0)],
    numeric: [
        1.5,
        2 ** 53,
        NaN,
        true,
        "",
        ".",
        "1e",
        "abc",
        " 1",
        "0x10",
        "1_000",
        "1e200000",
        "1e-20000",
        "e5",
        "- 1",
    ],
    text: [1, 1n, true, Uint8Array.of(97), new Date(0), "a\0b", "\ud800", "\udc18x", ["a"], new String("a")],
    "char(n)": [1, true, "\0", "a\ud83d "],
    bytea: ["\\x01", [1, 2], new Uint16Array(1), new DataView(new ArrayBuffer(1)), 1],
    uuid: [
        "a0eebc99",
        1,
        "a0eebc999c0b4ef8bb6d6bb9bd380a11",
        new Uint8Array(15),
        "g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    ],
    boolean: [0, 1, "true", 1n],
    date: [
        "2024-02-30",
        "2023-02-29",
        "2024-13-01",
        "2024-00-01",
        "2024-01-00",
        "0000-01-01",
        "24-01-01",
        "2024-01-01 00:00",
        new Date("2024-02-29T00:00:01Z"),
        new Date(NaN),
        new Date(-8.64e15),
        0,
        "5874898-01-01",
        "4714-11-23 BC",
        "epoch",
    ],
    time: ["24:00:01", "12:60", "12", "12:00:61", "12:00+01", 43200, "25:00", "12:00:00.1234567", new Date(0)],
    timetz: ["12:00", "12:00+16", "12:00 CET", 1],
    timestamp: ["2024-02-29", "2024-02-29 12:00Z", "2024-02-30 12:00", new Date(NaN), 0, "294277-01-01 00:00"],
    timestamptz: ["2024-02-29 12:00", "2024-02-29", new Date(NaN), 1709208000000, "2024-02-29 12:00:00+01 CET"],
    interval: [
        "1 month",
        1,
        { month: 1 },
        { months: "1" },
        { months: 0.5 },
        { days: NaN },
        [1],
        new Date(0),
        new Map(),
        new Uint8Array(0),
        { months: 2 ** 31 },
        new Uint8Array(4),
    ],
    inet: [
        "192.168.0",
        "192.168.0.256",
        "192.168.0.1/33",
        "::1/129",
        ":::",
        "1::2::3",
        "12345::",
        "1.2.3.4::",
        "fe80::1%eth0",
        "1:2:3:4:5:6:7",
        "::1:2:3:4:5:6:7:8",
        1,
        "",
    ],
    macaddr: ["08:00:2b:01:02", "08:00-2b:01:02:03", "08:00:2b:01:02:03:04:05", 1],
    macaddr8: ["08:00:2b:01:02:03", 1],
};

for (const [type, values] of Object.entries(REFUSED)) {
    test(`values that are no ${type} are errors, in an empty filter and in one of the type`, () => {
        const filter = BloomFilter.create(1000, { type }).add(EQUAL[type][0][0]);
        const before = String(filter);
        for (const value of [...values, null, undefined, Symbol("x"), () => 1]) {
            const refusal = (error) => error instanceof TypeError || error instanceof RangeError;
            assert.throws(() => filter.has(value), refusal, `has ${String(value)}`);
            assert.throws(() => filter.add(value), refusal, `add ${String(value)}`);
            assert.throws(() => BloomFilter.create(10, { type }).has(value), refusal, `has ${String(value)}, empty`);
        }
        assert.equal(String(filter), before);
    });
}

test("errors do not repeat strings, and name type and value", () => {
    const filter = BloomFilter.build([1, 2]);
    assert.throws(() => filter.has("secret"), { message: /^an element of type bigint is .*, not this string$/ });
    assert.throws(() => filter.has(1.5), { message: /not the number 1.5$/ });
    const message = /^an element of type uuid is a string such as .*, not this string$/;
    assert.throws(() => BloomFilter.build(["a0ee"], { type: "uuid" }), { message });
    assert.throws(() => BloomFilter.from(null), { message: /text, not null$/ });
    assert.throws(() => filter.has(null), { message: /not null$/ });
    assert.throws(() => BloomFilter.create(10).add(undefined), { message: /undefined, which is not an element$/ });
    assert.throws(() => BloomFilter.create(10).has(null), { message: /null, which is not an element$/ });
    assert.throws(() => BloomFilter.create(10).add(1.5), { message: /give the option type$/ });
    assert.throws(() => BloomFilter.create(10).add(new Date(0)), { message: /give the option type$/ });
});

test("the first element decides the type", () => {
    const types = ["a", 7, 7n, true, Uint8Array.of(1)].map((value) => BloomFilter.create(10).add(value).type);
    assert.deepEqual(types, ["text", "bigint", "bigint", "boolean", "bytea"]);
});

test("a refused first element leaves the filter without a type", () => {
    const filter = BloomFilter.create(10);
    assert.throws(() => filter.add("\0"), RangeError);
    assert.equal(filter.type, null);
    assert.ok(filter.equals(BloomFilter.create(10)));
});

test("the empty filter without a size has no room", () => {
    const none = BloomFilter.build([]);
    assert.throws(() => none.add(1), /RangeError: the filter has no size/);
    assert.throws(() => none.addAll(["a"]), /RangeError: the filter has no size/);
    assert.throws(() => none.positions(1), /RangeError: the filter has no size/);
    const some = BloomFilter.build([1, 2, 3]);
    assert.ok(none.union(some).equals(some) && some.union(none).equals(some));
    assert.deepEqual([none.intersection(some).has(1), none.intersection(some).type], [false, "bigint"]);
    assert.deepEqual([none.unionCardinality(some), some.intersectionCardinality(none), none.jaccard(none)], [3, 0, 1]);
});

test("filters of different parameters do not combine", () => {
    const filter = BloomFilter.build([1], { expectedItems: 1000 });
    const others = [
        [{ expectedItems: 2000 }, /different sizes/],
        [{ expectedItems: 1000, seed: 1 }, /different seeds/],
        [{ expectedItems: 1000, layout: "classic" }, /different layouts/],
        [{ expectedItems: 1000, falsePositiveRate: 0.001 }, /different numbers of hash functions/],
    ];
    for (const [options, message] of others) {
        const other = BloomFilter.build([1], options);
        assert.throws(() => filter.union(other), message);
        assert.throws(() => other.intersection(filter), message);
    }
    const text = BloomFilter.build(["a"], { expectedItems: 1000 });
    for (const combine of [
        "union",
        "intersection",
        "unionCardinality",
        "intersectionCardinality",
        "jaccard",
        "foldTo",
    ]) {
        assert.throws(() => filter[combine](text), /TypeError: the filters hold elements of types bigint and text/);
        assert.throws(() => filter[combine](String(filter)), /TypeError: .*BloomFilter/);
    }
});

test("a combination has the lower rate, and the type of either", () => {
    const one = BloomFilter.create(8, { falsePositiveRate: 0.011 }).add(1);
    const other = BloomFilter.create(8, { falsePositiveRate: 0.012 });
    assert.deepEqual([one.bits, one.hashFunctions], [other.bits, other.hashFunctions]);
    for (const result of [one.union(other), other.union(one), other.intersection(one)]) {
        assert.deepEqual([result.requestedRate, result.type], [Math.fround(0.011), "bigint"]);
    }
});

test("results share nothing with operands, bytes and copies", () => {
    for (const count of [2, 200]) {
        const source = BloomFilter.build(numbers(1, count), { expectedItems: 100 }).toBytes();
        const kept = source.slice();
        const filter = BloomFilter.from(source);
        const derived = [
            filter.copy(),
            filter.union(BloomFilter.build([])),
            BloomFilter.build([]).union(filter),
            filter.foldTo(filter),
            filter.union(filter),
        ];
        derived.forEach((result, i) =>
            result
                .add(-1 - i)
                .toBytes()
                .fill(0),
        );
        assert.deepEqual(filter.toBytes(), kept);
        source.fill(0);
        assert.deepEqual(filter.toBytes(), kept);
    }
});

test("a filter is read from every kind of bytes and from text, and written as JSON", () => {
    const filter = BloomFilter.build(["alice", "bob"]);
    const bytes = filter.toBytes();
    const shifted = new Uint8Array(bytes.length + 5);
    shifted.set(bytes, 5);
    for (const source of [
        bytes,
        bytes.buffer,
        Buffer.from(bytes),
        shifted.subarray(5),
        String(filter),
        JSON.parse(JSON.stringify(filter)),
    ]) {
        assert.ok(BloomFilter.from(source).equals(filter));
    }
    for (const source of [null, undefined, 1, {}, [...bytes], new Uint16Array(14)]) {
        assert.throws(() => BloomFilter.from(source), TypeError);
    }
});

test("text that is not a filter is an error", () => {
    const text = String(BloomFilter.create(10));
    const texts = [
        "",
        "\\",
        "\\x",
        text.slice(2),
        text.slice(0, -1),
        `${text}0`,
        ` ${text}`,
        `${text} `,
        text.replace("01", "0g"),
        text.replace("01", "g1"),
        text.replace("01", "\u01301"),
        text.replace("\\x", "0x"),
        text.replace("01", "0\u0161"),
    ];
    for (const wrong of texts) {
        assert.throws(() => BloomFilter.from(wrong), FormatError, wrong);
    }
});

const SAMPLES = {
    sparse: BloomFilter.build(numbers(1, 5), { expectedItems: 8 }).toBytes(),
    dense: BloomFilter.build(numbers(1, 20), { expectedItems: 8 }).toBytes(),
    classic: BloomFilter.build(["a", "b"], { expectedItems: 8, layout: "classic", seed: -1n }).toBytes(),
    empty: BloomFilter.create(8).toBytes(),
    "without a size": BloomFilter.build([]).toBytes(),
};

for (const [name, bytes] of Object.entries(SAMPLES)) {
    test(`every truncation and extension of a filter: ${name}`, () => {
        for (let length = 0; length < bytes.length + 9; length++) {
            const changed = new Uint8Array(length);
            changed.set(bytes.subarray(0, length));
            // A sparse filter without its last hashes is a filter. All else has another length than the header implies.
            const whole = length === bytes.length;
            const shorter =
                name === "sparse" &&
                length >= HEADER_BYTES &&
                length < bytes.length &&
                (length - HEADER_BYTES) % 8 === 0;
            if (whole || shorter) {
                assert.deepEqual(BloomFilter.from(changed).toBytes(), changed);
            } else {
                assert.throws(() => BloomFilter.from(changed), FormatError, `${length} bytes`);
            }
        }
    });

    test(`every flipped bit of a filter: ${name}`, () => {
        for (let bit = 0; bit < 8 * bytes.length; bit++) {
            const changed = bytes.slice();
            changed[bit >> 3] ^= 1 << (bit & 7);
            let filter;
            try {
                filter = BloomFilter.from(changed);
            } catch (error) {
                assert.ok(error instanceof FormatError, `bit ${bit}: ${error}`);
                continue;
            }
            assert.deepEqual(filter.toBytes(), changed, `bit ${bit}`);
        }
    });
}

test("hashes that agree in a half do not slow a sparse filter down", () => {
    // If all of them began at one place of the table, this would take minutes.
    for (const shift of [0n, 32n]) {
        const hashes = Array.from({ length: 100000 }, (_, i) => BigInt(i) << shift);
        const bytes = sparse({ m: 2 ** 23 }, hashes);
        assert.deepEqual(BloomFilter.from(bytes).toBytes(), bytes);
    }
});

test("long values take linear time", () => {
    const filter = BloomFilter.create(1000, { type: "numeric" });
    const before = process.cpuUsage().user;
    for (let i = 0; i < 50; i++) {
        filter.add(`0.${"0".repeat(16382 - i)}1`);
    }
    assert.equal(filter.cardinality(), 50);
    assert.ok(process.cpuUsage().user - before < 1e6, "50 numbers of 16,383 digits take less than a second");
});

test("the extreme hashes are kept, and combine", () => {
    const bytes = sparse({ m: 5120 }, [0n, 1n, 2n ** 32n, 2n ** 63n, 2n ** 64n - 1n]);
    const filter = BloomFilter.from(bytes);
    const zero = BloomFilter.from(sparse({ m: 5120 }, [0n]));
    assert.equal(filter.cardinality(), 5);
    assert.deepEqual(filter.toBytes(), bytes);
    assert.deepEqual(filter.copy().toBytes(), bytes);
    assert.deepEqual(filter.union(zero).toBytes(), bytes);
    assert.deepEqual(zero.union(filter).toBytes(), bytes);
    assert.ok(filter.intersection(zero).equals(zero));
});
