// The example page in Chromium, whose path CHROMIUM gives (default: /usr/bin/chromium). With SCREENSHOT=FILE it writes
// a picture; SCHEME=dark makes it a dark one.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";
import test, { after } from "node:test";
import { fileURLToPath } from "node:url";
import puppeteer from "puppeteer-core";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const TYPES = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript" };

const server = createServer(async (request, response) => {
    const file = path.join(ROOT, path.normalize(new URL(request.url, "http://localhost").pathname));
    try {
        const content = await readFile(file.endsWith("/") ? `${file}index.html` : file);
        response.writeHead(200, {
            "Content-Type":
                TYPES[path.extname(file)] ?? (file.endsWith("/") ? "text/html" : "application/octet-stream"),
        });
        response.end(content);
    } catch {
        response.writeHead(404).end();
    }
});

const scheme = process.env.SCHEME ?? "light";
const problems = [];
let browser;
let page;

async function open() {
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const sandbox = process.getuid() === 0 ? ["--no-sandbox"] : []; // Chromium's sandbox does not work as root
    browser = await puppeteer.launch({ executablePath: CHROMIUM, headless: true, args: [...sandbox, "--disable-gpu"] });
    page = await browser.newPage();
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.setViewport({ width: 1120, height: 760 });
    page.on("console", (message) => problems.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("requestfailed", (request) => problems.push(`failed: ${request.url()}`));
    page.on("response", (response) => response.ok() || problems.push(`${response.status()}: ${response.url()}`));
    page.on("request", (request) => request.url().startsWith(origin()) || problems.push(`foreign: ${request.url()}`));
    await page.goto(`${origin()}/example/`);
    await page.waitForSelector("#text:enabled", { timeout: 10000 });
}

function origin() {
    return `http://127.0.0.1:${server.address().port}`;
}

after(async () => {
    await browser?.close();
    server.close();
});

function browserTest(name, run) {
    test(name, { skip: !existsSync(CHROMIUM) && `${CHROMIUM} is not installed` }, run);
}

async function type(words) {
    await page.$eval("#text", (text) => text.select());
    await page.keyboard.press("Backspace");
    await page.type("#text", words);
}

const textOf = (selector) => page.$eval(selector, (element) => element.textContent);
const textsOf = (selector) => page.$$eval(selector, (elements) => elements.map((element) => element.textContent));
const bitsOf = (selector) =>
    page.$$eval(
        "#grid .cell",
        (cells, wanted) => cells.flatMap((cell, bit) => (cell.matches(wanted) ? [bit] : [])),
        selector,
    );

// XXH64 of less than 32 bytes with seed 0, from its specification, independent of the package.
const [P1, P2, P3, P4, P5] = [
    0x9e3779b185ebca87n,
    0xc2b2ae3d27d4eb4fn,
    0x165667b19e3779f9n,
    0x85ebca77c2b2ae63n,
    0x27d4eb2f165667c5n,
];
const wrap = (number) => BigInt.asUintN(64, number);
const rotate = (number, bits) => wrap((number << bits) | (number >> (64n - bits)));

function xxh64(bytes) {
    let h = P5 + BigInt(bytes.length);
    let at = 0;
    for (; at + 8 <= bytes.length; at += 8) {
        const lane = wrap(rotate(wrap(bytes.readBigUInt64LE(at) * P2), 31n) * P1);
        h = wrap(rotate(h ^ lane, 27n) * P1 + P4);
    }
    if (at + 4 <= bytes.length) {
        h = wrap(rotate(h ^ wrap(BigInt(bytes.readUInt32LE(at)) * P1), 23n) * P2 + P3);
        at += 4;
    }
    for (; at < bytes.length; at++) {
        h = wrap(rotate(h ^ wrap(BigInt(bytes[at]) * P5), 11n) * P1);
    }
    h = wrap((h ^ (h >> 33n)) * P2);
    h = wrap((h ^ (h >> 29n)) * P3);
    return h ^ (h >> 32n);
}

/** The block of a word, its bits there, and all bits of the block that are set: from the bytes of words.bloom. */
function expected(word) {
    const file = readFileSync(path.join(ROOT, "example/words.bloom"));
    const blocks = file.readBigUInt64LE(20) / 512n;
    const hash = xxh64(Buffer.from(word));
    const block = Number(((hash >> 32n) * blocks) >> 32n);
    const touched = new Set();
    for (let i = 0, y = hash; i < file[3]; i++) {
        y = wrap(y * 0x9e3779b97f4a7c15n);
        touched.add(Number(y >> 55n));
    }
    const isSet = (bit) => (file[28 + 64 * block + (bit >> 3)] >> (bit & 7)) & 1;
    const set = Array.from({ length: 512 }, (_, bit) => bit).filter(isSet);
    return { block, touched: [...touched].sort((a, b) => a - b), set };
}

browserTest("the page loads the filter and checks its sample", async () => {
    await open();
    assert.match(await textOf("#summary"), /^73,\d00 words of English in 92 kilobytes/);
    assert.deepEqual(await textsOf("#unknown button"), ["recieves", "definately", "mispelled", "dosen't"]);
    if (process.env.SCREENSHOT) {
        await page.evaluate(() => document.querySelectorAll("#unknown button")[1].click());
        await page.$eval("#text", (text) => text.blur());
        await page.screenshot({ path: process.env.SCREENSHOT, fullPage: true });
    }
});

browserTest("words are checked as they are typed", async () => {
    await type("The elephant eats a banana");
    assert.equal(await textOf("#result"), "5 words, 0 not in the list");
    await page.type("#text", " and a xylofone, don’t you think?\nParis's Éclair");
    assert.equal(await textOf("#result"), "13 words, 1 not in the list");
    assert.deepEqual(await textsOf("#unknown button"), ["xylofone"]);
    assert.deepEqual(await textsOf("#marks mark"), ["xylofone"]);
    assert.equal(await textOf("#marks"), `${await page.$eval("#text", (text) => text.value)}\n`);
    await page.keyboard.press("Enter");
    await page.type("#text", "cafe\u0301 ");
    await page.type("#text", "teh");
    assert.deepEqual(await textsOf("#unknown button"), ["xylofone", "teh"]);
});

for (const [word, known] of [
    ["elephant", true],
    ["xylofone", false],
    ["éclair", true],
    ["counterrevolutionaries", true],
]) {
    browserTest(`the bits of ${known ? "a known" : "an unknown"} word: ${word}`, async () => {
        await type(`some words and ${word}`);
        const { block, touched, set } = expected(word);
        assert.equal(await textOf("#word"), word);
        assert.match(await textOf("#verdict"), known ? /almost certainly/ : /certainly not/);
        assert.equal(
            touched.every((bit) => set.includes(bit)),
            known,
        );
        assert.deepEqual(await bitsOf(".touched"), touched);
        assert.deepEqual(await bitsOf(".set"), set);
        assert.deepEqual(
            await bitsOf(".touched.set"),
            touched.filter((bit) => set.includes(bit)),
        );
        const place = await textOf("#place");
        assert.ok(place.includes(`${touched.join(", ")} of block ${block.toLocaleString("en")},`), place);
    });
}

/** The browser tells the page of a new selection after the key. */
async function waitForWord(word) {
    const shown = (wanted) => document.getElementById("word").textContent === wanted;
    await page.waitForFunction(shown, { timeout: 5000 }, word);
}

browserTest("the keyboard reaches the text, the unknown words and each word of the text", async () => {
    await type("alpha betta gamma deltta");
    assert.equal(await textOf("#word"), "deltta");
    await page.keyboard.press("Home");
    await waitForWord("alpha");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    assert.equal(
        await page.$eval("#text", (text) => text.value.slice(text.selectionStart, text.selectionEnd)),
        "betta",
    );
    await waitForWord("betta");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Space");
    await waitForWord("deltta");
});

browserTest("of many unknown words, the list shows the first hundred", async () => {
    await type(`${"qzx ".repeat(101)}the`);
    assert.equal(await textOf("#result"), "102 words, 101 not in the list");
    assert.deepEqual(await textsOf("#unknown li"), [...new Array(100).fill("qzx"), "and 1 more"]);
    assert.equal((await textsOf("#marks mark")).length, 101);
});

browserTest("a text without words shows no word", async () => {
    await type("12 + 30 = …");
    assert.equal(await textOf("#result"), "0 words, 0 not in the list");
    assert.deepEqual([await textOf("#word"), await textOf("#verdict"), await textOf("#place")], ["", "", ""]);
    assert.deepEqual(await bitsOf(".cell"), []);
});

browserTest("underlines lie under their words in a long text", async () => {
    await page.$eval("#text", (text) => (text.value = "many words in a line, ".repeat(40)));
    await page.focus("#text");
    await page.keyboard.down("Control");
    await page.keyboard.press("End");
    await page.keyboard.up("Control");
    await page.type("#text", "teh");
    const scrolled = await page.evaluate(() => [
        document.getElementById("text").scrollTop,
        document.getElementById("marks").scrollTop,
    ]);
    assert.ok(scrolled[0] > 0, "the text scrolls");
    assert.equal(scrolled[0], scrolled[1]);
    const heights = await page.evaluate(() => ["text", "marks"].map((id) => document.getElementById(id).scrollHeight));
    assert.equal(heights[0], heights[1]);
});

browserTest("the page fits a narrow screen, and both colour schemes differ", async () => {
    await page.setViewport({ width: 360, height: 740 });
    const overflow = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    assert.equal(overflow, 0);
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const colours = [];
    for (const value of ["light", "dark"]) {
        await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
        colours.push(await background());
    }
    assert.notEqual(colours[0], colours[1]);
});

browserTest("there was no error, and no request to another server", () => {
    assert.deepEqual(problems, []);
});
