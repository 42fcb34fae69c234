// What the shell shows by itself: a heading, some words, and what can be done. Words of others go in as text, with what could disguise
// them made visible.

const main = document.getElementById("shell") as HTMLElement;

export interface Button {
  text: string;
  run: () => void;
}

export interface View {
  title: string;
  /** Paragraphs. */
  words?: string[];
  /** What went wrong. */
  wrong?: string;
  input?: { label: string; value: string; placeholder?: string };
  /** The first one is what most people want, and is given the input's text. */
  buttons?: (Omit<Button, "run"> & { run: (text: string) => void })[];
  isBusy?: boolean;
}

/** Control and bidi characters are shown as what they are. */
export function harmless(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (char) => `<U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`);
}

/** What a host says of an error begins in lower case and has no full stop. */
function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?…]$/.test(text) ? "" : "."}`;
}

/** Shows this, and nothing else. */
export function show(view: View): void {
  const { title, words = [], wrong, input, buttons = [], isBusy = false } = view;
  const field = make("input", input?.value ?? "");
  const press = (run: (text: string) => void) => run((field as HTMLInputElement).value);
  const icon = make("img", "");
  icon.setAttribute("src", "/i/icon.svg");
  icon.setAttribute("alt", "");
  icon.setAttribute("width", "56");
  const parts: HTMLElement[] = [icon, make("h1", title)];
  if (wrong) parts.push(make("p", sentence(wrong), "bad"));
  parts.push(...words.map((text) => make("p", text)));
  if (input) {
    const label = make("label", "");
    label.append(make("span", input.label), field);
    (field as HTMLInputElement).value = input.value;
    field.setAttribute("placeholder", input.placeholder ?? "");
    for (const [name, value] of Object.entries({ autocapitalize: "none", autocomplete: "off", spellcheck: "false" })) field.setAttribute(name, value);
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && buttons[0]) press(buttons[0].run);
    });
    parts.push(label);
  }
  for (const [at, { text, run }] of buttons.entries()) {
    const button = make("button", text, at === 0 ? "primary" : "");
    button.addEventListener("click", () => press(run));
    parts.push(button);
  }
  main.replaceChildren(...parts);
  main.setAttribute("aria-busy", String(isBusy));
  main.setAttribute("role", wrong ? "alert" : "main");
  main.hidden = false;
  document.title = "Holdfast";
}

/** Shows nothing: a page does. */
export function hide(): void {
  main.replaceChildren();
  main.hidden = true;
}

function make(tag: string, text: string, name = ""): HTMLElement {
  const element = document.createElement(tag);
  element.textContent = harmless(text);
  if (name) element.className = name;
  return element;
}
