// Paths and sizes of files, and a file for the browser's own downloads.

/** A name below a directory. */
export function below(dir: string, name: string): string {
  return dir.endsWith("/") ? dir + name : `${dir}/${name}`;
}

/** The directory that has a path. */
export function parent(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf("/"), 1));
}

/** A count of bytes as people read it. */
export function bytesOf(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [value, unit] = [count, 0];
  for (; value >= 1024 && unit < units.length - 1; unit += 1) value /= 1024;
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** Hands bytes to the browser as a file. They are an attachment of no type: nothing of them is ever shown as a page. */
export function download(name: string, bytes: Uint8Array): void {
  const url = URL.createObjectURL(new Blob([bytes as BlobPart], { type: "application/octet-stream" }));
  const anchor = Object.assign(document.createElement("a"), { href: url, download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** What a preview can be, by its name and its first bytes. */
export function kindOf(name: string, bytes: Uint8Array): "image" | "markdown" | "text" | "other" {
  if (/\.(png|jpe?g|gif|webp|bmp|ico|avif)$/i.test(name)) return "image";
  if (bytes.subarray(0, 8192).includes(0)) return "other";
  return /\.(md|markdown)$/i.test(name) ? "markdown" : "text";
}

export type Block = { kind: "heading"; level: number; text: string } | { kind: "code" | "text"; text: string } | { kind: "list"; items: string[] };

/** The blocks of a Markdown text: headings, lists, code and paragraphs. Everything else, HTML above all, stays the text that it is. */
export function blocks(text: string): Block[] {
  const found: Block[] = [];
  let code: string[] | undefined;
  let last: Block | undefined;
  for (const line of text.split(/\r?\n/)) {
    if (/^\s*(```|~~~)/.test(line)) {
      if (code) found.push({ kind: "code", text: code.join("\n") });
      code = code ? undefined : [];
      last = undefined;
      continue;
    }
    if (code) {
      code.push(line);
      continue;
    }
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    const item = /^\s*(?:[-*+]|\d+[.)])\s+(.*)$/.exec(line);
    if (line.trim() === "") last = undefined;
    else if (heading) {
      found.push({ kind: "heading", level: heading[1]?.length ?? 1, text: heading[2] ?? "" });
      last = undefined;
    } else if (item) {
      if (last?.kind === "list") last.items.push(item[1] ?? "");
      else found.push((last = { kind: "list", items: [item[1] ?? ""] }));
    } else if (last?.kind === "text") last.text += `\n${line}`;
    else if (last?.kind === "list") last.items[last.items.length - 1] += ` ${line.trim()}`;
    else found.push((last = { kind: "text", text: line }));
  }
  if (code) found.push({ kind: "code", text: code.join("\n") });
  return found;
}
