#!/usr/bin/env node
// Usage: bench/client_javascript.mjs [RUNS]
//
// Measures clients/javascript: the processor time to add an element and to ask for one, against Set and against other
// Bloom filters at 1 %, those that are installed:
//   cd clients/javascript && npm install --no-save bloomfilter bloom-filters @mcrowe/minibloom
// Each run measures all of them in turn. Prints nanoseconds for each call, minimum, median and maximum of RUNS
// (default 5), and the same of the ratio of clients/javascript to each of the others in one run.

import { createRequire } from "node:module";
import { BloomFilter } from "../clients/javascript/index.js";

const require = createRequire(new URL("../clients/javascript/package.json", import.meta.url));

async function installed(name) {
    try {
        return await import(require.resolve(name));
    } catch (error) {
        console.log(`${name} is not installed`);
        return undefined;
    }
}

const peers = {
    "clients/javascript": (n) => {
        const filter = BloomFilter.create(n);
        return { add: (value) => filter.add(value), has: (value) => filter.has(value) };
    },
    Set: () => {
        const set = new Set();
        return { add: (value) => set.add(value), has: (value) => set.has(value) };
    },
};
const davies = await installed("bloomfilter");
if (davies) {
    peers.bloomfilter = (n) => {
        const filter = davies.BloomFilter.withTargetError(n, 0.01);
        return { add: (value) => filter.add(value), has: (value) => filter.test(value) };
    };
}
const mini = await installed("@mcrowe/minibloom");
if (mini) {
    peers["@mcrowe/minibloom"] = (n) => {
        const filter = mini.default.optimalFilter(n, 0.01);
        return { add: (value) => filter.add(String(value)), has: (value) => filter.test(String(value)) };
    };
}
const filters = await installed("bloom-filters");
if (filters) {
    peers["bloom-filters"] = (n) => {
        const filter = filters.default.BloomFilter.create(n, 0.01);
        return { add: (value) => filter.add(String(value)), has: (value) => filter.has(String(value)) };
    };
}

const SLOW = new Set(["bloom-filters"]); // 5 to 100 times as slow: measured with fewer elements
const KINDS = { integers: (i) => i * 7919, strings: (i) => `user${i * 7919}` };

function nanoseconds(n, call) {
    const start = process.cpuUsage();
    call();
    const { user, system } = process.cpuUsage(start);
    return (1000 * (user + system)) / n;
}

/** Adds n elements, and asks for each of them and for n others. */
function measure(make, present, absent) {
    const n = present.length;
    const set = make(n);
    let found = 0;
    const times = {
        add: nanoseconds(n, () => present.forEach((value) => set.add(value))),
        present: nanoseconds(n, () => present.forEach((value) => (found += set.has(value)))),
        absent: nanoseconds(n, () => absent.forEach((value) => (found += set.has(value)))),
    };
    if (found < n) {
        throw new Error("an element was not found");
    }
    return times;
}

/** The mean of enough measurements for one that takes 10^5 calls. */
function measureOften(make, present, absent) {
    const times = { add: 0, present: 0, absent: 0 };
    const repeats = Math.max(1, 1e5 / present.length);
    for (let i = 0; i < repeats; i++) {
        const once = measure(make, present, absent);
        Object.keys(times).forEach((what) => (times[what] += once[what] / repeats));
    }
    return times;
}

function spread(numbers, digits) {
    const sorted = [...numbers].sort((a, b) => a - b);
    const picked = [sorted[0], sorted[Math.floor(sorted.length / 2)], sorted[sorted.length - 1]];
    return picked.map((number) => number.toFixed(digits).padStart(8)).join("");
}

function runCase(kind, n, runs) {
    const present = Array.from({ length: n }, (_, i) => KINDS[kind](i));
    const absent = Array.from({ length: n }, (_, i) => KINDS[kind](i + n));
    const names = Object.keys(peers).filter((name) => n < 1e5 || !SLOW.has(name));
    const results = Object.fromEntries(names.map((name) => [name, []]));
    for (let run = -1; run < runs; run++) {
        for (const name of names) {
            const times = measureOften(peers[name], present, absent);
            if (run >= 0) {
                results[name].push(times); // the first run warms up
            }
        }
    }
    for (const what of ["add", "present", "absent"]) {
        for (const name of names) {
            const times = results[name].map((result) => result[what]);
            const ratios = results[names[0]].map((result, run) => result[what] / times[run]);
            const ratio = name === names[0] ? "" : spread(ratios, 2);
            console.log(`${n} ${kind}, ${what}`.padEnd(28) + name.padEnd(20) + spread(times, 0) + ratio);
        }
    }
}

const runs = Number(process.argv[2] ?? 5);
if (!Number.isInteger(runs) || runs < 1 || process.argv.length > 3) {
    console.error("Usage: bench/client_javascript.mjs [RUNS]");
    process.exit(2);
}
console.log("work".padEnd(28) + "by".padEnd(20) + "  ns: min     med     max   ratio: min  med   max");
for (const n of [1e4, 1e6]) {
    Object.keys(KINDS).forEach((kind) => runCase(kind, n, runs));
}
