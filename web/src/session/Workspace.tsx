// One session: a header that says how it stands, its terminal, and a panel beside it.

import { effect, useComputed, useSignal, type Signal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Attachment } from "@holdfast/client";
import { ApprovalCard } from "../ask/ApprovalCard.js";
import { QuestionCard } from "../ask/QuestionCard.js";
import { SecretCard, waitsForSecret } from "../ask/SecretCard.js";
import { look, myActor } from "../lib/login.js";
import { client, refresh, type LiveSession } from "../lib/store.js";
import { offer as offerCommands, wanted } from "../palette/commands.js";
import { visit } from "../palette/visited.js";
import { attempt, tell, tellError } from "../ui/told.js";
import { PanelFrame } from "../panels/PanelFrame.js";
import { shownLine } from "../lib/text.js";
import { textOf } from "./content.js";
import { AsText, Confirm, Paste, Rename, Seize } from "./dialogs.js";
import { Find } from "./Find.js";
import { Header, type Props as HeaderProps } from "./Header.js";
import { Hint } from "./Hint.js";
import { KeyRow } from "./KeyRow.js";
import { aloud, fitsByChoice, fontOf, keepFont, scales } from "./font.js";
import { Offered, type Offer } from "./Offered.js";
import type { Screen } from "./screen.js";
import { commands, CTRL_K, stepper } from "./offers.js";
import { rightsOf, standing } from "./standing.js";
import { startedHere } from "./started.js";
import type { TurnActs } from "./TurnBar.js";

export type Asking =
  | { what: "seize" | "end" | "paste" | "text" | "rename" }
  | { what: "link"; url: string }
  | { what: "copy"; text: string };

export function Workspace({ live, panel }: { live: LiveSession; panel?: string | undefined }) {
  const pane = useRef<HTMLDivElement>(null);
  const screen = useSignal<Screen | undefined>(undefined);
  const line = useSignal<Line>("attaching");
  const hint = useSignal(false);
  const fits = useSignal(startedHere.has(live.id) || fitsByChoice());
  const asking = useSignal<Asking | undefined>(undefined);
  const finding = useSignal<string | undefined>(undefined);
  const offer = useSignal<Offer>({ is: "none" });
  const rights = useSignal<ReadonlySet<string>>(new Set(["observe"]));
  const now = useComputed(() => standing(live.view.value, myActor()));
  const mine = now.value.is === "mine" && rights.value.has("type");
  const types = mine || (now.value.is === "free" && rights.value.has("type"));
  const acts = turnActs(live, screen, asking);
  const request = () => {
    if (now.value.is === "theirs" && !now.value.asked) acts.request();
    screen.value?.focus();
  };
  const onKeyRefused = (event?: KeyboardEvent) => {
    // The key that a shown hint names.
    if (event?.key === "Enter" && hint.value) request();
    else hint.value = true;
  };

  const closeFind = () => {
    finding.value = undefined;
    screen.value?.focus();
  };
  useTerminal(live, pane, { screen, line, rights, asking, finding, offer }, onKeyRefused);
  useEffect(
    () =>
      // A plain effect runs at once, not with the next picture: who reads that the turn is theirs types.
      effect(() => {
        const may = rights.value.has("type");
        const isMine = now.value.is === "mine" && may;
        screen.value?.setTyping(isMine, isMine || (now.value.is === "free" && may));
        if (isMine) hint.value = false;
      }),
    [],
  );
  useEffect(() => screen.value?.setFits(fits.value), [fits.value, screen.value]);
  useEffect(() => screen.value?.setScales(scales.value), [scales.value, screen.value]);
  useEffect(() => screen.value?.setAloud(aloud.value), [aloud.value, screen.value]);
  useStarted(live, line.value === "attached" && now.value.is === "free" && rights.value.has("type"), acts.take);
  usePalette({ live, now: now.value, rights: rights.value, acts, screen: screen.value, fits, asking, finding, panel }, line.value === "attached");

  return (
    <div class={`session ${panel ? "with-panel" : ""}`}>
      <div>
        <Header live={live} now={now.value} rights={rights.value} acts={acts} screen={screen.value} fits={fits} panel={panel} asking={asking} finding={finding} />
        <Damaged what={live.view.value.damaged} />
      </div>
      <main class="session-main">
        <h1 class="visually-hidden">Terminal of {live.name}</h1>
        <div class={`pane-box ${mine ? "mine" : ""}`}>
          <Dock live={live} may={types} />
          <div class="pane" ref={pane} role="region" aria-label={types ? "Terminal" : "Terminal, read-only"} />
          <LineNote line={line.value} />
          <Offered offer={offer} onShow={(text) => (asking.value = { what: "copy", text })} />
          {hint.value && !mine && <Hint now={now.value} may={rights.value.has("type")} onAct={request} onClose={() => (hint.value = false)} />}
          {finding.value !== undefined && screen.value && <Find key={finding.value} sought={finding.value} screen={screen.value} onClose={closeFind} />}
        </div>
        {panel && <PanelFrame id={panel} live={live} screen={screen.value} />}
      </main>
      {screen.value && pane.current && (
        <KeyRow
          screen={screen.value}
          pane={pane.current}
          types={types}
          refused={() => onKeyRefused()}
          askText={() => (asking.value = { what: "paste" })}
        />
      )}
      <Dialogs live={live} asking={asking} screen={screen} />
    </div>
  );
}

/** Who has just started a session means to type into it. */
function useStarted(live: LiveSession, canTake: boolean, take: () => void): void {
  useEffect(() => {
    if (!canTake || !startedHere.delete(live.id)) return;
    take();
  }, [canTake]);
}

/** Offers what can be done here, and looks for what somebody chose in the palette. */
function usePalette(view: HeaderProps, isAttached: boolean): void {
  const { live, screen, finding } = view;
  useEffect(() => visit(live.id), []);
  useEffect(() => offerCommands({ commands: () => commands(view), typeKey: () => screen?.type(CTRL_K) }));
  useEffect(() => {
    const sought = wanted.value;
    if (!screen || !isAttached || sought?.session !== live.id) return;
    wanted.value = undefined;
    finding.value = sought.text;
  }, [screen, isAttached, wanted.value]);
}

/** Records of the journal are missing: nobody should overlook that. */
function Damaged({ what }: { what: string | null | undefined }) {
  if (!what) return null;
  return (
    <p class="banner" role="alert">
      {shownLine(what)}. Only humans may act here, and whom they grant something from now on.
    </p>
  );
}

/** What is asked of one: it takes room of its own, and covers nothing. */
function Dock({ live, may }: { live: LiveSession; may: boolean }) {
  const questions = live.questions.value;
  const approvals = live.approvals.value;
  const isSecret = may && waitsForSecret(live);
  if (questions.length + approvals.length === 0 && !isSecret) return null;
  return (
    <div class="dock">
      {isSecret && <SecretCard live={live} />}
      {approvals.map((approval) => (
        <ApprovalCard key={approval.id} approval={approval} />
      ))}
      {questions.map((question) => (
        <QuestionCard key={question.id} question={question} folds />
      ))}
    </div>
  );
}

type Line = "attaching" | "attached" | "reconnecting" | "over";

function LineNote({ line }: { line: Line }) {
  if (line === "attaching") return <p class="pane-note">Attaching …</p>;
  if (line !== "reconnecting") return null;
  return (
    <p class="pane-banner" role="status">
      Reconnecting … what you type now is sent once, when the host is back.
    </p>
  );
}

interface Held {
  screen: Signal<Screen | undefined>;
  line: Signal<Line>;
  rights: Signal<ReadonlySet<string>>;
  asking: Signal<Asking | undefined>;
  finding: Signal<string | undefined>;
  offer: Signal<Offer>;
}

/** Has a terminal in the pane as long as the view is there, its code loaded when it is first needed. */
function useTerminal(live: LiveSession, pane: RefObject<HTMLDivElement | null>, held: Held, refused: (event?: KeyboardEvent) => void): void {
  const latest = useRef(refused);
  latest.current = refused;
  useEffect(() => {
    const { screen, line, rights, asking, finding, offer } = held;
    void client.call("grant.list", { session: live.id }).then(
      ({ yours }) => (rights.value = rightsOf(yours)),
      () => undefined,
    );
    let isGone = false;
    let opened: Screen | undefined;
    void import("./screen.js").then(({ Screen }) => {
      if (isGone || !pane.current) return;
      opened = new Screen(live, pane.current, fontOf(live.id), {
        refused: (event) => latest.current(event),
        link: (url) => (asking.value = { what: "link", url }),
        // Not a dialog: a program that repeats this must not interrupt people.
        clipboard: (text) => offer.value.is !== "ignored" && (offer.value = { is: "made", text }),
        leave: () => document.querySelector<HTMLElement>(".session-bar a, .session-bar button")?.focus(),
        find: () => (finding.value ??= ""),
        step: (by) => void stepper(live, opened, by),
        fontSize: (size) => keepFont(live.id, size),
      });
      listen(opened.attachment, live, line, rights);
      screen.value = opened;
    });
    return () => {
      isGone = true;
      opened?.close();
    };
  }, []);
}

function listen(attachment: Attachment, live: LiveSession, line: Signal<Line>, rights: Signal<ReadonlySet<string>>): void {
  attachment.on("state", ({ state }) => (line.value = state === "connected" ? "attached" : "reconnecting"));
  attachment.on("writes", () => refresh(live));
  attachment.on("size", () => refresh(live));
  attachment.on("refused", (error) => {
    refresh(live);
    tellError(error);
  });
  attachment.on("notice", (notice) => {
    refresh(live);
    if (notice.kind === "rights") rights.value = rightsOf(notice.rights);
    if (notice.kind === "seized") tell(`${notice.by} seized the turn: ${notice.reason}`);
    if (notice.kind === "requested") tell(`${notice.by} requests the turn`);
  });
  attachment.on("ring", ({ text }) => tell(text));
  attachment.on("detached", ({ why, error }) => {
    line.value = "over";
    refresh(live);
    if (why === "detached") {
      tell("This terminal was detached. The session keeps running.");
      // Perhaps because this actor may no longer observe.
      void look();
    }
    if (why === "refused") tell(error instanceof Error ? error.message : "not attached", "bad");
  });
}

/** Acts on the turn, through the terminal that is attached. */
function turnActs(live: LiveSession, screen: Signal<Screen | undefined>, asking: Signal<Asking | undefined>): TurnActs {
  const { turn } = live.session;
  const through = () => {
    const attachment = screen.value?.attachment;
    return attachment ? { through: attachment } : {};
  };
  const act = async (done: () => Promise<unknown>) => {
    await attempt(done);
    refresh(live);
    screen.value?.focus();
  };
  return {
    take: () => void act(() => turn.take(through())),
    request: () => void act(() => turn.request(through())),
    withdraw: () => void act(() => turn.withdraw(through())),
    release: () => void act(() => turn.release(through())),
    thaw: () => void act(() => turn.thaw(through())),
    give: (handle) => void act(() => turn.give(handle, through())),
    seize: () => (asking.value = { what: "seize" }),
  };
}

function Dialogs({ live, asking, screen }: { live: LiveSession; asking: Signal<Asking | undefined>; screen: Signal<Screen | undefined> }) {
  const ask = asking.value;
  const onClose = () => (asking.value = undefined);
  // Only when the dialog is gone: what is behind it takes no focus.
  useEffect(() => {
    if (!ask) screen.value?.focus();
  }, [ask]);
  const seize = (reason: string, freeze: boolean) => {
    onClose();
    const attachment = screen.value?.attachment;
    const through = attachment ? { through: attachment } : {};
    void attempt(() => live.session.turn.seize(reason, { freeze, ...through })).then(() => refresh(live));
  };
  switch (ask?.what) {
    case undefined:
      return null;
    case "seize":
      return <Seize holder={live.view.value.turn.holder?.actor.handle ?? "its holder"} onClose={onClose} onSeize={seize} />;
    case "end": {
      const end = () => void attempt(() => live.session.end()).then(() => refresh(live));
      return <Confirm title="End this session" text="This ends all its processes." yes="End it" danger onClose={onClose} onYes={end} />;
    }
    case "rename": {
      const rename = async (name: string) => {
        if (!(await attempt(() => live.session.rename(name)))) return;
        refresh(live);
        onClose();
      };
      return <Rename name={live.name} onClose={onClose} onName={(name) => void rename(name)} />;
    }
    case "paste":
      return <Paste onClose={onClose} onText={(text) => screen.value?.paste(text)} />;
    case "text":
      return screen.value ? <AsText text={textOf(screen.value.term)} onClose={onClose} /> : null;
    case "link": {
      const open = () => void window.open(ask.url, "_blank", "noopener,noreferrer");
      return <Confirm title="Open this link?" text="It comes from the session's output." quoted={ask.url} yes="Open" onClose={onClose} onYes={open} />;
    }
    case "copy": {
      const copy = () => void attempt(() => navigator.clipboard.writeText(ask.text));
      const text = "A program in this session wants to put this into your clipboard.";
      return <Confirm title="Copy this text?" text={text} quoted={ask.text} yes="Copy" onClose={onClose} onYes={copy} />;
    }
  }
}
