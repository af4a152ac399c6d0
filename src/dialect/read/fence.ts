/** Whether the text stands in a code fence or in inline code, where a taught call is only quoted. */
import { codeAt, take, type Input, type Reading } from "../input.ts";

export interface Fence {
  saw(text: string): void;
  /** A run of ticks or tildes stands at the cursor. */
  tick(input: Input, say: (text: string) => void): Reading<void>;
  inside(): boolean;
  atLineStart(): boolean;
}

export function createFence(active: boolean): Fence {
  let fence = "";
  let inline = 0;
  let lineStart = true;
  return {
    saw(text) {
      const line = text.lastIndexOf("\n");
      if (line >= 0) inline = 0;
      const rest = line >= 0 ? text.slice(line + 1) : text;
      lineStart = (line >= 0 || lineStart) && rest.trim() === "";
    },
    *tick(input, say) {
      const code = yield* codeAt(input);
      let length = 1;
      while (length < 64 && (yield* codeAt(input, length)) === code) length++;
      const starts = lineStart;
      const run = take(input, length);
      say(run);
      if (starts && length >= 3) {
        if (fence === "") fence = run;
        else if (run.startsWith(fence)) fence = "";
      } else if (fence === "" && code === 0x60) inline = inline === 0 ? length : inline === length ? 0 : inline;
    },
    inside: () => active && (fence !== "" || inline > 0),
    atLineStart: () => lineStart,
  };
}
