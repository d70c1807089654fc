// The bytes of a filter, as in doc/format.md: reading with every check that the server makes, and writing.

import { typeOfClass } from "./elements.js";

export const BLOCKED = 0;
export const CLASSIC = 1;
export const MAX_BITS = 2 ** 31;
const HEADER_BYTES = 28;
const SPARSE_FLAG = 1;
const STATE_FLAG = 2;
const COUNTER_FLAG = 4;

/** Bytes or text that are not a bloomfilter. The message says why. */
export class FormatError extends Error {
    get name() {
        return "FormatError";
    }
}

function check(condition, why) {
    if (!condition) {
        throw new FormatError(`invalid bloomfilter: ${why}`);
    }
}

const DIGITS = new Uint8Array(128).fill(255);
for (const [value, digit] of [..."0123456789abcdef"].entries()) {
    DIGITS[digit.charCodeAt(0)] = DIGITS[digit.toUpperCase().charCodeAt(0)] = value;
}

const ASCII_DIGITS = new TextEncoder().encode("0123456789abcdef");

/** The bytes of the text form: \x and hexadecimal digits. */
export function bytesOfText(text) {
    check(text.startsWith("\\x"), "the text does not begin with \\x");
    check(text.length % 2 === 0, "the number of hexadecimal digits is odd");
    const bytes = new Uint8Array(text.length / 2 - 1);
    for (let i = 0; i < bytes.length; i++) {
        // A character outside ASCII is outside DIGITS, and undefined becomes 0 in |.
        const high = text.charCodeAt(2 * i + 2);
        const low = text.charCodeAt(2 * i + 3);
        const value = (DIGITS[high & 127] << 4) | DIGITS[low & 127];
        check((high | low) < 128 && value < 256 && DIGITS[low] < 16, "the text has a character that is not a digit");
        bytes[i] = value;
    }
    return bytes;
}

/** The text form. Engines keep each += as an object, so a string built that way takes 32 times the bytes. */
export function textOfBytes(bytes) {
    const text = new Uint8Array(2 + 2 * bytes.length);
    text.set(new TextEncoder().encode("\\x"));
    for (let i = 0; i < bytes.length; i++) {
        text[2 * i + 2] = ASCII_DIGITS[bytes[i] >> 4];
        text[2 * i + 3] = ASCII_DIGITS[bytes[i] & 15];
    }
    return new TextDecoder().decode(text);
}

/** True if n hashes take less room than m bits, so that a filter with these hashes is sparse. */
export function fitsSparse(n, m) {
    return 8 * n < m / 8;
}

function checkFlags(flags) {
    check(!(flags & COUNTER_FLAG), "these are the bytes of a bloomcounter, which this package does not read");
    check(!(flags & STATE_FLAG), "this is the state of an aggregate, not a value");
    check(flags <= SPARSE_FLAG, `flags ${flags} are unknown`);
}

function checkSize(layout, m, high) {
    check(high === 0 && m <= MAX_BITS, "it has more than 2^31 bits");
    const unit = layout === BLOCKED ? 512 : 64;
    check(m % unit === 0, `the number of bits, ${m}, is not a multiple of ${unit}`);
}

function checkDense(m, cls, length) {
    check(m > 0, "a filter without a size is dense");
    check(length === m / 8, `${m} bits take ${m / 8} bytes, not ${length}`);
    check(cls !== 0, "a dense filter has no element type");
}

function checkSparse(m, layout, cls, length) {
    check(length % 8 === 0, `${length} bytes of hashes are not a multiple of 8`);
    if (m === 0) {
        check(
            length === 0 && layout === BLOCKED && cls === 0,
            "it has no size, but is classic or has a type or elements",
        );
    } else {
        check(fitsSparse(length / 8, m), "it is sparse with so many hashes that it has to be dense");
    }
    check(cls !== 0 || length === 0, "it has elements, but no element type");
}

function checkAscending(view) {
    for (let offset = HEADER_BYTES + 8; offset < view.byteLength; offset += 8) {
        const before = view.getUint32(offset - 4, true);
        const high = view.getUint32(offset + 4, true);
        const ascending =
            before < high || (before === high && view.getUint32(offset - 8, true) < view.getUint32(offset, true));
        check(ascending, "its hashes are not in strictly ascending order");
    }
}

/** Reads and checks bytes. The payload is a view of them. */
export function decode(bytes) {
    check(bytes.length >= HEADER_BYTES, `${bytes.length} bytes are less than the header of ${HEADER_BYTES}`);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const [version, layout, flags, k] = bytes;
    check(version === 1, `format version ${version} is not 1`);
    check(layout === BLOCKED || layout === CLASSIC, `layout ${layout} is unknown`);
    checkFlags(flags);
    check(k >= 1 && k <= 32, `the number of hash functions, ${k}, is not 1 to 32`);
    const cls = view.getUint32(4, true);
    const type = cls === 0 ? null : typeOfClass(cls);
    check(type !== undefined, `element class ${cls} is unknown`);
    const rate = view.getFloat32(8, true);
    check(rate > 0 && rate < 1, `the requested rate, ${rate}, is not between 0 and 1`);
    const m = view.getUint32(20, true);
    checkSize(layout, m, view.getUint32(24, true));
    const sparse = flags === SPARSE_FLAG;
    const payload = bytes.subarray(HEADER_BYTES);
    if (sparse) {
        checkSparse(m, layout, cls, payload.length);
        checkAscending(view);
    } else {
        checkDense(m, cls, payload.length);
    }
    return { layout, k, type, rate, seed: view.getBigUint64(12, true), m, sparse, payload };
}

/** New bytes with the header, and room for the payload. */
export function encodeHeader({ layout, k, type, rate, seed, m, sparse }, payloadBytes) {
    const bytes = new Uint8Array(HEADER_BYTES + payloadBytes);
    const view = new DataView(bytes.buffer);
    bytes.set([1, layout, sparse ? SPARSE_FLAG : 0, k]);
    view.setUint32(4, type ? type.oid : 0, true);
    view.setFloat32(8, rate, true);
    view.setBigUint64(12, seed, true);
    view.setUint32(20, m, true);
    return { bytes, payload: bytes.subarray(HEADER_BYTES) };
}
