// OSC 52: a program wants to set, or to read, the clipboard. Reading is never answered; setting is asked about.

/** More is not text that somebody copied. */
const COPIED_CHARS_MAX = 1_000_000;

/** The text a program wants copied; nothing where it asks to read, or makes no sense. */
export function clipboardText(data: string): string | undefined {
  const encoded = data.slice(data.indexOf(";") + 1);
  if (encoded === "?" || encoded === "" || encoded.length > COPIED_CHARS_MAX) return undefined;
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0)));
  } catch {
    return undefined;
  }
}
