// A session at a glance: what it does, who is there, and how its output ends.

import { inked } from "../lib/ink.js";
import { follow, sessionPath } from "../lib/route.js";
import type { LiveSession } from "../lib/store.js";
import { myActor } from "../lib/login.js";
import { commandLine, shown, shownLine, span } from "../lib/text.js";
import { Recover } from "../session/recover.js";
import { ActorChip } from "../ui/Actor.js";
import { StatePill } from "../ui/State.js";
import { Line } from "../ui/Text.js";

/** Of a session that is over, what its card has room for. */
const ENDED_LINES = 3;

export function Card({ live }: { live: LiveSession }) {
  const view = live.view.value;
  const doing = live.doing.value;
  const since = view.ended_ms ?? doing?.since_ms ?? view.created_ms;
  const isWaiting = view.life === "running" && doing?.state === "waiting";
  return (
    <a class={`card ${view.life === "running" ? "" : "over"}`} href={sessionPath(view.life === "running" ? view.name : view.id)} onClick={follow}>
      <span class="card-top">
        <Line class="card-name" text={view.name} />
        <StatePill live={live} />
        <Recover live={live} />
        <time class="muted since" dateTime={new Date(since).toISOString()}>
          {span(Date.now() - since)}
        </time>
      </span>
      <Line class="command" text={commandLine(view.command)} />
      {view.lost && <Line class="muted" text={`Lost: ${view.lost.why}`} />}
      {isWaiting && doing?.prompt && (
        <span class="prompt">
          <Line text={doing.prompt} />
        </span>
      )}
      <Tail lines={view.life === "running" ? live.tail.value : live.tail.value.slice(-ENDED_LINES)} />
      <People live={live} />
    </a>
  );
}

function Tail({ lines }: { lines: string[] }) {
  return (
    <span class="tail" aria-label="Last lines of output" role="img">
      {lines.map((line, row) => (
        <span class="tail-line" key={row}>
          {inked(line).map(({ text, ink }, piece) => (
            <span key={piece} class={ink}>
              {shown(text)}
            </span>
          ))}
        </span>
      ))}
      {lines.length === 0 && <span class="tail-line muted">No output yet</span>}
    </span>
  );
}

function People({ live }: { live: LiveSession }) {
  const { clients, turn, life, note, damaged } = live.view.value;
  const me = myActor()?.handle;
  const handles = [...new Set(clients.flatMap(({ actor }) => (actor ? [actor.handle] : [])))];
  const holder = turn.holder?.actor.handle;
  return (
    <span class="people">
      {life === "running" && holder && (
        <span class="has-turn">
          <ActorChip handle={holder} you={holder === me} /> <span>has the turn</span>
        </span>
      )}
      {handles
        .filter((handle) => handle !== holder)
        .map((handle) => (
          <ActorChip key={handle} handle={handle} you={handle === me} note="attached" />
        ))}
      {live.ports.value.slice(0, 4).map((port) => (
        <span class="port" key={port.socket} title={shownLine(`${port.address} ${commandLine(port.argv)}`)}>
          <span class="visually-hidden">listens on port </span>:{port.port}
        </span>
      ))}
      {damaged && <Line class="banner" text={`JOURNAL DAMAGED: ${damaged}`} />}
      {note && note !== damaged && <Line class="muted" text={note} />}
      {!holder && handles.length === 0 && live.ports.value.length === 0 && <span class="muted">no clients</span>}
    </span>
  );
}
