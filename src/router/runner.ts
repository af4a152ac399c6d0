/**
 * Runs the calls of one conversation: one by one or in lanes, the calls that their handlers make included. Knows which
 * run now, so that ids stay unique and whoever follows a call hears of that one alone.
 */
import { partsToText } from "../base/content.ts";
import { CallError } from "../base/error.ts";
import { isObject, parseJson, type Json } from "../base/json.ts";
import type { Registry } from "../registry/registry.ts";
import type { Asked, Ended, Permitted } from "../spec/call.ts";
import { isFreeform } from "../spec/freeform.ts";
import type { CallEvent, Nest, Recorder } from "../spec/stages.ts";
import type { AnyTool, CallOutcome } from "../spec/tool.ts";
import { createLanes, type InnerLanes, type LaneOptions, type Lanes, type MadeBy } from "./lanes.ts";
import { route, type CallSetting, type Stages } from "./route.ts";

/** What goes with one call. */
export interface RunOptions {
  /** Told what starts and what ended, the calls of calls included. */
  readonly recorder?: Recorder;
  /** Hears the events of this call and of the calls its handler makes, and no others. */
  readonly onEvent?: (event: CallEvent) => void;
  /** The hash of the question (`decide`) that somebody said yes to: worth nothing for any other call, input or state of the files. */
  readonly approved?: string;
  /** What the calls belong to, in words that are the same in every process: the beginning of `ctx.idempotencyKey`. */
  readonly scope?: string;
  /** Awaited once the call is permitted, before it is recorded and run. Throwing a CallError ends the call. */
  readonly beforeRun?: (permitted: Permitted) => Promise<void>;
}

/** What goes with the calls of one answer. */
export interface LanesOptions extends Omit<RunOptions, "onEvent" | "approved"> {
  readonly signal: AbortSignal;
  /** Calls that may change something wait for it. */
  readonly ready?: Promise<void>;
}

/** How a call ended, with its text in one piece. */
export interface CallResult extends Ended {
  /** The text parts of `content`. Not written down with the rest. */
  readonly text: string;
}

export interface Runner {
  run(asked: Asked, signal?: AbortSignal, options?: RunOptions): Promise<Ended>;
  lanes(options: LanesOptions): Lanes;
  /** The call that is really meant, where it only names another. */
  meant(asked: Asked): Asked;
  /** Passes an event on to whoever follows its call. */
  heard(event: CallEvent): void;
}

export interface RunnerOptions {
  /** The conversation's own name. */
  readonly id: string;
  readonly registry: Registry;
  /** The stages a call that starts now goes through; throws where none may start. */
  readonly stages: () => Omit<Stages, "record">;
  /** Every call that has ended. */
  readonly count: (ended: Ended) => void;
}

const nothing: Recorder = { async started() {}, async ended() {} };
const ignore = () => undefined;
/** For calls that nobody will interrupt. */
export const never = new AbortController().signal;

export function createRunner({ id, registry, stages, count }: RunnerOptions): Runner {
  /** The calls running now, by id, each with whoever follows it. */
  const running = new Map<string, (event: CallEvent) => void>();

  /** The same id twice at once would mix two calls' events and files. */
  const withFreeId = (asked: Asked): Asked => {
    if (!running.has(asked.id)) return asked;
    let copy = 2;
    while (running.has(`${asked.id}~${copy}`)) copy++;
    return { ...asked, id: `${asked.id}~${copy}` };
  };
  /** Made once for many calls: they differ only when the rules or the session do. */
  const recorded = (own: Omit<Stages, "record">, record: Recorder): Stages => {
    if (latest?.own !== own || latest.all.record !== record) latest = { own, all: { ...own, record } };
    return latest.all;
  };
  let latest: { readonly own: Omit<Stages, "record">; readonly all: Stages } | undefined;
  const runOne = async (given: Asked, inner: InnerLanes, by: MadeBy, options: RunOptions): Promise<Ended> => {
    const own = stages();
    const asked = withFreeId(given);
    const { recorder = nothing, onEvent = ignore, beforeRun, approved, scope = id } = options;
    const nest = nestIn(asked, inner, by.depth, registry);
    running.set(asked.id, onEvent);
    try {
      // A yes is for the call it was given for, not for the calls that call makes.
      const setting: CallSetting = {
        signal: by.signal,
        nest,
        idempotencyKey: `${scope}/${asked.id}`,
        ...(beforeRun === undefined ? {} : { beforeRun }),
        ...(by.depth > 0 || approved === undefined ? {} : { approved }),
      };
      const ended = await route(asked, recorded(own, recorder), setting);
      count(ended);
      return ended;
    } finally {
      running.delete(asked.id);
    }
  };
  /** A call that only names another is that other one, for everybody from here on. */
  const meant = (asked: Asked): Asked => {
    const other = registry.find(asked.name, asked.namespace)?.standsFor?.(asked.arguments);
    if (other === undefined) return asked;
    const { namespace: _namespace, ...rest } = asked;
    return { ...rest, kind: "function", ...other };
  };
  const toolOf = (asked: Asked) => {
    const { name, namespace } = meant(asked);
    return registry.find(name, namespace);
  };
  const onWait = (asked: Asked, state: "waiting" | "released") =>
    stages().emit({ type: "call.waiting", id: asked.id, tool: toolOf(asked)?.name ?? asked.name, state });
  const laneOptions = (signal: AbortSignal, options: RunOptions, ready?: Promise<void>): LaneOptions => ({
    run: (asked, inner, by = { signal, depth: 0 }) => runOne(meant(asked), inner, by, options),
    isParallel: (asked) => toolOf(asked)?.parallel ?? false,
    isMutating: (asked) => isMutating(toolOf(asked)),
    ...(ready === undefined ? {} : { ready, onWait }),
  });

  return {
    run: (asked, signal = never, options = {}) =>
      runOne(meant(asked), createLanes(laneOptions(signal, options)), { signal, depth: 0 }, options),
    lanes: ({ signal, ready, ...options }) => createLanes(laneOptions(signal, options, ready)),
    meant,
    heard: (event) => running.get("call" in event ? event.call.id : event.id)?.(event),
  };
}

/** A call in a call in a call: more is a tool that calls itself. */
const maxDepth = 16;

/** The calls that one call's handler makes: numbered below it, in the lanes it was given. */
function nestIn(parent: Asked, inner: InnerLanes, depth: number, registry: Registry): Nest {
  let made = 0;
  return async (name, input, signal) => {
    if (depth >= maxDepth)
      throw new CallError("failed", `Calls are nested more than ${maxDepth} deep.`, {
        hint: "A tool that calls itself has to stop somewhere.",
      });
    const asked: Asked = {
      ...toAsked(`${parent.id}.${++made}`, name, input, registry),
      parent: parent.id,
      ...(parent.markerless === undefined ? {} : { markerless: parent.markerless }),
    };
    return withText(await inner.add(asked, { signal, depth: depth + 1 }));
  };
}

/** `text` for whoever asks, and on no list of fields: what is written to a journal or sent somewhere is the same as before. */
const textOfContent = Object.defineProperty({}, "text", {
  enumerable: false,
  get(this: Ended) {
    return partsToText(this.content);
  },
});

export function withText(ended: Ended): CallResult & CallOutcome {
  // Every field of `ended`, and the text of its own content.
  return Object.assign(Object.create(textOfContent), ended) as CallResult & CallOutcome;
}

/** A program's own call, as a wire would have asked for it. */
export function toAsked(id: string, name: string, input: Json | string, registry?: Registry): Asked {
  const isText = typeof input === "string";
  return {
    id,
    name,
    kind: isText && !isAdvertised(registry?.find(name), input) ? "custom" : "function",
    arguments: isText ? input : JSON.stringify(input),
    askedAt: Date.now(),
  };
}

/** Is it the very JSON text that the tool, offered as a function with one string, asks for? */
function isAdvertised(tool: AnyTool | undefined, text: string): boolean {
  if (tool === undefined || !isFreeform(tool.input)) return false;
  const parsed = parseJson(text);
  if (!parsed.ok || !isObject(parsed.value)) return false;
  const keys = Object.keys(parsed.value);
  return keys.length === 1 && keys[0] === (tool.input.label ?? "input");
}

/** Before its input is known, a tool that might change something is taken to. */
function isMutating(tool: AnyTool | undefined): boolean {
  if (tool === undefined || tool.mutates === false) return false;
  return tool.mutates !== undefined || tool.access !== undefined;
}
