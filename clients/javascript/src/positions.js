// From a hash to the positions of its bits, as in doc/format.md. All numbers are halves of 32 bits or exact doubles:
// 64-bit arithmetic on BigInts takes several times as long.

import { BLOCKED } from "./format.js";

/** The positions that the last call of locate() found. */
export const found = new Uint32Array(32);

// y * G modulo 2^64, for G = 0x9E3779B97F4A7C15. Both 16-bit parts of G's low half are less than 2^15, so each partial
// product is less than 2^31, and the sum of the middle ones less than 2^32.
function highOfProduct(high, low) {
    const a = low >>> 16;
    const b = low & 0xffff;
    const middle = (Math.imul(a, 0x7c15) + Math.imul(b, 0x7f4a) + (Math.imul(b, 0x7c15) >>> 16)) >>> 16;
    return (Math.imul(a, 0x7f4a) + middle + Math.imul(high, 0x7f4a7c15) + Math.imul(low, 0x9e3779b9)) >>> 0;
}

/** floor(x * n / 2^32) for x < 2^32 and n <= 2^31. The product itself may exceed 2^53. */
function scale(x, n) {
    return Math.floor((x * (n >>> 16) + Math.floor((x * (n & 0xffff)) / 65536)) / 65536);
}

/** floor((high * 2^32 + low) * n / 2^64) for n <= 2^31. */
function scale64(high, low, n) {
    const lower = high * (n & 0xffff) + scale(low, n);
    return Math.floor((high * (n >>> 16) + Math.floor(lower / 65536)) / 65536);
}

/** The block of a hash, in a blocked filter of m bits. */
function blockOf(high, m) {
    return scale(high, m / 512);
}

function locateInBlock(first, k, high, low) {
    for (let i = 0; i < k; i++) {
        high = highOfProduct(high, low);
        low = Math.imul(low, 0x7f4a7c15);
        found[i] = first + (high >>> 23);
    }
}

function locateAnywhere(m, k, high, low) {
    for (let i = 0; i < k; i++) {
        high = highOfProduct(high, low);
        low = Math.imul(low, 0x7f4a7c15) >>> 0;
        found[i] = scale64(high, low, m);
    }
}

/** Puts the k positions of a hash into found. */
export function locate(layout, m, k, high, low) {
    if (layout === BLOCKED) {
        locateInBlock(blockOf(high, m) * 512, k, high, low);
    } else {
        locateAnywhere(m, k, high, low);
    }
}
