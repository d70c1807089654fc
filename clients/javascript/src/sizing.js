// The number of hash functions and of bits of a filter, exactly as doc/format.md specifies them.

import { BLOCKED, MAX_BITS } from "./format.js";

const BLOCK_BITS = 512;
const UNITS = 1024; // c is in 1/1024 bit
const MAX_ITEMS = 2 ** 31; // more elements than bits is never possible
const EXACT_BITS = 4096; // above that, a single block has the approximate rate

// The blocked layout has the largest k whose bound is above p. The first is for k = 2.
const BOUNDS = [
    0.38141, 0.183453, 0.0890054, 0.0428406, 0.0203097, 0.00943578, 0.00427845, 0.00188661, 8.06525e-4, 3.33382e-4,
    1.3295e-4, 5.10606e-5, 1.88604e-5, 6.69393e-6, 2.28177e-6, 7.46925e-7, 2.3487e-7, 7.09883e-8, 2.06434e-8,
    5.78309e-9, 1.56304e-9,
];

export function hashFunctions(layout, p) {
    return layout === BLOCKED ? 1 + BOUNDS.filter((bound) => p < bound).length : Math.round(-Math.log2(p));
}

/** D(e) of doc/format.md for e = 0 .. k: the probability that k throws hit exactly e of the bits. */
function distinctHits(k, bits) {
    let d = [1, ...new Array(k).fill(0)];
    for (let i = 0; i < k; i++) {
        d = d.map((chance, e) => (chance * e) / bits + (e > 0 ? (d[e - 1] * (bits - e + 1)) / bits : 0));
    }
    return d;
}

/** The rate of a block by its number of elements, which is asked for in steps of 1 from 0. */
class ExactRates {
    #k;
    #bits;
    #hits;
    #covered; // C(e, t)
    #rates = [0];

    constructor(k, bits) {
        this.#k = k;
        this.#bits = bits;
        this.#hits = distinctHits(k, bits);
        this.#covered = [1, ...new Array(k).fill(0)];
    }

    at(j) {
        while (this.#rates.length <= j) {
            for (let i = 0; i < this.#k; i++) {
                this.#throwOnce();
            }
            this.#rates.push(this.#hits.reduce((sum, chance, e) => sum + chance * this.#covered[e], 0));
        }
        return this.#rates[j];
    }

    #throwOnce() {
        const covered = this.#covered;
        for (let e = this.#k; e > 0; e--) {
            covered[e] += (e / this.#bits) * (covered[e - 1] - covered[e]);
        }
    }
}

/** The second-order approximation for large blocks. */
function approximateRate(n, k, m) {
    const f = -Math.expm1(k * n * Math.log1p(-1 / m));
    const u = 1 - f;
    const c = Math.expm1(k * n * Math.log1p(-1 / (m - 1) ** 2));
    const variance = m * u * f + m * (m - 1) * u * u * c;
    return f ** k * Math.exp(((k * (k - 1)) / 2) * (variance / (m * f) ** 2));
}

function classicRate(n, k, m) {
    return m > EXACT_BITS ? approximateRate(n, k, m) : new ExactRates(k, m).at(n);
}

/** The least whole number from low to high that passes, where all above it do; high is not tried. */
function least(low, high, passes) {
    while (low < high) {
        const middle = Math.floor((low + high) / 2);
        if (passes(middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

function poissonMean(a, rates) {
    let chance = Math.exp(-a);
    let sum = 0;
    const last = a + 40 * Math.sqrt(a) + 40;
    for (let j = 1; j <= last; j++) {
        chance *= a / j;
        sum += chance * rates.at(j);
    }
    return sum;
}

function oneBlock(a, rates) {
    const j = Math.floor(a);
    return rates.at(j) + (a - j) * (rates.at(j + 1) - rates.at(j));
}

const constants = new Map();

/** c of doc/format.md: an element takes c / 1024 bits in the blocked layout. */
function unitsPerElement(p) {
    if (!constants.has(p)) {
        const rates = new ExactRates(hashFunctions(BLOCKED, p), BLOCK_BITS);
        const keeps = (c) => {
            const a = (BLOCK_BITS * UNITS) / c;
            return poissonMean(a, rates) <= p && oneBlock(a, rates) <= p;
        };
        constants.set(p, least(UNITS, 128 * UNITS, keeps));
    }
    return constants.get(p);
}

function blockedBits(n, p) {
    const blocks = Math.ceil((n * unitsPerElement(p)) / (BLOCK_BITS * UNITS));
    // Seven significant bits: so filters of 128 blocks or more fold by halves.
    const step = 2 ** Math.max(0, 25 - Math.clz32(blocks));
    return BLOCK_BITS * Math.ceil(blocks / step) * step;
}

function classicBits(n, p) {
    const k = hashFunctions(1, p);
    return 64 * least(1, MAX_BITS / 64 + 1, (words) => classicRate(n, k, 64 * words) <= p);
}

/** p in single precision, after a check of its range. */
export function checkedRate(p) {
    const rate = Math.fround(p);
    if (typeof p !== "number" || !(rate >= Math.fround(1e-9) && rate <= 0.5)) {
        throw new RangeError("the false-positive rate must be a number from 1e-9 to 0.5");
    }
    return rate;
}

/** The number of bits for n elements at the rate p. */
export function bitsFor(layout, n, p) {
    const m = n > MAX_ITEMS ? Infinity : layout === BLOCKED ? blockedBits(n, p) : classicBits(n, p);
    if (m > MAX_BITS) {
        throw new RangeError("the filter would have more than 2^31 bits");
    }
    return m;
}

/** The bits of a filter that sizes itself for n elements: a power of two of blocks. */
export function bitsForItself(n, p) {
    let m = BLOCK_BITS;
    while (m < MAX_BITS && blockedCapacity(m, p) < n) {
        m *= 2;
    }
    return m;
}

function blockedCapacity(m, p) {
    return Math.floor((UNITS * m) / unitsPerElement(p));
}
