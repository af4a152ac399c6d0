/** One call on the screen: while it runs, a line with the last lines of its output, and afterwards how it ended. */
import { describeAnswer, describeDenied } from "../chat/answer-words.ts";
import type { Component } from "@earendil-works/pi-tui";
import { partsToText } from "../../base/content.ts";
import type { Asked, Ended } from "../../spec/call.ts";
import type { ApprovalAnswer } from "../../spec/stages.ts";
import { describeInput } from "../chat/timeline.ts";
import { visible } from "../chat/visible.ts";
import { createHangingText } from "./hanging-text.ts";
import type { Theme } from "./theme.ts";

export interface CallBlock {
  readonly component: Component;
  /** The name of the call in the status line. */
  readonly label: string;
  output(text: string): void;
  answered(answer: ApprovalAnswer | undefined): void;
  end(call: Ended): void;
}

/** How many lines of a running command's output stay visible. */
const tailLines = 6;
const resultLines = 4;
const lineWidth = 160;
/** How much of an unfinished line is kept. It is enough to fill any screen. */
const maxHeldChars = 4_096;

export function createCallBlock(theme: Theme, asked: Pick<Asked, "name" | "arguments" | "parent">): CallBlock {
  const component = createHangingText("");
  // A call with a parent was made by another call, such as a script or an agent.
  const inside = asked.parent === undefined ? "" : theme.dim("↳ ");
  const plain = `${visible(asked.name)} ${describeInput({ arguments: asked.arguments, input: parseInput(asked.arguments) })}`;
  const label = plain.replace(/^\S+/, theme.strong).replace(/ .*$/s, theme.dim);
  let tail: readonly string[] = [];
  let held = "";
  let said = "";
  const draw = (head: string, lines: readonly string[]) =>
    component.setText([`${inside}${head}${said}`, ...lines.map((line) => theme.dim(`  ${cut(line)}`))].join("\n"));
  draw(`${theme.accent("●")} ${label}`, []);
  return {
    component,
    label: plain,
    output(text) {
      const lines = (held + text).split("\n");
      held = lines.pop()!.slice(-maxHeldChars);
      tail = [...tail, ...lines.filter((line) => line.trim() !== "").map(visible)].slice(-tailLines);
      draw(`${theme.accent("●")} ${label}`, held.trim() === "" ? tail : [...tail.slice(1 - tailLines), visible(held)]);
    },
    answered(answer) {
      said = theme.dim(` · ${describeAnswer(answer)}`);
      draw(`${theme.accent("●")} ${label}`, tail);
    },
    end(call) {
      const failed = !call.ok || (call.exitCode !== undefined && call.exitCode !== 0);
      const mark = failed ? theme.bad("✗") : theme.good("✓");
      const exit = call.exitCode === undefined || call.exitCode === 0 ? "" : theme.bad(` exit ${call.exitCode ?? "?"}`);
      const took = call.durationMs >= 100 ? theme.dim(` ${(call.durationMs / 1000).toFixed(1)} s`) : "";
      // The output of an interrupted command is not in its result, so it stays visible.
      const before = call.code === "aborted" ? tail : [];
      const denied = call.denied === undefined ? [] : [visible(describeDenied(call.denied))];
      draw(`${mark} ${label}${exit}${took}`, [...before, ...summary(call), ...denied]);
    },
  };
}

function summary(call: Ended): readonly string[] {
  const lines = visible(partsToText(call.content)).trimEnd().split("\n");
  return lines.length > resultLines
    ? [...lines.slice(0, resultLines), `… ${lines.length - resultLines} more lines`]
    : lines;
}

function cut(line: string): string {
  return line.length > lineWidth ? `${line.slice(0, lineWidth - 1)}…` : line;
}

/** The arguments if they are JSON. Those of a custom tool are text. */
export function parseInput(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
