// Several sessions at once, side by side and live: to watch them. A session is typed into in its own view.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { myActor } from "../lib/login.js";
import { follow, sessionPath } from "../lib/route.js";
import { loaded, sessions, type LiveSession } from "../lib/store.js";
import { ActorChip } from "../ui/Actor.js";
import { StatePill } from "../ui/State.js";
import { Line } from "../ui/Text.js";
import { Tile } from "./tile.js";
import "../css/watch.css";

const STORED = "holdfast.watched";
/** Each is a terminal that is drawn as it changes, and a client of its session. */
const TILES_MAX = 9;
/** How many are shown where nobody has chosen. */
const TILES = 4;

/** The ids that somebody chose. */
const chosen = signal<string[]>((localStorage.getItem(STORED) ?? "").split(" ").filter(Boolean));

function choose(ids: string[]): void {
  chosen.value = ids;
  localStorage.setItem(STORED, ids.join(" "));
}

/** What is watched: what somebody chose and still runs; else what needs this person, and the newest. */
function watched(running: LiveSession[]): LiveSession[] {
  const found = chosen.value.flatMap((id) => running.find((live) => live.id === id) ?? []);
  return found.length > 0 ? found : running.slice(0, TILES);
}

export default function Watch() {
  const running = sessions.value.filter((live) => live.view.value.life === "running");
  const shown = watched(running);
  const toggle = (live: LiveSession) => {
    const ids = shown.map(({ id }) => id);
    choose(ids.includes(live.id) ? ids.filter((id) => id !== live.id) : [...ids, live.id]);
  };
  if (loaded.value && running.length === 0) return <p class="muted">No session is running.</p>;
  return (
    <div class="watch">
      <div class="watch-choice" role="group" aria-label="Sessions to watch">
        {running.map((live) => {
          const isOn = shown.includes(live);
          const isLast = isOn && shown.length === 1;
          return (
            <button
              key={live.id}
              type="button"
              class={`small watch-name ${live.need.value === "none" ? "" : "needs"}`}
              aria-pressed={isOn}
              disabled={isLast || (!isOn && shown.length >= TILES_MAX)}
              onClick={() => toggle(live)}
            >
              <Line text={live.name} />
            </button>
          );
        })}
      </div>
      <div class="tiles" data-count={shown.length}>
        {shown.map((live) => (
          <TileFrame key={`${live.id}.${live.view.value.incarnation ?? 1}`} live={live} />
        ))}
      </div>
    </div>
  );
}

function TileFrame({ live }: { live: LiveSession }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!place.current) return;
    const tile = new Tile(live, place.current);
    return () => tile.close();
  }, []);
  const holder = live.view.value.turn.holder?.actor.handle;
  const needs = live.need.value !== "none";
  return (
    <section class={`tile ${needs ? "needs" : ""}`} aria-label={live.name}>
      <a class="tile-top" href={sessionPath(live.name)} onClick={follow}>
        <Line class="card-name" text={live.name} />
        <StatePill live={live} />
        {holder && <ActorChip handle={holder} you={holder === myActor()?.handle} note="has the turn" />}
      </a>
      <div class="tile-pane" ref={place} role="img" aria-label={`Terminal of ${live.name}, live`} />
    </section>
  );
}
