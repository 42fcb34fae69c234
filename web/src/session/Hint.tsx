// Said when somebody types and may not, or not now: nothing was typed, and here is how to change that.

import { Icon } from "../ui/icons.js";
import { Line } from "../ui/Text.js";
import type { Standing } from "./standing.js";

interface Props {
  now: Standing;
  may: boolean;
  onAct: () => void;
  onClose: () => void;
}

export function Hint({ now, may, onAct, onClose }: Props) {
  return (
    <div class="hint" role="status">
      <span class="hint-words">
        {!may && now.is !== "over" && "You may watch this session, but not type into it."}
        {now.is === "over" && "This session has ended."}
        {may && now.is === "theirs" && (
          <>
            Nothing was typed: <Line text={now.holder} /> has the turn.
            {now.asked && " You have requested it."}
          </>
        )}
      </span>
      {may && now.is === "theirs" && !now.asked && (
        <button type="button" class="small primary" onClick={onAct}>
          Request the turn <kbd>Enter</kbd>
        </button>
      )}
      <button type="button" class="quiet icon-only close" aria-label="Close" onClick={onClose}>
        <Icon name="close" size={16} />
      </button>
    </div>
  );
}
