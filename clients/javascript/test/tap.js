// A reporter that prints TAP with errors as comments. Node's own prints YAML that Perl's test harness does not read.

import { inspect } from "node:util";

function comment(text) {
    return text
        .split("\n")
        .map((line) => `# ${line}\n`)
        .join("");
}

export default async function* tap(events) {
    let count = 0;
    for await (const { type, data } of events) {
        if ((type !== "test:pass" && type !== "test:fail") || data.nesting > 0) {
            continue;
        }
        const skipped = data.skip === undefined ? "" : ` # SKIP ${data.skip}`;
        yield `${type === "test:pass" ? "" : "not "}ok ${++count} - ${data.name.replace(/[#\n]/g, " ")}${skipped}\n`;
        if (type === "test:fail") {
            yield comment(inspect(data.details.error.cause ?? data.details.error));
        }
    }
    yield `1..${count}\n`;
}
