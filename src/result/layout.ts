/** How the outcome of a command is described to a model, in the forms that models were trained on. */
import { constants } from "node:os";
import { defined } from "../base/json.ts";
import type { ExecOutcome } from "../spec/tool.ts";
import { bytesOf, lineBreaksOf, wholeOf, type Cuttable } from "./truncate.ts";

/** The form, chosen by a profile. */
export type ExecLayout = "plain" | "seed" | "codex" | "codex-json";

type CutText = (output: Cuttable) => string;

/** `cut` shortens the part that can be long. What frames it stays complete. */
export function layoutExec(told: ExecOutcome, layout: ExecLayout, cut: CutText): string {
  const outcome = { ...told, exitCode: exitCodeOf(told), ...defined({ notes: notesOf(told) }) };
  switch (layout) {
    case "seed":
      return seedLayout(outcome, cut);
    case "codex":
      return codexLayout(outcome, cut);
    case "codex-json":
      return codexJsonLayout(outcome, cut);
    case "plain":
      return plainLayout(outcome, cut);
  }
}

/** As a shell would report it: 124 for the time limit, and 128 plus the signal's number for a death by signal. */
export function exitCodeOf({ exitCode, signal, timedOut, sessionId }: ExecOutcome): number | null {
  if (sessionId !== undefined) return null;
  if (timedOut) return 124;
  // Names of signals, as the system has them.
  const number = signal ? (constants.signals as Readonly<Record<string, number>>)[signal] : undefined;
  return exitCode ?? (number === undefined ? null : 128 + number);
}

function notesOf({
  output,
  heldOpen,
  waitingForInput,
  sessionId,
  notes = [],
}: ExecOutcome): readonly string[] | undefined {
  const all = [
    ...(heldOpen ? ["a background process kept the output open; it was ended"] : []),
    ...(waitingForInput
      ? [
          sessionId === undefined
            ? "the command was waiting for input; none can be given here"
            : "the process is waiting for input",
        ]
      : []),
    ...(typeof output !== "string" && output.binary ? ["the output is not text"] : []),
    ...notes,
  ];
  return all.length === 0 ? undefined : all;
}

/** The shortest form that says everything: the output, and the exit code if it is not 0. */
function plainLayout(outcome: ExecOutcome, cut: CutText): string {
  const output = cut(outcome.output);
  const notes = [...(outcome.notes ?? [])];
  if (outcome.timedOut) notes.unshift(`command timed out after ${Math.round(outcome.durationMs)} milliseconds`);
  if (outcome.sessionId !== undefined) notes.push(`still running as session ${outcome.sessionId}`);
  else if (outcome.exitCode !== 0) notes.push(`exit code ${outcome.exitCode ?? "unknown"}`);
  const tail = notes.map((note) => `[${note}]`).join("\n");
  if (output === "") return tail === "" ? "[no output]" : tail;
  return tail === "" ? output : `${output}${output.endsWith("\n") ? "" : "\n"}${tail}`;
}

/** Three parts with a heading each: `stdout:`, `stderr:`, `exit_code:`. */
function seedLayout(outcome: ExecOutcome, cut: CutText): string {
  const lines = [];
  if (bytesOf(outcome.stdout) > 0) lines.push(`stdout:\n${cut(outcome.stdout)}`);
  if (bytesOf(outcome.stderr) > 0) lines.push(`stderr:\n${cut(outcome.stderr)}`);
  lines.push(`exit_code: ${outcome.exitCode ?? -1}`);
  return lines.join("\n");
}

/** The text layout of codex's shell_command. */
function codexLayout(outcome: ExecOutcome, cut: CutText): string {
  if (outcome.chunkId !== undefined) return codexSessionLayout(outcome, cut);
  const output = cut(outcome.output);
  // One decimal, or none if it would be zero.
  const lines = [
    `Exit code: ${outcome.exitCode ?? -1}`,
    `Wall time: ${Math.round(outcome.durationMs / 100) / 10} seconds`,
  ];
  if (output !== wholeOf(outcome.output)) lines.push(`Total output lines: ${lineBreaksOf(outcome.output) + 1}`);
  const timeout = outcome.timedOut ? `command timed out after ${Math.round(outcome.durationMs)} milliseconds\n` : "";
  return [...lines, "Output:", timeout + output, ...(outcome.notes ?? [])].join("\n");
}

/** The layout of codex's exec_command and write_stdin, whose processes may go on. */
function codexSessionLayout(outcome: ExecOutcome, cut: CutText): string {
  const state =
    outcome.sessionId === undefined
      ? `Process exited with code ${outcome.exitCode ?? -1}`
      : `Process running with session ID ${outcome.sessionId}`;
  return [
    `Chunk ID: ${outcome.chunkId}`,
    `Wall time: ${(outcome.durationMs / 1000).toFixed(4)} seconds`,
    state,
    `Original token count: ${Math.ceil(bytesOf(outcome.output) / 4)}`,
    "Output:",
    [cut(outcome.output), ...(outcome.notes ?? [])].join("\n"),
  ].join("\n");
}

/** The JSON layout of codex's older shell tool. */
function codexJsonLayout(outcome: ExecOutcome, cut: CutText): string {
  return JSON.stringify({
    output: cut(outcome.output),
    metadata: { exit_code: outcome.exitCode ?? -1, duration_seconds: Math.round(outcome.durationMs / 100) / 10 },
  });
}
