/** `<think>…</think>` at the front of the text, for servers that leave the thoughts of a model in its words. */
interface ThinkPiece {
  readonly inside: boolean;
  readonly text: string;
}

export interface ThinkSplitter {
  push(text: string): readonly ThinkPiece[];
  end(): readonly ThinkPiece[];
}

const opener = "<think>";
const closer = "</think>";

/** Only a tag that opens the text counts: one in the middle is something the model talks about. */
export function createThinkSplitter(): ThinkSplitter {
  let state: "before" | "inside" | "after" = "before";
  let held = "";

  function before(): readonly ThinkPiece[] {
    const start = held.trimStart();
    if (opener.startsWith(start)) return start === opener ? enter(start) : [];
    return start.startsWith(opener) ? enter(start) : leave(held);
  }

  function enter(start: string): readonly ThinkPiece[] {
    state = "inside";
    held = start.slice(opener.length);
    return inside();
  }

  function inside(): readonly ThinkPiece[] {
    const end = held.indexOf(closer);
    if (end === -1) {
      const keep = overlap(held);
      const ready = held.slice(0, held.length - keep);
      held = held.slice(held.length - keep);
      return ready === "" ? [] : [{ inside: true, text: ready }];
    }
    const thoughts = held.slice(0, end);
    return [...(thoughts === "" ? [] : [{ inside: true, text: thoughts }]), ...leave(held.slice(end + closer.length))];
  }

  function leave(rest: string): readonly ThinkPiece[] {
    state = "after";
    held = "";
    return rest === "" ? [] : [{ inside: false, text: rest }];
  }

  return {
    push(text) {
      if (state === "after") return text === "" ? [] : [{ inside: false, text }];
      held += text;
      return state === "before" ? before() : inside();
    },
    end() {
      if (held === "") return [];
      const last = { inside: state === "inside", text: held };
      held = "";
      return [last];
    },
  };
}

/** How many characters at the end may be the beginning of the closer. */
function overlap(text: string): number {
  for (let length = Math.min(closer.length - 1, text.length); length > 0; length--) {
    if (closer.startsWith(text.slice(-length))) return length;
  }
  return 0;
}
