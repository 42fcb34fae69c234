// A page of the host beside Home: loads it when it is opened.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { follow, route } from "../lib/route.js";
import { Line } from "../ui/Text.js";
import { Icon } from "../ui/icons.js";
import { pages } from "./index.js";

export function PageFrame({ id }: { id: string }) {
  const page = pages.find((one) => one.id === id);
  const [Body, setBody] = useState<ComponentType | undefined>();
  useEffect(() => {
    let isGone = false;
    void page?.load().then(({ default: loaded }) => isGone || setBody(() => loaded));
    return () => (isGone = true);
  }, [id]);
  const item = route.value.view === "page" ? route.value.item : undefined;
  return (
    <div class={`home ${page?.isWide ? "wide" : ""}`}>
      <header class="bar">
        <a class="button quiet icon-only" href={item ? `/${id}` : "/"} onClick={follow} aria-label={item ? `All ${page?.title.toLowerCase() ?? ""}` : "All sessions"}>
          <Icon name="back" />
        </a>
        <h1 class="page-title">{item ? <Line text={item} /> : (page?.title ?? "Page not found")}</h1>
      </header>
      <main>{Body && <Body />}</main>
    </div>
  );
}
