// Canonical bytes of dates, times and intervals. Each function returns undefined for a value of another form, and
// throws a RangeError for one that does not exist or is out of PostgreSQL's range.

const MICROSECONDS_OF_DAY = 86400000000n;
const EPOCH_DAYS = 10957; // from 1970-01-01 to 2000-01-01
const MAX_64 = 2n ** 63n - 1n;
const MIN_64 = -(2n ** 63n);

const DATE = String.raw`(\d{4,7})-(\d\d)-(\d\d)`;
const TIME = String.raw`(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?`;
const ZONE = String.raw`(Z|[+-]\d\d(?::?\d\d(?::?\d\d)?)?)`;
const BC = String.raw`( BC)?`;
const DATE_TEXT = new RegExp(`^${DATE}${BC}$`);
const TIME_TEXT = new RegExp(`^${TIME}$`);
const TIMETZ_TEXT = new RegExp(`^${TIME} ?${ZONE}$`);
const TIMESTAMP_TEXT = new RegExp(`^${DATE}[ T]${TIME}${BC}$`);
const TIMESTAMPTZ_TEXT = new RegExp(`^${DATE}[ T]${TIME} ?${ZONE}${BC}$`);

function integers(...numbers) {
    const bytes = new Uint8Array(8 * numbers.length);
    const view = new DataView(bytes.buffer);
    numbers.forEach((number, i) => view.setBigInt64(8 * i, BigInt(number), true));
    return bytes;
}

function tagged(value, tag) {
    return Object.prototype.toString.call(value) === `[object ${tag}]`;
}

function isDate(value) {
    return tagged(value, "Date");
}

function match(expression, value) {
    return typeof value === "string" ? expression.exec(value) : null;
}

function check(condition, what) {
    if (!condition) {
        throw new RangeError(`the ${what} does not exist or is out of PostgreSQL's range`);
    }
}

/** Days from 2000-01-01 of a date in the proleptic Gregorian calendar. The year 1 BC is 0. */
function daysOf(yearText, monthText, dayText, bc) {
    const [month, day] = [Number(monthText), Number(dayText)];
    const year = bc ? 1 - Number(yearText) : Number(yearText);
    check(Number(yearText) > 0 && month >= 1 && month <= 12, "date");
    // The calendar repeats every 400 years, which are 146,097 days. Date has no year beyond 275,760.
    const cycles = Math.floor(year / 400);
    const date = new Date(0);
    date.setUTCFullYear(year - 400 * cycles, month - 1, day);
    check(date.getUTCMonth() === month - 1, "date");
    return date.getTime() / 86400000 + 146097 * cycles - EPOCH_DAYS;
}

/** Microseconds since midnight. 24:00:00 is a time, and 23:59:60 is the same. */
function microsecondsOf(hours, minutes, seconds = "0", fraction = "") {
    check(Number(hours) <= 24 && Number(minutes) <= 59 && Number(seconds) <= 60, "time");
    const whole = (Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds);
    const microseconds = whole * 1000000 + Number(fraction.padEnd(6, "0"));
    check(microseconds <= 86400000000, "time");
    return microseconds;
}

/** Seconds east of UTC. */
function zoneOf(zone) {
    if (zone === "Z") {
        return 0;
    }
    const [hours, minutes = 0, seconds = 0] = zone.slice(1).match(/\d\d/g).map(Number);
    check(hours <= 15 && minutes <= 59 && seconds <= 59, "time zone");
    return (zone[0] === "-" ? -1 : 1) * ((hours * 60 + minutes) * 60 + seconds);
}

const MIN_DATE = daysOf("4714", "11", "24", true);
const MAX_DATE = daysOf("5874897", "12", "31", false);
const MIN_TIMESTAMP = BigInt(MIN_DATE) * MICROSECONDS_OF_DAY;
const END_TIMESTAMP = BigInt(daysOf("294277", "01", "01", false)) * MICROSECONDS_OF_DAY;

function infinite(value, least, greatest) {
    return { "-infinity": integers(least), infinity: integers(greatest) }[value];
}

export function date(value) {
    const parts = match(DATE_TEXT, value);
    if (!parts && !isDate(value)) {
        return infinite(value, -(2 ** 31), 2 ** 31 - 1);
    }
    const days = parts ? daysOf(...parts.slice(1)) : value.getTime() / 86400000 - EPOCH_DAYS;
    check(days >= MIN_DATE && days <= MAX_DATE, "date");
    return Number.isInteger(days) ? integers(days) : undefined;
}

export function time(value) {
    const parts = match(TIME_TEXT, value);
    return parts ? integers(microsecondsOf(...parts.slice(1))) : undefined;
}

export function timetz(value) {
    const parts = match(TIMETZ_TEXT, value);
    if (!parts) {
        return undefined;
    }
    const bytes = new Uint8Array(12);
    bytes.set(integers(microsecondsOf(...parts.slice(1, 5))));
    new DataView(bytes.buffer).setInt32(8, -zoneOf(parts[5]), true);
    return bytes;
}

function timestampBytes(microseconds) {
    check(microseconds >= MIN_TIMESTAMP && microseconds < END_TIMESTAMP, "timestamp");
    return integers(microseconds);
}

function ofDate(value) {
    check(!Number.isNaN(value.getTime()), "timestamp");
    return timestampBytes((BigInt(value.getTime()) - BigInt(EPOCH_DAYS * 86400000)) * 1000n);
}

function ofParts(year, month, day, hours, minutes, seconds, fraction, zone, bc) {
    const days = BigInt(daysOf(year, month, day, bc)) * MICROSECONDS_OF_DAY;
    return timestampBytes(days + BigInt(microsecondsOf(hours, minutes, seconds, fraction) - zoneOf(zone) * 1000000));
}

export function timestamp(value) {
    if (isDate(value)) {
        return ofDate(value);
    }
    const parts = match(TIMESTAMP_TEXT, value);
    return parts ? ofParts(...parts.slice(1, 8), "Z", parts[8]) : infinite(value, MIN_64, MAX_64);
}

export function timestamptz(value) {
    if (isDate(value)) {
        return ofDate(value);
    }
    const parts = match(TIMESTAMPTZ_TEXT, value);
    return parts ? ofParts(...parts.slice(1)) : infinite(value, MIN_64, MAX_64);
}

// What a field of an interval is, in months, days or microseconds.
const FIELDS = new Map([
    ["years", ["months", 12]],
    ["months", ["months", 1]],
    ["days", ["days", 1]],
    ["hours", ["microseconds", 3600000000]],
    ["minutes", ["microseconds", 60000000]],
    ["seconds", ["microseconds", 1000000]],
    ["milliseconds", ["microseconds", 1000]],
    ["microseconds", ["microseconds", 1]],
]);

/**
 * The fields are those of the objects that node-postgres gives for intervals. A Date, a Map or a Temporal.Duration has
 * no fields of its own, and is not the interval 0.
 */
export function interval(value) {
    if (!tagged(value, "Object")) {
        return undefined;
    }
    const sum = { months: 0n, days: 0n, microseconds: 0n };
    for (const [field, number] of Object.entries(value)) {
        const [part, factor] = FIELDS.get(field) ?? [];
        if (!part || typeof number !== "number" || !Number.isFinite(number)) {
            return undefined;
        }
        if (Number.isSafeInteger(number)) {
            sum[part] += BigInt(number) * BigInt(factor);
        } else {
            const scaled = part === "microseconds" ? Math.round(number * factor) : number * factor;
            check(Number.isSafeInteger(scaled), "interval");
            sum[part] += BigInt(scaled);
        }
    }
    check(BigInt.asIntN(32, sum.months) === sum.months && BigInt.asIntN(32, sum.days) === sum.days, "interval");
    check(BigInt.asIntN(64, sum.microseconds) === sum.microseconds, "interval");
    const rest = ((sum.microseconds % MICROSECONDS_OF_DAY) + MICROSECONDS_OF_DAY) % MICROSECONDS_OF_DAY;
    return integers(sum.months * 30n + sum.days + (sum.microseconds - rest) / MICROSECONDS_OF_DAY, rest);
}
