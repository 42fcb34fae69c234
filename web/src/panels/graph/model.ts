// A session's processes as a tree with what they hold, live; and where each stands in the picture.

import { signal } from "@preact/signals";
import type { Binding, GraphAnswer, ProcessNode, SocketNode } from "@holdfast/client";
import { client, type LiveSession } from "../../lib/store.js";

/** A process in the tree. */
export interface Twig {
  process: ProcessNode;
  depth: number;
  binding: Binding | undefined;
  held: Held[];
  children: Twig[];
  /** It has ended a moment ago, this way. */
  ended?: string;
}

/** What a process holds that is worth a place in the picture. */
export interface Held {
  key: string;
  kind: "port" | "connection" | "unix" | "file";
  text: string;
  title: string;
}

const WAIT_MS = 20_000;
const RETRY_MS = 1_000;
/** Processor time and memory move without an event. */
const GLANCE_MS = 4_000;
/** Events that come together are looked at once. */
const GATHER_MS = 120;
/** So long one sees that a process has ended, and how. */
const GHOST_MS = 5_000;

export class Model {
  readonly graph = signal<GraphAnswer | undefined>(undefined);
  readonly trouble = signal<string | undefined>(undefined);
  /** The session has ended. */
  readonly over = signal(false);
  /** Processes that ended a moment ago. */
  readonly ghosts = signal<ReadonlyMap<string, { process: ProcessNode; binding: Binding | undefined; ended: string }>>(new Map());
  private readonly live: LiveSession;
  private readonly closing = new AbortController();
  private gathering: ReturnType<typeof setTimeout> | undefined;

  constructor(live: LiveSession) {
    this.live = live;
    void this.watch();
    const timer = setInterval(() => document.visibilityState === "visible" && this.look(), GLANCE_MS);
    this.closing.signal.addEventListener("abort", () => clearInterval(timer));
  }

  close(): void {
    this.closing.abort();
    clearTimeout(this.gathering);
  }

  private look(): void {
    this.gathering ??= setTimeout(() => {
      this.gathering = undefined;
      void this.read();
    }, GATHER_MS);
  }

  private async read(): Promise<void> {
    const { signal: over } = this.closing;
    if (over.aborted || this.over.value) return;
    try {
      this.graph.value = await client.call("graph.get", { session: this.live.id }, { signal: over });
      this.trouble.value = undefined;
    } catch (error) {
      if (!over.aborted && this.live.view.value.life === "running") this.trouble.value = error instanceof Error ? error.message : String(error);
    }
  }

  private async watch(): Promise<void> {
    const { signal: over } = this.closing;
    let after: number | undefined;
    while (!over.aborted) {
      if (this.live.view.value.life !== "running") return this.end();
      try {
        const answer = await client.call(
          "graph.watch",
          { session: this.live.id, wait_ms: WAIT_MS, ...(after === undefined ? {} : { after }) },
          { signal: over },
        );
        if (after === undefined || answer.lost) await this.read();
        else if (answer.events.length > 0) this.look();
        after = answer.to;
        for (const event of answer.events) if (event.event === "exit") this.mourn(event.pid, endWords(event));
        if (answer.end) return this.end();
      } catch (error) {
        if (over.aborted) return;
        this.trouble.value = error instanceof Error ? error.message : String(error);
        await new Promise((done) => setTimeout(done, RETRY_MS));
      }
    }
  }

  private end(): void {
    this.over.value = true;
  }

  private mourn(pid: number, ended: string): void {
    const process = this.graph.value?.processes.find((one) => one.pid === pid);
    if (!process) return;
    const binding = this.graph.value?.bindings.find(({ of }) => of === process.id);
    this.ghosts.value = new Map(this.ghosts.value).set(process.id, { process, binding, ended });
    setTimeout(() => {
      const left = new Map(this.ghosts.value);
      left.delete(process.id);
      this.ghosts.value = left;
    }, GHOST_MS);
  }
}

function endWords({ code, signal: by }: { code?: number | null; signal?: number | null }): string {
  if (by) return `signal ${by}`;
  return code === undefined || code === null ? "ended" : `exit ${code}`;
}

/** The forest: parents with their children, roots first. */
export function forest({ processes, bindings, sockets }: GraphAnswer, ghosts: Model["ghosts"]["value"]): Twig[] {
  const bound = new Map(bindings.map((binding) => [binding.of, binding]));
  const twigs = new Map<string, Twig>();
  const roots: Twig[] = [];
  const add = (process: ProcessNode, binding: Binding | undefined, ended?: string) => {
    const twig: Twig = { process, depth: 0, binding, held: ended ? [] : held(process, sockets), children: [], ...(ended ? { ended } : {}) };
    twigs.set(process.id, twig);
  };
  for (const process of processes) add(process, bound.get(process.id), ghosts.get(process.id)?.ended);
  for (const [id, { process, binding, ended }] of ghosts) if (!twigs.has(id)) add(process, binding, ended);
  for (const twig of twigs.values()) {
    const parent = twig.process.parent ? twigs.get(twig.process.parent) : undefined;
    (parent ? parent.children : roots).push(twig);
  }
  const sink = (twig: Twig, depth: number) => {
    twig.depth = depth;
    twig.children.sort((a, b) => a.process.started_ms - b.process.started_ms || a.process.pid - b.process.pid);
    for (const child of twig.children) sink(child, depth + 1);
  };
  for (const root of roots) sink(root, 0);
  return roots;
}

/** All of them, each before its children. */
export function* flat(twigs: readonly Twig[]): Generator<Twig> {
  for (const twig of twigs) {
    yield twig;
    yield* flat(twig.children);
  }
}

function held(process: ProcessNode, sockets: readonly SocketNode[]): Held[] {
  const mine = sockets.filter(({ holders }) => holders.includes(process.id));
  const ports: Held[] = [];
  const others: Held[] = [];
  for (const socket of mine) {
    const { local, remote, path, state, kind } = socket;
    const protocol = kind === "dgram" ? "udp" : "tcp";
    if (local && (state === "listening" || (kind === "dgram" && !remote)))
      ports.push({ key: socket.id, kind: "port", text: `:${local.slice(local.lastIndexOf(":") + 1)}`, title: `listens on ${protocol} ${local}` });
    else if (remote) others.push({ key: socket.id, kind: "connection", text: `→ ${remote}`, title: `${protocol} ${local ?? ""} to ${remote}` });
    else if (path) others.push({ key: socket.id, kind: "unix", text: last(path), title: `unix socket ${path}` });
  }
  const files = new Map<string, Held>();
  for (const { kind, path, write, deleted } of process.fds ?? []) {
    if (kind !== "file" || !path) continue;
    const title = `${write ? "writes" : "reads"} ${path}${deleted ? ", which was deleted" : ""}`;
    files.set(path, { key: `file ${path}`, kind: "file", text: `${write ? "✎ " : ""}${last(path)}`, title });
  }
  return [...ports, ...others, ...files.values()];
}

function last(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1) || path;
}

/** How it is known whose doing a process is, said as it is. */
export const KNOWN: Record<Binding["by"], { short: string; long: string }> = {
  cgroup: { short: "proven", long: "The kernel put it into the cgroup of that turn or run when it started." },
  lineage: { short: "by its parent", long: "A process of that act started it." },
  time: { short: "by time, not proof", long: "The shell started it after that act and before the next. This is likely, but not proof." },
  unknown: { short: "unknown", long: "The journal does not reach back that far, or the host does not know who typed." },
};

const CARD = { width: 262, height: 46, gap: 14, indent: 30, margin: 14 };
const PILL = { height: 22, gap: 6, max: 4, lead: 26 };

export interface Placed {
  twig: Twig;
  x: number;
  y: number;
  pills: { held: Held; x: number; y: number; width: number }[];
  more: number;
  /** From its parent, as a path. */
  edge: string | undefined;
}

export interface Picture {
  placed: Placed[];
  width: number;
  height: number;
  card: { width: number; height: number };
}

/** A tidy tree: one row a process, children below and to the right of their parent; what is held stands beside. */
export function picture(roots: readonly Twig[], room: number): Picture {
  const placed: Placed[] = [];
  const deepest = Math.max(0, ...[...flat(roots)].map(({ depth }) => depth));
  const pillsWidth = 150;
  // Cards are as wide as there is room for, within bounds: a panel is wide or narrow.
  const free = room - 2 * CARD.margin - deepest * CARD.indent - PILL.lead - pillsWidth;
  const width = Math.min(340, Math.max(190, free));
  let y = CARD.margin;
  let right = 0;
  const put = (twig: Twig, parent: Placed | undefined) => {
    const x = CARD.margin + twig.depth * CARD.indent;
    const shownPills = twig.held.slice(0, twig.held.length > PILL.max ? PILL.max - 1 : PILL.max);
    const rows = shownPills.length + (twig.held.length > shownPills.length ? 1 : 0);
    const block = Math.max(CARD.height, rows * (PILL.height + PILL.gap) - PILL.gap);
    const top = y + (CARD.height - Math.min(CARD.height, rows * (PILL.height + PILL.gap) - PILL.gap)) / 2;
    const pills = shownPills.map((held, at) => {
      const wide = Math.min(220, held.text.length * 7.3 + 20);
      return {
        held,
        x: x + width + PILL.lead,
        y: rows * (PILL.height + PILL.gap) > CARD.height ? y + at * (PILL.height + PILL.gap) : top + at * (PILL.height + PILL.gap),
        width: wide,
      };
    });
    const trunk = parent && parent.x + CARD.indent / 2;
    const edge = parent && trunk !== undefined ? `M${trunk} ${parent.y + CARD.height}V${y + CARD.height / 2 - 8}q0 8 8 8H${x}` : undefined;
    const one: Placed = { twig, x, y, pills, more: twig.held.length - shownPills.length, edge };
    placed.push(one);
    right = Math.max(right, x + width, ...pills.map((pill) => pill.x + pill.width));
    y += block + CARD.gap;
    for (const child of twig.children) put(child, one);
  };
  for (const root of roots) put(root, undefined);
  return { placed, width: right + CARD.margin, height: y, card: { width, height: CARD.height } };
}
