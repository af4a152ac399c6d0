/**
 * The calls of a script, each of which goes down the whole line, is counted and is answered in
 * JavaScript values; and the script's clock.
 */
import {
  CallError,
  toToolSpecs,
  type AnyTool,
  type CallOutcome,
  type Json,
  type JsonObject,
  type Registry,
  type ToolContext,
} from "../../index.ts";
import { toDeclarations, type Declared } from "./declare.ts";

/** The name of the tool itself, which no script may call. */
export const codeName = "run_code";

/** The size limit of one message to the script. A longer result becomes an error. */
const maxMessage = 16 * 1024 * 1024;

/** A script may write anything after the mark. What is not a message is ignored. */
export function readMessage(text: string): JsonObject | undefined {
  try {
    const message: unknown = JSON.parse(text);
    // JSON.parse returns JSON, and an object that is not a list is a JsonObject.
    return typeof message === "object" && message !== null && !Array.isArray(message)
      ? (message as JsonObject)
      : undefined;
  } catch {
    return undefined;
  }
}

/** Answers what the script asks for. */
interface Calls {
  answer(message: JsonObject, reply: (text: string) => void): void;
  settled(): Promise<unknown>;
}

export function createCalls(registry: Registry, maxCalls: number, ctx: ToolContext, clock: Clock): Calls {
  const open = new Set<Promise<void>>();
  let made = 0;

  async function value({ call, find, input }: JsonObject): Promise<Json> {
    if (++made > maxCalls)
      throw new CallError("failed", `The script made more than ${maxCalls} calls.`, { hint: "Ask for more at once." });
    if (typeof find === "string") return findDeclarations(find, registry, ctx);
    if (typeof call !== "string" || call === "")
      throw new CallError("invalid_input", "Name a tool: tools.NAME(input).");
    if (registry.find(call)?.name === codeName)
      throw new CallError("invalid_input", "A script cannot run another script.");
    const outcome = await ctx.call(call, input ?? {});
    if (!outcome.ok) throw new CallError("failed", outcome.text, { data: { code: outcome.code ?? "failed" } });
    return toValue(outcome, ctx);
  }

  async function answer(message: JsonObject, reply: (text: string) => void): Promise<void> {
    const { id = null, call: tool = null } = message;
    try {
      const text = JSON.stringify({ id, value: await value(message) });
      if (text.length > maxMessage)
        throw new CallError("failed", `The result is too long for a script: ${text.length}.`);
      reply(`${text}\n`);
    } catch (error) {
      if (!CallError.is(error)) throw error;
      const data = error.data as { readonly code?: string } | undefined; // set above
      reply(`${JSON.stringify({ id, error: { message: error.message, code: data?.code ?? error.code, tool } })}\n`);
    }
  }

  let fault: { readonly error: unknown } | undefined;
  return {
    answer(message, reply) {
      const wait = clock.pause();
      const one = answer(message, reply)
        .catch((error: unknown) => void (fault ??= { error }))
        .finally(() => {
          open.delete(one);
          wait.end();
        });
      open.add(one);
    },
    async settled() {
      await Promise.all(open);
      if (fault !== undefined) throw fault.error;
    },
  };
}

/** The declarations of what the search finds, as text. */
async function findDeclarations(query: string, registry: Registry, ctx: ToolContext): Promise<string> {
  const found = await ctx.call("tool_search", { query, limit: 8 });
  const names = found.text.split("\n").flatMap((line) => readMessage(line)?.["name"] ?? []);
  const tools = names.flatMap((name) => (typeof name === "string" ? (registry.find(name) ?? []) : []));
  return tools.length === 0 ? found.text : toDeclarations(toDeclared(tools));
}

/**
 * What a script gets: data if the tool returned some, otherwise its text, and all of it even where a
 * model would get only a part.
 */
async function toValue(outcome: CallOutcome, ctx: ToolContext): Promise<Json> {
  const { structured, cut, content, text } = outcome;
  if (structured !== undefined) return structured;
  if (cut?.file !== undefined) return new TextDecoder().decode(await ctx.files.read(cut.file));
  const others = content.flatMap((part) => (part.type === "text" ? [] : [`[${part.type}]`]));
  return [text, ...others].filter((piece) => piece !== "").join("\n");
}

export interface Clock {
  /** Starts the time again, because how long Node takes to start is not the script's fault. */
  restart(): void;
  stop(): void;
  /** The script waits for a call, so this time does not count. */
  pause(): { end(): void };
  isOver(): boolean;
}

/** Counts only the time in which the script waits for nobody. */
export function createClock(limitMs: number, onOver: () => void): Clock {
  let left = limitMs;
  let since = 0;
  let timer: NodeJS.Timeout | undefined;
  let waiting = 0;
  let over = false;
  const run = () => {
    since = performance.now();
    timer = setTimeout(
      () => {
        over = true;
        onOver();
      },
      Math.max(1, left),
    );
  };
  const halt = () => {
    clearTimeout(timer);
    if (timer !== undefined) left -= performance.now() - since;
    timer = undefined;
  };
  return {
    restart() {
      halt();
      left = limitMs;
      run();
    },
    stop: halt,
    isOver: () => over,
    pause() {
      if (waiting++ === 0) halt();
      return { end: () => void (--waiting === 0 && !over && run()) };
    },
  };
}

export function toDeclared(tools: readonly AnyTool[]): readonly Declared[] {
  return toToolSpecs(tools, { custom: false, native: false }).flatMap((spec) =>
    spec.kind === "function" ? [spec] : [],
  );
}
