// Counters: the golden vectors, what a reader refuses, questions without a type, and hostile bytes. What the vectors
// record by a hash alone is written here by doc/format.md first.

import assert from "node:assert/strict";
import test from "node:test";
import { BloomCounter, BloomFilter, FormatError } from "../index.js";
import { CLASS_NAMES, golden, header, HEADER_BYTES, modelPositions, Random, sha256, valueOf } from "./support.js";

const vectors = golden();
const LAYOUTS = ["blocked", "classic"];
const WIDTH_FLAGS = { 4: 0, 8: 8, 16: 16 };

function elementsOf({ series, elements }) {
    const [first, last] = series ?? [];
    return series ? Array.from({ length: last - first + 1 }, (_, i) => first + i) : elements.map(valueOf);
}

/** The hash of an element: all that a sparse filter of it holds. */
function hashOf(value, vector) {
    const filter = BloomFilter.create(1000, { seed: BigInt(vector.seed), type: CLASS_NAMES.get(vector.class) });
    return new DataView(filter.add(value).toBytes().buffer).getBigUint64(HEADER_BYTES, true);
}

/** Adds numbers up to the limit, or takes the greater of them. */
function gather(numbers, key, number, { contents, width }) {
    const old = numbers.get(key) ?? 0;
    const result = contents === "levels" ? Math.max(old, number) : old + number;
    numbers.set(key, Math.min(2 ** width - 1, result));
}

function numbersOfHashes(vector) {
    const numbers = new Map();
    elementsOf(vector).forEach((value, i) => {
        gather(numbers, hashOf(value, vector), vector.numbers[i % vector.numbers.length], vector);
    });
    return numbers;
}

function sparsePayload(numbers) {
    const payload = new Uint8Array(10 * numbers.size);
    const view = new DataView(payload.buffer);
    const sorted = [...numbers].sort(([a], [b]) => (a < b ? -1 : 1));
    sorted.forEach(([hash, number], i) => {
        view.setBigUint64(8 * i, hash, true);
        view.setUint16(8 * sorted.length + 2 * i, number, true);
    });
    return payload;
}

function densePayload(hashes, vector) {
    const numbers = new Map();
    for (const [hash, number] of hashes) {
        for (const position of new Set(modelPositions(hash, vector))) {
            gather(numbers, position, number, vector);
        }
    }
    let packed = 0n;
    for (const [position, number] of numbers) {
        packed |= BigInt(number) << BigInt(position * vector.width);
    }
    const digits = packed.toString(16).padStart((vector.m * vector.width) / 4, "0");
    return Uint8Array.from(Buffer.from(digits, "hex")).reverse();
}

/** The bytes of a counter, as doc/format.md specifies them. */
function write(vector) {
    const hashes = numbersOfHashes(vector);
    const { k, m, rate, width } = vector;
    const sparse = 10 * hashes.size < (m * width) / 8 || hashes.size === 0;
    const levels = vector.contents === "levels" && hashes.size > 0;
    const flags = Number(sparse) + 4 + WIDTH_FLAGS[width] + 32 * Number(levels);
    const [cls, seed] = [hashes.size > 0 ? vector.class : 0, BigInt.asUintN(64, BigInt(vector.seed))];
    const head = header({ layout: LAYOUTS.indexOf(vector.layout), flags, k, cls, rate, seed, m });
    return Buffer.concat([head, sparse ? sparsePayload(hashes) : densePayload(hashes, vector)]);
}

function assertRecorded(bytes, vector) {
    const got = vector.bytes === undefined ? [bytes.length, sha256(bytes)] : Buffer.from(bytes).toString("hex");
    assert.deepEqual(got, vector.bytes ?? [vector.length, vector.sha256]);
}

function assertNear(got, expected) {
    assert.ok(got === expected || Math.abs(got - expected) <= 1e-9 * Math.abs(expected), `${got} is not ${expected}`);
}

const counters = new Map();

for (const vector of vectors.counters) {
    test(`counter: ${vector.name}`, () => {
        const bytes = write(vector);
        assertRecorded(bytes, vector);
        const counter = BloomCounter.from(bytes);
        counters.set(vector.name, counter);
        const read = elementsOf(vector).slice(0, 5);
        assert.deepEqual(
            read.map((value) => counter.count(value)),
            vector.reads,
        );
        assert.ok(read.every((value) => counter.has(value)));
        assertNear(counter.cardinality(), Number(vector.cardinality));
        assertNear(counter.falsePositiveRate(), vector.current_rate);
        if (counter.levels) {
            assert.throws(() => counter.total(), { name: "TypeError", message: "a counter of levels has no total" });
        } else {
            assertNear(counter.total(), vector.total);
        }
        assert.deepEqual(Buffer.from(counter.toBytes()), bytes);
        assert.equal(BloomCounter.from(String(counter)).equals(counter), true);
        assert.deepEqual(
            [counter.layout, counter.positions, counter.counterBits, counter.limit, counter.hashFunctions],
            [vector.layout, vector.m, vector.width, 2 ** vector.width - 1, vector.k],
        );
        assert.deepEqual(
            [counter.requestedRate, counter.seed, counter.sparse, counter.byteLength],
            [Math.fround(vector.rate), BigInt(vector.seed), vector.sparse, bytes.length],
        );
        const empty = elementsOf(vector).length === 0;
        assert.deepEqual(
            [counter.type, counter.levels],
            empty ? [null, false] : [CLASS_NAMES.get(vector.class), vector.contents === "levels"],
        );
    });
}

for (const vector of vectors.counter_operations) {
    const [source] = vector.of;
    if (["at_least", "to_filter"].includes(vector.operation) && vectors.counters.some(({ name }) => name === source)) {
        test(`${vector.operation} ${vector.number ?? ""} of ${source}`, () => {
            const toFilter = () => counters.get(source).toFilter(vector.number);
            if (vector.refused) {
                assert.throws(toFilter, RangeError);
                return;
            }
            const bytes = toFilter().toBytes();
            assertRecorded(bytes, vector);
        });
    }
}

for (const { why, bytes } of vectors.accepted_counters) {
    test(`accepted: ${why}`, () => {
        for (const form of [Buffer.from(bytes, "hex"), `\\x${bytes}`, `\\x${bytes.toUpperCase()}`]) {
            assert.equal(String(BloomCounter.from(form)), `\\x${bytes}`);
        }
        assert.throws(() => BloomFilter.from(`\\x${bytes}`), /FormatError: .*BloomCounter\.from/);
    });
}

for (const { why, bytes } of vectors.refused_counters) {
    test(`refused: ${why}`, () => {
        const refusal = (error) => error instanceof FormatError && /^invalid bloomcounter: .{15}/.test(error.message);
        assert.throws(() => BloomCounter.from(Buffer.from(bytes, "hex")), refusal);
        assert.throws(() => BloomCounter.from(`\\x${bytes}`), refusal);
    });
}

for (const { why, bytes } of vectors.accepted) {
    test(`a filter is refused: ${why}`, () => {
        assert.throws(() => BloomCounter.from(`\\x${bytes}`), /FormatError: .*BloomFilter\.from/);
    });
}

// 1, 1, 2, 3 and 4, a worked example of doc/format.md.
const EXAMPLE =
    "\\x0101040314000000cdcccc3d00000000000000004000000000000000" +
    "2000000000000300100000000001010000000110000000000020010100000001";

test("the dense counter of doc/format.md", () => {
    const counter = BloomCounter.from(EXAMPLE);
    assert.deepEqual(
        [1, 2, 3, 4, 142, 5].map((value) => counter.count(value)),
        [2, 1, 1, 1, 1, 0],
    );
    assert.deepEqual(
        [1, 142, 5].map((value) => counter.has(value)),
        [true, true, false],
    );
    assertNear(counter.cardinality(), 3.991763927904623);
    assertNear(counter.total(), 5.078945193023064);
    assertNear(counter.falsePositiveRate(), 0.005077362060546875);
    const twice = counter.toFilter(2);
    assert.deepEqual([twice.has(1), twice.has(2), twice.type, twice.sparse], [true, false, "bigint", false]);
    assert.equal(JSON.stringify({ counter }), JSON.stringify({ counter: EXAMPLE }));
});

test("values that are not of the type are errors, also in an empty counter", () => {
    const empty = BloomCounter.from(header({ flags: 5, cls: 0 }));
    assert.deepEqual([empty.count("a"), empty.has(1), empty.type], [0, false, null]);
    for (const [counter, values] of [
        [BloomCounter.from(EXAMPLE), ["1", 1.5, true, {}, null, undefined]],
        [empty, [{}, 1.5, new Date(0), null, undefined]],
        [BloomCounter.from(empty.toBytes(), { type: "uuid" }), [1, "alice"]],
    ]) {
        for (const value of values) {
            assert.throws(() => counter.count(value), TypeError, String(value));
            assert.throws(() => counter.has(value), TypeError, String(value));
        }
    }
    assert.throws(() => empty.count("\ud800"), RangeError);
    const dates = BloomCounter.from(empty.toBytes(), { type: "date" });
    assert.deepEqual([dates.type, dates.count("2024-02-29"), dates.toFilter().type], ["date", 0, "date"]);
    assert.throws(() => BloomCounter.from(EXAMPLE, { type: "text" }), /TypeError: the counter holds .* bigint, not text/);
    assert.throws(() => BloomCounter.from(EXAMPLE, 4), /TypeError: the options are/);
});

test("arguments of other types are errors", () => {
    const counter = BloomCounter.from(EXAMPLE);
    for (const level of [0, 16, -1, 1.5, NaN, "1", 1n, null]) {
        assert.throws(() => counter.toFilter(level), /RangeError: the level must be a whole number from 1 to 15/);
    }
    for (const source of [null, undefined, 1, {}, counter, [...counter.toBytes()], new Uint16Array(30)]) {
        assert.throws(() => BloomCounter.from(source), /TypeError: a counter is read from/);
    }
    assert.throws(() => counter.equals(counter.toFilter()), TypeError);
    assert.throws(() => new BloomCounter(), TypeError);
    assert.throws(() => counter.toFilter().union(counter), TypeError);
});

test("a counter shares nothing with its bytes and its filters", () => {
    for (const source of [Uint8Array.from(Buffer.from(EXAMPLE.slice(2), "hex")), sparse([[7n, 3]])]) {
        const counter = BloomCounter.from(source);
        const text = String(counter);
        const shifted = new Uint8Array(source.length + 5);
        shifted.set(source, 5);
        assert.ok(BloomCounter.from(shifted.subarray(5)).equals(counter));
        assert.ok(BloomCounter.from(source.buffer).equals(counter));
        source.fill(255);
        counter.toBytes().fill(255);
        counter.toFilter().addAll([7, 8, 9]);
        assert.equal(String(counter), text);
    }
});

function sparse(numbers, { m = 512, width = 4, levels = false } = {}) {
    const flags = 5 + WIDTH_FLAGS[width] + 32 * Number(levels);
    return Uint8Array.from(Buffer.concat([header({ flags, m }), sparsePayload(new Map(numbers))]));
}

test("a filter has the hashes that read a level, the least and hashes of equal halves among them", () => {
    for (const shift of [0n, 32n]) {
        const hashes = Array.from({ length: 20 }, (_, i) => BigInt(i + (i > 9)) << shift);
        const counter = BloomCounter.from(sparse(hashes.map((hash, i) => [hash, 1 + (i % 15)])));
        for (let level = 1; level <= 15; level++) {
            const view = new DataView(counter.toFilter(level).toBytes().buffer, HEADER_BYTES);
            const got = Array.from({ length: view.byteLength / 8 }, (_, i) => view.getBigUint64(8 * i, true));
            const expected = hashes.filter((_, i) => 1 + (i % 15) >= level);
            assert.deepEqual(got, expected.length < 8 ? expected : got); // a filter of 512 bits has at most 7
        }
    }
});

test("every element of a large sparse counter reads its number, and no other value does", () => {
    const vector = { ...vectors.counters[0], series: [1, 5000], numbers: [1, 2, 3], width: 8, m: 2 ** 20, class: 20 };
    const counter = BloomCounter.from(write(vector));
    assert.ok(counter.sparse);
    for (let i = 1; i <= 5000; i++) {
        assert.equal(counter.count(i), 1 + ((i - 1) % 3));
        assert.equal(counter.count(-i), 0);
    }
});

for (const [name, bytes] of Object.entries({
    sparse: sparse([
        [1n, 3],
        [2n ** 63n, 15],
    ]),
    "sparse levels": sparse([[5n, 300]], { width: 16, levels: true }),
    dense: Uint8Array.from(Buffer.from(EXAMPLE.slice(2), "hex")),
    empty: header({ flags: 5, cls: 0 }),
    "without a size": header({ flags: 5, cls: 0, m: 0 }),
})) {
    test(`every truncation, extension and flipped bit of a counter: ${name}`, () => {
        const changes = [];
        for (let length = 0; length < bytes.length + 12; length++) {
            const changed = new Uint8Array(length);
            changed.set(bytes.subarray(0, length));
            changes.push(changed);
        }
        for (let bit = 0; bit < 8 * bytes.length; bit++) {
            const changed = bytes.slice();
            changed[bit >> 3] ^= 1 << (bit & 7);
            changes.push(changed);
        }
        let accepted = 0;
        for (const changed of changes) {
            let counter;
            try {
                counter = BloomCounter.from(changed);
            } catch (error) {
                assert.ok(error instanceof FormatError, String(error));
                continue;
            }
            accepted++;
            assert.deepEqual(counter.toBytes(), changed);
            assert.ok(counter.cardinality() >= 0 && counter.toFilter(counter.limit).cardinality() >= 0);
        }
        assert.ok(accepted > 0 && accepted < changes.length);
    });
}

test("sizes in the header alone cost neither time nor memory", () => {
    const before = process.memoryUsage().arrayBuffers;
    const random = new Random(7);
    for (let i = 0; i < 2000; i++) {
        const m = random.pick([2 ** 29, 2 ** 28, 2 ** 27, 2 ** 31 - 512, 2 ** 32 - 512]);
        const flags = random.pick([4, 5, 12, 13, 20, 21, 36, 37]);
        try {
            BloomCounter.from(header({ flags, m, cls: flags & 1 ? 0 : 20 })).count(i);
        } catch (error) {
            assert.ok(error instanceof FormatError, String(error));
        }
    }
    assert.ok(process.memoryUsage().arrayBuffers - before < 2 ** 26);
});
