// Which view is shown, by who looks and what the address names.

import { useEffect, useState } from "preact/hooks";
import { Home } from "./home/Home.js";
import { enter, login, whoAmI, type Login } from "./lib/login.js";
import { askShell, phone } from "./lib/phone.js";
import { route } from "./lib/route.js";
import { mayStart, noteLogin, wasGuest } from "./lib/guest.js";
import { client, start } from "./lib/store.js";
import { watchFlows } from "./lib/flows.js";
import { start as startAttention } from "./lib/attention.js";
import { NewSession } from "./home/NewSession.js";
import { Palette } from "./palette/Palette.js";
import { isPaletteOpen, onPaletteKey } from "./palette/commands.js";
import { PageFrame } from "./panels/PageFrame.js";
import { SessionPage } from "./session/SessionPage.js";
import { ActorChip } from "./ui/Actor.js";
import { Mark } from "./ui/icons.js";
import { Line } from "./ui/Text.js";
import { Toast } from "./ui/Toast.js";

export function App() {
  const who = login.value;
  switch (who.state) {
    case "asking":
      return <main class="notice" aria-busy="true" />;
    case "out":
      return phone ? <Revoked /> : <Door why={who.why} />;
    case "cut off":
      return <CutOff />;
    case "choosing":
      return <Choice {...who} />;
    case "in":
      return <Inside />;
  }
}

function Inside() {
  const who = login.value;
  useEffect(() => {
    if (who.state === "in") noteLogin(who.me);
  }, [who]);
  useEffect(() => {
    start();
    startAttention();
    watchFlows();
    // A signed-out browser comes in again with a fresh page.
    return () => client.close();
  }, []);
  const [isNew, setIsNew] = useState(false);
  useEffect(() => {
    addEventListener("keydown", onPaletteKey);
    return () => removeEventListener("keydown", onPaletteKey);
  }, []);
  const where = route.value;
  const mayNew = who.state === "in" && mayStart(who.me);
  return (
    <>
      {where.view === "home" && <Home />}
      {where.view === "session" && <SessionPage name={where.name} panel={where.panel} />}
      {where.view === "page" && <PageFrame id={where.page} />}
      {isPaletteOpen.value && <Palette onNew={mayNew ? () => setIsNew(true) : undefined} />}
      {isNew && <NewSession onClose={() => setIsNew(false)} />}
      <Toast />
    </>
  );
}

function Door({ why }: { why: string | undefined }) {
  useEffect(() => {
    // Another tab may have come in meanwhile.
    const look = () => void whoAmI().then(({ ok }) => ok && location.reload(), () => undefined);
    addEventListener("focus", look);
    return () => removeEventListener("focus", look);
  }, []);
  if (wasGuest()) return <Closed />;
  return (
    <main class="notice">
      <Mark size={56} />
      <h1>Open this page from your machine</h1>
      <p>
        On the machine this host runs on, enter <code>holdfast web</code>. It opens this page and signs you in.
      </p>
      <p class="muted">On a phone, open the address that it prints. The address works once.</p>
      {why && (
        <p class="banner" role="alert">
          <Line text={why} />
        </p>
      )}
    </main>
  );
}

/** A guest whose link was revoked, or has expired. */
function Closed() {
  return (
    <main class="notice">
      <Mark size={56} />
      <h1>This link no longer works</h1>
      <p>Its time is over, or it was revoked. Ask the person who shared it with you for a new one.</p>
    </main>
  );
}

/** A device behind a relay whose access has ended, or was revoked. */
function Revoked() {
  return (
    <main class="notice">
      <Mark size={56} />
      <h1>
        <Line text={phone?.host.name || "The machine"} /> no longer lets this browser in
      </h1>
      <p>Its access has ended, or was revoked. Ask for a new invite.</p>
      <p class="buttons">
        <button type="button" onClick={() => askShell({ leave: true })}>
          Forget this machine
        </button>
      </p>
    </main>
  );
}

/** A link of somebody else's was opened. Whose name one acts in is not for a link to say. */
function Choice({ me, other, become }: Login & { state: "choosing" }) {
  const stay = () => (login.value = { state: "in", me });
  return (
    <main class="notice">
      <Mark size={56} />
      <h1>This link is for another actor</h1>
      <p>
        In this browser you are <ActorChip handle={me.actor.handle} whole />
      </p>
      <p>
        The link is for <ActorChip handle={other} whole />
      </p>
      <p class="buttons">
        <button type="button" onClick={() => void become()}>
          Become <Line text={other} />
        </button>
        <button type="button" class="primary" onClick={stay}>
          Stay <Line text={me.actor.handle} />
        </button>
      </p>
    </main>
  );
}

function CutOff() {
  useEffect(() => {
    const timer = setInterval(() => void enter(), 2_000);
    return () => clearInterval(timer);
  }, []);
  return (
    <main class="notice">
      <Mark size={56} />
      <h1>Cannot reach the host</h1>
      <p class="muted" role="status">
        Your sessions keep running. This page keeps trying to connect.
      </p>
    </main>
  );
}
