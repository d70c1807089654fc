// The bits of a dense filter: bit b is bit b mod 8 of byte b div 8. A bitmap has its own buffer, a multiple of 8 bytes.

import { found } from "./positions.js";

/** True if the bits at the first k positions of found are set. */
export function allSet(bits, k) {
    for (let i = 0; i < k; i++) {
        const position = found[i];
        if ((bits[position >>> 3] & (1 << (position & 7))) === 0) {
            return false;
        }
    }
    return true;
}

export function setAll(bits, k) {
    for (let i = 0; i < k; i++) {
        const position = found[i];
        bits[position >>> 3] |= 1 << (position & 7);
    }
}

function words(bits) {
    return new Uint32Array(bits.buffer, bits.byteOffset, bits.length / 4);
}

function combine(a, b, operation) {
    const result = new Uint8Array(a.length);
    const [left, right, to] = [words(a), words(b), words(result)];
    for (let i = 0; i < to.length; i++) {
        to[i] = operation(left[i], right[i]);
    }
    return result;
}

export const or = (a, b) => combine(a, b, (x, y) => x | y);
export const and = (a, b) => combine(a, b, (x, y) => x & y);

/** Each run of neighbouring blocks becomes their OR. */
export function fold(bits, bytes) {
    const run = bits.length / bytes;
    const [from, result] = [words(bits), new Uint8Array(bytes)];
    const to = words(result);
    for (let block = 0; block < from.length / 16; block++) {
        const target = 16 * Math.floor(block / run);
        for (let i = 0; i < 16; i++) {
            to[target + i] |= from[16 * block + i];
        }
    }
    return result;
}

function ones(word) {
    word -= (word >>> 1) & 0x55555555;
    word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
    return Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

function countWords(view, start, end) {
    let sum = 0;
    for (let i = start; i < end; i++) {
        sum += ones(view[i]);
    }
    return sum;
}

/** The number of bits that are set. */
export function count(bits) {
    return countWords(words(bits), 0, bits.length / 4);
}

/** The mean over blocks of (share of the block's bits that are set)^k. */
export function meanPower(bits, blockBytes, k) {
    const view = words(bits);
    const step = blockBytes / 4;
    let sum = 0;
    for (let start = 0; start < view.length; start += step) {
        sum += (countWords(view, start, start + step) / (8 * blockBytes)) ** k;
    }
    return sum / (view.length / step);
}
