/**
 * Whether the text stands where calls are only quoted: in a code fence, inline code, a comment, a `>`
 * quote or an indented block. A model that shows a page, a file or an example must not run what it
 * shows.
 */
import { codeAt, take, type Input, type Reading } from "../input.ts";

export interface Quote {
  saw(text: string): void;
  /** Called when a run of ticks or tildes stands at the cursor. */
  tick(input: Input, say: (text: string) => void): Reading<void>;
  inside(): boolean;
  /**
   * On its own line after four spaces or a tab: an example, unless its opener is a token that nobody
   * types, or a tool's own tag.
   */
  indented(): boolean;
  atLineStart(): boolean;
  /** A call was read, so what follows it directly is not an indented example. */
  called(): void;
}

/** How much of a line decides what the line is. */
const headLimit = 16;

export function createQuote(): Quote {
  let fence = "";
  let inline = 0;
  /** The beginning of the current line, as much of it as matters. */
  let head = "";
  let said = false;
  let comment = false;
  let tail = "";
  const isQuoted = () => /^\s{0,3}>/.test(head);
  const isIndented = () => said && /^(?: {4}| {0,3}\t)\s*$/.test(head);
  return {
    saw(text) {
      // An unclosed comment ends with its paragraph, so that it does not swallow the calls after it.
      const recent = tail + text;
      const opened = recent.lastIndexOf("<!--");
      const closed = Math.max(recent.lastIndexOf("-->"), recent.lastIndexOf("\n\n"));
      if (opened >= 0 || closed >= 0) comment = opened > closed;
      tail = recent.slice(-3);
      const line = text.lastIndexOf("\n");
      if (line >= 0) {
        inline = 0;
        head = "";
      }
      if (head.length < headLimit) head += text.slice(line + 1, line + 1 + headLimit);
      said ||= text.trim() !== "";
    },
    *tick(input, say) {
      const code = yield* codeAt(input);
      let length = 1;
      while (length < 64 && (yield* codeAt(input, length)) === code) length++;
      const starts = head.trim() === "";
      const run = take(input, length);
      say(run);
      if (starts && length >= 3) {
        if (fence === "") fence = run;
        else if (run.startsWith(fence)) fence = "";
      } else if (fence === "" && code === 0x60) inline = inline === 0 ? length : inline === length ? 0 : inline;
    },
    inside: () => fence !== "" || inline > 0 || comment || isQuoted(),
    indented: isIndented,
    atLineStart: () => head.trim() === "",
    called() {
      said = false;
      head = "";
    },
  };
}
