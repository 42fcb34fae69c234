// What the palette offers in a session's view.

import { mayStartAgain, startAgain } from "./again.js";
import { chooseFit, chooseFont, chooseScale, chooseSize, font, FONTS, scales } from "./font.js";
import type { Props } from "./Header.js";
import { go, sessionPath } from "../lib/route.js";
import type { Command } from "../palette/commands.js";
import type { LiveSession } from "../lib/store.js";
import type { Steps } from "../panels/timeline/steps.js";
import { attempt } from "../ui/told.js";
import { openPreview, previewed } from "./preview.js";
import { mayRecover, recover } from "./recover.js";
import type { Screen } from "./screen.js";
import { panels } from "../panels/index.js";

/** What the palette's own key types. */
export const CTRL_K = "\x0b";

export function commands(props: Props): Command[] {
  const { live, screen, finding, asking } = props;
  const { name, life } = live.view.value;
  const all: Command[] = [
    ...turn(props),
    ...panels.filter(({ needs }) => !needs || props.rights.has(needs)).map(({ id, title }) => ({ name: title, note: "panel", run: () => go(sessionPath(name, id)) })),
    { name: "Find in the terminal", note: "Ctrl+Shift+F", run: () => (finding.value ??= "") },
    { name: "Show as text", run: () => (asking.value = { what: "text" }) },
    { name: "Scale text to the window", note: scales.value ? "on" : "off", run: () => chooseScale(!scales.value) },
    { name: "Show the whole width", run: () => screen?.showWidth() },
    { name: "Previous command", note: "Alt+PageUp", run: () => void stepper(live, screen, -1) },
    { name: "Next command", note: "Alt+PageDown", run: () => void stepper(live, screen, 1) },
    { name: "Go to the end", run: () => screen?.term.scrollToBottom() },
    { name: "Larger text", run: () => screen?.setFontSize(screen.fontSize + 1) },
    { name: "Smaller text", run: () => screen?.setFontSize(screen.fontSize - 1) },
    { name: "Use this text size for all sessions", note: "on this device", run: () => screen && chooseSize(screen.fontSize) },
    ...FONTS.filter((one) => one !== font.value).map((one) => ({ name: `Font: ${one}`, note: "on this device", run: () => chooseFont(one) })),
  ];
  if (life === "running" && props.rights.has("type")) {
    all.push(...previewed(live).map(({ port }) => ({ name: `Open port ${port}`, note: "in a new tab", run: () => void openPreview(live, port) })));
  }
  if (life === "running" && props.rights.has("configure")) all.push({ name: "Rename this session", run: () => (asking.value = { what: "rename" }) });
  if (life === "running" && props.rights.has("end")) all.push({ name: "End this session", run: () => (asking.value = { what: "end" }) });
  if (mayStartAgain(live)) all.unshift({ name: "Start again", note: "the same command, in the same directory", run: () => void startAgain(live) });
  if (mayRecover(live)) all.unshift({ name: "Recover this session", note: "the same directory and history, new processes", run: () => void recover(live) });
  return all;
}

let steps: { of: LiveSession; steps: Steps } | undefined;

/** Goes to the command before or after; what counts lines is loaded when it is first wanted. */
export async function stepper(live: LiveSession, screen: Screen | undefined, by: -1 | 1): Promise<void> {
  if (!screen) return;
  const { Steps } = await import("../panels/timeline/steps.js");
  if (steps?.of !== live) {
    steps?.steps.close();
    steps = { of: live, steps: new Steps(live) };
  }
  const { steps: known } = steps;
  await attempt(() => known.step(screen, by));
  screen.focus();
}

function turn({ now, rights, acts, fits, screen }: Props): Command[] {
  if (!rights.has("type")) return [];
  if (now.is === "mine") {
    const fit = () => {
      fits.value = true;
      chooseFit(true);
      screen?.setFits(true);
      screen?.fitNow();
    };
    return [
      { name: "Release the turn", run: acts.release },
      { name: "Fit the session to this window", run: fit },
    ];
  }
  if (now.is === "free") return [{ name: "Take the turn", run: acts.take }];
  if (now.is === "over") return [];
  const ask = now.asked ? { name: "Withdraw the request for the turn", run: acts.withdraw } : { name: "Request the turn", run: acts.request };
  return rights.has("seize") ? [ask, { name: "Seize the turn", run: acts.seize }] : [ask];
}
