// Who has the turn, in words, and what can be done about it, as buttons.

import type { LiveSession } from "../lib/store.js";
import type { Standing } from "./standing.js";
import { ActorChip } from "../ui/Actor.js";

export interface TurnActs {
  take(): void;
  request(): void;
  withdraw(): void;
  release(): void;
  seize(): void;
  thaw(): void;
  give(handle: string): void;
}

interface Props {
  live: LiveSession;
  now: Standing;
  rights: ReadonlySet<string>;
  acts: TurnActs;
}

export function TurnBar({ live, now, rights, acts }: Props) {
  const { frozen } = live.view.value.turn;
  return (
    <div class={`turn ${now.is}`} role="group" aria-label="The turn">
      <span class="turn-words">
        <Words now={now} />
      </span>
      <span class="turn-buttons">
        {now.is === "over" || !rights.has("type") ? null : <Buttons now={now} rights={rights} acts={acts} />}
        {frozen && rights.has("seize") && (
          <button type="button" class="small warm" onClick={acts.thaw}>
            Thaw
          </button>
        )}
      </span>
      {now.is !== "over" && !rights.has("type") && <span class="muted">you may only watch</span>}
    </div>
  );
}

function Words({ now }: { now: Standing }) {
  switch (now.is) {
    case "mine":
      return <strong>You have the turn</strong>;
    case "free":
      return <span>The turn is free</span>;
    case "over":
      return null;
    case "theirs":
      return (
        <>
          <ActorChip handle={now.holder} whole /> <span>has the turn</span>
        </>
      );
  }
}

function Buttons({ now, rights, acts }: Omit<Props, "live">) {
  if (now.is === "mine") {
    const [next] = now.queue;
    return (
      <>
        {next && (
          <button type="button" class="small primary" onClick={() => acts.give(next)}>
            Give to <bdi>{next}</bdi>
          </button>
        )}
        <button type="button" class="small" onClick={acts.release}>
          Release
        </button>
      </>
    );
  }
  if (now.is === "free") {
    return (
      <button type="button" class="small primary" onClick={acts.take}>
        Take
      </button>
    );
  }
  if (now.is !== "theirs") return null;
  return (
    <>
      {now.asked ? (
        <button type="button" class="small" onClick={acts.withdraw} title="You requested it. You get it when its holder releases it or is idle">
          Requested · withdraw
        </button>
      ) : (
        <button type="button" class="small primary" onClick={acts.request}>
          Request
        </button>
      )}
      {rights.has("seize") && (
        <button type="button" class="small danger" onClick={acts.seize}>
          Seize
        </button>
      )}
    </>
  );
}
