import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** What was typed in all sessions: one JSON string per line, readable by the user only. */
export interface PromptHistory {
  /** What was typed, the oldest first. */
  readonly prompts: readonly string[];
  add(prompt: string): void;
}

const keptPrompts = 1_000;

export function openPromptHistory(stateDir: string): PromptHistory {
  const path = join(stateDir, "prompts.jsonl");
  const prompts = readPrompts(path);
  if (prompts.length > keptPrompts * 2) {
    prompts.splice(0, prompts.length - keptPrompts);
    writeFileSync(path, prompts.map((prompt) => `${JSON.stringify(prompt)}\n`).join(""), { mode: 0o600 });
  }
  return {
    prompts,
    add(prompt) {
      if (prompts.at(-1) === prompt) return;
      prompts.push(prompt);
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      appendFileSync(path, `${JSON.stringify(prompt)}\n`, { mode: 0o600 });
    },
  };
}

function readPrompts(path: string): string[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return []; // the first session of all
  }
  return text.split("\n").flatMap((line) => {
    try {
      const value: unknown = JSON.parse(line);
      return typeof value === "string" ? [value] : [];
    } catch {
      return []; // a line torn by a crash loses one prompt, and nothing else
    }
  });
}
