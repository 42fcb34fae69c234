// One process, whole: its words, where it is, whose doing it is, and what it holds open.

import { useEffect, useRef } from "preact/hooks";
import type { FdNode, GraphAnswer } from "@holdfast/client";
import { commandLine, span } from "../../lib/text.js";
import { ActorChip } from "../../ui/Actor.js";
import { Icon } from "../../ui/icons.js";
import { Line, Lines } from "../../ui/Text.js";
import { KNOWN, type Twig } from "./model.js";

const STATES: Record<string, string> = { R: "runs", S: "sleeps", D: "in the kernel", T: "stopped", t: "traced", Z: "dead", I: "idle" };
const FDS_SHOWN = 200;

export function Details({ twig, graph, onClose }: { twig: Twig; graph: GraphAnswer; onClose: () => void }) {
  const { process, ended } = twig;
  const box = useRef<HTMLElement>(null);
  useEffect(() => box.current?.scrollIntoView({ block: "nearest" }), [process.id]);
  return (
    <section class="details" ref={box} tabIndex={0} aria-label={`Process ${process.pid}`} onKeyDown={(event) => event.key === "Escape" && onClose()}>
      <header>
        <h3>
          <Line text={process.comm} /> <span class="muted">{process.pid}</span>
          {ended && <span class="end bad">{ended}</span>}
        </h3>
        <button type="button" class="quiet icon-only" aria-label="Close details" onClick={onClose}>
          <Icon name="close" size={16} />
        </button>
      </header>
      <Lines class="quoted" text={process.argv.length > 0 ? commandLine(process.argv) + (process.argv_cut ? " …" : "") : `(${process.comm})`} />
      <Facts twig={twig} graph={graph} />
      <Fds twig={twig} graph={graph} />
    </section>
  );
}

function Facts({ twig, graph }: { twig: Twig; graph: GraphAnswer }) {
  const { process, binding } = twig;
  const sockets = graph.sockets.filter(({ holders }) => holders.includes(process.id));
  return (
    <dl>
      <dt>Started by</dt>
      <dd>
        {binding?.actor ? <ActorChip handle={binding.actor.handle} whole /> : "unknown"}
        {binding?.act !== undefined && binding.act !== null && <span> act {binding.act}</span>}
        {binding && (
          <span class="muted why">
            {KNOWN[binding.by].short}: {KNOWN[binding.by].long}
          </span>
        )}
      </dd>
      <dt>Directory</dt>
      <dd>{process.cwd ? <Line class="mono" text={process.cwd} /> : <span class="muted">not readable</span>}</dd>
      {process.exe && (
        <>
          <dt>Program</dt>
          <dd>
            <Line class="mono" text={process.exe} />
          </dd>
        </>
      )}
      <dt>State</dt>
      <dd>
        {STATES[process.state] ?? process.state}
        {process.foreground ? ", in the foreground" : ""}, {process.threads} {process.threads === 1 ? "thread" : "threads"}, {seconds(process.cpu_ms)}{" "}
        of processor time, {memory(process.rss_bytes)}
      </dd>
      <dt>Since</dt>
      <dd>
        <time dateTime={new Date(process.started_ms).toISOString()}>{new Date(process.started_ms).toLocaleString()}</time>{" "}
        <span class="muted">({span(graph.at_ms - process.started_ms)})</span>
      </dd>
      {sockets.length > 0 && (
        <>
          <dt>Sockets</dt>
          <dd>
            <ul class="sockets">
              {sockets.map((socket) => (
                <li key={socket.id}>
                  <span class={socket.state === "listening" ? "port" : "muted"}>{socket.state ?? socket.protocol ?? "unknown"}</span>{" "}
                  <Line
                    class="mono"
                    text={[socket.local ?? socket.path ?? "", socket.remote ? `→ ${socket.remote}` : ""].filter(Boolean).join(" ") || socket.id}
                  />
                </li>
              ))}
            </ul>
          </dd>
        </>
      )}
    </dl>
  );
}

function Fds({ twig, graph }: { twig: Twig; graph: GraphAnswer }) {
  const { process } = twig;
  const fds = process.fds ?? [];
  const more = (process.more_fds ?? 0) + Math.max(0, fds.length - FDS_SHOWN);
  return (
    <>
      {process.unknown ? (
        <p class="muted">Its open files are not readable: the process belongs to another user.</p>
      ) : (
        <table>
          <caption>Open files</caption>
          <thead>
            <tr>
              <th scope="col">fd</th>
              <th scope="col">kind</th>
              <th scope="col">what</th>
              <th scope="col">how</th>
            </tr>
          </thead>
          <tbody>
            {fds.slice(0, FDS_SHOWN).map((fd) => (
              <tr key={fd.fd}>
                <td>{fd.fd}</td>
                <td>{fd.kind}</td>
                <td>
                  <Line text={what(fd, graph, process.id)} />
                </td>
                <td>{how(fd)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {more > 0 && <p class="muted">{more} more are open.</p>}
    </>
  );
}

function what(fd: FdNode, graph: GraphAnswer, self: string): string {
  if (fd.path) return `${fd.path}${fd.deleted ? " (deleted)" : ""}`;
  const socket = graph.sockets.find(({ id }) => id === fd.target);
  if (socket)
    return [socket.local ?? socket.path ?? socket.protocol ?? "", socket.remote ? `→ ${socket.remote}` : ""].filter(Boolean).join(" ") || socket.id;
  const pipe = graph.pipes.find(({ id }) => id === fd.target);
  if (!pipe) return fd.target ?? "";
  const others = [...new Set(pipe.ends.filter((end) => end.process !== self).map((end) => graph.processes.find(({ id }) => id === end.process)))];
  return others.length > 0 ? `with ${others.map((one) => (one ? `${one.comm} ${one.pid}` : "?")).join(", ")}` : pipe.id;
}

function how({ read, write, append, offset, locks }: FdNode): string {
  const ways = [
    read && write ? "read, write" : read ? "read" : write ? (append ? "append" : "write") : "",
    offset ? `at ${offset}` : "",
    locks?.length ? "locked" : "",
  ];
  return ways.filter(Boolean).join(", ");
}

export function seconds(ms: number): string {
  const all = ms / 1_000;
  return all < 100 ? `${all.toFixed(1)} s` : all < 6_000 ? `${Math.round(all / 60)} min` : `${(all / 3_600).toFixed(1)} h`;
}

export function memory(bytes: number): string {
  const mega = bytes / (1024 * 1024);
  return mega < 10 ? `${mega.toFixed(1)} MB` : mega < 1_000 ? `${Math.round(mega)} MB` : `${(mega / 1024).toFixed(1)} GB`;
}
