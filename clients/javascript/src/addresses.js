// Canonical bytes of uuid and of network addresses. Each function returns undefined for a value that is not one.

function bytesOfHex(digits) {
    return Uint8Array.from(digits.match(/../g), (pair) => parseInt(pair, 16));
}

export function uuid(value) {
    if (Object.prototype.toString.call(value) === "[object Uint8Array]" && value.length === 16) {
        return value;
    }
    const isUuid = typeof value === "string" && /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i.test(value);
    return isUuid ? bytesOfHex(value.replace(/-/g, "")) : undefined;
}

function mac(value, length) {
    const pattern = new RegExp(`^[\\da-f]{2}([:-]?)(?:[\\da-f]{2}\\1){${length - 2}}[\\da-f]{2}$`, "i");
    return typeof value === "string" && pattern.test(value) ? bytesOfHex(value.replace(/[:-]/g, "")) : undefined;
}

export const macaddr = (value) => mac(value, 6);
export const macaddr8 = (value) => mac(value, 8);

function ipv4(text) {
    const parts = text.split(".");
    const valid = parts.length === 4 && parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) <= 255);
    return valid ? parts.map(Number) : undefined;
}

/** The bytes of groups between colons. The last group may be an IPv4 address. */
function groups(text) {
    const parts = text === "" ? [] : text.split(":");
    const bytes = [];
    for (const [i, part] of parts.entries()) {
        const four = i === parts.length - 1 && part.includes(".") ? ipv4(part) : undefined;
        if (!four && !/^[\da-f]{1,4}$/i.test(part)) {
            return undefined;
        }
        bytes.push(...(four ?? [parseInt(part, 16) >> 8, parseInt(part, 16) & 255]));
    }
    return bytes;
}

function ipv6(text) {
    const halves = text.split("::").map(groups);
    if (halves.length > 2 || halves.includes(undefined)) {
        return undefined;
    }
    const [before, after] = halves;
    if (!after) {
        return before.length === 16 ? before : undefined;
    }
    // Only the last group of the whole address is an IPv4 address.
    const missing = 16 - before.length - after.length;
    const embedded = text.split("::")[0].includes(".");
    return missing >= 2 && !embedded ? [...before, ...new Array(missing).fill(0), ...after] : undefined;
}

export function inet(value) {
    const match = typeof value === "string" ? /^([\da-f.:]+)(?:\/(\d{1,3}))?$/i.exec(value) : null;
    if (!match) {
        return undefined;
    }
    const version = match[1].includes(":") ? 6 : 4;
    const address = version === 6 ? ipv6(match[1]) : ipv4(match[1]);
    const prefix = Number(match[2] ?? (version === 6 ? 128 : 32));
    return address && prefix <= 8 * address.length ? Uint8Array.of(version, prefix, ...address) : undefined;
}
