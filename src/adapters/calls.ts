/**
 * An engine's tools for a host that has a loop of its own (AI SDK, OpenAI Agents, LangChain, a web page).
 * Such hosts first ask whether a call needs a person, continue in another request or another process, and
 * may ask for the same call twice. Here a question is bound to the exact call, and a call that was asked
 * about runs once.
 */
import { createHash } from "node:crypto";
import { partsToText } from "../base/content.ts";
import { CallError } from "../base/error.ts";
import { defined, isObject, stableStringify, type JsonObject } from "../base/json.ts";
import { toToolSpecs } from "../registry/tool-spec.ts";
import type { Conversation } from "../router/conversation.ts";
import type { Asked, Ended } from "../spec/call.ts";
import type { FunctionSpec } from "../spec/model.ts";
import type { ApprovalRequest, CallEvent } from "../spec/stages.ts";
import { createCallStore, type CallStore } from "../store/call-store.ts";

/** An engine, or one conversation of it. */
export type ToolHost = Pick<
  Conversation,
  "id" | "registry" | "situation" | "run" | "decide" | "refuse" | "workspace" | "cwd"
>;

/** What every adapter takes: which tools, whose conversation, and where open questions are kept. */
export interface AdapterOptions {
  /** The names of the tools to hand over. By default all of them. */
  readonly only?: readonly string[];
  /**
   * Where open questions and their calls are kept. By default they are kept in memory, and an answer that
   * is given after a restart is not valid. `openCallFolder` keeps them on disk.
   */
  readonly store?: CallStore;
}

/** The options that are checked when an engine is given to a host. An unknown option is an error. */
export const adapterFields = {
  only: "strings",
  store: { methods: ["claim"], words: "a store of calls, as openCallFolder makes it" },
} as const;

/** One call as a host hands it over. */
export interface HostCall {
  readonly id: string;
  /** The tool's name, in any spelling. */
  readonly name: string;
  readonly input: unknown;
  /** The host's own conversation, if the host names it. Ids are unique within a conversation. */
  readonly thread?: string;
}

export interface OpenQuestion {
  /** Binds a yes to this exact call, its input and the files that it is about. */
  readonly hash: string;
  readonly reason: string;
  /** Everything there is to show, as long as the question is still the one that was asked. */
  readonly request?: ApprovalRequest;
}

export interface HostRun {
  readonly signal?: AbortSignal | undefined;
  readonly onEvent?: (event: CallEvent) => void;
  /** True if somebody has said yes to the question that was asked about this call. */
  readonly approved?: boolean;
}

export interface HostCalls {
  /** Every tool as a plain function, under a name that all hosts accept. */
  tools(): readonly FunctionSpec[];
  /**
   * The question that a person has to answer before this call may run. Undefined if the call needs no
   * answer or is refused anyway. A question that was asked stays open, because hosts come back here with
   * the answer. If there is an answer already, no new question is opened. Otherwise whoever sends the
   * answer could invent the question.
   */
  question(call: HostCall, when?: { readonly answered: boolean }): Promise<OpenQuestion | undefined>;
  run(call: HostCall, how: HostRun): Promise<Ended>;
  /** Ends a call to which a person said no, with that person's words. */
  reject(call: HostCall, words?: string): Ended;
}

export interface HostCallsOptions extends AdapterOptions {
  /**
   * Every call of a thread runs only once, because the host may repeat any of them and not only those it
   * asked about.
   */
  readonly everyCallOnce?: boolean;
}

/** The group of tools that the host itself runs and that no model is offered. */
export const hostGroup = "host";

const never = new AbortController().signal;

export function createHostCalls(engine: ToolHost, options: HostCallsOptions = {}): HostCalls {
  const { only, store = createCallStore(), everyCallOnce = false } = options;
  checkNames(engine, only);
  /** The running calls. If the same call is asked for twice at once, it runs once. */
  const running = new Map<string, Promise<Ended>>();

  const runOnce = async (call: HostCall, how: HostRun): Promise<Ended> => {
    const asked = toAsked(call);
    const key = keyOf(engine, call);
    const kept = await store.get(key);
    if (kept?.ended !== undefined) return { ...kept.ended, id: call.id };
    if (kept === undefined && (!everyCallOnce || call.thread === undefined)) return runNow(asked, how);
    if (!(await mayStart(key, asked, how.approved === true ? kept?.question : undefined))) return repeated(asked);
    const approved = how.approved === true ? kept?.question : undefined;
    const ended = await runNow(asked, how, approved);
    if (didRun(ended)) await store.set(key, { ...kept, ended });
    return ended;
  };

  /** A call that only waits for an answer is not claimed, because the answer may come later. */
  const mayStart = async (key: string, asked: Asked, approved: string | undefined): Promise<boolean> => {
    if (approved === undefined && (await engine.decide(asked)).decision !== "allow") return true;
    return store.claim(key);
  };

  const runNow = (asked: Asked, { signal = never, onEvent }: HostRun, approved?: string) =>
    engine.run(asked, signal, defined({ onEvent, approved }));

  const repeated = (asked: Asked) =>
    engine.refuse(
      asked,
      new CallError("failed", "This call was started before, and how it ended is not known. It was not run again.", {
        hint: "Look at what it may have done before repeating it.",
      }),
    );

  return {
    tools() {
      const names = engine.registry.spellings();
      const wanted = only === undefined ? undefined : new Set(only.map((name) => engine.registry.find(name)?.name));
      const list = engine.registry.list().filter((tool) => wanted?.has(tool.name) ?? tool.group !== hostGroup);
      return toToolSpecs(list, { situation: engine.situation(), custom: false, native: false }).flatMap((spec) =>
        spec.kind === "function" ? [{ ...spec, name: names.get(spec.name) ?? spec.name }] : [],
      );
    },
    async question(call, { answered } = { answered: false }) {
      const key = keyOf(engine, call);
      const kept = await store.get(key);
      const { decision, request, reason } = await engine.decide(toAsked(call));
      if (kept?.question !== undefined) {
        // The question that was shown is kept. If the files have changed since then, a yes to it is rightly
        // not valid any more.
        return { hash: kept.question, reason, ...(request?.hash === kept.question ? { request } : {}) };
      }
      if (answered || decision !== "ask" || request === undefined) return undefined;
      await store.set(key, { ...kept, question: request.hash });
      return { hash: request.hash, reason, request };
    },
    reject: (call, words) =>
      engine.refuse(
        toAsked(call),
        new CallError("rejected", `The user said no to this call.${words === undefined ? "" : ` ${words}`}`),
      ),
    run(call, how) {
      const key = keyOf(engine, call);
      const earlier = running.get(key);
      if (earlier !== undefined) return earlier;
      const run = runOnce(call, how).finally(() => running.delete(key));
      running.set(key, run);
      return run;
    },
  };
}

function checkNames(engine: ToolHost, only: readonly string[] = []): void {
  for (const name of only)
    if (engine.registry.find(name) === undefined) throw new TypeError(`'only' names no tool of this engine: '${name}'`);
}

/**
 * The prefix of ids of calls that were not marked as calls in the model's text. They may be quotations, so
 * their commands wait for a person. The id is the only field that every host passes on.
 */
export const unmarkedPrefix = "unmarked_";

function toAsked({ id, name, input }: HostCall): Asked {
  const text = typeof input === "string" ? input : (JSON.stringify(input) ?? "{}");
  const markerless = id.startsWith(unmarkedPrefix) ? true : undefined;
  return { id, name, kind: "function", arguments: text, askedAt: Date.now(), ...defined({ markerless }) };
}

/**
 * The key under which a call is kept. Another input under the same id is another call and has another key, and
 * so has the same call of another conversation: some servers number the calls of every answer from zero.
 */
function keyOf(engine: ToolHost, { id, name, input, thread = "" }: HostCall): string {
  const tool = engine.registry.find(name)?.name ?? name;
  return createHash("sha256")
    .update(stableStringify([engine.id, thread, id, tool, input]))
    .digest("hex");
}

/** Whether the call got past the gate. A call that was not run may be asked for again. */
function didRun({ code, ruling }: Ended): boolean {
  return code !== "needs_approval" && code !== "invalid_input" && code !== "unknown_tool" && ruling !== undefined;
}

/**
 * What went wrong, in the words that the model is told, or undefined if nothing did. A command that failed
 * says so in its own output.
 */
export function failureOf(ended: Ended): CallError | undefined {
  if (ended.ok || typeof ended.exitCode === "number") return undefined;
  return new CallError(ended.code ?? "failed", partsToText(ended.content));
}

/** Adds the fields that a schema may leave out, because some hosts refuse a schema without them. */
export function closedSchema(schema: JsonObject): JsonObject {
  return {
    ...schema,
    type: "object",
    properties: isObject(schema["properties"]) ? schema["properties"] : {},
    required: Array.isArray(schema["required"]) ? schema["required"] : [],
    additionalProperties: schema["additionalProperties"] ?? false,
  };
}
