// Output without the questions in it, for a terminal that must not answer because somebody else does.
//
// An unfinished sequence is held back until it can be judged; one longer than any query is judged by its beginning, so memory is
// bounded. The rules are those of `crates/screen/src/filter.rs`.

const ESC = 0x1b;
const BEL = 0x07;
const CAN = 0x18;
const SUB = 0x1a;
const ENQ = 0x05;

/** What a query fits into by far. */
const HELD_BYTES_MAX = 4096;

type State = "escape" | "intermediate" | "csi" | "osc" | "string";
type Fate = "pass" | "drop";

export class QueryFilter {
  private held: number[] = [];
  private state: State | undefined;
  /** Within a sequence whose fate is decided. */
  private fate: Fate | undefined;
  /** A dropped string ended at an escape: if that is its terminator, it goes too. */
  private terminator = false;

  /** What is left of some output. */
  feed(bytes: Uint8Array): Uint8Array {
    const out = new Uint8Array(this.held.length + bytes.length);
    let length = 0;
    const put = (byte: number) => {
      out[length++] = byte;
    };
    for (let at = 0; at < bytes.length; ) {
      if (this.state === undefined) {
        const end = textEnd(bytes, at);
        out.set(bytes.subarray(at, end), length);
        length += end - at;
        if (bytes[end] === ESC) this.begin();
        at = end + 1;
      } else {
        this.step(bytes[at] as number, put);
        at += 1;
      }
    }
    return out.subarray(0, length);
  }

  /** What is held back, for a terminal that is to get everything from here on; none within what is being dropped. */
  giveUp(): Uint8Array | undefined {
    if (this.fate === "drop") return undefined;
    const held = Uint8Array.from(this.held);
    this.held = [];
    this.state = undefined;
    this.fate = undefined;
    return held;
  }

  private begin(): void {
    this.state = "escape";
    this.held = [ESC];
    this.fate = undefined;
  }

  private step(byte: number, put: (byte: number) => void): void {
    const end = this.endAt(byte);
    if (end === "before") {
      this.settle(put, true);
      this.begin();
      return;
    }
    if (this.fate === "pass") put(byte);
    else if (this.fate === undefined) this.held.push(byte);
    if (end === "here") this.settle(put, false);
    else if (this.fate === undefined && this.held.length > HELD_BYTES_MAX) {
      this.fate = judge(this.state as State, this.held, false);
      if (this.fate === "pass") this.held.forEach(put);
      this.held = [];
    }
  }

  /** Whether the sequence ends before this byte, with it, or goes on. */
  private endAt(byte: number): "before" | "here" | undefined {
    if (byte === ESC) return "before";
    if (byte === CAN || byte === SUB) return "here";
    switch (this.state) {
      case "osc":
        return byte === BEL ? "here" : undefined;
      case "csi":
        return byte >= 0x40 && byte <= 0x7e ? "here" : undefined;
      case "intermediate":
        return byte >= 0x30 && byte <= 0x7e ? "here" : undefined;
      case "escape":
        if (byte === 0x5b) this.state = "csi";
        else if (byte === 0x5d) this.state = "osc";
        else if (byte === 0x50 || byte === 0x58 || byte === 0x5e || byte === 0x5f) this.state = "string";
        else if (byte >= 0x20 && byte <= 0x2f) this.state = "intermediate";
        else if (byte >= 0x30 && byte <= 0x7e) return "here";
        return undefined;
      default:
        return undefined;
    }
  }

  private settle(put: (byte: number) => void, atEscape: boolean): void {
    const isString = this.state === "osc" || this.state === "string";
    const isTerminator = this.terminator && this.held.length === 2 && this.held[1] === 0x5c;
    const fate = this.fate ?? (isTerminator ? "drop" : judge(this.state as State, this.held, true));
    if (fate === "pass") {
      for (const byte of this.held) if (isString || byte !== ENQ) put(byte);
    }
    this.terminator = isString && fate === "drop" && atEscape;
    this.held = [];
    this.state = undefined;
    this.fate = undefined;
  }
}

function textEnd(bytes: Uint8Array, from: number): number {
  for (let at = from; at < bytes.length; at++) {
    if (bytes[at] === ESC || bytes[at] === ENQ) return at;
  }
  return bytes.length;
}

/** Decides over a sequence; `complete` is false when only its beginning is known. */
function judge(state: State, sequence: number[], complete: boolean): Fate {
  const text = String.fromCharCode(...sequence);
  // Controls may stand between the escape and what says of which kind it is.
  const start = sequence.findIndex((byte, at) => at > 0 && byte >= 0x20);
  const kind = text.charAt(start);
  const body = start < 0 ? "" : text.slice(start + 1);
  const asks =
    state === "escape"
      ? text.endsWith("Z")
      : state === "csi"
        ? complete && csiAsks(body)
        : state === "osc"
          ? oscAsks(body.replace(/\x07$/, ""))
          : state === "string"
            ? (kind === "P" && /^[0-9;]*[+$]q/.test(body)) || (kind === "_" && graphicsAsks(body))
            : false;
  return asks ? "drop" : "pass";
}

function csiAsks(body: string): boolean {
  const parsed = /^([<-?]?)([0-9;:]*)([ -/]?)([@-~])$/.exec(body.replace(/[\x00-\x1f\x7f-\xff]/g, ""));
  if (!parsed) return false;
  const [, prefix = "", params = "", intermediate = "", last = ""] = parsed;
  if (intermediate === "") {
    if (last === "c") return prefix !== "?" && prefix !== "<";
    if (last === "n") return prefix === "" || prefix === "?";
    if (last === "x") return prefix === "";
    if (last === "q") return prefix === ">";
    if (last === "u" || last === "m" || last === "S") return prefix === "?";
    const first = Number.parseInt(params, 10) || 0;
    return last === "t" && prefix === "" && (first === 11 || (first >= 13 && first <= 16) || (first >= 18 && first <= 21));
  }
  if (intermediate === "$" && last === "p") return prefix === "" || prefix === "?";
  if (intermediate === "*" && last === "y") return true;
  return prefix === "" && ["$w", "$u", "'|", "&u", '"v', "#|", "#R"].includes(intermediate + last);
}

const COLOURS = new Set("4 5 10 11 12 13 14 15 16 17 18 19 50 52 104 105".split(" "));

function oscAsks(text: string): boolean {
  const [number = "", ...parts] = text.split(";");
  if (COLOURS.has(number)) return parts.includes("?");
  switch (number) {
    case "21":
      return parts.some((part) => part.endsWith("?"));
    case "22":
      return parts.some((part) => part.startsWith("?"));
    case "60":
    case "61":
    case "5522":
      return true;
    case "99":
      return parts.some((part) => part.split(":").includes("p=?"));
    case "1337":
      return parts.some((part) => part.startsWith("Report") || part.startsWith("Request"));
    default:
      return false;
  }
}

function graphicsAsks(body: string): boolean {
  return body.startsWith("G") && (body.slice(1).split(";")[0] ?? "").split(",").includes("a=q");
}

/**
 * Keys without what a terminal says of itself: focus reports, and answers to queries where it should give none. Nobody pressed
 * those: from a terminal that does not write they must neither take the turn nor be refused aloud.
 */
export function withoutReports(keys: Uint8Array, answersToo: boolean): Uint8Array {
  if (!keys.includes(ESC)) return keys;
  let text = "";
  for (const byte of keys) text += String.fromCharCode(byte);
  text = text.replace(/\x1b\[[IO]/g, "");
  if (answersToo) {
    text = text
      .replace(/\x1b[\]P_][^\x07\x1b]*(?:\x07|\x1b\\)/g, "")
      .replace(/\x1b\[([^@-~]*)([@-~])/g, (whole, body: string, last: string) => (isAnswer(body, last) ? "" : whole));
  }
  return Uint8Array.from(text, (c) => c.charCodeAt(0));
}

function isAnswer(body: string, last: string): boolean {
  if (last === "c" || last === "n" || last === "t") return true;
  if (last === "y") return body.endsWith("$");
  if (last === "u" || last === "m" || last === "S") return body.startsWith("?") || body.startsWith(">");
  // A cursor in the first row looks like F3 with a modifier.
  return last === "R" && body.includes(";") && !body.startsWith("1;");
}
