import { BLOCKED, decode, encodeHeader, FILTER, fitsSparse, HEADER_BYTES, MAX_BITS, textOfBytes } from "./format.js";
import { typeNamed, typeOfValue, describe, hash, hash8 } from "./elements.js";
import { bitsFor, bitsForItself, checkedRate, hashFunctions } from "./sizing.js";
import { HashSet } from "./hash-set.js";
import { checkOptions, declaredType, internal } from "./options.js";
import { found, locate } from "./positions.js";
import * as bitmap from "./bitmap.js";

export const LAYOUTS = ["blocked", "classic"];
const OPTIONS = ["falsePositiveRate", "layout", "seed", "type"];
const MAX_HASHES_OF_SELF_SIZED = 2 ** 24;

function checkedItems(items) {
    if (typeof items !== "number" || !(items >= 1)) {
        throw new RangeError("expectedItems must be a number of at least 1");
    }
    return Math.ceil(items);
}

function checkedLayout(layout) {
    const number = LAYOUTS.indexOf(layout);
    if (number < 0) {
        throw new RangeError('layout must be "blocked" or "classic"');
    }
    return number;
}

/** A seed is signed in SQL and unsigned in the bytes. Both are accepted. */
function checkedSeed(seed) {
    const valid = typeof seed === "bigint" || Number.isSafeInteger(seed);
    const number = valid ? BigInt(seed) : 0n;
    if (!valid || number < -(2n ** 63n) || number >= 2n ** 64n) {
        throw new RangeError("seed must be a bigint of 64 bits or a whole number of at most 2^53 - 1");
    }
    return BigInt.asUintN(64, number);
}

export class BloomFilter {
    #layout;
    #k;
    #type; // null while nothing has been added
    #declared; // the type that the first element will have, if the caller has said it; otherwise null
    #rate;
    #seed;
    #m;
    #hashes; // HashSet of a sparse filter, otherwise null
    #bits; // Uint8Array of a dense filter, otherwise null

    constructor(parameters, secret) {
        if (secret !== internal) {
            throw new TypeError("use BloomFilter.from(), BloomFilter.create() or BloomFilter.build()");
        }
        this.#layout = parameters.layout;
        this.#k = parameters.k;
        this.#type = parameters.type ?? null;
        this.#declared = parameters.declared ?? null;
        this.#rate = parameters.rate;
        this.#seed = parameters.seed;
        this.#m = parameters.m;
        this.#bits = parameters.bits ?? null;
        this.#hashes = this.#bits ? null : (parameters.hashes ?? new HashSet());
        if (this.#hashes?.size > 0 && !fitsSparse(this.#hashes.size, this.#m)) {
            this.#becomeDense();
        }
    }

    static from(source, options = {}) {
        const { bytes, sparse, ...parameters } = decode(FILTER, source);
        parameters.declared = declaredType("filter", parameters.type, options);
        const payload = bytes.subarray(HEADER_BYTES);
        parameters[sparse ? "hashes" : "bits"] = sparse ? HashSet.read(payload) : new Uint8Array(payload);
        return new BloomFilter(parameters, internal);
    }

    static create(expectedItems, options = {}) {
        checkOptions(options, OPTIONS);
        const { falsePositiveRate = 0.01, layout = "blocked", seed = 0n, type } = options;
        const items = checkedItems(expectedItems);
        const rate = checkedRate(falsePositiveRate);
        const number = checkedLayout(layout);
        const m = bitsFor(number, items, rate);
        const k = hashFunctions(number, rate);
        const declared = type === undefined ? null : typeNamed(type);
        return new BloomFilter({ layout: number, k, declared, rate, seed: checkedSeed(seed), m }, internal);
    }

    static build(elements, options = {}) {
        checkOptions(options, ["expectedItems", ...OPTIONS]);
        const { expectedItems, ...others } = options;
        const sized = expectedItems !== undefined;
        if (!sized && (others.layout ?? "blocked") !== "blocked") {
            throw new RangeError("a filter without expectedItems sizes itself, and only in the blocked layout");
        }
        const filter = BloomFilter.create(sized ? expectedItems : 1, others);
        if (!sized) {
            filter.#m = MAX_BITS;
        }
        for (const element of elements) {
            filter.#insert(element, sized ? Infinity : MAX_HASHES_OF_SELF_SIZED);
        }
        return sized ? filter : filter.#sizedForItself();
    }

    get layout() {
        return LAYOUTS[this.#layout];
    }

    get bits() {
        return this.#m;
    }

    get hashFunctions() {
        return this.#k;
    }

    get requestedRate() {
        return this.#rate;
    }

    /** As in SQL: signed. */
    get seed() {
        return BigInt.asIntN(64, this.#seed);
    }

    get type() {
        return (this.#type ?? this.#declared)?.name ?? null;
    }

    get sparse() {
        return this.#hashes !== null;
    }

    get byteLength() {
        return HEADER_BYTES + (this.#hashes ? 8 * this.#hashes.size : this.#m / 8);
    }

    #nblocks() {
        return this.#layout === BLOCKED ? this.#m / 512 : 1;
    }

    #blockBits() {
        return this.#layout === BLOCKED ? 512 : this.#m;
    }

    #hash(type, value) {
        hash(type, value, this.#seed);
    }

    #locate(high, low) {
        locate(this.#layout, this.#m, this.#k, high, low);
    }

    has(value) {
        // Also if there is nothing to compare with: a value of another type is an error, as in a filter with elements.
        this.#hash(this.#type ?? this.#declared ?? typeOfValue(value), value);
        return this.#type !== null && this.#hasHash(hash8.getUint32(0), hash8.getUint32(4));
    }

    #hasHash(high, low) {
        if (this.#hashes) {
            return this.#hashes.has(high, low);
        }
        this.#locate(high, low);
        return bitmap.allSet(this.#bits, this.#k);
    }

    add(value) {
        if (this.#m === 0) {
            throw new RangeError("the filter has no size; create one with BloomFilter.create()");
        }
        this.#insert(value, Infinity);
        return this;
    }

    addAll(values) {
        for (const value of values) {
            this.add(value);
        }
        return this;
    }

    #insert(value, maxHashes) {
        const type = this.#type ?? this.#declared ?? typeOfValue(value);
        this.#hash(type, value);
        this.#type = type;
        this.#insertHash(hash8.getUint32(0), hash8.getUint32(4), maxHashes);
    }

    #insertHash(high, low, maxHashes) {
        if (this.#hashes) {
            this.#hashes.add(high, low);
            if (!fitsSparse(this.#hashes.size, this.#m) || this.#hashes.size > maxHashes) {
                this.#becomeDense();
            }
            return;
        }
        this.#locate(high, low);
        bitmap.setAll(this.#bits, this.#k);
    }

    #becomeDense() {
        this.#bits = this.#bitmap();
        this.#hashes = null;
    }

    /** The bits of a dense filter, or those that the hashes of a sparse one set. */
    #bitmap() {
        if (this.#bits) {
            return this.#bits;
        }
        const bits = new Uint8Array(this.#m / 8);
        this.#hashes.forEach((high, low) => {
            this.#locate(high, low);
            bitmap.setAll(bits, this.#k);
        });
        return bits;
    }

    /** The filter at m bits, sparse where that is allowed. m must divide the size of a dense filter. */
    #resized(m) {
        const parameters = { ...this.#parameters(), m };
        if (this.#bits) {
            return new BloomFilter({ ...parameters, bits: bitmap.fold(this.#bits, m / 8) }, internal);
        }
        return new BloomFilter({ ...parameters, hashes: this.#hashes.copy() }, internal);
    }

    #sizedForItself() {
        if (this.#type === null) {
            return new BloomFilter({ ...this.#parameters(), m: 0 }, internal);
        }
        return this.#resized(bitsForItself(Math.floor(this.cardinality()), this.#rate));
    }

    #parameters() {
        return {
            layout: this.#layout,
            k: this.#k,
            type: this.#type,
            declared: this.#declared,
            rate: this.#rate,
            seed: this.#seed,
            m: this.#m,
        };
    }

    copy() {
        const own = this.#bits ? { bits: this.#bits.slice() } : { hashes: this.#hashes.copy() };
        return new BloomFilter({ ...this.#parameters(), ...own }, internal);
    }

    toBytes() {
        const payloadBytes = this.byteLength - HEADER_BYTES;
        const { bytes, payload } = encodeHeader({ ...this.#parameters(), sparse: this.sparse }, payloadBytes);
        if (this.#hashes) {
            this.#hashes.writeTo(payload);
        } else {
            payload.set(this.#bits);
        }
        return bytes;
    }

    toString() {
        return textOfBytes(this.toBytes());
    }

    toJSON() {
        return this.toString();
    }

    /** What differs from another filter, except its size; or undefined. */
    #mismatch(other) {
        const differences = [
            ["layouts", this.layout, other.layout],
            ["numbers of hash functions", this.#k, other.#k],
            ["seeds", this.seed, other.seed],
        ];
        const [what, own, others] = differences.find(([, a, b]) => a !== b) ?? [];
        return what && `the filters have different ${what}, ${own} and ${others}`;
    }

    #checkType(other) {
        if (this.type && other.type && this.type !== other.type) {
            throw new TypeError(`the filters hold elements of types ${this.type} and ${other.type}`);
        }
    }

    /** The parameters of a combination, or an error. Neither filter is without a size. */
    #combined(other) {
        const why =
            this.#mismatch(other) ??
            (this.#m === other.#m ? undefined : `the filters have different sizes, ${this.#m} and ${other.#m} bits`);
        if (why) {
            throw new RangeError(why);
        }
        this.#checkType(other);
        const rate = Math.min(this.#rate, other.#rate);
        const [type, declared] = [this.#type ?? other.#type, this.#declared ?? other.#declared];
        return { ...this.#parameters(), type, declared, rate };
    }

    /** The first of two filters without a size, in the order of doc/format.md. */
    #firstOf(other) {
        const order = this.#rate - other.#rate || this.#k - other.#k || Number(this.#seed > other.#seed);
        return (order > 0 ? other : this).copy();
    }

    /** A result of this filter and another. While it is empty, it reads values as the type that either declares. */
    #declaring(other, result) {
        this.#checkType(other);
        result.#declared ??= this.#declared ?? other.#declared;
        return result;
    }

    union(other) {
        checkFilter(other);
        if (this.#m === 0 || other.#m === 0) {
            const result = this.#m === other.#m ? this.#firstOf(other) : (this.#m === 0 ? other : this).copy();
            return this.#declaring(other, result);
        }
        const parameters = this.#combined(other);
        if (!this.#hashes || !other.#hashes) {
            return new BloomFilter({ ...parameters, bits: bitmap.or(this.#bitmap(), other.#bitmap()) }, internal);
        }
        const result = new BloomFilter({ ...parameters, hashes: this.#hashes.copy() }, internal);
        other.#hashes.forEach((high, low) => result.#insertHash(high, low, Infinity));
        return result;
    }

    intersection(other) {
        checkFilter(other);
        if (this.#m === 0 || other.#m === 0) {
            const sized = this.#m === 0 ? other : this;
            const result = this.#m === other.#m ? this.#firstOf(other) : new BloomFilter(sized.#parameters(), internal);
            return this.#declaring(other, result);
        }
        const parameters = this.#combined(other);
        if (!this.#hashes && !other.#hashes) {
            return new BloomFilter({ ...parameters, bits: bitmap.and(this.#bits, other.#bits) }, internal);
        }
        const [listed, asked] = this.#hashes ? [this, other] : [other, this];
        const hashes = new HashSet();
        listed.#hashes.forEach((high, low) => {
            if (asked.#hasHash(high, low)) {
                hashes.add(high, low);
            }
        });
        return new BloomFilter({ ...parameters, hashes }, internal);
    }

    foldTo(like) {
        checkFilter(like);
        if (like.#m === 0) {
            return this.#declaring(like, this.copy());
        }
        if (this.#m === 0) {
            return this.#declaring(like, new BloomFilter({ ...like.#parameters(), type: null }, internal));
        }
        const foldable = this.#hashes || (this.#layout === BLOCKED && this.#m % like.#m === 0);
        const why =
            this.#mismatch(like) ??
            (foldable || this.#m === like.#m ? undefined : `${this.#m} bits do not fold to ${like.#m}`);
        if (why) {
            throw new RangeError(why);
        }
        const folded = this.#declaring(like, this.#resized(like.#m));
        folded.#rate = like.#rate;
        return folded;
    }

    cardinality() {
        if (this.#hashes) {
            return this.#hashes.size;
        }
        const share = bitmap.count(this.#bits) / this.#m;
        // The mean share of a block's bits that an element sets.
        const hit = -Math.expm1(this.#k * Math.log1p(-1 / this.#blockBits()));
        return share === 1 ? Infinity : Math.log1p(-share) / Math.log1p(-hit / this.#nblocks()) + 0;
    }

    falsePositiveRate() {
        if (this.#hashes) {
            return this.#hashes.size / 2 ** 64;
        }
        const blocks = this.#nblocks();
        return bitmap.meanPower(this.#bits, this.#bits.length / blocks, this.#k);
    }

    /** Both filters at one size, for estimates. A sparse filter has any size; of two dense ones the larger folds. */
    #atOneSize(other) {
        checkFilter(other);
        const [small, large] = this.#m <= other.#m ? [this, other] : [other, this];
        const foldable = this.#layout === BLOCKED && small.#m > 0 && large.#m % small.#m === 0;
        if (small.#m === large.#m || !foldable || this.#mismatch(other)) {
            return [this, other]; // union() says why they do not combine
        }
        const changed = small.#hashes ? small : large;
        const kept = changed === small ? large : small;
        const resized = changed.#resized(kept.#m);
        return changed === this ? [resized, kept] : [kept, resized];
    }

    /** The cardinalities of both filters and of their union, which is exact for two sparse filters. */
    #cardinalities(other) {
        const [a, b] = this.#atOneSize(other);
        const union =
            a.#hashes && b.#hashes
                ? a.cardinality() + b.cardinality() - a.intersection(b).cardinality()
                : a.union(b).cardinality();
        // A sparse filter that gets bits for this comparison still knows its number of elements.
        return [(this.#hashes ? this : a).cardinality(), (other.#hashes ? other : b).cardinality(), union];
    }

    unionCardinality(other) {
        return this.#cardinalities(other)[2];
    }

    intersectionCardinality(other) {
        return shared(...this.#cardinalities(other));
    }

    jaccard(other) {
        const cardinalities = this.#cardinalities(other);
        return cardinalities[2] === 0 ? 1 : shared(...cardinalities) / cardinalities[2];
    }

    /** True if both filters have the same bytes. */
    equals(other) {
        checkFilter(other);
        const [a, b] = [this.toBytes(), other.toBytes()];
        return a.length === b.length && a.every((byte, i) => byte === b[i]);
    }

    positions(value) {
        const type = this.#type ?? this.#declared ?? typeOfValue(value);
        if (this.#m === 0) {
            throw new RangeError("the filter has no size, so no value has positions in it");
        }
        this.#hash(type, value);
        this.#locate(hash8.getUint32(0), hash8.getUint32(4));
        return Array.from(found.subarray(0, this.#k));
    }

    bit(position) {
        if (!this.#bits) {
            throw new TypeError("a sparse filter has hashes and no bits");
        }
        if (!Number.isInteger(position) || position < 0 || position >= this.#m) {
            throw new RangeError(`the filter has bits 0 to ${this.#m - 1}`);
        }
        return ((this.#bits[Math.floor(position / 8)] >> (position % 8)) & 1) === 1;
    }
}

/** The filter with these parameters: of bits, or of hashes, which become bits where they have to. */
export function filterOf(parameters) {
    return new BloomFilter(parameters, internal);
}

/** The estimate of the intersection: it is no less than nothing, and no more than the smaller set. */
function shared(a, b, union) {
    return Number.isFinite(union) ? Math.min(a, b, Math.max(0, a + b - union)) : NaN;
}

function checkFilter(other) {
    if (!(other instanceof BloomFilter)) {
        throw new TypeError(`a filter combines with a BloomFilter, not with ${describe(other)}`);
    }
}
