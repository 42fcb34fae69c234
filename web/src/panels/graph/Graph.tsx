// The process tree with ports and files, as it is now, each with whose doing it is. On a narrow screen a list.

import { useEffect, useRef, useState } from "preact/hooks";
import type { GraphAnswer } from "@holdfast/client";
import { commandLine, ownWords, shownLine } from "../../lib/text.js";
import { ActorChip, parts } from "../../ui/Actor.js";
import { Line } from "../../ui/Text.js";
import type { PanelProps } from "../index.js";
import { Details, memory, seconds } from "./Details.js";
import { flat, forest, KNOWN, Model, picture, type Held, type Placed, type Twig } from "./model.js";
import "../../css/graph.css";

export default function Graph({ live }: PanelProps) {
  const [model] = useState(() => new Model(live));
  const [chosen, choose] = useState<string | undefined>(undefined);
  const isNarrow = useMedia("(max-width: 700px)");
  useEffect(() => () => model.close(), []);
  const graph = model.graph.value;
  const roots = graph ? forest(graph, model.ghosts.value) : [];
  const twigs = [...flat(roots)];
  const one = twigs.find(({ process }) => process.id === chosen);
  const toggle = (id: string) => choose(id === chosen ? undefined : id);
  const isOver = model.over.value || live.view.value.life !== "running";
  return (
    <div class="graph">
      <p class="graph-top muted" role="status">
        {summary(graph, twigs, isOver)}
      </p>
      {model.trouble.value && (
        <p class="banner" role="alert">
          <Line text={model.trouble.value} />
        </p>
      )}
      {isNarrow ? <List roots={roots} chosen={chosen} onChoose={toggle} /> : <Drawing roots={roots} chosen={chosen} onChoose={toggle} />}
      {!isNarrow && <Legend />}
      {one && graph && <Details twig={one} graph={graph} onClose={() => choose(undefined)} />}
    </div>
  );
}

function summary(graph: GraphAnswer | undefined, twigs: readonly Twig[], isOver: boolean): string {
  if (isOver) return `The session has ended${graph ? "; this is what ran last." : "."}`;
  if (!graph) return "Looking …";
  const ports = twigs.flatMap(({ held }) => held.filter(({ kind }) => kind === "port")).length;
  const counted = (count: number, one: string, many: string) => `${count} ${count === 1 ? one : many}`;
  return `${counted(twigs.length, "process", "processes")}, ${counted(ports, "open port", "open ports")}${graph.partial ? "; some of it is not readable" : ""}`;
}

interface ViewProps {
  roots: readonly Twig[];
  chosen: string | undefined;
  onChoose: (id: string) => void;
}

function Drawing({ roots, chosen, onChoose }: ViewProps) {
  const box = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState(520);
  useEffect(() => {
    if (!box.current) return;
    const seen = new ResizeObserver(([entry]) => entry && setRoom(entry.contentRect.width));
    seen.observe(box.current);
    return () => seen.disconnect();
  }, []);
  const { placed, width, height, card } = picture(roots, room);
  // Arrows go from node to node, as in a tree anywhere.
  const onKeyDown = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) return;
    const nodes = [...(box.current?.querySelectorAll<SVGGElement>(".hit") ?? [])];
    const at = nodes.indexOf(document.activeElement as unknown as SVGGElement);
    if (at < 0) return;
    event.preventDefault();
    nodes[Math.min(nodes.length - 1, Math.max(0, at + by))]?.focus();
  };
  return (
    <div class="drawing" ref={box} onKeyDown={onKeyDown}>
      <svg width={Math.max(width, 10)} height={height} role="group" aria-label="Processes">
        {placed.map(({ edge, twig }) => edge && <path key={`edge ${twig.process.id}`} class={`edge ${twig.ended ? "ended" : ""}`} d={edge} />)}
        {placed.map((one) => (
          <Node key={one.twig.process.id} placed={one} card={card} isChosen={one.twig.process.id === chosen} onChoose={onChoose} />
        ))}
      </svg>
    </div>
  );
}

function Node({
  placed,
  card,
  isChosen,
  onChoose,
}: {
  placed: Placed;
  card: { width: number; height: number };
  isChosen: boolean;
  onChoose: (id: string) => void;
}) {
  const { twig, x, y, pills, more } = placed;
  const { process, binding, ended } = twig;
  const words = shownLine(title(twig));
  const handle = binding?.actor?.handle;
  const kind = handle ? (parts(handle).kind ?? "unknown") : "unknown";
  const who = handle ? shownLine(parts(handle).name) : "unknown";
  const cutWho = `${cut(who, Math.max(8, (card.width - 110) / 7.5))}${binding?.by === "time" ? " ?" : ""}`;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    onChoose(process.id);
  };
  return (
    <g
      class={`node ${kind} ${ended ? "ended" : ""} ${process.foreground ? "front" : ""} ${process.state === "R" ? "runs" : ""}`}
      style={{ transform: `translate(${x}px, ${y}px)` }}
      onClick={() => onChoose(process.id)}
    >
      {/* In SVG names of attributes are as they are written: `tabindex`. */}
      <g class="hit" role="button" tabindex={0} aria-pressed={isChosen} aria-label={said(twig)} onKeyDown={onKeyDown}>
        <rect class="card-box" width={card.width} height={card.height} rx="9" />
      </g>
      <g aria-hidden="true">
        <rect class="stripe" x="0.500" y="8" width="3.500" height={card.height - 16} rx="1.750" />
        <text class="words" x="13" y="19">
          {cut(words, (card.width - 24) / 7.5)}
        </text>
        <circle class="pulse" cx="17" cy="33" r="3.500" />
        <text class="facts" x="26" y="37">
          {facts(twig, (card.width - 40 - 7.5 * cutWho.length) / 7.1)}
        </text>
        <text class="who" x={card.width - 10} y="37" text-anchor="end">
          {cutWho}
        </text>
        {pills.map((pill) => (
          <g key={pill.held.key} class={`pill ${pill.held.kind}`}>
            <path
              class="edge"
              d={`M${card.width} ${card.height / 2}C${card.width + 14} ${card.height / 2} ${card.width + 10} ${pill.y - y + 11} ${pill.x - x} ${pill.y - y + 11}`}
            />
            <rect x={pill.x - x} y={pill.y - y} width={pill.width} height="22" rx="11" />
            <text x={pill.x - x + 10} y={pill.y - y + 15}>
              {cut(shownLine(pill.held.text), (pill.width - 18) / 7.2)}
            </text>
          </g>
        ))}
        {more > 0 && (
          <text class="facts" x={card.width + 36} y={(pills.at(-1)?.y ?? y) - y + 42}>
            {more} more
          </text>
        )}
      </g>
    </g>
  );
}

/** Number, processor time and memory, as much of it as there is room for. */
function facts({ process, ended }: Twig, columns: number): string {
  if (ended) return ended;
  const all = [String(process.pid), seconds(process.cpu_ms), memory(process.rss_bytes)];
  while (all.length > 1 && all.join(" · ").length > columns) all.pop();
  return all.join(" · ");
}

/** A node in words, for who does not see the picture. */
function said({ process, binding, held, ended }: Twig): string {
  const whose = binding?.actor ? `started by ${binding.actor.handle}, ${KNOWN[binding.by].short}` : "who started it is unknown";
  const holds = held.slice(0, 6).map(({ title: holding }) => holding);
  return shownLine([`${commandLine(ownWords(process.argv)) || process.comm}, process ${process.pid}`, ended ?? "", whose, ...holds].filter(Boolean).join("; "));
}

/** The words of a process, its program without the path. */
function title({ process }: Twig): string {
  const [program = process.comm, ...rest] = ownWords(process.argv);
  return commandLine([program.slice(program.lastIndexOf("/") + 1) || program, ...rest]);
}

function cut(text: string, columns: number): string {
  const max = Math.max(3, Math.floor(columns));
  return text.length <= max ? text : `${text.slice(0, max - 1)}…`;
}

function List({ roots, chosen, onChoose }: ViewProps) {
  return (
    <ul class="tree">
      {[...flat(roots)].map((twig) => {
        const { process, binding, held, ended, depth } = twig;
        return (
          <li key={process.id} class={ended ? "ended" : ""} style={{ paddingInlineStart: `${Math.min(depth, 6) * 14}px` }}>
            <button type="button" aria-expanded={process.id === chosen} onClick={() => onChoose(process.id)}>
              <Line class="tree-words" text={title(twig)} />
              <span class="tree-facts muted">
                {ended ?? `${process.pid} · ${seconds(process.cpu_ms)} · ${memory(process.rss_bytes)}`}
                {binding?.actor ? <ActorChip handle={binding.actor.handle} note={KNOWN[binding.by].short} /> : <span>actor unknown</span>}
                {binding?.by === "time" && <span title={KNOWN.time.long}>?</span>}
              </span>
              {held.length > 0 && (
                <span class="tree-held">
                  {held.slice(0, 5).map((one) => (
                    <HeldChip key={one.key} held={one} />
                  ))}
                  {held.length > 5 && <span class="muted">{held.length - 5} more</span>}
                </span>
              )}
            </button>
          </li>
        );
      })}
    </ul>
  );
}

export function HeldChip({ held }: { held: Held }) {
  return (
    <span class={`held ${held.kind}`} title={shownLine(held.title)}>
      <Line text={held.text} />
    </span>
  );
}

function Legend() {
  return (
    <p class="legend muted">
      <span class="key human">human</span>
      <span class="key agent">agent</span>
      <span class="key device">service, device</span>
      <span class="key unknown">unknown</span>
      <span>name ? : by time, not proof</span>
    </p>
  );
}

function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const changed = () => setMatches(media.matches);
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  }, [query]);
  return matches;
}
