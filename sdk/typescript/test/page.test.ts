// A page's login: what it shows, and to whom.

import { createHmac } from "node:crypto";
import { expect, it } from "vitest";
import { pageKey, showPage } from "../src/index.js";

const KEY = "0123456789abcdef".repeat(4);
const sum = (...words: string[]) => createHmac("sha256", KEY).update(words.join("\n")).digest("hex");

it("answers the host that knows its key, with something that only that host takes", async () => {
  const key = await pageKey(`page_${KEY}`);
  expect(key.extractable).toBe(false);
  let sent = "";
  const shown = await showPage(key, (nonce) => {
    sent = nonce;
    return Promise.resolve({ challenge: "a-b", proof: sum("host", nonce, "a-b") });
  });
  expect(sent).toMatch(/^[0-9a-f]{32}$/);
  expect(shown).toBe(`page_${sent}.a-b.${sum("page", sent, "a-b")}`);
});

it("answers nobody else, whatever it is told", async () => {
  const key = await pageKey(`page_${KEY}`);
  for (const proof of ["", "00", "00".repeat(32), sum("host", "x", "a-b"), undefined, 7]) {
    const answer = { challenge: "a-b", proof } as { challenge: string; proof: string };
    await expect(showPage(key, () => Promise.resolve(answer))).rejects.toMatchObject({ code: "disconnected" });
  }
  // What a page has said of itself is no host's proof.
  const reflected = showPage(key, (nonce) => Promise.resolve({ challenge: "a-b", proof: sum("page", nonce, "a-b") }));
  await expect(reflected).rejects.toMatchObject({ code: "disconnected" });
});
