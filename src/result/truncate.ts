/** Cutting an output to a budget: its head and its tail, and between them how much is missing. */
import { cutEnd, cutStart } from "../base/text.ts";

/** How much of an output a model is told. */
export interface Budget {
  readonly maxTokens: number;
  readonly maxLines: number;
}

export interface Cut {
  readonly text: string;
  /** Characters left out, 0 when the text is whole. */
  readonly cutChars: number;
}

/** Characters a token stands for at the least, so that a budget in tokens is never exceeded. */
const charsPerToken = 4;

/** Head and tail within the budget, and a marker between them that says how much is missing. */
export function truncate(text: string, budget: Budget, note = ""): Cut {
  const byLines = cutLines(text, budget.maxLines, note);
  const byChars = cutChars(byLines.text, budget.maxTokens * charsPerToken, note);
  return { text: byChars.text, cutChars: byLines.cutChars + byChars.cutChars };
}

function cutLines(text: string, maxLines: number, note: string): Cut {
  const headEnd = nthNewline(text, Math.ceil(maxLines / 2));
  if (headEnd === -1) return { text, cutChars: 0 };
  const tailStart = nthNewlineFromEnd(text, Math.floor(maxLines / 2));
  if (tailStart <= headEnd) return { text, cutChars: 0 };
  const middle = text.slice(headEnd, tailStart);
  const lines = middle.split("\n").length - 1;
  return {
    text: `${text.slice(0, headEnd)}[… ${lines} lines omitted${note} …]\n${text.slice(tailStart)}`,
    cutChars: middle.length,
  };
}

function cutChars(text: string, maxChars: number, note: string): Cut {
  if (text.length <= maxChars) return { text, cutChars: 0 };
  const longest = marker(text.length, note);
  const room = maxChars - longest.length;
  // A budget smaller than the marker itself: the marker's beginning is all there is room for.
  if (room <= 0) return { text: cutStart(longest, Math.max(0, maxChars)), cutChars: text.length };
  const head = cutStart(text, Math.floor(room / 2));
  const tail = cutEnd(text, room - Math.floor(room / 2));
  const missing = text.length - head.length - tail.length;
  return { text: head + marker(missing, note) + tail, cutChars: missing };
}

function marker(chars: number, note: string): string {
  return `\n[… ${Math.ceil(chars / charsPerToken)} tokens omitted${note} …]\n`;
}

/** Offset just after the nth newline, or -1 if there are not that many. */
function nthNewline(text: string, count: number): number {
  let at = 0;
  for (let seen = 0; seen < count; seen++) {
    const next = text.indexOf("\n", at);
    if (next === -1) return -1;
    at = next + 1;
  }
  return at;
}

/** Offset where the last `count` lines begin. */
function nthNewlineFromEnd(text: string, count: number): number {
  let at = text.endsWith("\n") ? text.length - 1 : text.length;
  for (let seen = 0; seen < count; seen++) {
    const next = text.lastIndexOf("\n", at - 1);
    if (next === -1) return 0;
    at = next;
  }
  return count === 0 ? text.length : at + 1;
}
