/** The states of one call, in order. Each adds fields to the one before and changes none. */
import type { Part } from "../base/content.ts";
import { CallError, type CallErrorCode, type CallErrorOptions } from "../base/error.ts";
import type { Json } from "../base/json.ts";
import type { Access, Denial, Grant } from "./access.ts";
import type { Effects, Settled } from "./effects.ts";
import type { CallItem } from "./model.ts";
import type { AnyTool, ToolOutput } from "./tool.ts";

/** A call as a model, a client or a program asked for it. */
export interface Asked extends Pick<
  CallItem,
  "id" | "name" | "namespace" | "kind" | "arguments" | "untyped" | "markerless"
> {
  /** The call whose handler made this one (`ctx.call`). */
  readonly parent?: string;
  readonly askedAt: number;
}

/** A call whose tool was found. */
export interface Bound extends Asked {
  readonly tool: AnyTool;
}

/** A call whose arguments fit the tool's schema. */
export interface Checked extends Bound {
  readonly input: Json;
  readonly access: Access;
  readonly mutates: boolean;
  /** What coercion or unwrapping changed, for the journal. */
  readonly notes: readonly string[];
}

/** A call that may run, and with which grant. */
export interface Permitted extends Checked {
  readonly grant: Grant;
  readonly ruling: Ruling;
}

/** A call whose handler has returned. */
export interface Ran extends Permitted {
  readonly startedAt: number;
  readonly output: ToolOutput;
  /** The sandbox or a capability refused something; `gate.widen` may agree to more. */
  readonly denied?: Denial;
  /** What the handler threw, if it ended without an output. */
  readonly error?: CallError;
  /** What its command did, if that is held back until it has been judged. */
  readonly effects?: Effects;
  /** What became of the held effects. */
  readonly settled?: Settled;
  /** The output is that of an earlier call; the handler was not run. */
  readonly cached?: true;
  /** What the model is told besides the output. */
  readonly remarks?: readonly string[];
}

/** How a call ended, for the model, the journal and the operator. It is plain JSON. */
export interface Ended extends Asked {
  /** The tool's own name, if the call was bound. */
  readonly tool?: string;
  readonly input?: Json;
  readonly access?: Access;
  readonly grant?: Grant;
  readonly ruling?: Ruling;
  readonly notes?: readonly string[];
  readonly ok: boolean;
  readonly code?: CallErrorCode;
  readonly content: readonly Part[];
  readonly structured?: Json;
  readonly exitCode?: number | null;
  readonly endedAt: number;
  readonly durationMs: number;
  /** The result is that of an earlier call of the same tool with the same input. */
  readonly cached?: true;
  /** The person answered not only no but stop, so the turn ends here. */
  readonly stopsTurn?: boolean;
  /** What the sandbox refused to its commands, although the call was permitted. */
  readonly denied?: Denial;
  /** What a held command did, and what of it was kept. A long list is cut. */
  readonly effects?: Pick<Effects, "run" | "list"> & Pick<Settled, "kept" | "conflicts">;
  /** How many bytes were cut, and the file that holds the whole. */
  readonly cut?: { readonly bytes: number; readonly file?: string };
}

/** A decision with who or what made it and why. */
export interface Ruling {
  readonly decision: "allow" | "ask" | "deny";
  readonly reason: string;
  /** The id or text of the rule that decided, if one did. */
  readonly rule?: string;
  /** The file in which that rule was written, if it came from one. */
  readonly ruleFile?: string;
  readonly by: "policy" | "rule" | "person" | "hook" | "memory";
  /** The commands found in the call, as words. */
  readonly commands?: readonly (readonly string[])[];
}

/**
 * A person was asked and will answer later. The call has not run and has not ended; it goes down the
 * line again after the answer.
 */
export class Waiting extends Error {
  override readonly name = "Waiting";

  static is(error: unknown): error is Waiting {
    return error instanceof Waiting;
  }
}

/** A refusal by the gate: what the model is told, with the ruling for the record. */
export class Refusal extends CallError {
  readonly ruling: Ruling;

  constructor(ruling: Ruling, code: CallErrorCode, message: string, options: CallErrorOptions = {}) {
    super(code, message, options);
    this.ruling = ruling;
  }

  static rulingOf(error: unknown): Ruling | undefined {
    return error instanceof Refusal ? error.ruling : undefined;
  }
}
