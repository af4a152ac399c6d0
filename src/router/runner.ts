/**
 * Runs the calls of one conversation, one by one or in lanes, including the calls that their handlers
 * make. It knows which calls are running, so that ids stay unique and each listener receives only the
 * events of its own call.
 * In lanes, calls of parallel tools run together. A call that must run alone waits for all calls before
 * it, and all calls after it wait for it.
 */
import { partsToText } from "../base/content.ts";
import { CallError } from "../base/error.ts";
import { defined, isObject, parseJson, type Json } from "../base/json.ts";
import type { Registry } from "../registry/registry.ts";
import type { Asked, Ended, Permitted } from "../spec/call.ts";
import { isFreeform } from "../spec/freeform.ts";
import type { CallEvent, MakeCall, Recorder } from "../spec/stages.ts";
import type { AnyTool, CallOutcome } from "../spec/tool.ts";
import { route, type CallSetting, type Stages } from "./route.ts";
import { createTurns, type Turns } from "./turns.ts";

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
  /** Ends all calls of these lanes. */
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
  /** The call that this one names, if it does nothing but name another (`call_tool`). */
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

const nothing: Recorder = { async started() {}, async decided() {}, async ended() {} };
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
    running.set(asked.id, onEvent);
    try {
      // A yes is given to one call, and does not extend to the calls which that call makes.
      const setting: CallSetting = {
        signal: by.signal,
        makeCall: callsWithin(asked, inner, by.depth, registry),
        idempotencyKey: `${scope}/${asked.id}`,
        ...defined({ beforeRun, approved: by.depth > 0 ? undefined : approved }),
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

/** Runs calls side by side where their tools allow it, and the others in order. */
export interface Lanes {
  /** Starts the call as soon as its turn comes. */
  add(asked: Asked, by?: MadeBy): Promise<Ended>;
  /** Resolves when everything added so far has ended. */
  idle(): Promise<void>;
}

/** The lanes in which the calls made by a running call take their turns. */
export type InnerLanes = Pick<Lanes, "add">;

/** What a call inherits from the call whose handler made it. */
export interface MadeBy {
  readonly signal: AbortSignal;
  readonly depth: number;
}

export interface LaneOptions {
  /** Runs one call down the line. */
  readonly run: (asked: Asked, inner: InnerLanes, by?: MadeBy) => Promise<Ended>;
  /** Whether it may run beside others. Calls of unknown tools may, because they only end with an error. */
  readonly isParallel: (asked: Asked) => boolean;
  readonly isMutating: (asked: Asked) => boolean;
  /** When the turn is ready. Calls that change something wait for it. */
  readonly ready?: Promise<void>;
  /** Called when a call begins to wait for `ready`, and again when it stops waiting. */
  readonly onWait?: (asked: Asked, state: "waiting" | "released") => void;
}

export function createLanes(options: LaneOptions): Lanes {
  const turns = createTurns();
  const lanes: Lanes = {
    async add(asked, by) {
      const alone = !options.isParallel(asked);
      const place = takePlace(turns, alone);
      try {
        await place.come();
        if (options.ready && options.isMutating(asked)) await waitFor(options.ready, asked, options);
        // While a call runs alone, the calls that it makes run alone too, and take turns among themselves.
        return await options.run(asked, alone ? createLanes(options) : besides(options, lanes, place), by);
      } finally {
        place.leave();
      }
    },
    idle: turns.idle,
  };
  return lanes;
}

async function waitFor(ready: Promise<void>, asked: Asked, { onWait }: LaneOptions): Promise<void> {
  // If `ready` has resolved already, it wins the race against this promise, and nobody has to be told about a wait.
  const notYet = Promise.resolve().then(() => undefined);
  const isReady = await Promise.race([ready.then(() => true), notYet.then(() => false)]);
  if (isReady) return;
  onWait?.(asked, "waiting");
  await ready;
  onWait?.(asked, "released");
}

/**
 * The calls made by a call that runs beside others. Those that may also run beside others run within
 * their parent's turn. One that must run alone waits in line like any other call; its parent gives up
 * its own turn in the meantime, or the two would wait for each other for ever.
 */
function besides(options: LaneOptions, lanes: Lanes, place: Place): InnerLanes {
  const inner: InnerLanes = {
    add: (asked, by) =>
      options.isParallel(asked) ? options.run(asked, inner, by) : place.without(() => lanes.add(asked, by)),
  };
  return inner;
}

type Place = ReturnType<typeof takePlace>;

function takePlace(turns: Turns, alone: boolean) {
  let turn = turns.take(alone);
  let outside = 0;
  let left = false;
  return {
    come: () => turn.come,
    /** Gives the turn up while `work` goes on, and takes another one afterwards. */
    async without<Result>(work: () => Promise<Result>): Promise<Result> {
      if (outside++ === 0) turn.end();
      try {
        return await work();
      } finally {
        if (--outside === 0 && !left) {
          turn = turns.take(alone);
          await turn.come;
        }
      }
    },
    leave(): void {
      left = true;
      turn.end();
    },
  };
}

/** How deep calls may nest. A call nested deeper can only come from a tool that calls itself. */
const maxDepth = 16;

/** The calls that one call's handler makes: numbered below their parent, and run in the lanes it was given. */
function callsWithin(parent: Asked, inner: InnerLanes, depth: number, registry: Registry): MakeCall {
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
