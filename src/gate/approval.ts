/** Asking: the request bound to the exact call, the memory of a session, and approvers for programs. */
import { createHash } from "node:crypto";
import type { Readable, Writable } from "node:stream";
import { createInterface } from "node:readline";
import { isObject, stableStringify } from "../base/json.ts";
import type { Grant } from "../spec/access.ts";
import type { Checked } from "../spec/call.ts";
import type { ApprovalAnswer, ApprovalRequest, Approver } from "../spec/stages.ts";
import { understand } from "./command/understand.ts";
import { resolveReal } from "./paths.ts";
import type { Policy } from "./policy.ts";

/** What a person said yes to during this session. */
export interface Memory {
  has(key: string): boolean;
  add(key: string): void;
}

export function createMemory(): Memory {
  const keys = new Set<string>();
  return { has: (key) => keys.has(key), add: (key) => void keys.add(key) };
}

function sha256(value: unknown): string {
  return createHash("sha256").update(stableStringify(value)).digest("hex");
}

/** Covers the call, what it touches with every link followed now, and the grant: if any of it changes, the yes is void. */
export function callHash(checked: Checked, grant: Grant, policy: Policy): string {
  const paths = [...(checked.access.read ?? []), ...(checked.access.write ?? [])];
  return sha256({
    tool: checked.tool.name,
    input: checked.input,
    access: checked.access,
    leads: paths.map((path) => resolveReal(path, policy.workspace) ?? null),
    grant,
  });
}

/**
 * One key for each thing that was agreed to, so that a later call with fewer of them passes too. A
 * command that is understood counts by its words, so blanks and quoting do not matter; an MCP tool
 * counts with its definition, so that a changed one asks again.
 */
export function memoryKeys(checked: Checked, grant: Grant, policy: Policy): readonly string[] {
  const { access, tool } = checked;
  const commands = (access.commands ?? []).map((command) => {
    const understood = understand(command, policy);
    const plain = understood.doubts.length === 0 && understood.unclear.length === 0;
    const canonical = plain
      ? {
          argv: understood.steps.map((step) => [step.argv, step.found.env, step.found.cwds]),
          redirects: understood.redirects,
        }
      : { text: command.shell ?? command.argv ?? "" };
    return {
      command: canonical,
      cwd: command.cwd ?? policy.workspace,
      dialect: command.dialect ?? "bash",
      escalation: access.escalation !== undefined,
    };
  });
  const paths = (use: "read" | "write") =>
    (access[use] ?? []).map((path) => ({ [use]: resolveReal(path, policy.workspace) ?? path }));
  const hosts = (access.network ?? []).map((host) => ({ host }));
  const things: readonly object[] = [...commands, ...paths("read"), ...paths("write"), ...hosts];
  const own =
    things.length === 0
      ? [
          {
            tool: tool.name,
            definition: sha256({
              input: toPlain(tool.input),
              description: typeof tool.description === "string" ? tool.description : "",
            }),
          },
        ]
      : things;
  return own.map((thing) =>
    sha256({
      thing,
      grant: { ...grant, write: [...grant.write].toSorted() },
      tool: things.length === 0 ? tool.name : undefined,
    }),
  );
}

function toPlain(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value ?? null));
  } catch {
    // A schema object that cannot be written down is told apart by nothing but its tool's name.
    return null;
  }
}

/** A function as approver. */
export function createCallbackApprover(
  ask: (
    request: ApprovalRequest,
    signal: AbortSignal,
  ) => ApprovalAnswer | undefined | Promise<ApprovalAnswer | undefined>,
): Approver {
  return { ask: async (request, signal) => ask(request, signal) };
}

/**
 * Requests as JSON lines out, answers as JSON lines in: `{"hash": …, "answer": "once"}`. An answer
 * counts only for the hash it names; when the input ends, nobody can answer any more.
 */
export function createJsonLinesApprover(input: Readable, output: Writable): Approver {
  const waiting = new Map<string, (answer: ApprovalAnswer | undefined) => void>();
  let ended = false;
  const lines = createInterface({ input, crlfDelay: Infinity });
  lines.on("line", (line) => {
    const parsed = toAnswer(line);
    if (parsed === undefined) return;
    waiting.get(parsed.hash)?.(parsed.answer);
    waiting.delete(parsed.hash);
  });
  lines.on("close", () => {
    ended = true;
    for (const answer of waiting.values()) answer(undefined);
    waiting.clear();
  });
  return {
    ask: (request, signal) =>
      new Promise((resolve) => {
        if (ended || signal.aborted) return resolve(undefined);
        waiting.set(request.hash, resolve);
        signal.addEventListener("abort", () => resolve(undefined), { once: true });
        output.write(`${JSON.stringify({ type: "approval.asked", ...request })}\n`);
      }),
  };
}

function toAnswer(line: string): { readonly hash: string; readonly answer: ApprovalAnswer } | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (!isObject(value) || typeof value["hash"] !== "string") return undefined;
    const answer = readAnswer(value["answer"], value["message"]);
    return answer === undefined ? undefined : { hash: value["hash"], answer };
  } catch {
    // Not JSON: not an answer.
    return undefined;
  }
}

/** Anything but a word we know is no answer, and no answer is a no. */
export function readAnswer(answer: unknown, message: unknown): ApprovalAnswer | undefined {
  if (answer === "once" || answer === "session" || answer === "always") return { answer };
  if (answer === "no" || answer === "stop") return typeof message === "string" ? { answer, message } : { answer };
  return undefined;
}
