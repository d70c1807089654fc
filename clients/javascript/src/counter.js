// The counter: numbers of 4, 8 or 16 bits where a filter has bits. This package only reads it.

import { hash, hash8, typeOfValue } from "./elements.js";
import { filterOf, LAYOUTS } from "./filter.js";
import { BLOCKED, COUNTER, decode, HEADER_BYTES, textOfBytes } from "./format.js";
import { HashSet } from "./hash-set.js";
import { declaredType, internal } from "./options.js";
import { found, locate } from "./positions.js";

export class BloomCounter {
    #parameters;
    #declared; // the type that the caller has named, otherwise null
    #bytes; // a copy of the whole value
    #view; // of the payload

    constructor(parameters, declared, bytes, secret) {
        if (secret !== internal) {
            throw new TypeError("use BloomCounter.from()");
        }
        this.#parameters = parameters;
        this.#declared = declared;
        this.#bytes = bytes;
        this.#view = new DataView(bytes.buffer, HEADER_BYTES);
    }

    static from(source, options = {}) {
        const { bytes, ...parameters } = decode(COUNTER, source);
        const declared = declaredType("counter", parameters.type, options);
        return new BloomCounter(parameters, declared, new Uint8Array(bytes), internal);
    }

    get layout() {
        return LAYOUTS[this.#parameters.layout];
    }

    get positions() {
        return this.#parameters.m;
    }

    get counterBits() {
        return this.#parameters.width;
    }

    get limit() {
        return 2 ** this.#parameters.width - 1;
    }

    get levels() {
        return this.#parameters.levels;
    }

    get hashFunctions() {
        return this.#parameters.k;
    }

    get requestedRate() {
        return this.#parameters.rate;
    }

    /** As in SQL: signed. */
    get seed() {
        return BigInt.asIntN(64, this.#parameters.seed);
    }

    get type() {
        return (this.#parameters.type ?? this.#declared)?.name ?? null;
    }

    get sparse() {
        return this.#parameters.sparse;
    }

    get byteLength() {
        return this.#bytes.length;
    }

    count(value) {
        const { type, layout, m, k, seed, sparse } = this.#parameters;
        hash(type ?? this.#declared ?? typeOfValue(value), value, seed);
        const [high, low] = [hash8.getUint32(0), hash8.getUint32(4)];
        if (sparse) {
            return this.#listed(high, low);
        }
        locate(layout, m, k, high, low);
        let least = this.limit;
        for (let i = 0; i < k; i++) {
            least = Math.min(least, this.#number(found[i]));
        }
        return least;
    }

    has(value) {
        return this.count(value) > 0;
    }

    /** The number of elements of a sparse counter. */
    #size() {
        return this.#view.byteLength / COUNTER.elementBytes;
    }

    /** The number of element i of a sparse counter, in the order of the hashes. */
    #numberOf(i) {
        return this.#view.getUint16(8 * this.#size() + 2 * i, true);
    }

    /** The number of a hash in a sparse counter, found by binary search. */
    #listed(high, low) {
        let [first, end] = [0, this.#size()];
        while (first < end) {
            const middle = Math.floor((first + end) / 2);
            const [lower, upper] = [this.#view.getUint32(8 * middle, true), this.#view.getUint32(8 * middle + 4, true)];
            const order = upper - high || lower - low;
            if (order === 0) {
                return this.#numberOf(middle);
            }
            [first, end] = order < 0 ? [middle + 1, end] : [first, middle];
        }
        return 0;
    }

    /** The number at a position of a dense counter. */
    #number(position) {
        switch (this.#parameters.width) {
            case 4:
                return (this.#view.getUint8(position >>> 1) >> (4 * (position & 1))) & 15;
            case 8:
                return this.#view.getUint8(position);
            default:
                return this.#view.getUint16(2 * position, true);
        }
    }

    toFilter(level = 1) {
        if (!Number.isInteger(level) || level < 1 || level > this.limit) {
            throw new RangeError(`the level must be a whole number from 1 to ${this.limit}`);
        }
        const { sparse, type } = this.#parameters;
        const declared = type ?? this.#declared;
        return filterOf(
            sparse
                ? { ...this.#parameters, type: null, declared, ...this.#hashesOf(level) }
                : { ...this.#parameters, declared, bits: this.#bitsOf(level) },
        );
    }

    /** The hashes of the elements of a sparse counter that read a level, with their type if there are any. */
    #hashesOf(level) {
        const hashes = new HashSet();
        for (let i = 0; i < this.#size(); i++) {
            if (this.#numberOf(i) >= level) {
                hashes.add(this.#view.getUint32(8 * i + 4, true), this.#view.getUint32(8 * i, true));
            }
        }
        return hashes.size > 0 ? { hashes, type: this.#parameters.type } : { hashes };
    }

    #bitsOf(level) {
        const bits = new Uint8Array(this.#parameters.m / 8);
        for (let position = 0; position < this.#parameters.m; position++) {
            if (this.#number(position) >= level) {
                bits[position >>> 3] |= 1 << (position & 7);
            }
        }
        return bits;
    }

    cardinality() {
        return this.sparse ? this.#size() : this.toFilter().cardinality();
    }

    falsePositiveRate() {
        return this.sparse ? this.#size() / 2 ** 64 : this.toFilter().falsePositiveRate();
    }

    total() {
        const { layout, m, k, levels, sparse } = this.#parameters;
        if (levels) {
            throw new TypeError("a counter of levels has no total");
        }
        let sum = 0;
        for (let i = 0; i < (sparse ? this.#size() : m); i++) {
            sum += sparse ? this.#numberOf(i) : this.#number(i);
        }
        const size = layout === BLOCKED ? 512 : m;
        const distinctPositions = -size * Math.expm1(k * Math.log1p(-1 / size)); // of an element, on average
        return sparse ? sum : sum / distinctPositions;
    }

    equals(other) {
        if (!(other instanceof BloomCounter)) {
            throw new TypeError("a counter is compared with a BloomCounter");
        }
        const [a, b] = [this.#bytes, other.#bytes];
        return a.length === b.length && a.every((byte, i) => byte === b[i]);
    }

    toBytes() {
        return this.#bytes.slice();
    }

    toString() {
        return textOfBytes(this.#bytes);
    }

    toJSON() {
        return this.toString();
    }
}
