// What the tests share: values in SQL and in JavaScript, and reproducible random numbers.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

export const CLASS_NAMES = new Map([
    [16, "boolean"],
    [17, "bytea"],
    [20, "bigint"],
    [25, "text"],
    [701, "double precision"],
    [774, "macaddr8"],
    [829, "macaddr"],
    [869, "inet"],
    [1042, "char(n)"],
    [1082, "date"],
    [1083, "time"],
    [1114, "timestamp"],
    [1184, "timestamptz"],
    [1186, "interval"],
    [1266, "timetz"],
    [1700, "numeric"],
    [2950, "uuid"],
]);

export function golden() {
    return JSON.parse(readFileSync(new URL("../../../test/golden/vectors.json", import.meta.url), "utf8"));
}

export function sha256(bytes) {
    return createHash("sha256").update(bytes).digest("hex");
}

/** An interval such as "1 month -1 hours" as an object. */
export function interval(text) {
    const fields = {};
    for (const [, number, unit] of text.matchAll(/(-?[\d.]+) ([a-z]+?)s?(?: |$)/g)) {
        fields[`${unit}s`] = Number(number);
    }
    return fields;
}

const READERS = {
    smallint: Number,
    integer: Number,
    bigint: BigInt,
    positive: Number,
    real: (text) => Math.fround(Number(text)),
    "double precision": Number,
    bytea: (text) => Uint8Array.from(Buffer.from(text.slice(2), "hex")),
    boolean: (text) => text === "true",
    interval,
};

/** The value of a SQL literal such as 'alice'::text. */
export function valueOf(literal) {
    const [, quoted, type] = /^'(.*)'::(.*)$/s.exec(literal);
    const text = quoted.replaceAll("''", "'");
    return (READERS[type] ?? String)(text);
}

/** The positions of a hash by doc/format.md, on BigInts. */
export function modelPositions(hash, { layout, m, k }) {
    const [size, blocks] = layout === "blocked" ? [512n, BigInt(m / 512)] : [BigInt(m), 1n];
    const block = ((hash >> 32n) * blocks) >> 32n;
    let y = hash;
    return Array.from({ length: k }, () => {
        y = BigInt.asUintN(64, y * 0x9e3779b97f4a7c15n);
        return Number(block * size + ((y * size) >> 64n));
    });
}

export const HEADER_BYTES = 28;

/** The header of a filter or a counter. */
export function header({ layout = 0, flags = 0, k = 6, cls = 20, rate = 0.01, seed = 0n, m = 512 }) {
    const bytes = new Uint8Array(HEADER_BYTES);
    const view = new DataView(bytes.buffer);
    bytes.set([1, layout, flags, k]);
    view.setUint32(4, cls, true);
    view.setFloat32(8, rate, true);
    view.setBigUint64(12, seed, true);
    view.setUint32(20, m, true);
    return bytes;
}

/** Random numbers from a seed: mulberry32. */
export class Random {
    #state;

    constructor(seed) {
        this.#state = seed;
    }

    /** A whole number from 0 to 2^32 - 1. */
    word() {
        this.#state = (this.#state + 0x6d2b79f5) | 0;
        let t = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
        t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
        return (t ^ (t >>> 14)) >>> 0;
    }

    below(n) {
        return Math.floor((this.word() / 2 ** 32) * n);
    }

    pick(list) {
        return list[this.below(list.length)];
    }

    bytes(length) {
        return Uint8Array.from({ length }, () => this.below(256));
    }

    word64() {
        return (BigInt(this.word()) << 32n) | BigInt(this.word());
    }
}
