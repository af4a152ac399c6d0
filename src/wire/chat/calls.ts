/**
 * The calls of one Chat answer: put together from their deltas, shown while they grow, and judged when
 * the answer has ended. Servers disagree on what a delta carries: no index, index 0 for all, ids that
 * repeat, are blank or missing, names in pieces or late. So each delta is matched by what it has, in
 * this order: a known index that nothing contradicts, an unseen id with a name (a new call), a known
 * id, a name alone (a new call), nothing (the call touched last).
 */
import { createGrowingText, type GrowingText } from "../../base/growing-text.ts";
import type { CallItem, ModelEvent, Outcome } from "../../spec/model.ts";
import { readArgumentsText } from "../arguments.ts";
import type { DecodeOptions } from "../codec.ts";
import { unwrapFreeform } from "../freeform.ts";
import { createIdMaker, createPlaces } from "../ids.ts";
import { lookUp } from "../names.ts";
import { declaredNames, expandParallel, isParallelWrapper } from "../parallel.ts";
import { isWhole, jsonObject } from "../raw.ts";

/** Calls come after all text of an answer, in the order of their own index. */
const firstCall = 1_000_000;

export interface Calls {
  take(delta: CallDelta): void;
  /**
   * Returns how many calls there are. Missing ids are derived from the answer's id, so that two turns
   * never share one.
   */
  done(outcome: Outcome, answerId: string): number;
}

export function createCalls(emit: (event: ModelEvent) => void, options: DecodeOptions): Calls {
  const declared = declaredNames(options);
  const assembler = createAssembler(declared);
  const shown = new Set<OpenCall>();

  /**
   * Shows a call while it grows. Its final form comes with `item.done`, so a name that may still change is not shown
   * here.
   */
  function show(call: OpenCall, added: string): void {
    if (call.name === "" || isParallelWrapper(call.name)) return;
    if (assembler.isPartialName(call.name) || assembler.isRepeat(call)) return;
    const index = firstCall + call.slot;
    const tool = lookUp(options.names, call.name, call.custom ? "custom" : "function");
    const isNew = !shown.has(call);
    if (isNew) {
      shown.add(call);
      emit({
        type: "item.started",
        index,
        item: { type: "call", ...tool, id: call.id ?? "", arguments: "", complete: false },
      });
    }
    const delta = isNew ? call.args.toString() : added;
    // A wrapped freeform text is still JSON at this point, which cannot be shown.
    if (delta === "" || (tool.kind === "custom" && !call.custom)) return;
    emit({ type: "item.delta", index, field: "arguments", delta });
  }

  return {
    take(delta) {
      const { call, added } = assembler.take(delta);
      show(call, added);
    },
    done(outcome, answerId) {
      const ids = createIdMaker(options.idSeed ?? answerId);
      const open = assembler.calls();
      let next = Math.max(-1, ...open.map((call) => call.slot)) + 1;
      let position = 0;
      for (const call of open) {
        const several = expandParallel(call, declared)?.map((inner) => ({ ...call, ...inner })) ?? [call];
        for (const [at, one] of several.entries()) {
          const index = firstCall + (at === 0 ? call.slot : next++);
          emit({ type: "item.done", index, item: toItem(one, ids.claim(one.id, position++), outcome, options) });
        }
      }
      return position;
    },
  };
}

/** It may run only if the answer ended properly, the name is known and the arguments are complete. */
function toItem(call: WholeCall, id: string, outcome: Outcome, options: DecodeOptions): CallItem {
  const tool = lookUp(options.names, call.name, call.custom ? "custom" : "function");
  const isWrapped = tool.kind === "custom" && !call.custom;
  const said = call.custom ? { arguments: call.args, complete: true } : readArgumentsText(call.args);
  const raw = isWrapped ? unwrapFreeform(said.arguments, tool.name) : said.arguments;
  const isRight = said.complete && (call.custom || (isWrapped ? raw !== undefined : isWhole(said.arguments)));
  return {
    type: "call",
    ...tool,
    id,
    arguments: raw ?? said.arguments,
    complete: outcome === "ok" && call.name !== "" && isRight,
    ...(call.extra === undefined ? {} : { extra: { wire: "chat", fields: jsonObject(call.extra) } }),
  };
}

export interface CallDelta {
  readonly index?: number | undefined;
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  readonly args: string;
  readonly custom: boolean;
  readonly extra?: Record<string, unknown> | undefined;
}

interface OpenCall extends GrowingArgs {
  /** The call's position: the index that the server gave if no other call has it, otherwise the next free one. */
  readonly slot: number;
  custom: boolean;
  id: string | undefined;
  name: string;
  extra: Record<string, unknown> | undefined;
}

/** A call after everything was said about it. */
type WholeCall = Pick<OpenCall, "slot" | "custom" | "id" | "name" | "extra"> & { args: string };

interface Assembler {
  /** The call this delta belongs to, already grown by it, and what its arguments grew by. */
  take(delta: CallDelta): { readonly call: OpenCall; readonly added: string };
  /** In slot order. Calls that got neither a name nor arguments are left out. */
  calls(): readonly WholeCall[];
  /** Whether the name may still grow into a declared one. */
  isPartialName(name: string): boolean;
  /** Whether another call has the same id. At the end, the two may turn out to be the same call. */
  isRepeat(call: OpenCall): boolean;
}

function createAssembler(declared: ReadonlySet<string>): Assembler {
  const names = createGrowingNames(declared);
  const places = createPlaces();
  const calls: OpenCall[] = [];
  const byIndex = new Map<number, OpenCall>();
  const byId = new Map<string, OpenCall>();
  let last: OpenCall | undefined;

  function find(delta: CallDelta): OpenCall | undefined {
    const here = delta.index === undefined ? undefined : byIndex.get(delta.index);
    const named = delta.id === undefined ? undefined : byId.get(delta.id);
    if (here !== undefined && (named === undefined || named === here)) {
      const isStrange =
        delta.id !== undefined && here.id !== undefined && delta.id !== here.id && delta.name !== undefined;
      return isStrange || startsAnother(here, delta, names) ? undefined : here;
    }
    if (named !== undefined) {
      // A delta with a new index and its own name begins another call, whose server repeats an id.
      const isElsewhere = delta.index !== undefined && here === undefined && delta.name !== undefined;
      return isElsewhere || startsAnother(named, delta, names) ? undefined : named;
    }
    return delta.index === undefined && last !== undefined && goesOn(last, delta, names) ? last : undefined;
  }

  function isRepeat(call: OpenCall): boolean {
    return call.id !== undefined && byId.get(call.id) !== call;
  }

  function open(delta: CallDelta): OpenCall {
    const call = createOpenCall(places.claim(delta.index), delta.custom);
    calls.push(call);
    return call;
  }

  return {
    take(delta) {
      const call = find(delta) ?? open(delta);
      last = call;
      if (delta.index !== undefined) byIndex.set(delta.index, call);
      if (delta.id !== undefined && !byId.has(delta.id)) byId.set(delta.id, call);
      return { call, added: grow(call, delta, names) };
    },
    calls: () => unrepeated(calls.map(toWhole)).toSorted((a, b) => a.slot - b.slot),
    isPartialName: names.mayGrow,
    isRepeat,
  };
}

function toWhole(call: OpenCall): WholeCall {
  const { slot, custom, id, name, extra } = call;
  return { slot, custom, id, name, extra, args: saidOnce(call) };
}

/** Removes empty calls, and calls that were listed under two indexes. */
function unrepeated(calls: readonly WholeCall[]): readonly WholeCall[] {
  const byId = new Map<string, WholeCall>();
  return calls.filter((call) => {
    if (call.name === "" && call.args === "") return false;
    const first = call.id === undefined ? undefined : byId.get(call.id);
    if (call.id !== undefined && first === undefined) byId.set(call.id, call);
    return first === undefined || !absorbs(first, call);
  });
}

function createOpenCall(slot: number, custom: boolean): OpenCall {
  return {
    slot,
    custom,
    id: undefined,
    name: "",
    args: createGrowingText(),
    nesting: createNesting(),
    snapshot: undefined,
    isAnnounced: false,
    extra: undefined,
  };
}

/** Names that come in pieces. Only the declared names tell a piece from a complete name. */
interface GrowingNames {
  isDeclared(name: string): boolean;
  /** Not declared, but the beginning of a name that is. */
  mayGrow(name: string): boolean;
  /**
   * Whether this is the next piece of the call's name: the name so far is not declared itself, and
   * joined with the piece it is, or may become, a declared one.
   */
  continues(call: OpenCall, piece: string): boolean;
  /** Whether a declared name is given as a whole after its beginning was. */
  completes(call: OpenCall, name: string): boolean;
}

function createGrowingNames(declared: ReadonlySet<string>): GrowingNames {
  function mayGrow(name: string): boolean {
    if (declared.has(name)) return false;
    for (const known of declared) if (known.startsWith(name)) return true;
    return false;
  }
  return {
    isDeclared: (name) => declared.has(name),
    mayGrow,
    continues(call, piece) {
      const joined = call.name + piece;
      return !declared.has(call.name) && (declared.has(joined) || mayGrow(joined));
    },
    completes: (call, name) => name.startsWith(call.name) && declared.has(name) && !declared.has(call.name),
  };
}

/** Only an object or a list can be known to be complete, because any more text would break it. */
function isFinished(call: OpenCall): boolean {
  return !call.custom && call.nesting.isOver;
}

/** A delta that names the same place but cannot continue what is there. */
function startsAnother(call: OpenCall, delta: CallDelta, names: GrowingNames): boolean {
  if (delta.name === undefined || call.name === "" || names.continues(call, delta.name)) return false;
  if (delta.name !== call.name)
    return isFinished(call) || (names.isDeclared(delta.name) && names.isDeclared(call.name));
  return delta.args !== "" && isFinished(call) && delta.args !== call.args.toString();
}

/** Whether a delta whose index and id are both unknown belongs to the call touched last. */
function goesOn(last: OpenCall, delta: CallDelta, names: GrowingNames): boolean {
  // Some servers send a fresh id with every delta of one call. Only a name or a finished call tells them apart.
  if (delta.id !== undefined && last.id !== undefined) return delta.name === undefined && !isFinished(last);
  if (delta.name === undefined || last.name === "" || names.continues(last, delta.name)) return true;
  // Some servers repeat the name with every piece.
  return delta.name === last.name && last.args.length > 0 && !isFinished(last);
}

/** Adds what the delta brings to the call. Returns what the arguments grew by. */
function grow(call: OpenCall, delta: CallDelta, names: GrowingNames): string {
  call.id ??= delta.id;
  if (delta.name !== undefined) {
    if (call.name === "" || names.completes(call, delta.name)) call.name = delta.name;
    else if (delta.name !== call.name && names.continues(call, delta.name)) call.name += delta.name;
  }
  if (delta.custom) call.custom = true;
  if (delta.extra !== undefined) call.extra = { ...call.extra, ...delta.extra };
  // The whole call sent a second time, with its name, adds nothing.
  const isWholeCall = delta.name !== undefined && delta.id !== undefined && isFinished(call);
  if (delta.args === "" || (isWholeCall && delta.args === call.args.toString())) return "";
  if (call.args.length === 0) call.isAnnounced = delta.args === announcement;
  call.snapshot = sayingAgain(call, delta.args);
  call.args.add(delta.args);
  call.nesting.read(delta.args);
  return delta.args;
}

/** What is known about a call whose arguments are growing. */
interface GrowingArgs {
  readonly custom: boolean;
  readonly args: GrowingText;
  /** Follows the arguments as they grow, so that nothing is read twice. */
  readonly nesting: Nesting;
  /** The last delta, if it repeated everything that came before it. */
  snapshot: string | undefined;
  /** The first delta was an empty object, with which some servers announce arguments. */
  isAnnounced: boolean;
}

/** `added`, if it begins with everything that came before and that was incomplete. It is then meant to replace it. */
function sayingAgain({ args, nesting, snapshot }: GrowingArgs, added: string): string | undefined {
  if (nesting.isOver && snapshot === undefined) return undefined;
  // Comparing lengths first means that the usual short delta never touches the long text.
  if (added.length < (snapshot ?? args).length) return undefined;
  return added.startsWith(snapshot ?? args.toString()) ? added : undefined;
}

/** The arguments without what was sent twice. Only text that is not valid as it stands is examined. */
function saidOnce({ args: said, custom, snapshot, isAnnounced }: GrowingArgs): string {
  const args = said.toString();
  if (custom) return args;
  if (snapshot !== undefined && snapshot !== args && !isWhole(args) && isWhole(snapshot)) return snapshot;
  const rest = args.slice(announcement.length);
  return isAnnounced && rest.trim() !== "" && isWhole(rest) ? rest : args;
}

/** What a server that announces arguments sends first. */
const announcement = "{}";

/**
 * Whether `again` is the call `first` under another index. If so, `first` gets the arguments, wherever
 * they were sent.
 */
function absorbs(first: WholeCall, again: WholeCall): boolean {
  if (first.name !== again.name) return false;
  if (first.args === "") first.args = again.args;
  return again.args === "" || again.args === first.args;
}

/** Where a growing JSON text ends. Each character is looked at once, in whatever pieces the text comes. */
interface Nesting {
  /** The first bracket was closed again. */
  readonly isOver: boolean;
  /** How far the text goes until then. */
  readonly end: number;
  read(text: string): void;
}

function createNesting(): Nesting {
  let depth = 0;
  let isOver = false;
  let end = 0;
  let inString = false;
  let isEscaped = false;

  function read(char: string): void {
    if (isEscaped) isEscaped = false;
    else if (inString) {
      if (char === "\\") isEscaped = true;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === "{" || char === "[") depth++;
    else if ((char === "}" || char === "]") && --depth <= 0) isOver = true;
  }

  return {
    get isOver() {
      return isOver;
    },
    get end() {
      return end;
    },
    read(text) {
      for (let at = 0; at < text.length && !isOver; at++, end++) read(text[at]!);
    },
  };
}
