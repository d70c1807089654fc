import { BloomFilter } from "bloomtype";

const BLOCK_BITS = 512;
const MAX_LISTED = 100; // thousands of buttons would make each key slow
const SAMPLE =
    "A Bloom filter recieves many words and keeps only a few bits of each, so it is definately small. " +
    "Which words are mispelled here? One mistake in a hundred dosen't show.";

const byId = (id) => document.getElementById(id);
const text = byId("text");
const marks = byId("marks");

/**
 * The form in which words are in the filter: lower case, without a possessive 's, as example/make-filter does it, and
 * with accents as in the word list. Text from macOS often has them as characters of their own.
 */
function normalized(word) {
    return word.normalize("NFC").toLowerCase().replace(/[’]/g, "'").replace(/'s$/, "");
}

/** The words of a text, with their places. */
function wordsOf(string) {
    const words = string.matchAll(/\p{L}[\p{L}\p{M}]*(?:['’]\p{L}+)*/gu);
    return Array.from(words, (match) => ({ word: match[0], start: match.index, end: match.index + match[0].length }));
}

/** The last word that begins before the cursor, or the first one. */
function wordAtCursor(words) {
    return words.filter(({ start }) => start < text.selectionEnd).pop() ?? words[0];
}

function element(tag, content, properties = {}) {
    const made = Object.assign(document.createElement(tag), properties);
    made.textContent = content;
    return made;
}

function underline(string, unknown) {
    const nodes = [];
    let last = 0;
    for (const { start, end } of unknown) {
        nodes.push(string.slice(last, start), element("mark", string.slice(start, end)));
        last = end;
    }
    // A line break at the end has no height of its own.
    marks.replaceChildren(...nodes, `${string.slice(last)}\n`);
    marks.scrollTop = text.scrollTop;
}

function select({ start, end }) {
    text.focus();
    text.setSelectionRange(start, end);
}

function list(unknown) {
    const items = unknown.slice(0, MAX_LISTED).map((place) => {
        const item = document.createElement("li");
        item.append(element("button", place.word, { type: "button", onclick: () => select(place) }));
        return item;
    });
    if (unknown.length > MAX_LISTED) {
        items.push(element("li", `and ${(unknown.length - MAX_LISTED).toLocaleString("en")} more`));
    }
    byId("unknown").replaceChildren(...items);
}

function count(number, noun) {
    return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

function checkText(filter) {
    const words = wordsOf(text.value);
    const unknown = words.filter(({ word }) => !filter.has(normalized(word)));
    underline(text.value, unknown);
    list(unknown);
    byId("result").textContent = `${count(words.length, "word")}, ${unknown.length} not in the list`;
    showWord(filter, wordAtCursor(words));
}

function showVerdict(word, found) {
    byId("word").textContent = word;
    const verdict = byId("verdict");
    verdict.textContent = found ? "is in the list, almost certainly" : "is certainly not in the list";
    verdict.className = found ? "yes" : "no";
}

function showWord(filter, place) {
    if (!place) {
        byId("word").textContent = byId("verdict").textContent = byId("place").textContent = "";
        byId("grid").replaceChildren();
        return;
    }
    const word = normalized(place.word);
    showVerdict(word, filter.has(word));
    const positions = filter.positions(word);
    const block = Math.floor(positions[0] / BLOCK_BITS);
    const touched = new Set(positions.map((position) => position % BLOCK_BITS));
    showBlock(filter, block, touched);
    const set = [...touched].filter((bit) => filter.bit(block * BLOCK_BITS + bit)).length;
    byId("place").textContent =
        `${set} of the ${count(touched.size, "bit")} of this word are set: ` +
        `${[...touched].sort((a, b) => a - b).join(", ")} of block ${block.toLocaleString("en")}, one of ` +
        `${(filter.bits / BLOCK_BITS).toLocaleString("en")} blocks of ${BLOCK_BITS} bits.`;
}

function showBlock(filter, block, touched) {
    const grid = byId("grid");
    if (grid.childElementCount === 0) {
        grid.append(...Array.from({ length: BLOCK_BITS }, (_, bit) => element("span", "", { title: `bit ${bit}` })));
    }
    for (const [bit, cell] of [...grid.children].entries()) {
        const names = ["cell", filter.bit(block * BLOCK_BITS + bit) && "set", touched.has(bit) && "touched"];
        cell.className = names.filter(Boolean).join(" ");
    }
}

async function load() {
    const response = await fetch("words.bloom");
    if (!response.ok) {
        throw new Error(`words.bloom: ${response.status} ${response.statusText}`);
    }
    const filter = BloomFilter.from(await response.arrayBuffer());
    if (filter.sparse || filter.layout !== "blocked" || filter.type !== "text") {
        throw new Error("words.bloom is not a dense, blocked filter of text");
    }
    return filter;
}

function describe(filter) {
    byId("summary").textContent =
        `${count(Math.round(filter.cardinality() / 100) * 100, "word")} of English in ` +
        `${count(Math.round(filter.byteLength / 1000), "kilobyte")}: a Bloom filter of PostgreSQL, asked in your ` +
        "browser.";
    byId("rate").textContent = `${(100 * filter.falsePositiveRate()).toFixed(1)} %`;
}

function start(filter) {
    describe(filter);
    text.disabled = false;
    text.value = SAMPLE;
    const update = () => checkText(filter);
    text.addEventListener("input", update);
    text.addEventListener("scroll", () => (marks.scrollTop = text.scrollTop));
    document.addEventListener("selectionchange", () => {
        if (document.activeElement === text) {
            showWord(filter, wordAtCursor(wordsOf(text.value)));
        }
    });
    update();
}

try {
    start(await load());
} catch (error) {
    byId("summary").textContent = `The filter cannot be read: ${error.message}`;
}
