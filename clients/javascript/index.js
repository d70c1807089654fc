export { BloomCounter } from "./src/counter.js";
export { BloomFilter } from "./src/filter.js";
export { FormatError } from "./src/format.js";
