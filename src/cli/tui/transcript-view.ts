/** The conversation on the screen. Everything that happened is one block, and the newest block grows in place. */
import { Container, Spacer, type Component } from "@earendil-works/pi-tui";
import { partsToText, type Part } from "../../base/content.ts";
import { prunedWords } from "../../result/effects.ts";
import type { SessionEvent } from "../../session/index.ts";
import type { Item, ResultItem } from "../../spec/model.ts";
import { describeInput, describePlan, describeUndo, firstLine } from "../chat/timeline.ts";
import { visible } from "../chat/visible.ts";
import { createCallBlock, parseInput, type CallBlock } from "./call-block.ts";
import { createHangingText, type HangingText } from "./hanging-text.ts";
import type { Pictures } from "./pictures.ts";
import { createStreamedText, type StreamedText } from "./streamed-text.ts";
import { paintDiff, type Theme } from "./theme.ts";

export interface TranscriptView {
  readonly component: Container;
  show(event: SessionEvent): void;
  /** Shows an earlier part of the session. */
  showHistory(items: readonly Item[]): void;
  note(text: string): void;
  /** Adds an empty block that is filled in as things happen. */
  addBlock(): HangingText;
  /** Shows the pictures among the parts of a message or a result, if the terminal can draw them. */
  showPictures(parts: readonly Part[]): void;
  /** The name of a running call. */
  nameOf(id: string): string;
  /** Switches between one line and all of the model's thoughts. */
  toggleReasoning(): void;
}

interface Thought {
  readonly view: HangingText;
  readonly pieces: string[];
}

/** How many of the last items of a resumed session are shown. */
const historyItems = 30;
const diffLines = 20;

export function createTranscriptView(theme: Theme, pictures: Pictures): TranscriptView {
  const component = new Container();
  const calls = new Map<string, CallBlock>();
  const thoughts: Thought[] = [];
  /** The growing texts and thoughts of the running answer, by index. */
  const growing = new Map<number, StreamedText | Thought>();
  let unfolded = false;

  const add = <View extends Component>(view: View): View => {
    component.addChild(new Spacer(1));
    component.addChild(view);
    return view;
  };
  const note = (text: string) => void add(createHangingText(text));
  const showPictures = (parts: readonly Part[]) => {
    for (const picture of parts.flatMap((part) => (part.type === "image" ? (pictures.draw(part) ?? []) : [])))
      add(picture);
  };
  const paint = (thought: Thought) => {
    const text = thought.pieces.join("");
    const words = unfolded ? visible(text) : `${firstLine(text, 80)} (ctrl-r unfolds the reasoning)`;
    thought.view.setText(theme.dim(`✻ ${words}`));
  };
  const addThought = (): Thought => {
    const thought = { view: add(createHangingText("")), pieces: [] };
    thoughts.push(thought);
    return thought;
  };
  const grow = (event: Extract<SessionEvent, { type: "item.delta" }>) => {
    if (event.field === "arguments" || event.delta === "") return;
    const isThought = event.field === "reasoning" || event.field === "summary";
    const entry = growing.get(event.index) ?? (isThought ? addThought() : add(createStreamedText(theme)));
    growing.set(event.index, entry);
    if ("append" in entry) return entry.append(event.delta);
    const known = entry.pieces.length;
    entry.pieces.push(event.delta);
    // Only the beginning of a folded thought is visible.
    if (unfolded || known < 20) paint(entry);
  };
  const begin = (call: { readonly id: string; readonly name: string; readonly arguments: string }) => {
    const block = createCallBlock(theme, call);
    add(block.component);
    calls.set(call.id, block);
  };

  return {
    component,
    note,
    addBlock: () => add(createHangingText("")),
    showPictures,
    nameOf: (id) => calls.get(id)?.label ?? id,
    show: (event) => {
      if (event.type === "request.sent") growing.clear();
      else if (event.type === "item.delta") grow(event);
      else if (event.type === "call.asked") begin(event.call);
      else if (event.type === "exec.output") calls.get(event.id)?.output(shownOutput(event));
      else if (event.type === "approval.answered") calls.get(event.id)?.answered(event.answer);
      else if (event.type === "call.ended") {
        calls.get(event.call.id)?.end(event.call);
        calls.delete(event.call.id);
        showPictures(event.call.content);
      } else {
        const text = describeEvent(event, theme);
        if (text !== undefined) note(text);
      }
    },
    showHistory(items) {
      const results = new Map(items.flatMap((item) => (item.type === "result" ? [[item.callId, item]] : [])));
      if (items.length > historyItems) note(theme.dim(`… ${items.length - historyItems} earlier items`));
      for (const item of items.slice(-historyItems)) {
        if (item.type === "message" && item.role === "assistant")
          add(createStreamedText(theme)).append(partsToText(item.content));
        else {
          const text = describeItem(item, results, theme);
          if (text !== undefined) note(text);
        }
      }
    },
    toggleReasoning() {
      unfolded = !unfolded;
      for (const thought of thoughts) paint(thought);
    },
  };
}

/** Very long output is not shown live to its end. A line says how much was left out. */
function shownOutput({ text, omittedBytes }: Extract<SessionEvent, { type: "exec.output" }>): string {
  return omittedBytes === undefined ? text : `[… ${omittedBytes} bytes not shown …]\n`;
}

/** The text of events that are shown as a note of their own. */
function describeEvent(event: SessionEvent, theme: Theme): string | undefined {
  switch (event.type) {
    case "turn.started":
      return theme.user(`› ${visible(event.prompt)}`);
    case "plan.updated":
      return describePlan(event.plan).replace(/^ {2}/gm, "");
    case "diff.updated":
      return showDiff(event.diff, theme);
    case "history.compacted":
      return theme.dim(`the history was shortened: ${event.tokensBefore} → ${event.tokensAfter} tokens`);
    case "effects.settled":
      return event.pruned === undefined ? undefined : theme.warn(`! ${prunedWords(event.pruned)}`);
    case "effects.snapshot":
    case "effects.undone":
    case "effects.redone":
      return theme.dim(describeUndo(event));
    case "warning":
      return theme.warn(`! ${visible(event.message)}`);
    case "error":
      return theme.bad(`✗ ${visible(event.message)}`);
    case "turn.ended":
      return event.reason === "done" || event.reason === "error"
        ? undefined
        : theme.warn(`the turn ended: ${event.reason}${event.detail ? ` (${visible(event.detail)})` : ""}`);
    default:
      return undefined;
  }
}

/** Only the beginning of a diff is shown, because a long one would push the answer above it out of sight. */
function showDiff(diff: string, theme: Theme): string {
  const lines = visible(diff.trimEnd()).split("\n");
  const shown = paintDiff(lines.slice(0, diffLines).join("\n"), theme);
  return lines.length <= diffLines
    ? shown
    : `${shown}\n${theme.dim(`… ${lines.length - diffLines} more lines (/diff shows them)`)}`;
}

function describeItem(item: Item, results: ReadonlyMap<string, ResultItem>, theme: Theme): string | undefined {
  if (item.type === "message") return theme.user(`› ${visible(partsToText(item.content))}`);
  if (item.type === "compaction") return theme.dim("the history before this was shortened");
  if (item.type !== "call") return undefined;
  const result = results.get(item.id);
  const mark = result === undefined ? "·" : result.ok ? theme.good("✓") : theme.bad("✗");
  const input = describeInput({ arguments: item.arguments, input: parseInput(item.arguments) });
  const head = `${mark} ${theme.strong(visible(item.name))} ${theme.dim(input)}`;
  return result === undefined ? head : `${head}\n${theme.dim(`  ${firstLine(partsToText(result.content), 120)}`)}`;
}
