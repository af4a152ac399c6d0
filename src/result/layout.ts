/** How a command's outcome is told to a model, in the forms models were trained on. */
import type { ExecOutcome } from "../spec/tool.ts";

/** A profile's choice. */
export type ExecLayout = "plain" | "seed" | "codex" | "codex-json";

/** `cut` shortens the part that can be long; what frames it stays whole. */
export function layoutExec(outcome: ExecOutcome, layout: ExecLayout, cut: (text: string) => string): string {
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

/** The shortest that says everything: the output, and the exit code when it is not 0. */
function plainLayout(outcome: ExecOutcome, cut: (text: string) => string): string {
  const output = cut(outcome.output);
  const notes = [...(outcome.notes ?? [])];
  if (outcome.timedOut) notes.unshift(`command timed out after ${Math.round(outcome.durationMs)} milliseconds`);
  if (outcome.sessionId !== undefined) notes.push(`still running as session ${outcome.sessionId}`);
  else if (outcome.exitCode !== 0) notes.push(`exit code ${outcome.exitCode ?? "unknown"}`);
  const tail = notes.map((note) => `[${note}]`).join("\n");
  if (output === "") return tail === "" ? "[no output]" : tail;
  return tail === "" ? output : `${output}${output.endsWith("\n") ? "" : "\n"}${tail}`;
}

/** Seed 000's `stdout: / stderr: / exit_code:`. */
function seedLayout(outcome: ExecOutcome, cut: (text: string) => string): string {
  const lines = [];
  if (outcome.stdout !== "") lines.push(`stdout:\n${cut(outcome.stdout)}`);
  if (outcome.stderr !== "") lines.push(`stderr:\n${cut(outcome.stderr)}`);
  lines.push(`exit_code: ${outcome.exitCode ?? -1}`);
  return lines.join("\n");
}

/** The text layout of codex's shell_command. */
function codexLayout(outcome: ExecOutcome, cut: (text: string) => string): string {
  if (outcome.chunkId !== undefined) return codexSessionLayout(outcome, cut);
  const output = cut(outcome.output);
  // One decimal, and none where it would be zero.
  const lines = [
    `Exit code: ${outcome.exitCode ?? -1}`,
    `Wall time: ${Math.round(outcome.durationMs / 100) / 10} seconds`,
  ];
  if (output !== outcome.output) lines.push(`Total output lines: ${outcome.output.split("\n").length}`);
  const timeout = outcome.timedOut ? `command timed out after ${Math.round(outcome.durationMs)} milliseconds\n` : "";
  return [...lines, "Output:", timeout + output, ...(outcome.notes ?? [])].join("\n");
}

/** The layout of codex's exec_command and write_stdin, whose processes may go on. */
function codexSessionLayout(outcome: ExecOutcome, cut: (text: string) => string): string {
  const state =
    outcome.sessionId === undefined
      ? `Process exited with code ${outcome.exitCode ?? -1}`
      : `Process running with session ID ${outcome.sessionId}`;
  return [
    `Chunk ID: ${outcome.chunkId}`,
    `Wall time: ${(outcome.durationMs / 1000).toFixed(4)} seconds`,
    state,
    `Original token count: ${Math.ceil(Buffer.byteLength(outcome.output) / 4)}`,
    "Output:",
    [cut(outcome.output), ...(outcome.notes ?? [])].join("\n"),
  ].join("\n");
}

/** The JSON layout of codex's older shell tool. */
function codexJsonLayout(outcome: ExecOutcome, cut: (text: string) => string): string {
  return JSON.stringify({
    output: cut(outcome.output),
    metadata: { exit_code: outcome.exitCode ?? -1, duration_seconds: Math.round(outcome.durationMs / 100) / 10 },
  });
}
