/** Approvers that are functions, or programs that talk to us over streams. */
import type { Readable, Writable } from "node:stream";
import { isObject } from "../base/json.ts";
import { readLines } from "../base/lines.ts";
import type { ApprovalAnswer, ApprovalRequest, Approver } from "../spec/stages.ts";

/**
 * Writes requests as JSON lines and reads answers as JSON lines: `{"hash": …, "answer": "once"}`; for
 * a held run, `"keep": [paths]` keeps a part of it. An answer counts only for the hash it names. After
 * the input has ended, nobody can answer.
 */
export function createJsonLinesApprover(input: Readable, output: Writable): Approver {
  // Two conversations may ask the same, and then have the same hash: each question waits for an answer of its own.
  const waiting = new Set<{ readonly hash: string; answer(answer: ApprovalAnswer | undefined): void }>();
  let ended = false;
  const listen = async () => {
    for await (const line of readLines(input)) {
      const parsed = toAnswer(line);
      if (parsed !== undefined) [...waiting].find(({ hash }) => hash === parsed.hash)?.answer(parsed.answer);
    }
  };
  const close = () => {
    ended = true;
    for (const question of waiting) question.answer(undefined);
  };
  // An input that breaks off is treated like one that ended.
  void listen().then(close, close);
  return {
    ask: (request, signal) =>
      new Promise((resolve) => {
        if (ended || signal.aborted) return resolve(undefined);
        const stop = () => question.answer(undefined);
        const question = {
          hash: request.hash,
          answer(answer: ApprovalAnswer | undefined) {
            waiting.delete(question);
            signal.removeEventListener("abort", stop);
            resolve(answer);
          },
        };
        waiting.add(question);
        signal.addEventListener("abort", stop, { once: true });
        output.write(`${JSON.stringify({ type: "approval.asked", ...request })}\n`);
      }),
  };
}

function toAnswer(line: string): { readonly hash: string; readonly answer: ApprovalAnswer } | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (!isObject(value) || typeof value["hash"] !== "string") return undefined;
    const answer = readAnswer(value);
    return answer === undefined ? undefined : { hash: value["hash"], answer };
  } catch {
    // Not JSON: not an answer.
    return undefined;
  }
}

/** Only a known word is an answer, and no answer means no. */
function readAnswer({ answer, message, keep }: Readonly<Record<string, unknown>>): ApprovalAnswer | undefined {
  if (answer === "once" || answer === "session" || answer === "always") {
    if (keep === undefined) return { answer };
    // A list that cannot be read must not be taken as a yes to everything.
    return Array.isArray(keep) && keep.every((path) => typeof path === "string") ? { answer, keep } : undefined;
  }
  if (answer === "direct") return { answer };
  if (answer === "no" || answer === "stop") return typeof message === "string" ? { answer, message } : { answer };
  return undefined;
}

/** An approver that is a function: it is given the question, and returns the answer. */
export function createCallbackApprover(
  ask: (
    request: ApprovalRequest,
    signal: AbortSignal,
  ) => ApprovalAnswer | undefined | Promise<ApprovalAnswer | undefined>,
): Approver {
  return { ask: async (request, signal) => ask(request, signal) };
}
