/**
 * The whole life of one tool call, from top to bottom. A tool runs in no other way, and no stage calls
 * another. When the gate has to ask a person, the call is first rehearsed to show what it would do.
 * This file hands the runtime's rehearsal to the gate as a function, so that neither folder knows the
 * other.
 */
import { CallError } from "../base/error.ts";
import { extend } from "../base/extend.ts";
import { defined } from "../base/json.ts";
import type { Shaper } from "../result/shape.ts";
import {
  Refusal,
  Waiting,
  type Asked,
  type Bound,
  type Checked,
  type Ended,
  type Permitted,
  type Ran,
} from "../spec/call.ts";
import { check, type FillDefaults } from "../check/check.ts";
import type { Denial } from "../spec/access.ts";
import { remarksOn, summary } from "../result/effects.ts";
import type { Effects } from "../spec/effects.ts";
import type { Binder, Decided, Emit, Gate, Judgement, MakeCall, Recorder, Runtime } from "../spec/stages.ts";
import type { AccessContext } from "../spec/tool.ts";

export interface Stages {
  readonly registry: Binder;
  readonly gate: Gate;
  readonly runtime: Runtime;
  readonly result: Shaper;
  readonly record: Recorder;
  readonly emit: Emit;
  readonly at: AccessContext;
  readonly defaults?: FillDefaults;
  /** How the model could ask for what the sandbox refused. Undefined if asking would not help. */
  readonly howToAsk?: (call: Permitted, denied: Denial) => string | undefined;
}

/** What belongs to one call and to no other. */
export interface CallSetting {
  readonly signal: AbortSignal;
  /**
   * Called when the call is permitted, before it is recorded and run. It may wait, and it may end the
   * call by throwing.
   */
  readonly beforeRun?: (permitted: Permitted) => Promise<void>;
  /** Runs the calls that its handler makes. */
  readonly makeCall: MakeCall;
  /** The hash of a question that was answered with yes before the call came here. */
  readonly approved?: string;
  readonly idempotencyKey: string;
}

/** The last state a call reached, which its record describes if it ends early. */
interface Reached {
  call: Asked | Bound | Checked | Permitted;
}

/** How often hooks may rewrite one call. A hook that rewrites its own result would never end. */
const maxRewrites = 4;

/**
 * Always ends with a record and a `call.ended` event, whatever happens on the way. A CallError becomes
 * an ending that the model is told about. Anything else is a fault of ours, and is thrown after the
 * end has been recorded. Only a call that waits for an answer given later has no end yet.
 */
export async function route(asked: Asked, stages: Stages, setting: CallSetting): Promise<Ended> {
  stages.emit({ type: "call.asked", call: asked });
  const reached: Reached = { call: asked };
  let fault: { readonly error: unknown } | undefined;
  const ended = await attempt(reached, stages, setting).catch((error: unknown) => {
    if (Waiting.is(error)) throw error;
    const known = toCallError(error, setting.signal);
    if (known === undefined) fault = { error };
    const ruling = Refusal.rulingOf(error);
    const call = ruling === undefined ? reached.call : extend(reached.call, { ruling });
    return stages.result.refuse(call, known ?? new CallError("failed", "The call was given up: the engine failed."));
  });
  await stages.record.ended(ended);
  stages.emit({ type: "call.ended", call: ended });
  if (fault !== undefined) throw fault.error;
  return ended;
}

async function attempt(reached: Reached, stages: Stages, setting: CallSetting): Promise<Ended> {
  const { signal } = setting;
  const permitted = await permit(reached, stages, setting);
  let ran = await run(permitted, reached, stages, setting);
  if (ran.effects !== undefined) {
    const { decided, direct } = await decideHeld(ran, ran.effects, stages, signal);
    ran = direct === undefined ? decided : await run({ ...permitted, ...direct }, reached, stages, setting);
  }
  // The effects of a held run have been decided by now, so running it again would repeat what was kept or dropped.
  const wider =
    ran.denied && ran.settled === undefined ? await stages.gate.widen(permitted, ran.denied, signal) : undefined;
  // Somebody agreed to more, so the call runs once more.
  if (wider !== undefined) ran = await run(wider, reached, stages, setting);
  const advice = ran.denied && stages.howToAsk?.(ran, ran.denied);
  if (advice !== undefined) ran = { ...ran, remarks: [...(ran.remarks ?? []), advice] };
  return stages.gate.after(await stages.result.shape(ran), signal);
}

/** Announces, records and only then runs the call. A second run takes the same steps. */
async function run(permitted: Permitted, reached: Reached, stages: Stages, setting: CallSetting): Promise<Ran> {
  reached.call = permitted;
  const { id, tool, mutates, grant, ruling } = permitted;
  stages.emit({ type: "call.permitted", id, tool: tool.name, mutates, grant, ruling });
  await setting.beforeRun?.(permitted);
  await stages.record.started(permitted);
  return stages.runtime.run(permitted, setting.signal, setting.makeCall, setting.idempotencyKey);
}

/**
 * Lists and judges what a held command did, and only then keeps or drops it. If anything fails on the
 * way, it is dropped.
 */
async function decideHeld(ran: Ran, effects: Effects, stages: Stages, signal: AbortSignal): Promise<Decision> {
  const { id } = ran;
  const { run } = effects;
  stages.emit({ type: "effects.listed", id, run, ...summary(effects) });
  let judgement: Judgement;
  try {
    judgement = await stages.gate.judge(ran, effects, signal);
    const { choice, ruling } = judgement;
    stages.emit({ type: "effects.decided", id, run, ruling, kept: typeof choice === "string" ? choice : choice.paths });
    // Whoever goes on after a kill must know that something may have been kept, or it would run the command again.
    await stages.record.decided(id);
  } catch (error) {
    await stages.runtime.settle(ran, "none");
    throw error;
  }
  const { choice, ruling, error, direct } = judgement;
  const settled = await stages.runtime.settle(ran, choice);
  stages.emit({ type: "effects.settled", id, ...settled });
  const decided = extend(ran, { ruling, settled, remarks: remarksOn(settled, effects), ...defined({ error }) });
  return { decided, ...defined({ direct }) };
}

interface Decision extends Pick<Judgement, "direct"> {
  readonly decided: Ran;
}

async function permit(reached: Reached, stages: Stages, setting: CallSetting): Promise<Permitted> {
  const { signal, approved } = setting;
  let asked: Asked = reached.call;
  for (let rewrites = 0; rewrites <= maxRewrites; rewrites++) {
    const bound = await stages.registry.bind(asked, signal);
    reached.call = bound;
    const checked = await check(bound, stages.at, stages.defaults);
    reached.call = checked;
    const passed = await stages.gate.pass(checked, signal, {
      rehearse: (grant, isHidden) => stages.runtime.rehearse(checked, grant, isHidden, signal),
      ...(approved === undefined ? {} : { approved }),
    });
    if (!("rewritten" in passed)) return passed;
    asked = passed.rewritten; // a hook changed the call, so it is bound, checked and judged again from the start
  }
  throw new CallError("denied", `A hook rewrote this call more than ${maxRewrites} times.`);
}

/**
 * What would happen to a call now: it is bound, checked and judged, but goes no further. Nothing is
 * recorded or counted.
 */
export async function decide(asked: Asked, stages: Omit<Stages, "record">, signal: AbortSignal): Promise<Decided> {
  try {
    const bound = await stages.registry.bind(asked, signal);
    const checked = await check(bound, stages.at, stages.defaults);
    return await stages.gate.decide(checked, (grant, isHidden) =>
      stages.runtime.rehearse(checked, grant, isHidden, signal),
    );
  } catch (error) {
    if (!CallError.is(error)) throw error;
    return { decision: "deny", reason: error.message, error };
  }
}

/** Undefined means that it is a fault, not an ending. */
function toCallError(error: unknown, signal: AbortSignal): CallError | undefined {
  if (CallError.is(error)) return error;
  return signal.aborted
    ? new CallError("aborted", "The call was interrupted before it ended.", { cause: error })
    : undefined;
}
