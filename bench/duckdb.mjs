#!/usr/bin/env node
// Runs the statements of its input, each a line of JSON, in a DuckDB in memory with one thread, and prints the rows of
// each as a line of JSON. Ends with the first error. The working directory has the package @duckdb/node-api.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const { DuckDBInstance } = createRequire(`${process.cwd()}/`)("@duckdb/node-api");
const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
const connection = await instance.connect();
for await (const line of createInterface({ input: process.stdin })) {
    const reader = await connection.runAndReadAll(JSON.parse(line));
    console.log(JSON.stringify(reader.getRowsJson()));
}
