// How a session stands: its name and state, the turn, who is there, its size.

import type { Signal } from "@preact/signals";
import { myActor } from "../lib/login.js";
import { follow, sessionPath } from "../lib/route.js";
import { link, waiting, type LiveSession } from "../lib/store.js";
import { commandLine, shownLine } from "../lib/text.js";
import { isPaletteOpen } from "../palette/commands.js";
import { panels } from "../panels/index.js";
import { ActorChip } from "../ui/Actor.js";
import { Icon } from "../ui/icons.js";
import { StatePill } from "../ui/State.js";
import { Line } from "../ui/Text.js";
import { mayStartAgain, startAgain } from "./again.js";
import { aloud, chooseAloud, chooseFit, chooseScale, scales } from "./font.js";
import { PortItems, Ports } from "./preview.js";
import { Recover } from "./recover.js";
import type { Screen } from "./screen.js";
import type { Standing } from "./standing.js";
import { TurnBar, type TurnActs } from "./TurnBar.js";
import type { Asking } from "./Workspace.js";

export interface Props {
  live: LiveSession;
  now: Standing;
  rights: ReadonlySet<string>;
  acts: TurnActs;
  screen: Screen | undefined;
  fits: Signal<boolean>;
  panel: string | undefined;
  asking: Signal<Asking | undefined>;
  finding: Signal<string | undefined>;
}

export function Header(props: Props) {
  const { live, now, rights, acts, panel } = props;
  const { name, command, title } = live.view.value;
  const others = waiting.value - (["question", "waiting", "turn"].includes(live.need.value) ? 1 : 0);
  return (
    <header class="session-bar">
      <div class="session-title">
        <a class="button quiet icon-only" href="/" onClick={follow} aria-label={others > 0 ? `All sessions, ${others} need you` : "All sessions"}>
          <Icon name="back" />
          {others > 0 && (
            <span class="badge" aria-hidden="true">
              {others}
            </span>
          )}
        </a>
        <span class="session-name" title={shownLine(commandLine(command))}>
          <Line text={name} />
        </span>
        <StatePill live={live} />
        {title && title !== name && <Line class="program-title muted" text={title} />}
        {link.value === "reconnecting" && <span class="state waits">reconnecting</span>}
      </div>
      {now.is !== "over" && <TurnBar live={live} now={now} rights={rights} acts={acts} />}
      <Recover live={live} />
      {mayStartAgain(live) && (
        <button type="button" class="small primary" onClick={() => void startAgain(live)}>
          Start again
        </button>
      )}
      <Operators live={live} mayOpen={rights.has("type")} />
      <Tools {...props} />
      {panels.length > 0 && (
        <nav class="tabs" aria-label="Panels">
          {panels.filter(({ needs }) => !needs || rights.has(needs)).map(({ id, title }) => (
            <a
              key={id}
              class="button quiet small"
              href={panel === id ? sessionPath(name) : sessionPath(name, id)}
              aria-current={panel === id ? "page" : undefined}
              onClick={follow}
            >
              {title}
            </a>
          ))}
        </nav>
      )}
    </header>
  );
}

function Operators({ live, mayOpen }: { live: LiveSession; mayOpen: boolean }) {
  const me = myActor()?.handle;
  const handles = [...new Set(live.view.value.clients.flatMap(({ actor }) => (actor ? [actor.handle] : [])))];
  return (
    <div class="operators" role="group" aria-label="Attached">
      {handles.map((handle) => (
        <ActorChip key={handle} handle={handle} you={handle === me} />
      ))}
      <Ports live={live} mayOpen={mayOpen} />
    </div>
  );
}

function Tools({ live, now, rights, screen, fits, asking, finding }: Props) {
  const { size, life } = live.view.value;
  const canFit = now.is === "mine";
  // The focus goes back to where one types.
  const then = (act: () => void) => () => {
    act();
    screen?.focus();
  };
  const font = (by: number) => then(() => screen?.setFontSize(screen.fontSize + by));
  return (
    <div class="tools" role="group" aria-label="View">
      <span class="size muted" title="Columns and rows of the session">
        {size.replace("x", "×")}
      </span>
      {rights.has("type") && <button
        type="button"
        class="quiet small"
        aria-label="Fit the session to this window"
        aria-pressed={fits.value && canFit}
        disabled={!canFit}
        title={canFit ? "Resize the session to this window" : "Only the holder of the turn can change the size"}
        onClick={then(() => {
          fits.value = !fits.value;
          chooseFit(fits.value);
          screen?.setFits(fits.value);
          screen?.fitNow();
        })}
      >
        <Icon name="fit" size={16} /> <span class="fit-word">Fit</span>
      </button>}
      <span class="joined">
        <button type="button" class="quiet small" aria-label="A− smaller text" onClick={font(-1)}>
          A−
        </button>
        <button type="button" class="quiet small" aria-label="A+ larger text" onClick={font(1)}>
          A+
        </button>
      </span>
      <details class="menu">
        <summary aria-label="More">
          <Icon name="more" />
        </summary>
        <div class="menu-list">
          <button type="button" onClick={then(() => screen?.showWidth())}>
            Show the whole width
          </button>
          <button type="button" aria-pressed={scales.value} onClick={then(() => chooseScale(!scales.value))}>
            Scale text to the window{scales.value && " ✓"}
          </button>
          <button type="button" onClick={then(() => screen?.term.scrollToBottom())}>
            Go to the end
          </button>
          <button type="button" onClick={() => (finding.value ??= "")}>
            Find … <kbd>Ctrl+Shift+F</kbd>
          </button>
          <button type="button" onClick={() => (isPaletteOpen.value = true)}>
            All commands … <kbd>Ctrl+K</kbd>
          </button>
          <button type="button" onClick={() => (asking.value = { what: "text" })}>
            Show as text …
          </button>
          <button type="button" aria-pressed={aloud.value} onClick={then(() => chooseAloud(!aloud.value))}>
            For a screen reader{aloud.value && " ✓"}
          </button>
          {life === "running" && rights.has("type") && <PortItems live={live} />}
          {life === "running" && rights.has("configure") && (
            <button type="button" onClick={() => (asking.value = { what: "rename" })}>
              Rename …
            </button>
          )}
          {life === "running" && rights.has("end") && (
            <button type="button" class="danger" onClick={() => (asking.value = { what: "end" })}>
              End the session …
            </button>
          )}
        </div>
      </details>
    </div>
  );
}
