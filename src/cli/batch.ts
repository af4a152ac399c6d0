import { isObject } from "../base/json.ts";
import { readLines } from "../base/lines.ts";
import { printJson } from "./io.ts";

export type AnswerLine = (line: Record<string, unknown>) => Promise<object> | object;

/**
 * Reads JSON lines from stdin and writes one JSON line for each, in order. A line that is not a JSON
 * object gets an error line and stops nothing. `parallel` starts lines before the ones above them have
 * ended.
 */
export async function runBatch(answer: AnswerLine, options: { readonly parallel?: boolean } = {}): Promise<void> {
  let printed: Promise<void> = Promise.resolve();
  for await (const line of readLines(process.stdin)) {
    if (line.trim() === "") continue;
    const answered = answerLine(line, answer);
    printed = printed.then(async () => printJson(await answered, false));
    if (!options.parallel) await printed;
  }
  await printed;
}

async function answerLine(line: string, answer: AnswerLine): Promise<object> {
  let id: unknown;
  try {
    const value: unknown = JSON.parse(line);
    if (!isObject(value)) return { id: null, error: "the line is not a JSON object" };
    id = value["id"] ?? null;
    return { id, ...(await answer(value)) };
  } catch (error) {
    return { id: id ?? null, error: error instanceof Error ? error.message : String(error) };
  }
}
