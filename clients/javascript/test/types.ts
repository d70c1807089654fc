// What TypeScript must accept, and what it must refuse.

import { BloomCounter, BloomFilter, FormatError, type BuildOptions, type ElementType, type Interval } from "bloomtype";

const options: BuildOptions = {
    expectedItems: 1000,
    falsePositiveRate: 0.001,
    layout: "classic",
    seed: 42n,
    type: "text",
};
const built: BloomFilter = BloomFilter.build(new Set(["alice", "bob"]), options);
const read: BloomFilter = BloomFilter.from(built.toBytes());
const again: BloomFilter = BloomFilter.from(String(built)).add("carol").addAll(["dave"]);
const answer: boolean = read.has("alice") && again.has(7) && again.has(7n) && again.has(new Date()) && again.has(true);
const month: Interval = { months: 1 };
const type: ElementType | null = BloomFilter.create(10, { type: "interval" }).add(month).type;
const numbers: number[] = [
    read.cardinality(),
    read.unionCardinality(again),
    read.intersectionCardinality(again),
    read.jaccard(again),
    read.falsePositiveRate(),
    read.bits,
    read.hashFunctions,
    read.requestedRate,
    read.byteLength,
    ...read.positions("x"),
];
const seed: bigint = read.union(again).intersection(built).foldTo(read).copy().seed;
const booleans: boolean[] = [read.equals(again), read.bit(0), read.sparse, answer];
const counter: BloomCounter = BloomCounter.from(new Uint8Array(28), { type: "date" });
const width: 4 | 8 | 16 = counter.counterBits;
const frequent: BloomFilter = counter.toFilter(counter.limit).union(counter.toFilter());
numbers.push(counter.count("2024-02-29"), counter.cardinality(), counter.total(), counter.positions, width);
booleans.push(counter.has(new Date(0)), counter.levels, counter.sparse, counter.equals(counter), frequent.has(1));
const body: BodyInit = new Blob([read.toBytes()]) && read.toBytes();
const error: Error = new FormatError(JSON.stringify([type, numbers, seed.toString(), booleans, body]));

// @ts-expect-error null is not an element
read.has(null);
// @ts-expect-error the layout is one of two
BloomFilter.create(10, { layout: "round" });
// @ts-expect-error the type is one of the list
BloomFilter.create(10, { type: "jsonb" });
// @ts-expect-error the constructor is private
new BloomFilter();
// @ts-expect-error the options are an object
BloomFilter.build([1], 100);
// @ts-expect-error the constructor is private
new BloomCounter();
// @ts-expect-error a counter does not change
counter.add("2024-02-29");
// @ts-expect-error a counter is not a filter
read.union(counter);
// @ts-expect-error the size does not change
read.bits = 512;

export default error;
