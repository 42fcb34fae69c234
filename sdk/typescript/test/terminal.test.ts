// Keys by name, output without queries, text without escapes: nothing here needs a host.

import { describe, expect, it } from "vitest";
import { QueryFilter, withoutReports } from "../src/filter.js";
import { newRunId, newStream } from "../src/ids.js";
import { keyText } from "../src/keys.js";
import { PlainText, plainText } from "../src/plain.js";

const bytes = (text: string) => Uint8Array.from(text, (c) => c.charCodeAt(0));
const text = (bytes: Uint8Array | undefined) => (bytes ? String.fromCharCode(...bytes) : undefined);

describe("keys", () => {
  it("sends for each name what a terminal sends", () => {
    const keys: [string, string][] = [
      ["C-c", "\x03"],
      ["C-\\", "\x1c"],
      ["C--", "unknown key"],
      ["M-x", "\x1bx"],
      ["C-M-a", "\x1b\x01"],
      ["S-a", "A"],
      ["ü", "ü"],
      ["Enter", "\r"],
      ["S-Tab", "\x1b[Z"],
      ["C-Space", "\0"],
      ["Up", "\x1b[A"],
      ["C-Up", "\x1b[1;5A"],
      ["PgDn", "\x1b[6~"],
      ["F1", "\x1bOP"],
      ["S-F5", "\x1b[15;2~"],
      ["F12", "\x1b[24~"],
      ["F13", "unknown key"],
      ["Nope", "unknown key"],
    ];
    for (const [name, sent] of keys) {
      if (sent === "unknown key") expect(() => keyText(name), name).toThrow(sent);
      else expect(keyText(name), name).toBe(sent);
    }
    expect(keyText("Up", true)).toBe("\x1bOA");
    expect(keyText("C-Up", true)).toBe("\x1b[1;5A");
  });
});

describe("output for a terminal that must not answer", () => {
  const queries = [
    "\x1b[c",
    "\x1b[>c",
    "\x1b[=0c",
    "\x1b[5n",
    "\x1b[6n",
    "\x1b[?6n",
    "\x1b[?2026$p",
    "\x1b[>q",
    "\x1b[?u",
    "\x1b[18t",
    "\x1bZ",
    "\x05",
    "\x1b]11;?\x07",
    "\x1b]11;?\x1b\\",
    "\x1b]4;1;?\x07",
    "\x1bP+q544e\x1b\\",
    "\x1bP$qm\x1b\\",
    "\x1b_Gi=1,a=q;\x1b\\",
  ];
  const shown = [
    "text",
    "\x1b[1;31m",
    "\x1b[?25h",
    "\x1b[2J",
    "\x1b[8;24;80t",
    "\x1b[?62;4c",
    "\x1b]0;a title\x07",
    "\x1b]11;rgb:00/00/00\x1b\\",
    "\x1b(B",
    "\x1bM",
    "\x1bPq#0;2;0;0;0\x1b\\",
    "\x1b[>4;2m",
    "\x1b[4 q",
  ];

  it("has none of the queries and all of the rest", () => {
    for (const query of queries) expect(text(new QueryFilter().feed(bytes(`a${query}b`))), JSON.stringify(query)).toBe("ab");
    for (const piece of shown) expect(text(new QueryFilter().feed(bytes(`a${piece}b`))), JSON.stringify(piece)).toBe(`a${piece}b`);
  });

  it("is the same however the stream is cut", () => {
    const all = bytes([...queries, ...shown, ...queries].join("-"));
    const whole = text(new QueryFilter().feed(all));
    for (let size = 1; size < 9; size++) {
      const filter = new QueryFilter();
      let got = "";
      for (let at = 0; at < all.length; at += size) got += text(filter.feed(all.subarray(at, at + size)));
      expect(got, `in pieces of ${size}`).toBe(whole);
    }
  });

  it("gives back what it held, but not the middle of what it dropped", () => {
    const given = (fed: string) => {
      const filter = new QueryFilter();
      return [text(filter.feed(bytes(fed))), text(filter.giveUp())];
    };
    expect(given("ab")).toEqual(["ab", ""]);
    expect(given("ab\x1b[6")).toEqual(["ab", "\x1b[6"]);
    expect(given("\x1b]11;?")).toEqual(["", "\x1b]11;?"]);
    const long = "x".repeat(5000);
    expect(given(`\x1bP+q${long}`)).toEqual(["", undefined]);
    expect(given(`\x1b]0;${long}`)).toEqual([`\x1b]0;${long}`, ""]);
  });

  it("types no reports of a terminal that does not write", () => {
    for (const keys of ["ls\r", "\x1b", "\x1b[A", "\x1bOP", "\x1b[1;2R", "\x1b[<0;1;1M"]) {
      expect(text(withoutReports(bytes(keys), true)), JSON.stringify(keys)).toBe(keys);
    }
    for (const answer of ["\x1b[?62;4c", "\x1b[24;80R", "\x1b[0n", "\x1b[?2026;2$y", "\x1b]11;rgb:0/0/0\x07", "\x1bP1+r\x1b\\"]) {
      expect(text(withoutReports(bytes(`a${answer}b`), true)), JSON.stringify(answer)).toBe("ab");
      expect(text(withoutReports(bytes(`a${answer}b`), false))).toBe(`a${answer}b`);
    }
    expect(text(withoutReports(bytes("\x1b[I\x1b[Oa"), false))).toBe("a");
  });
});

describe("text", () => {
  it("has no escape sequences, however they are cut", () => {
    expect(plainText("\x1b]0;t\x07a\x1b[1mb\x1b[0m\r\nc\x1b(Bd")).toBe("ab\ncd");
    const plain = new PlainText();
    for (const piece of ["gr", "\x1b[3", "1mü"]) expect(plain.push(new TextEncoder().encode(piece))).toBeDefined();
    expect(plain.push(new Uint8Array(0))).toBe("grü");
  });
});

describe("ids", () => {
  it("are drawn in the form the host reads", () => {
    const ids = new Set(Array.from({ length: 100 }, newRunId));
    expect(ids.size).toBe(100);
    for (const id of ids) expect(id).toMatch(/^run_[0-7][0-9a-hjkmnp-tv-z]{25}$/);
    for (let n = 0; n < 100; n++) expect(Number.isSafeInteger(newStream())).toBe(true);
  });
});
