// The bytes of filters and counters, as in doc/format.md: reading with every check that the server makes, and writing.

import { describe, tagOf, typeOfClass } from "./elements.js";

export const BLOCKED = 0;
export const CLASSIC = 1;
export const MAX_BITS = 2 ** 31;
export const HEADER_BYTES = 28;
const [SPARSE_FLAG, STATE_FLAG, COUNTER_FLAG, LEVELS_FLAG] = [1, 2, 4, 32];
const WIDTHS = new Map([
    [0, 4],
    [8, 8],
    [16, 16],
]);

/** The two types: their names, and the bytes of an element in a sparse payload. */
export const FILTER = { name: "bloomfilter", noun: "filter", elementBytes: 8 };
export const COUNTER = { name: "bloomcounter", noun: "counter", elementBytes: 10 };

/** Bytes or text that are not a value of the type. The message says why. */
export class FormatError extends Error {
    get name() {
        return "FormatError";
    }
}

/** A function that throws why the bytes are not a value of the type. */
function checkOf({ name }) {
    return (condition, why) => {
        if (!condition) {
            throw new FormatError(`invalid ${name}: ${why}`);
        }
    };
}

const DIGITS = new Uint8Array(128).fill(255);
for (const [value, digit] of [..."0123456789abcdef"].entries()) {
    DIGITS[digit.charCodeAt(0)] = DIGITS[digit.toUpperCase().charCodeAt(0)] = value;
}

const ASCII_DIGITS = new TextEncoder().encode("0123456789abcdef");

/** The bytes of the text form: \x and hexadecimal digits. */
function bytesOfText(text, check) {
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

/** The bytes of a value in any of its forms. */
function bytesOf(kind, source) {
    if (typeof source === "string") {
        return bytesOfText(source, checkOf(kind));
    }
    const tag = tagOf(source);
    if (tag !== "Uint8Array" && tag !== "ArrayBuffer") {
        const accepted = "a Uint8Array, an ArrayBuffer or text";
        throw new TypeError(`a ${kind.noun} is read from ${accepted}, not ${describe(source)}`);
    }
    return tag === "ArrayBuffer" ? new Uint8Array(source) : source;
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

/** The bits of a position: 1 in a filter. */
function widthOf(kind, flags, check) {
    const other = kind === FILTER ? "a bloomcounter, for BloomCounter.from()" : "a bloomfilter, for BloomFilter.from()";
    check(Boolean(flags & COUNTER_FLAG) === (kind === COUNTER), `these are the bytes of ${other}`);
    check(!(flags & STATE_FLAG), "this is the state of an aggregate, not a value");
    const width = kind === FILTER ? 1 : WIDTHS.get(flags & ~(SPARSE_FLAG | COUNTER_FLAG | LEVELS_FLAG));
    check(width !== undefined && (kind === COUNTER || flags <= SPARSE_FLAG), `flags ${flags} are unknown`);
    return width;
}

function checkSize({ layout, m, width }, high, check) {
    check(high === 0 && m * width <= MAX_BITS, "it has more than 2^31 bits");
    const unit = layout === BLOCKED ? 512 : 64;
    check(m % unit === 0, `the size, ${m}, is not a multiple of ${unit}`);
}

function checkDense(m, cls, length, denseBytes, check) {
    check(m > 0, "it has no size, but is dense");
    check(length === denseBytes, `a size of ${m} takes ${denseBytes} bytes, not ${length}`);
    check(cls !== 0, "it is dense, but has no element type");
}

function checkSparse({ layout, m, levels }, cls, length, denseBytes, kind, check) {
    check(length % kind.elementBytes === 0, `${length} bytes of elements are not a multiple of ${kind.elementBytes}`);
    if (m === 0) {
        check(
            length === 0 && layout === BLOCKED && cls === 0,
            "it has no size, but is classic or has a type or elements",
        );
    } else {
        check(length < denseBytes, "it is sparse with so many elements that it has to be dense");
    }
    check(cls !== 0 || length === 0, "it has elements, but no element type");
    const bare = kind === FILTER || length > 0 || (cls === 0 && !levels);
    check(bare, "it has no elements, but an element type or levels");
}

function checkAscending(view, count, check) {
    for (let offset = HEADER_BYTES + 8; offset < HEADER_BYTES + 8 * count; offset += 8) {
        const before = view.getUint32(offset - 4, true);
        const high = view.getUint32(offset + 4, true);
        const ascending =
            before < high || (before === high && view.getUint32(offset - 8, true) < view.getUint32(offset, true));
        check(ascending, "its hashes are not in strictly ascending order");
    }
}

function checkNumbers(view, count, limit, check) {
    for (let offset = HEADER_BYTES + 8 * count; offset < view.byteLength; offset += 2) {
        const number = view.getUint16(offset, true);
        if (number < 1 || number > limit) {
            check(false, `the number of an element, ${number}, is not 1 to ${limit}`);
        }
    }
}

/** Reads and checks a value of the type FILTER or COUNTER. The result shares the bytes of the source. */
export function decode(kind, source) {
    const bytes = bytesOf(kind, source);
    const check = checkOf(kind);
    check(bytes.length >= HEADER_BYTES, `${bytes.length} bytes are less than the header of ${HEADER_BYTES}`);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const [version, layout, flags, k] = bytes;
    check(version === 1, `format version ${version} is not 1`);
    check(layout === BLOCKED || layout === CLASSIC, `layout ${layout} is unknown`);
    const width = widthOf(kind, flags, check);
    check(k >= 1 && k <= 32, `the number of hash functions, ${k}, is not 1 to 32`);
    const cls = view.getUint32(4, true);
    const type = cls === 0 ? null : typeOfClass(cls);
    check(type !== undefined, `element class ${cls} is unknown`);
    const rate = view.getFloat32(8, true);
    check(rate > 0 && rate < 1, `the requested rate, ${rate}, is not between 0 and 1`);
    const m = view.getUint32(20, true);
    const sparse = (flags & SPARSE_FLAG) !== 0;
    const levels = (flags & LEVELS_FLAG) !== 0;
    const parameters = { layout, k, type, rate, seed: view.getBigUint64(12, true), m, width, levels };
    checkSize(parameters, view.getUint32(24, true), check);
    const payload = bytes.subarray(HEADER_BYTES);
    const denseBytes = (m * width) / 8;
    if (sparse) {
        checkSparse(parameters, cls, payload.length, denseBytes, kind, check);
        const count = payload.length / kind.elementBytes;
        checkAscending(view, count, check);
        checkNumbers(view, count, 2 ** width - 1, check);
    } else {
        checkDense(m, cls, payload.length, denseBytes, check);
    }
    return { ...parameters, sparse, bytes };
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
