// When a silent network is asked, and when it is given up.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { LATE_MS, Pulse } from "../src/pulse.js";

let due: number | undefined;
let asked: number[];
let died: number[];
let pulse: Pulse;

beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
  [due, asked, died] = [undefined, [], []];
  pulse = new Pulse(
    () => due,
    () => asked.push(Date.now()),
    () => died.push(Date.now()),
  );
});

afterEach(() => {
  vi.useRealTimers();
});

function expectAnswer(at: number): void {
  due = at;
  pulse.expect(at);
}

it("asks when an answer is overdue and nothing was heard, and gives up when that is not answered", () => {
  expectAnswer(LATE_MS);
  vi.advanceTimersByTime(60_000);
  expect(asked).toEqual([LATE_MS]);
  expect(died).toEqual([LATE_MS + 5_000]);
});

it("waits on as long as anything is heard", () => {
  expectAnswer(LATE_MS);
  for (let at = 0; at < 60; at += 1) {
    vi.advanceTimersByTime(1_000);
    pulse.heard();
  }
  expect([asked, died]).toEqual([[], []]);
  vi.advanceTimersByTime(60_000);
  expect(asked).toEqual([60_000 + LATE_MS]);
  expect(died).toEqual([65_000 + LATE_MS]);
});

it("asks again after an answer to its question, and not before the next is due", () => {
  expectAnswer(LATE_MS);
  vi.advanceTimersByTime(LATE_MS);
  pulse.heard();
  expectAnswer(30_000);
  vi.advanceTimersByTime(30_000 - LATE_MS - 1);
  expect(asked).toEqual([LATE_MS]);
  vi.advanceTimersByTime(1);
  expect(asked).toEqual([LATE_MS, 30_000]);
  expect(died).toEqual([]);
});

it("does nothing where nobody waits, or it is stopped", () => {
  expectAnswer(LATE_MS);
  due = undefined;
  vi.advanceTimersByTime(60_000);
  expectAnswer(90_000);
  pulse.stop();
  vi.advanceTimersByTime(90_000);
  expect([asked, died]).toEqual([[], []]);
});
