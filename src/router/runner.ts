/**
 * Runs the calls of one conversation, one by one or in lanes, including the calls that their handlers
 * make. It knows which calls are running, so that ids stay unique and each listener receives only the
 * events of its own call.
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

/** Options for one call. */
export interface RunOptions {
  /** Told which calls start and how they ended, including the calls that handlers make. */
  readonly recorder?: Recorder;
  /** Receives the events of this call and of the calls its handler makes, and no others. */
  readonly onEvent?: (event: CallEvent) => void;
  /**
   * The hash of the question (from `decide`) that somebody said yes to. It is valid for this call, this
   * input and this state of the files only.
   */
  readonly approved?: string;
  /** A name for what the calls belong to, the same in every process. `ctx.idempotencyKey` begins with it. */
  readonly scope?: string;
  /** Awaited when the call is permitted, before it is recorded and run. Throwing a CallError ends the call. */
  readonly beforeRun?: (permitted: Permitted) => Promise<void>;
}

/** Options for the calls of one answer. */
export interface LanesOptions extends Omit<RunOptions, "onEvent" | "approved"> {
  readonly signal: AbortSignal;
  /** Calls that may change something wait for this. */
  readonly ready?: Promise<void>;
}

/** How a call ended, with its text in one piece. */
export interface CallResult extends Ended {
  /** The text parts of `content`, joined. It is not an own property, so it is not written to JSON. */
  readonly text: string;
}

export interface Runner {
  run(asked: Asked, signal?: AbortSignal, options?: RunOptions): Promise<Ended>;
  lanes(options: LanesOptions): Lanes;
  /** The call that is really meant, if this one only names another (`call_tool`). */
  meant(asked: Asked): Asked;
  /** Passes an event on to the listeners of its call. */
  heard(event: CallEvent): void;
}

export interface RunnerOptions {
  /** The conversation's id. */
  readonly id: string;
  readonly registry: Registry;
  /** The stages for a call that starts now. Throws if no call may start. */
  readonly stages: () => Omit<Stages, "record">;
  /** Receives every call that has ended. */
  readonly count: (ended: Ended) => void;
}

const nothing: Recorder = { async started() {}, async ended() {} };
const ignore = () => undefined;
/** The signal for calls that nobody will interrupt. */
export const never = new AbortController().signal;

export function createRunner({ id, registry, stages, count }: RunnerOptions): Runner {
  /** The calls that are running, by id, each with its listener. */
  const running = new Map<string, (event: CallEvent) => void>();

  /** Two calls with the same id at once would mix up their events and files, so the second one gets another id. */
  const withFreeId = (asked: Asked): Asked => {
    if (!running.has(asked.id)) return asked;
    let copy = 2;
    while (running.has(`${asked.id}~${copy}`)) copy++;
    return { ...asked, id: `${asked.id}~${copy}` };
  };
  /** Made once for many calls, because the stages change only when the rules or the session do. */
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
      // A yes is given to one call, and does not extend to the calls which that call makes.
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
  /** A call that only names another (`call_tool`) is treated as that other call from here on. */
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

/** How deep calls may nest. More than this is a tool that calls itself. */
const maxDepth = 16;

/** The calls that one call's handler makes: numbered below their parent, and run in the lanes it was given. */
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

/**
 * `text` is a getter on the prototype, so that the result is the same as before when it is written to
 * a journal or sent.
 */
const textOfContent = Object.defineProperty({}, "text", {
  enumerable: false,
  get(this: Ended) {
    return partsToText(this.content);
  },
});

export function withText(ended: Ended): CallResult & CallOutcome {
  // It has every field of `ended`, and a getter for its text.
  return Object.assign(Object.create(textOfContent), ended) as CallResult & CallOutcome;
}

/** A call made by a program, in the form that a wire would have given it. */
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

/** Whether this is the JSON text that a freeform tool asks for when it is offered as a function with one string. */
function isAdvertised(tool: AnyTool | undefined, text: string): boolean {
  if (tool === undefined || !isFreeform(tool.input)) return false;
  const parsed = parseJson(text);
  if (!parsed.ok || !isObject(parsed.value)) return false;
  const keys = Object.keys(parsed.value);
  return keys.length === 1 && keys[0] === (tool.input.label ?? "input");
}

/** Before the input is known, a tool that might change something is treated as one that does. */
function isMutating(tool: AnyTool | undefined): boolean {
  if (tool === undefined || tool.mutates === false) return false;
  return tool.mutates !== undefined || tool.access !== undefined;
}
