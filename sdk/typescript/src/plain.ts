// Output as text: without escape sequences, as it comes.

const ESCAPES =
  // Strings (OSC, DCS, APC, PM, SOS), control sequences, and the short ones.
  /\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[PX^_][^\x1b]*\x1b\\|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]|[\x00-\x08\x0b\x0c\x0e-\x1a\x7f]/g;

/** The last bytes kept for a match: a few screens. */
const KEPT_CHARS = 64 * 1024;

/** Collects output and gives its end as text. A sequence that is cut in two is judged when it is whole. */
export class PlainText {
  private readonly decoder = new TextDecoder();
  private raw = "";

  /** Takes more output; gives what is known as text by now. */
  push(bytes: Uint8Array): string {
    this.raw += this.decoder.decode(bytes, { stream: true });
    if (this.raw.length > KEPT_CHARS) this.raw = this.raw.slice(-KEPT_CHARS);
    return plainText(this.raw);
  }

  /** Something is gone: what comes next does not follow. */
  cut(): void {
    this.raw = "";
  }
}

/** A text without its escape sequences and control characters, lines ended by `\n`. */
export function plainText(text: string): string {
  return text.replace(ESCAPES, "").replaceAll("\r\n", "\n");
}
