// From a value to its hash. The element class of a filter decides how a value is read: see doc/format.md. A value that
// has no form in a class is an error, because false would say that it is not in the set.

import xxhash from "xxhash-wasm";
import * as times from "./times.js";
import * as addresses from "./addresses.js";

const { h64, h64Raw } = await xxhash();

const number8 = new Uint8Array(8);
const view8 = new DataView(number8.buffer);

/** Says what a value is, for messages. It does not repeat strings and bytes, which may be long or secret. */
export function describe(value) {
    if (value === null || value === undefined) {
        return String(value);
    }
    if (typeof value === "number") {
        return `the number ${value}`;
    }
    return `this ${typeof value === "object" ? tagOf(value) : typeof value}`;
}

/** What an object is, also one of another realm. */
export function tagOf(value) {
    return Object.prototype.toString.call(value).slice(8, -1);
}

function mismatch(type, accepted, value) {
    return new TypeError(`an element of type ${type} is ${accepted}, not ${describe(value)}`);
}

function integerBytes(value) {
    if (typeof value === "bigint") {
        if (BigInt.asIntN(64, value) !== value) {
            throw new RangeError("the number is out of the range of bigint");
        }
        view8.setBigInt64(0, value, true);
    } else if (Number.isSafeInteger(value)) {
        view8.setInt32(0, value, true);
        view8.setInt32(4, Math.floor(value / 2 ** 32), true);
    } else {
        throw mismatch("bigint", "a bigint or a whole number of at most 2^53 - 1", value);
    }
    return number8;
}

function floatBytes(value) {
    if (typeof value !== "number") {
        throw mismatch("double precision", "a number", value);
    }
    if (Number.isNaN(value)) {
        view8.setBigUint64(0, 0x7ff8000000000000n, true);
    } else {
        view8.setFloat64(0, value === 0 ? 0 : value, true);
    }
    return number8;
}

const DECIMAL = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,9}))?$/i;
const NAMED_NUMBERS = new Map([
    ["nan", "NaN"],
    ["infinity", "Infinity"],
    ["+infinity", "Infinity"],
    ["-infinity", "-Infinity"],
    ["inf", "Infinity"],
    ["+inf", "Infinity"],
    ["-inf", "-Infinity"],
]);

// numeric has at most 131,072 digits before the point and 16,383 behind it.
function checkDigits(before, after) {
    if (before > 131072 || after > 16383) {
        throw new RangeError("the number is out of the range of numeric");
    }
}

/** A text without this character at its end. An expression would take quadratic time. */
function trimmedEnd(text, character) {
    let end = text.length;
    while (end > 0 && text[end - 1] === character) {
        end--;
    }
    return text.slice(0, end);
}

function plainDecimal(text) {
    const named = NAMED_NUMBERS.get(text.toLowerCase());
    const match = DECIMAL.exec(text);
    if (named || !match || !(match[2] || match[3])) {
        return named;
    }
    const [, sign, before, after = "", exponent = "0"] = match;
    const digits = (before + after).replace(/^0+/, "");
    let point = digits.length - after.length + Number(exponent);
    if (digits === "") {
        return "0";
    }
    checkDigits(point, digits.length - point);
    const padded = "0".repeat(Math.max(0, 1 - point)) + digits + "0".repeat(Math.max(0, point - digits.length));
    point = Math.max(1, point);
    const fraction = trimmedEnd(padded.slice(point), "0");
    return (sign === "-" ? "-" : "") + padded.slice(0, point) + (fraction && "." + fraction);
}

function numericText(value) {
    const whole = typeof value === "bigint" || Number.isSafeInteger(value);
    const text = typeof value === "string" || whole ? plainDecimal(String(value)) : undefined;
    if (text === undefined) {
        throw mismatch(
            "numeric",
            'a bigint, a whole number of at most 2^53 - 1 or decimal text such as "12.50"',
            value,
        );
    }
    return text;
}

const shortBytes = new Uint8Array(64);
const shortViews = Array.from({ length: 65 }, (_, length) => shortBytes.subarray(0, length));

/** The bytes of a short string of ASCII characters, otherwise undefined. TextEncoder takes longer for these. */
function shortAscii(string) {
    const length = string.length;
    if (length > 64) {
        return undefined;
    }
    for (let i = 0; i < length; i++) {
        const unit = string.charCodeAt(i);
        if (unit === 0 || unit > 127) {
            return undefined;
        }
        shortBytes[i] = unit;
    }
    return shortViews[length];
}

// PostgreSQL's text has no character NUL, and UTF-8 no form of half a surrogate pair.
const NOT_TEXT = /[\0\ud800-\udfff]/u;

function checkText(type, value) {
    if (typeof value !== "string") {
        throw mismatch(type, "a string", value);
    }
    if (NOT_TEXT.test(value)) {
        throw new RangeError("the string has a NUL or half a surrogate pair, so it is no text in PostgreSQL");
    }
}

function plainText(value) {
    const bytes = typeof value === "string" ? shortAscii(value) : undefined;
    if (bytes === undefined) {
        checkText("text", value);
    }
    return bytes ?? value;
}

function paddedText(value) {
    checkText("char(n)", value);
    return trimmedEnd(value, " ");
}

function byteaBytes(value) {
    const tag = tagOf(value);
    if (tag !== "Uint8Array" && tag !== "ArrayBuffer") {
        throw mismatch("bytea", "a Uint8Array or an ArrayBuffer", value);
    }
    return tag === "ArrayBuffer" ? new Uint8Array(value) : value;
}

const booleans = [Uint8Array.of(0), Uint8Array.of(1)];

function booleanByte(value) {
    if (typeof value !== "boolean") {
        throw mismatch("boolean", "a boolean", value);
    }
    return booleans[Number(value)];
}

/** A type whose values are objects or strings that parse() reads. It returns undefined for any other value. */
function parsed(name, accepted, parse) {
    return (value) => {
        const bytes = parse(value);
        if (bytes === undefined) {
            throw mismatch(name, accepted, value);
        }
        return bytes;
    };
}

const TYPES = [
    [20, "bigint", integerBytes],
    [701, "double precision", floatBytes],
    [1700, "numeric", numericText],
    [25, "text", plainText],
    [1042, "char(n)", paddedText],
    [17, "bytea", byteaBytes],
    [2950, "uuid", addresses.uuid, 'a string such as "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11" or a Uint8Array of 16'],
    [16, "boolean", booleanByte],
    [1082, "date", times.date, 'a string such as "2024-02-29" or a Date at midnight UTC'],
    [1083, "time", times.time, 'a string such as "12:34:56.789"'],
    [1266, "timetz", times.timetz, 'a string such as "12:34:56.789+01"'],
    [1114, "timestamp", times.timestamp, 'a Date, which is read in UTC, or a string such as "2024-02-29 12:34:56"'],
    [1184, "timestamptz", times.timestamptz, 'a Date or a string with a zone such as "2024-02-29T12:34:56Z"'],
    [1186, "interval", times.interval, "an object such as { months: 1, days: 2, seconds: 0.5 }"],
    [869, "inet", addresses.inet, 'a string such as "192.168.0.1" or "2001:db8::/32"'],
    [829, "macaddr", addresses.macaddr, 'a string such as "08:00:2b:01:02:03"'],
    [774, "macaddr8", addresses.macaddr8, 'a string such as "08:00:2b:01:02:03:04:05"'],
].map(([oid, name, read, accepted]) => ({
    oid,
    name,
    /** The canonical bytes of a value, or a string whose UTF-8 is these bytes. Valid until the next call. */
    canonical: accepted ? parsed(name, accepted, read) : read,
}));

const byName = new Map(TYPES.map((type) => [type.name, type]));
const byClass = new Map(TYPES.map((type) => [type.oid, type]));

export const typeNames = TYPES.map((type) => type.name);

export function typeOfClass(oid) {
    return byClass.get(oid);
}

export function typeNamed(name) {
    const type = byName.get(name);
    if (!type) {
        throw new RangeError(`the element type ${String(name)} is not one of ${typeNames.join(", ")}`);
    }
    return type;
}

const BY_TYPEOF = { string: "text", bigint: "bigint", boolean: "boolean" };

/** The type of the first element of a filter that has none. */
export function typeOfValue(value) {
    const name = BY_TYPEOF[typeof value] ?? (Number.isSafeInteger(value) ? "bigint" : undefined);
    if (name) {
        return typeNamed(name);
    }
    if (tagOf(value) === "Uint8Array" || tagOf(value) === "ArrayBuffer") {
        return typeNamed("bytea");
    }
    const hint = value === null || value === undefined ? ", which is not an element" : "; give the option type";
    throw new TypeError(`the element type does not follow from ${describe(value)}${hint}`);
}

/** The hash of the last value. Its halves are read as numbers, which is faster than arithmetic on BigInts. */
export const hash8 = new DataView(new ArrayBuffer(8));

/** Puts XXH64 of a value into hash8. */
export function hash(type, value, seed) {
    const canonical = type.canonical(value);
    hash8.setBigUint64(0, typeof canonical === "string" ? h64(canonical, seed) : h64Raw(canonical, seed));
}
