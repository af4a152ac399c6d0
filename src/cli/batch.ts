import { createInterface } from "node:readline";
import { isObject } from "../base/json.ts";
import { printJson } from "./io.ts";

/**
 * JSON lines in on stdin, one JSON line out per line in, in order. A line that is not a JSON object
 * gets an error line and stops nothing.
 */
export async function runBatch(answer: (line: Record<string, unknown>) => Promise<object> | object): Promise<void> {
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    if (line.trim() === "") continue;
    printJson(await answerLine(line, answer), false);
  }
}

async function answerLine(
  line: string,
  answer: (line: Record<string, unknown>) => Promise<object> | object,
): Promise<object> {
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
