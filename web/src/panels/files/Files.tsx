// Files of the session's working tree: browse, look, download, drop to upload, and what was written through the host.

import { useEffect, useRef, useState } from "preact/hooks";
import type { FileChange, FileEntry, FilesListAnswer } from "@holdfast/client";
import { client } from "../../lib/store.js";
import { shownLine, span } from "../../lib/text.js";
import { Icon } from "../../ui/icons.js";
import { Line, Lines } from "../../ui/Text.js";
import { attempt, tell } from "../../ui/told.js";
import type { PanelProps } from "../index.js";
import { Preview } from "./Preview.js";
import { below, bytesOf, download, parent } from "./model.js";
import "../../css/files.css";

interface Transfer {
  name: string;
  done: number;
  size: number;
}

// What the panel knows of a session's files, and does with them.
function useFiles({ live }: PanelProps) {
  const { files } = live.session;
  const [page, setPage] = useState<FilesListAnswer | undefined>();
  const [entries, setEntries] = useState<FileEntry[]>([]);
  const [open, setOpen] = useState<string | undefined>();
  const [changes, setChanges] = useState<FileChange[]>([]);
  const [transfer, setTransfer] = useState<Transfer | undefined>();
  const [rights, setRights] = useState<ReadonlySet<string>>(new Set());

  const show = async (path: string) => {
    const first = await attempt(() => files.page(path));
    if (!first) return;
    setOpen(undefined);
    setPage(first);
    setEntries(first.entries);
    setChanges((await files.changes().catch(() => [])) ?? []);
  };
  const more = async () => {
    const next = page?.next ? await attempt(() => files.page(page.path, page.next ?? undefined)) : undefined;
    if (!next || !page) return;
    setPage({ ...page, ...(next.next ? { next: next.next } : { next: undefined as never }) });
    setEntries([...entries, ...next.entries]);
  };
  useEffect(() => {
    void client.call("grant.list", { session: live.id }).then(
      ({ yours }) => setRights(new Set(yours.split(","))),
      () => undefined,
    );
    void show("");
  }, [live.id]);

  const moving = (name: string) => (done: number, size: number) => setTransfer({ name, done, size });
  const upload = async (list: FileList | null | undefined) => {
    for (const file of list ?? []) {
      setTransfer({ name: file.name, done: 0, size: file.size });
      const path = below(page?.path ?? "", file.name);
      const done = await attempt(() => files.write(path, file, { onProgress: moving(file.name) }));
      if (done) tell(`${shownLine(file.name)} is uploaded.`);
    }
    setTransfer(undefined);
    if (page) await show(page.path);
  };
  const save = async (path: string) => {
    const name = path.split("/").pop() ?? "file";
    const bytes = await attempt(() => files.read(path, { onProgress: moving(name) }));
    setTransfer(undefined);
    if (bytes) download(name, bytes);
  };
  return { files, page, entries, open, setOpen, changes, transfer, rights, show, more, upload, save };
}

export default function Files(props: PanelProps) {
  const { files, page, entries, open, setOpen, changes, transfer, rights, show, more, upload, save } = useFiles(props);
  const [isOver, setOver] = useState(false);
  const mayWrite = rights.has("files:write");
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    if (mayWrite) void upload(event.dataTransfer?.files);
  };
  if (!page) return <p class="files muted">{rights.size > 0 && !rights.has("files:read") ? "You may not read files here." : "…"}</p>;
  return (
    <div
      class={`files ${isOver ? "over" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(mayWrite);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <div class="files-top">
        <Crumbs page={page} onShow={(path) => void show(path)} />
        {mayWrite && <Upload onChosen={(list) => void upload(list)} />}
      </div>
      {transfer && (
        <p class="transfer" role="status">
          <Line text={transfer.name} />
          <progress value={transfer.done} max={Math.max(transfer.size, 1)} aria-label={`Progress of ${shownLine(transfer.name)}`} />
        </p>
      )}
      {open === undefined ? (
        <List page={page} entries={entries} onShow={(path) => void show(path)} onOpen={setOpen} onSave={(path) => void save(path)} onMore={more} />
      ) : (
        <Preview files={files} path={open} onClose={() => setOpen(undefined)} onSave={() => void save(open)} />
      )}
      <Changes files={files} changes={changes} />
    </div>
  );
}

function Upload({ onChosen }: { onChosen: (list: FileList | null) => void }) {
  const chooser = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" class="small" onClick={() => chooser.current?.click()}>
        Upload
      </button>
      <input ref={chooser} type="file" multiple hidden aria-label="Files to upload" onChange={(event) => onChosen(event.currentTarget.files)} />
    </>
  );
}

function Crumbs({ page, onShow }: { page: FilesListAnswer; onShow: (path: string) => void }) {
  const rest = page.path.slice(page.root.length).split("/").filter(Boolean);
  const top = page.root.split("/").filter(Boolean).pop() ?? "/";
  const parts = [{ name: top, path: page.root }, ...rest.map((name, at) => ({ name, path: below(page.root, rest.slice(0, at + 1).join("/")) }))];
  return (
    <nav class="crumbs" aria-label="Directory">
      {parts.map(({ name, path }, at) => (
        <button key={path} type="button" class="quiet small" aria-current={at === parts.length - 1 ? "page" : undefined} onClick={() => onShow(path)}>
          <Line text={name} />
        </button>
      ))}
    </nav>
  );
}

interface ListProps {
  page: FilesListAnswer;
  entries: FileEntry[];
  onShow: (path: string) => void;
  onOpen: (path: string) => void;
  onSave: (path: string) => void;
  onMore: () => Promise<void>;
}

function List({ page, entries, onShow, onOpen, onSave, onMore }: ListProps) {
  return (
    <>
      <ul class="entries">
        {page.path !== page.root && (
          <li>
            <button type="button" class="entry" onClick={() => onShow(parent(page.path))}>
              ..
            </button>
          </li>
        )}
        {entries.map((entry) => {
          const path = below(page.path, entry.name);
          const isDir = entry.kind === "dir";
          const go = () => (isDir ? onShow(path) : onOpen(path));
          return (
            <li key={entry.name}>
              <button type="button" class="entry" disabled={entry.kind === "special"} onClick={go}>
                <Line text={isDir ? `${entry.name}/` : entry.name} />
                <span class="muted">{entry.kind === "file" ? bytesOf(entry.size) : entry.target ? `→ ${shownLine(entry.target)}` : ""}</span>
              </button>
              {entry.kind === "file" && (
                <button type="button" class="quiet icon-only" aria-label={`Download ${shownLine(entry.name)}`} onClick={() => onSave(path)}>
                  <Icon name="down" size={16} />
                </button>
              )}
            </li>
          );
        })}
      </ul>
      {entries.length === 0 && <p class="muted">This directory is empty.</p>}
      {page.next && (
        <button type="button" class="small" onClick={() => void onMore()}>
          Show more
        </button>
      )}
    </>
  );
}

/** What was written through the host, and what that changed. */
function Changes({ files, changes }: { files: PanelProps["live"]["session"]["files"]; changes: FileChange[] }) {
  const [diff, setDiff] = useState<{ id: number; text: string } | undefined>();
  if (changes.length === 0) return null;
  const show = async (change: FileChange) => {
    if (diff?.id === change.id) return setDiff(undefined);
    const text = await attempt(async () => (await files.diff(change.id)) ?? "The bytes are not kept, or are no text.");
    if (text !== undefined) setDiff({ id: change.id, text });
  };
  return (
    <section class="changes" aria-label="Writes">
      <h3>Writes</h3>
      <ul>
        {changes.slice(0, 20).map((change) => (
          <li key={change.id}>
            <button type="button" class="entry" aria-expanded={diff?.id === change.id} onClick={() => void show(change)}>
              <Line text={change.path.split("/").pop() ?? change.path} />
              <span class="muted">
                {change.by}, {ago(change.at_ms)}
              </span>
            </button>
            {diff?.id === change.id && <Diff text={diff.text} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

function ago(atMs: number): string {
  const words = span(Date.now() - atMs);
  return words === "now" ? words : `${words} ago`;
}

function Diff({ text }: { text: string }) {
  const isHead = (line: string) => line.startsWith("+++ ") || line.startsWith("--- ");
  const kind = (line: string) => (isHead(line) ? "" : line.startsWith("+") ? "added" : line.startsWith("-") ? "gone" : "");
  return (
    <pre class="file-text diff">
      {text.trimEnd().split("\n").map((line, at) => (
        <Lines key={at} class={kind(line)} text={`${line}\n`} />
      ))}
    </pre>
  );
}
