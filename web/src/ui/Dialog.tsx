// A question over the page. The browser's own dialog keeps the focus inside and gives it back; Esc says no.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

interface Props {
  title: string;
  wide?: boolean;
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog({ title, wide, onClose, children }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
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
        {children}
      </div>
    </dialog>
  );
}
