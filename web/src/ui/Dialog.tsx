// A question over the page. The browser's own dialog keeps the focus inside and gives it back; Esc says no.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { dialogs, told } from "./told.js";
import { Line } from "./Text.js";

interface Props {
  title: string;
  wide?: boolean;
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog({ title, wide, onClose, children }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  const before = useRef(told.peek());
  useLayoutEffect(() => {
    dialogs.value += 1;
    return () => void (dialogs.value -= 1);
  }, []);
  useEffect(() => {
    const { current } = element;
    current?.showModal();
    return () => current?.close();
  }, []);
  const isOutside = (event: MouseEvent) => event.target === element.current;
  return (
    <dialog ref={element} class={wide ? "wide" : ""} aria-labelledby={heading} onClose={onClose} onClick={(event) => isOutside(event) && element.current?.close()}>
      <div class="dialog">
        <h2 id={heading}>{title}</h2>
        {told.value?.tone === "bad" && told.value !== before.current && (
          <p class="banner bad" role="alert">
            <Line text={told.value.text} />
            {told.value.hint && <Line class="hint-line" text={told.value.hint} />}
          </p>
        )}
        {children}
      </div>
    </dialog>
  );
}
