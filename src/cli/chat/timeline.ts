/**
 * Session events as lines for a person: the model's text, a line per call, warnings. Plain text,
 * without cursor movement.
 */
import { partsToText } from "../../base/content.ts";
import type { CommandLookedAt, SessionEvent, TakenBack } from "../../session/index.ts";
import type { Ended } from "../../spec/call.ts";
import { describeDenied } from "./answer-words.ts";
import { visible } from "./visible.ts";
import { prunedWords } from "../../result/effects.ts";

export interface TimelineOutput {
  /** The model's answer. */
  words(text: string): void;
  /** Everything else that happens: calls, warnings, questions. */
  line(text: string): void;
}

export function createTimeline(output: TimelineOutput): (event: SessionEvent) => void {
  let midLine = false;
  /** Items of the running answer whose text was shown as it came. */
  const streamed = new Set<number>();
  const line = (text: string) => {
    if (midLine) output.words("\n");
    midLine = false;
    output.line(text);
  };
  return (event) => {
    switch (event.type) {
      case "item.delta":
        if (event.field !== "text" || event.delta === "") return;
        streamed.add(event.index);
        output.words(visible(event.delta));
        midLine = !event.delta.endsWith("\n");
        return;
      case "request.sent":
        return streamed.clear();
      case "item.done":
        // Some models give an answer in one piece, and a recorded answer has no pieces at all.
        if (event.item.type === "message" && !streamed.has(event.index)) {
          const words = partsToText(event.item.content);
          output.words(visible(words));
          midLine = words !== "" && !words.endsWith("\n");
        }
        if (midLine) output.words("\n");
        midLine = false;
        return;
      case "call.permitted":
        return;
      case "call.ended":
        return line(describeEnded(event.call));
      case "plan.updated":
        return line(describePlan(event.plan));
      case "diff.updated":
        return line(indent(visible(event.diff)));
      case "history.compacted":
        return line(`  the history was shortened: ${event.tokensBefore} → ${event.tokensAfter} tokens`);
      case "effects.settled":
        return event.pruned === undefined ? undefined : line(`  ! ${prunedWords(event.pruned)}`);
      case "effects.snapshot":
      case "effects.undone":
      case "effects.redone":
        return line(`  ${describeUndo(event)}`);
      case "warning":
        return line(`  ! ${visible(event.message)}`);
      case "error":
        return line(`  ✗ ${visible(event.message)}`);
      case "turn.ended":
        if (event.reason === "done" || event.reason === "error") return;
        return line(
          `  the turn ended: ${event.reason}${event.detail === undefined ? "" : ` (${visible(event.detail)})`}`,
        );
      default:
        return;
    }
  };
}

/** Says what can be undone now, or what was undone. */
export function describeUndo(event: CommandLookedAt | TakenBack): string {
  if (event.type !== "effects.snapshot")
    return `${event.type === "effects.undone" ? "↶ taken back" : "↷ done again"}: ${visible(event.what ?? event.run)}`;
  const { run, leftOut } = event;
  const left = leftOut.length === 0 ? "" : `; too large for that: ${firstLine(leftOut.join(", "))}`;
  return run === undefined
    ? `! what it changed cannot be taken back${left}`
    : `callgate undo ${run} takes it back (by snapshot)${left}`;
}

function indent(text: string): string {
  return text.trimEnd().replaceAll(/^/gm, "    ");
}

/** `  ✓ shell_command npm test  1.2 s` and the first line of what came back, if it failed. */
function describeEnded(call: Ended): string {
  const mark = call.ok ? (call.exitCode === undefined || call.exitCode === 0 ? "✓" : "·") : "✗";
  const seconds = call.durationMs < 100 ? "" : `  ${(call.durationMs / 1000).toFixed(1)} s`;
  const exit = call.exitCode === undefined || call.exitCode === 0 ? "" : `  exit ${call.exitCode ?? "?"}`;
  const head = `  ${mark} ${call.tool ?? call.name} ${describeInput(call)}${exit}${seconds}`;
  const denied = call.denied === undefined ? "" : `\n      ${visible(describeDenied(call.denied))}`;
  return call.ok ? head + denied : `${head}\n      ${firstLine(partsToText(call.content))}${denied}`;
}

/** The one argument of a call that a person looks for. */
export function describeInput(call: { readonly input?: unknown; readonly arguments?: string }): string {
  const input = call.input;
  if (typeof input === "string") return firstLine(patchedFiles(input) ?? input, 100);
  if (typeof input !== "object" || input === null) return firstLine(call.arguments ?? "", 100);
  const record = input as Readonly<Record<string, unknown>>;
  if (typeof record["input"] === "string") return firstLine(patchedFiles(record["input"]) ?? record["input"], 100);
  const key = ["command", "cmd", "file_path", "path", "dir_path", "pattern", "query", "url"].find((name) =>
    Object.hasOwn(record, name),
  );
  const value = key === undefined ? record : record[key];
  return firstLine(
    typeof value === "string" ? value : Array.isArray(value) ? value.join(" ") : JSON.stringify(value),
    100,
  );
}

/** Describes a patch by the files that it touches. */
function patchedFiles(text: string): string | undefined {
  if (!text.trimStart().startsWith("*** Begin Patch")) return undefined;
  const files = [...text.matchAll(/^\*\*\* (?:Add|Update|Delete) File: (.+)$/gm)].map((match) => match[1]!);
  return files.length === 0 ? undefined : files.join(", ");
}

export function describePlan(plan: unknown): string {
  const steps =
    (plan as { readonly plan?: readonly { readonly step: string; readonly status: string }[] } | null)?.plan ?? [];
  const marks: Readonly<Record<string, string>> = { completed: "☒", in_progress: "▸" };
  return ["  plan", ...steps.map(({ step, status }) => `    ${marks[status] ?? "☐"} ${visible(step)}`)].join("\n");
}

export function firstLine(text: string, width = 160): string {
  const line = visible(text.trim().split("\n")[0] ?? "");
  return line.length > width ? `${line.slice(0, width - 1)}…` : line;
}
