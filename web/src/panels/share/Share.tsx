// A link for somebody else: what it allows, how long, how far it reaches; and the links that are good, to take back.

import { useEffect, useState } from "preact/hooks";
import { encode } from "uqr";
import { shownLine, span } from "../../lib/text.js";
import { Icon } from "../../ui/icons.js";
import { Line } from "../../ui/Text.js";
import { attempt, tell } from "../../ui/told.js";
import type { PanelProps } from "../index.js";
import { Links, type SharedLink } from "./links.js";
import "../../css/share.css";

const RIGHTS = [
  { rights: "observe", word: "Watch", long: "see the screen, the output and the timeline; cannot type" },
  { rights: "observe,type,run", word: "Watch and type", long: "also type in its turn, and run commands" },
];
const HOUR_MS = 3_600_000;
const SPANS = [
  { ms: HOUR_MS, word: "1 hour" },
  { ms: 8 * HOUR_MS, word: "8 hours" },
  { ms: 7 * 24 * HOUR_MS, word: "7 days" },
];
const AGAIN_MS = 5_000;

interface MadeLink {
  url: string;
  handle: string;
  untilMs: number;
}

export default function Share({ live }: PanelProps) {
  const [links] = useState(() => new Links(live));
  const [made, setMade] = useState<MadeLink | undefined>();
  useEffect(() => {
    void attempt(() => links.read());
    const again = () => document.visibilityState === "visible" && void links.read().catch(() => undefined);
    const timer = setInterval(again, AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  const revoke = async (link: SharedLink) => {
    const done = await attempt(async () => {
      await links.revoke(link);
      return true;
    });
    if (!done) return;
    if (made?.handle === link.handle) setMade(undefined);
    tell("That link opens nothing any more.");
  };
  const may = links.may.value;
  const isAllowed = !may || may.has("grant");
  return (
    <div class="share">
      {isAllowed ? <Make links={links} onMade={setMade} /> : <p class="banner">You may not share this session: this needs the right to grant.</p>}
      {made && <Made key={made.url} url={made.url} untilMs={made.untilMs} />}
      <Reach />
      <Good links={links.all.value} onRevoke={(link) => void revoke(link)} />
    </div>
  );
}

function Make({ links, onMade }: { links: Links; onMade: (link: MadeLink) => void }) {
  const [rights, setRights] = useState("observe");
  const [forMs, setForMs] = useState(HOUR_MS);
  const [note, setNote] = useState("");
  const [isBusy, setBusy] = useState(false);
  const may = links.may.value;
  const holds = (wanted: string) => !may || wanted.split(",").every((right) => may.has(right));
  const make = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    const link = await attempt(() => links.make(rights, forMs, note.trim()));
    if (link) {
      onMade(link);
      setNote("");
    }
    setBusy(false);
  };
  return (
    <form class="form" onSubmit={(event) => void make(event)}>
      <fieldset>
        <legend>Rights of the link</legend>
        {RIGHTS.map((one) => (
          <label key={one.rights} class="choice">
            <input
              type="radio"
              name="rights"
              value={one.rights}
              checked={rights === one.rights}
              disabled={!holds(one.rights)}
              onChange={() => setRights(one.rights)}
            />
            <span>
              <strong>{one.word}</strong>
              <span class="muted">{one.long}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <fieldset>
        <legend>For</legend>
        <div class="spans">
          {SPANS.map(({ ms, word }) => (
            <label key={ms} class="choice">
              <input type="radio" name="for" value={ms} checked={forMs === ms} onChange={() => setForMs(ms)} />
              <span>{word}</span>
            </label>
          ))}
        </div>
      </fieldset>
      <label>
        Note
        <input
          class="field"
          value={note}
          maxLength={80}
          placeholder="recipient, shown in the list"
          onInput={(event) => setNote(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="primary" disabled={isBusy || may === undefined}>
        Create link
      </button>
    </form>
  );
}

function Good({ links, onRevoke }: { links: readonly SharedLink[]; onRevoke: (link: SharedLink) => void }) {
  return (
    <section class="good" aria-label="Active links">
      <h3>
        Active links <span class="count muted">{links.length}</span>
      </h3>
      {links.length === 0 && <p class="muted">No active links.</p>}
      <ul>
        {links.map((link) => (
          <li key={link.actor.id}>
            <span class="good-words">
              <Line class="good-note" text={link.note || link.handle} />
              <span class="muted">
                {link.rights === "observe" ? "may watch" : "may watch and type"}
                {link.untilMs !== undefined && ` · ${left(link.untilMs)}`} · <Line text={link.handle} />
                {link.token === undefined && " · its token is gone or belongs to another actor"}
              </span>
            </span>
            <button type="button" class="small danger" aria-label={`Revoke ${shownLine(link.note || link.handle)}`} onClick={() => onRevoke(link)}>
              Revoke
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Made({ url, untilMs }: { url: string; untilMs: number }) {
  const [isCopied, setCopied] = useState(false);
  const copy = () =>
    attempt(async () => {
      await navigator.clipboard.writeText(url);
      setCopied(true);
    });
  return (
    <section class="made" aria-label="The new link">
      <QrCode text={url} />
      <div class="made-words">
        <p>
          <strong>Shown only once.</strong> Valid until {new Date(untilMs).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}.
          Anyone with the link can use it.
        </p>
        <label class="made-url">
          <span class="visually-hidden">Link</span>
          <textarea class="field mono" readOnly rows={3} value={url} onFocus={(event) => event.currentTarget.select()} />
        </label>
        <button type="button" class="small" onClick={() => void copy()}>
          <Icon name="copy" size={15} /> {isCopied ? "Copied" : "Copy"}
        </button>
      </div>
    </section>
  );
}

/** The link as a picture for a phone's camera: one path, dark on light by day and night, as cameras want it. */
function QrCode({ text }: { text: string }) {
  const { data, size } = encode(text, { ecc: "M", border: 4 });
  let path = "";
  data.forEach((row, y) =>
    row.forEach((isDark, x) => {
      if (isDark) path += `M${x} ${y}h1v1h-1z`;
    }),
  );
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label="The link as a QR code" shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#ffffff" />
      <path d={path} fill="#0b1412" />
    </svg>
  );
}

/** How far a link reaches is what the host listens at; nothing here makes it wider. */
function Reach() {
  const { hostname, host, protocol } = location;
  const isHere = hostname === "localhost" || hostname === "[::1]" || /^127\./.test(hostname);
  return (
    <section class="reach" aria-label="How far a link reaches">
      {isHere ? (
        <>
          <p>
            <strong>Links work on this machine only.</strong> The host listens at <code>{host}</code>, which no other machine can reach.
          </p>
          <p class="muted">To use links from other machines, listen on the network with a certificate, and open this page there:</p>
          <pre tabIndex={0}>holdfast host start --http ADDR --tls-cert CERT --tls-key KEY</pre>
        </>
      ) : (
        <p>
          <strong>
            Links work wherever <code>{host}</code> can be reached.
          </strong>{" "}
          {protocol === "https:"
            ? "Other networks cannot use them."
            : "The connection is not encrypted: anyone who can read it can use the link."}
        </p>
      )}
    </section>
  );
}

function left(untilMs: number): string {
  const ms = untilMs - Date.now();
  return ms <= 0 ? "expired" : ms < 60_000 ? "less than a minute left" : `${span(ms)} left`;
}
