/** Whether the text stands in a code fence, in inline code or in a comment, where a taught call is only quoted. */
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
  let comment = false;
  let tail = "";
  return {
    saw(text) {
      // A comment that nobody closed ends with its paragraph: it must not swallow the calls after it.
      const recent = tail + text;
      const opened = recent.lastIndexOf("<!--");
      const closed = Math.max(recent.lastIndexOf("-->"), recent.lastIndexOf("\n\n"));
      if (opened >= 0 || closed >= 0) comment = opened > closed;
      tail = recent.slice(-3);
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
    inside: () => active && (fence !== "" || inline > 0 || comment),
    atLineStart: () => lineStart,
  };
}
