// The golden vectors: hashes, sizes, filters, operations, and the bytes to accept and to refuse.

import assert from "node:assert/strict";
import test from "node:test";
import { BloomFilter, FormatError } from "../index.js";
import { CLASS_NAMES, golden, sha256, valueOf } from "./support.js";

const vectors = golden();
const filters = new Map();

function range([first, last]) {
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

function optionsOf(vector) {
    const { layout, rate, items, seed } = vector;
    return {
        layout,
        falsePositiveRate: rate,
        expectedItems: items ?? undefined,
        seed: BigInt(seed),
        type: CLASS_NAMES.get(vector.class),
    };
}

function build(vector) {
    const elements = vector.series ? range(vector.series) : vector.elements.map(valueOf);
    return BloomFilter.build(elements, optionsOf(vector));
}

function assertBytes(filter, vector) {
    const bytes = filter.toBytes();
    if (vector.bytes !== undefined) {
        assert.equal(String(filter), `\\x${vector.bytes}`);
    } else {
        assert.deepEqual([bytes.length, sha256(bytes)], [vector.length, vector.sha256]);
    }
}

function assertNear(got, expected) {
    const near = got === expected || Math.abs(got - expected) <= 1e-9 * Math.abs(expected);
    assert.ok(near, `${got} is not ${expected}`);
}

for (const vector of vectors.hashes) {
    test(`hash of ${vector.element}, seed ${vector.seed}`, () => {
        // A sparse filter of one element is its hash, little-endian.
        const seed = BigInt(vector.seed);
        const filter = BloomFilter.create(1000, { seed, type: CLASS_NAMES.get(vector.class) });
        const bytes = filter.add(valueOf(vector.element)).toBytes();
        assert.equal(Buffer.from(bytes.slice(28)).reverse().toString("hex"), vector.xxh64);
    });
}

for (const [layout, rate, items, k, m] of vectors.sizes) {
    test(`size: ${layout}, ${items} elements at ${rate}`, () => {
        const filter = BloomFilter.create(items, { layout, falsePositiveRate: rate });
        assert.deepEqual([filter.hashFunctions, filter.bits], [k, m]);
    });
}

for (const vector of vectors.filters) {
    test(`filter: ${vector.name}`, () => {
        const filter = build(vector);
        filters.set(vector.name, filter);
        assertBytes(filter, vector);
        const read = BloomFilter.from(filter.toBytes());
        assert.deepEqual(read.toBytes(), filter.toBytes());
        assert.deepEqual([read.bits, read.hashFunctions, read.sparse], [vector.m, vector.k, vector.sparse]);
        assertNear(read.cardinality(), Number(vector.cardinality));
        assertNear(read.falsePositiveRate(), vector.current_rate);
        const elements = vector.series ? range(vector.series) : vector.elements.map(valueOf);
        assert.ok(elements.every((element) => read.has(element)));
    });
}

/** An empty filter with the parameters of this one and m bits. */
function emptyOf(filter, m) {
    const header = filter.toBytes().slice(0, 28);
    header[2] = 1;
    new DataView(header.buffer).setUint32(20, m, true);
    return BloomFilter.from(header);
}

function operate(vector, operands) {
    const [a, b] = operands;
    switch (vector.operation) {
        case "union":
            return a.union(b);
        case "intersection":
            return a.intersection(b);
        case "union_agg":
            return operands.reduce((x, y) => x.union(y));
        case "fold_like":
            return a.foldTo(b);
        case "fold":
            return a.foldTo(emptyOf(a, vector.m));
        default:
            throw new Error(`unknown operation ${vector.operation}`);
    }
}

for (const vector of vectors.operations) {
    test(`${vector.operation} of ${vector.of.join(" and ")}${vector.m ? ` to ${vector.m}` : ""}`, () => {
        const operands = vector.of.map((name) => filters.get(name));
        const before = operands.map(String);
        if (vector.refused) {
            assert.throws(() => operate(vector, operands), /^(RangeError|TypeError): (the filters|\d+ bits)/);
        } else {
            assertBytes(operate(vector, operands), vector);
        }
        assert.deepEqual(operands.map(String), before);
    });
}

for (const { why, bytes } of vectors.accepted) {
    test(`accepted: ${why}`, () => {
        assert.equal(String(BloomFilter.from(Buffer.from(bytes, "hex"))), `\\x${bytes}`);
        assert.equal(String(BloomFilter.from(`\\x${bytes.toUpperCase()}`)), `\\x${bytes}`);
    });
}

for (const { why, bytes } of vectors.refused) {
    test(`refused: ${why}`, () => {
        const refusal = (error) => error instanceof FormatError && /^invalid bloomfilter: .{15}/.test(error.message);
        assert.throws(() => BloomFilter.from(Buffer.from(bytes, "hex")), refusal);
        assert.throws(() => BloomFilter.from(`\\x${bytes}`), refusal);
    });
}

for (const { name, bytes } of vectors.counters.filter((vector) => vector.bytes)) {
    test(`the counter is refused by name: ${name}`, () => {
        assert.throws(() => BloomFilter.from(`\\x${bytes}`), /FormatError: .*bloomcounter/);
    });
}
