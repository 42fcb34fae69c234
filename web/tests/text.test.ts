import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { inked, plain } from "../src/lib/ink.js";
import { commandLine, shown, shownLine, span } from "../src/lib/text.js";
import { clipboardText } from "../src/session/clipboard.js";

test("characters that reorder, hide or control are made visible, and others stay", () => {
  expect(shown("a\u202eb\u2066c\u200bd")).toBe("a⟨RLO⟩b⟨LRI⟩c⟨ZWSP⟩d");
  expect(shown("\x1b]0;x\x07\x00\x7f\x9b")).toBe("␛]0;x␇␀␡⟨U+009B⟩");
  expect(shown("two\nlines\tand 漢字 👩‍💻 é")).toBe("two\nlines\tand 漢字 👩‍💻 é");
  expect(shownLine("two\r\nlines")).toBe("two lines");
});

test("a command reads as one would type it", () => {
  expect(commandLine(["sh", "-c", "echo 'hi'"])).toBe("sh -c 'echo '\\''hi'\\'''");
});

test("spans are short", () => {
  expect([0, 40_000, 720_000, 3 * 3_600_000, 5 * 86_400_000].map(span)).toEqual(["now", "40 s", "12 min", "3 h", "5 d"]);
});

test("a program's clipboard text is read, its wish to read ours is not", () => {
  expect(clipboardText(`c;${btoa("hello")}`)).toBe("hello");
  expect(clipboardText("c;?")).toBeUndefined();
  expect(clipboardText("c;***")).toBeUndefined();
});

test("nothing in the page makes markup of text", () => {
  const dir = new URL("../src", import.meta.url).pathname;
  const sources = readdirSync(dir, { recursive: true }).map(String).filter((name) => /\.tsx?$/.test(name));
  expect(sources.length).toBeGreaterThan(20);
  for (const name of sources) {
    const source = readFileSync(join(dir, name), "utf8");
    expect(source, name).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function/);
  }
});

test("a line of output keeps the colours that mean something, and nothing else acts", () => {
  const line = "\x1b[0;1;32mok\x1b[m a \x1b[38;5;208morange\x1b[38;5;9mred\x1b[38;2;1;2;3mown\x1b[48;5;1;36mcyan\x1b[39;22m \x1b]8;;http://e.org\x1b\\link\x1b]8;;\x1b\\\x1b[2J";
  expect(inked(line)).toEqual([
    { text: "ok", ink: "ink-green ink-bold" },
    { text: " a ", ink: "" },
    { text: "orange", ink: "" },
    { text: "red", ink: "ink-red" },
    { text: "own", ink: "" },
    { text: "cyan", ink: "ink-cyan" },
    { text: " ", ink: "" },
    { text: "link", ink: "" },
  ]);
  expect(plain(line)).toBe("ok a orangeredowncyan link");
  expect(inked("")).toEqual([]);
});
