// A phone's keyboard covers the page without saying so to the layout. This says it.

export function followViewport(): void {
  const view = window.visualViewport;
  if (!view) return;
  const apply = () => {
    // Somebody looks closer: the page stays as large as it was.
    if (view.scale > 1.01) return;
    const { style } = document.documentElement;
    style.setProperty("--view-height", `${view.height}px`);
    style.setProperty("--view-top", `${view.offsetTop}px`);
  };
  view.addEventListener("resize", apply);
  view.addEventListener("scroll", apply);
  apply();
}

// A menu closes when something else is pressed.
addEventListener("pointerdown", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target as Node)) menu.removeAttribute("open");
  }
});
addEventListener("click", (event) => {
  const item = (event.target as Element | null)?.closest?.(".menu-list button");
  item?.closest("details")?.removeAttribute("open");
});
addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const open = document.querySelector<HTMLDetailsElement>("details.menu[open]");
  if (!open) return;
  open.removeAttribute("open");
  open.querySelector("summary")?.focus();
});
