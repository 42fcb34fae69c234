// xterm.js writes style sheets and style attributes as text, which the page's policy (`style-src 'self'`) refuses. What is set
// through the objects of CSS is allowed, and is the same: so what it writes is put there.

let isDone = false;

/** Lets xterm.js style itself under a strict policy. */
export function allowStyles(): void {
  if (isDone) return;
  isDone = true;
  const create = document.createElement.bind(document);
  document.createElement = ((tag: string, options?: ElementCreationOptions) =>
    tag === "style" ? stand(create("template")) : create(tag, options)) as typeof document.createElement;
  const { setAttribute } = Element.prototype;
  HTMLSpanElement.prototype.setAttribute = function set(this: HTMLSpanElement, name: string, value: string) {
    if (name === "style") this.style.cssText = value;
    else setAttribute.call(this, name, value);
  };
}

/** Stands in for a style element: what is written into it becomes a sheet of the page, until it is removed. */
function stand(element: HTMLElement): HTMLElement {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  Object.defineProperty(element, "textContent", { set: (text: string) => sheet.replaceSync(text) });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
    element.parentNode?.removeChild(element);
  };
  return element;
}
