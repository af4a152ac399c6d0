/** The conversation on the screen: one block per thing that happened, the newest growing in place. */
import { Container, Markdown, Spacer, Text } from "@earendil-works/pi-tui";
import { partsToText } from "../../base/content.ts";
import type { SessionEvent } from "../../session/index.ts";
import type { Ended } from "../../spec/call.ts";
import { describeInput, describePlan, firstLine } from "../timeline.ts";
import { visible } from "../visible.ts";
import { paintDiff, type Theme } from "./theme.ts";

export interface TranscriptView {
  readonly component: Container;
  show(event: SessionEvent): void;
  note(text: string): void;
  /** Folded: one line. Unfolded: all the model's thoughts. */
  toggleReasoning(): void;
}

/** Lines of a running command's output that stay in sight. */
const tailLines = 6;
const resultLines = 4;

export function createTranscriptView(theme: Theme): TranscriptView {
  const component = new Container();
  const words = new Map<number, { readonly view: Markdown; text: string }>();
  const thoughts: { readonly view: Text; text: string }[] = [];
  const calls = new Map<string, CallBlock>();
  let unfolded = false;

  const add = <View extends Markdown | Text>(view: View): View => {
    component.addChild(new Spacer(1));
    component.addChild(view);
    return view;
  };
  const note = (text: string) => void add(new Text(text, 1, 0));
  const paintThought = (entry: { readonly view: Text; readonly text: string }) =>
    entry.view.setText(
      theme.dim(unfolded ? `✻ ${visible(entry.text)}` : `✻ ${firstLine(entry.text, 100)} (ctrl-r shows the reasoning)`),
    );

  const grow = (event: Extract<SessionEvent, { type: "item.delta" }>) => {
    if (event.field === "text" || event.field === "refusal") {
      const entry = words.get(event.index) ?? { view: add(new Markdown("", 1, 0, theme.markdown)), text: "" };
      words.set(event.index, entry);
      entry.text += event.delta;
      entry.view.setText(visible(entry.text));
    } else if (event.field === "reasoning" || event.field === "summary") {
      let entry = thoughts.at(-1);
      if (entry === undefined || words.size > 0) thoughts.push((entry = { view: add(new Text("", 1, 0)), text: "" }));
      entry.text += event.delta;
      paintThought(entry);
    }
  };

  const show = (event: SessionEvent) => {
    switch (event.type) {
      case "turn.started":
        return note(theme.user(`› ${visible(event.prompt)}`));
      case "request.sent":
        return words.clear();
      case "item.delta":
        return grow(event);
      case "call.asked":
        calls.set(event.call.id, createCallBlock(add(new Text("", 1, 0)), theme, event.call));
        return;
      case "exec.output":
        return calls.get(event.id)?.output(event.text);
      case "call.ended":
        calls.get(event.call.id)?.end(event.call);
        calls.delete(event.call.id);
        return;
      case "plan.updated":
        return note(describePlan(event.plan));
      case "diff.updated":
        return note(paintDiff(visible(event.diff), theme));
      case "history.compacted":
        return note(theme.dim(`the history was shortened: ${event.tokensBefore} → ${event.tokensAfter} tokens`));
      case "warning":
        return note(theme.warn(`! ${visible(event.message)}`));
      case "error":
        return note(theme.bad(`✗ ${visible(event.message)}`));
      case "turn.ended":
        if (event.reason !== "done" && event.reason !== "error")
          note(theme.warn(`the turn ended: ${event.reason}${event.detail ? ` (${event.detail})` : ""}`));
        return;
      default:
    }
  };

  return {
    component,
    show,
    note,
    toggleReasoning() {
      unfolded = !unfolded;
      for (const entry of thoughts) paintThought(entry);
    },
  };
}

interface CallBlock {
  output(text: string): void;
  end(call: Ended): void;
}

/** One line while it runs, with the last lines of its output; then how it ended. */
function createCallBlock(
  view: Text,
  theme: Theme,
  asked: { readonly name: string; readonly arguments: string; readonly askedAt: number },
): CallBlock {
  let tail: string[] = [];
  const label = `${theme.strong(asked.name)} ${theme.dim(describeInput({ arguments: asked.arguments, input: parseInput(asked.arguments) }))}`;
  const paint = () =>
    view.setText([`${theme.accent("●")} ${label}`, ...tail.map((line) => theme.dim(`  ${line}`))].join("\n"));
  paint();
  return {
    output(text) {
      tail = [
        ...tail,
        ...visible(text)
          .split("\n")
          .filter((line) => line.trim() !== ""),
      ].slice(-tailLines);
      paint();
    },
    end(call) {
      const failed = !call.ok || (call.exitCode !== undefined && call.exitCode !== 0);
      const mark = failed ? theme.bad("✗") : theme.good("✓");
      const exit = call.exitCode === undefined || call.exitCode === 0 ? "" : theme.bad(` exit ${call.exitCode ?? "?"}`);
      const took = call.durationMs >= 100 ? theme.dim(` ${(call.durationMs / 1000).toFixed(1)} s`) : "";
      view.setText(
        [`${mark} ${label}${exit}${took}`, ...summary(call).map((line) => theme.dim(`  ${line}`))].join("\n"),
      );
    },
  };
}

function summary(call: Ended): readonly string[] {
  const lines = visible(partsToText(call.content)).trimEnd().split("\n");
  const shown = lines.slice(0, resultLines).map((line) => (line.length > 160 ? `${line.slice(0, 159)}…` : line));
  return lines.length > resultLines ? [...shown, `… ${lines.length - resultLines} more lines`] : shown;
}

function parseInput(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
