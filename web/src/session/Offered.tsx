// A program wants to set the clipboard: said beside what one does, never over it, and forgotten when that is wished.

import type { Signal } from "@preact/signals";

export type Offer = { is: "none" } | { is: "made"; text: string } | { is: "ignored" };

export function Offered({ offer, onShow }: { offer: Signal<Offer>; onShow: (text: string) => void }) {
  const made = offer.value;
  if (made.is !== "made") return null;
  const show = () => {
    offer.value = { is: "none" };
    onShow(made.text);
  };
  return (
    <div class="hint offer" role="status">
      <span class="hint-words">A program wants to put text into your clipboard.</span>
      <button type="button" class="small primary" onClick={show}>
        Show it
      </button>
      <button type="button" class="small" title="Ignore further requests until you open this session again" onClick={() => (offer.value = { is: "ignored" })}>
        Ignore
      </button>
    </div>
  );
}
