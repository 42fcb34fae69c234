// Files of a session's working tree.

import type { CallOptions, Client } from "./client.js";
import { newKey } from "./ids.js";
import { pause } from "./signals.js";
import type { FileChange, FileEntry, FilesEditAnswer, FilesListAnswer } from "./types.js";

/** What is longer is sent in pieces of so many bytes. */
const WRITE_BYTES_MAX = 1024 * 1024;

/** How a file is written. */
export interface WriteOptions extends CallOptions {
  /** It must not exist yet. */
  new?: boolean;
  /** The permissions of a new file. */
  mode?: number;
  /** Hears how many bytes have arrived. */
  onProgress?: (done: number, size: number) => void;
}

/** How a file is read. */
export interface ReadFileOptions extends CallOptions {
  /** Hears how many bytes have come. */
  onProgress?: (done: number, size: number) => void;
  /** No more than so many bytes from its beginning. */
  max?: number;
}

/** Something that happened to an entry of a directory. */
export interface FileEvent {
  kind: "created" | "changed" | "removed";
  entry: FileEntry;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Paths are from the session's live working directory on, and do not leave its working tree. */
export class Files {
  private readonly client: Client;
  private readonly session: string;

  constructor(client: Client, session: string) {
    this.client = client;
    this.session = session;
  }

  /** One page of a directory; of a file, its own entry. */
  page(path = "", after?: string, options: CallOptions = {}): Promise<FilesListAnswer> {
    const params = { session: this.session, ...(path ? { path } : {}), ...(after === undefined ? {} : { after }) };
    return this.client.call("files.list", params, options);
  }

  /** Lists a directory; of a file, its own entry. */
  async list(path = "", options: CallOptions = {}): Promise<FileEntry[]> {
    const entries: FileEntry[] = [];
    for (let after: string | undefined; ; ) {
      const page = await this.page(path, after, options);
      entries.push(...page.entries);
      if (page.next === undefined || page.next === null) return entries;
      after = page.next;
    }
  }

  /** Reads a whole file. Fails with `file_changed` where somebody writes it meanwhile. */
  async read(path: string, options: ReadFileOptions = {}): Promise<Uint8Array> {
    const { onProgress, max = Number.POSITIVE_INFINITY, ...call } = options;
    const parts: Uint8Array[] = [];
    let [offset, etag] = [0, ""];
    for (;;) {
      const room = Math.min(WRITE_BYTES_MAX, max - offset);
      const params = { session: this.session, path, offset, max: room, ...(etag ? { etag } : {}) };
      const piece = await this.client.call("files.read", params, call);
      parts.push(piece.bytes);
      offset += piece.bytes.length;
      etag = piece.etag;
      onProgress?.(offset, piece.size);
      if (piece.end || piece.bytes.length === 0 || offset >= max) return joined(parts, offset);
    }
  }

  /** Reads a whole file as UTF-8. */
  async readText(path: string, options: ReadFileOptions = {}): Promise<string> {
    return decoder.decode(await this.read(path, options));
  }

  /** Writes a whole file at once. A `Blob`, such as a file that was chosen in a browser, is read piece by piece. */
  async write(path: string, data: string | Uint8Array | Blob, options: WriteOptions = {}): Promise<FileChange> {
    const { new: isNew = false, mode, onProgress, ...call } = options;
    const whole = typeof data === "string" ? encoder.encode(data) : data;
    const size = whole instanceof Uint8Array ? whole.length : whole.size;
    const slice = async (from: number, to: number) =>
      whole instanceof Uint8Array ? whole.subarray(from, to) : new Uint8Array(await whole.slice(from, to).arrayBuffer());
    const how = mode === undefined ? {} : { mode };
    if (isNew || size <= WRITE_BYTES_MAX) {
      const params = { session: this.session, path, ...how, ...(isNew ? { new: true } : {}) };
      return this.client.call("files.write", params, { ...call, bytes: await slice(0, size) });
    }
    // Letters and digits alone.
    const tag = newKey().replace(/[^0-9A-Za-z]/g, "").slice(0, 64);
    const upload = { session: this.session, path, size, tag, ...how };
    for (let offset = 0; offset < size; ) {
      const bytes = await slice(offset, offset + WRITE_BYTES_MAX);
      offset = (await this.client.call("files.upload", { ...upload, offset }, { ...call, bytes })).offset;
      onProgress?.(offset, size);
    }
    const done = await this.client.call("files.upload", { ...upload, finish: true }, { ...call, bytes: new Uint8Array() });
    return done.change as FileChange;
  }

  /** Replaces a text that is in the file exactly once. */
  edit(path: string, old: string, replacement: string, options: CallOptions = {}): Promise<FilesEditAnswer> {
    return this.client.call("files.edit", { session: this.session, path, old, new: replacement }, options);
  }

  /** Undoes your last write, where the bytes before it are kept. */
  undo(path?: string, options: CallOptions = {}): Promise<FileChange> {
    return this.client.call("files.undo", { session: this.session, ...(path === undefined ? {} : { path }) }, options);
  }

  /** The last writes through the host, newest first. */
  changes(options: CallOptions = {}): Promise<FileChange[]> {
    return this.client.call("files.changes", { session: this.session }, options);
  }

  /** What a write changed; none where the bytes are not kept, or are no text. */
  async diff(change: number, options: CallOptions = {}): Promise<string | undefined> {
    return (await this.client.call("files.diff", { session: this.session, change }, options)).diff ?? undefined;
  }

  /** What happens to the entries of a directory from now on. It is looked at every `intervalMs`. */
  async *watch(path = "", options: CallOptions & { intervalMs?: number } = {}): AsyncGenerator<FileEvent, void, void> {
    const { intervalMs = 1_000, ...call } = options;
    const named = async () => new Map((await this.list(path, call)).map((entry) => [entry.name, entry]));
    for (let before = await named(); ; ) {
      await pause(intervalMs, call.signal);
      const now = await named();
      for (const [name, entry] of now) {
        const was = before.get(name);
        if (!was) yield { kind: "created", entry };
        else if (JSON.stringify(was) !== JSON.stringify(entry)) yield { kind: "changed", entry };
      }
      for (const [name, entry] of before) if (!now.has(name)) yield { kind: "removed", entry };
      before = now;
    }
  }
}

function joined(parts: Uint8Array[], length: number): Uint8Array {
  if (parts.length === 1 && parts[0]) return parts[0];
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
