/**
 * Tool-call deltas to whole calls. Servers disagree on what a delta carries (no index, index 0 for all,
 * ids that repeat, are blank or missing, names in pieces or late), so each delta is matched by what it
 * has, in this order: a known index that nothing contradicts, an unseen id with a name (a new call), a
 * known id, a name alone (a new call), nothing (the call touched last).
 */
import { createNesting, type Nesting } from "./nesting.ts";

export interface CallDelta {
  readonly index?: number | undefined;
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  readonly args: string;
  readonly custom: boolean;
  readonly extra?: Record<string, unknown> | undefined;
}

export interface OpenCall {
  /** Place among the calls: the wire's index where it is free, else the next. */
  readonly slot: number;
  custom: boolean;
  id: string | undefined;
  name: string;
  args: string;
  /** Follows the arguments as they grow, so that nothing is read twice. */
  readonly nesting: Nesting;
  extra: Record<string, unknown> | undefined;
}

export interface Assembler {
  /** The call this delta belongs to, already grown by it, and what its arguments grew by. */
  take(delta: CallDelta): { readonly call: OpenCall; readonly added: string };
  /** In slot order; calls that never got a name nor arguments are left out. */
  calls(): readonly OpenCall[];
  /** A name that may still grow into a declared one. */
  isPartialName(name: string): boolean;
}

/** Only an object or a list can be known to be over: any more text would break it. */
function isFinished(call: OpenCall): boolean {
  return !call.custom && call.nesting.isOver;
}

export function createAssembler(declared: ReadonlySet<string>): Assembler {
  const calls: OpenCall[] = [];
  const byIndex = new Map<number, OpenCall>();
  const byId = new Map<string, OpenCall>();
  const slots = new Set<number>();
  let highest = -1;
  let last: OpenCall | undefined;

  function open(delta: CallDelta): OpenCall {
    const wanted = delta.index;
    const slot = wanted !== undefined && !slots.has(wanted) ? wanted : highest + 1;
    slots.add(slot);
    highest = Math.max(highest, slot);
    const call: OpenCall = {
      slot,
      custom: delta.custom,
      id: undefined,
      name: "",
      args: "",
      nesting: createNesting(),
      extra: undefined,
    };
    calls.push(call);
    return call;
  }

  function find(delta: CallDelta): OpenCall | undefined {
    const here = delta.index === undefined ? undefined : byIndex.get(delta.index);
    const named = delta.id === undefined ? undefined : byId.get(delta.id);
    if (here !== undefined && (named === undefined || named === here)) {
      const strange =
        delta.id !== undefined && here.id !== undefined && delta.id !== here.id && delta.name !== undefined;
      return strange || startsAnother(here, delta) ? undefined : here;
    }
    if (named !== undefined) {
      // A new index with a name of its own is another call whose server repeats an id.
      const elsewhere = delta.index !== undefined && here === undefined && delta.name !== undefined;
      return elsewhere || startsAnother(named, delta) ? undefined : named;
    }
    if (delta.index !== undefined) return undefined;
    return findLast(delta);
  }

  /** Neither the index nor the id is known. */
  function findLast(delta: CallDelta): OpenCall | undefined {
    if (last === undefined) return undefined;
    if (delta.id !== undefined && last.id !== undefined) {
      // A fresh id on every delta of one call is seen in the field; only a name or a finished call tells them apart.
      return delta.name !== undefined || isFinished(last) ? undefined : last;
    }
    if (delta.name === undefined || last.name === "") return last;
    return continues(last, delta.name) ? last : undefined;
  }

  /** A delta that names the same place but cannot continue what stands there. */
  function startsAnother(call: OpenCall, delta: CallDelta): boolean {
    if (delta.name === undefined || call.name === "" || continues(call, delta.name)) return false;
    if (delta.name !== call.name) return isFinished(call) || (declared.has(delta.name) && declared.has(call.name));
    return delta.args !== "" && delta.args !== call.args && isFinished(call);
  }

  /** The next piece of a name: joined it is declared or on its way there, and what stands is not declared itself. */
  function continues(call: OpenCall, piece: string): boolean {
    const joined = call.name + piece;
    return !declared.has(call.name) && (declared.has(joined) || mayGrow(joined));
  }

  function grow(call: OpenCall, delta: CallDelta): string {
    if (delta.index !== undefined) byIndex.set(delta.index, call);
    if (delta.id !== undefined) {
      call.id ??= delta.id;
      if (!byId.has(delta.id)) byId.set(delta.id, call);
    }
    if (delta.name !== undefined) {
      if (call.name === "") call.name = delta.name;
      else if (delta.name !== call.name && continues(call, delta.name)) call.name += delta.name;
    }
    if (delta.custom) call.custom = true;
    if (delta.extra !== undefined) call.extra = { ...call.extra, ...delta.extra };
    // The whole call said a second time adds nothing.
    if (delta.args === "" || (delta.args === call.args && isFinished(call))) return "";
    call.args += delta.args;
    call.nesting.read(delta.args);
    return delta.args;
  }

  function mayGrow(name: string): boolean {
    if (declared.has(name)) return false;
    for (const known of declared) if (known.startsWith(name)) return true;
    return false;
  }

  return {
    take(delta) {
      const call = find(delta) ?? open(delta);
      last = call;
      return { call, added: grow(call, delta) };
    },
    calls: () => calls.filter((call) => call.name !== "" || call.args !== "").toSorted((a, b) => a.slot - b.slot),
    isPartialName: mayGrow,
  };
}
