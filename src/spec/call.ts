/** One call's states in order. Each adds fields to the one before and changes none. */
import type { Part } from "../base/content.ts";
import { CallError, type CallErrorCode, type CallErrorOptions } from "../base/error.ts";
import type { Json } from "../base/json.ts";
import type { Access, Denial, Grant } from "./access.ts";
import type { Effects, Settled } from "./effects.ts";
import type { CallKind } from "./model.ts";
import type { AnyTool, ToolOutput } from "./tool.ts";

/** As a model, a client or a program asked for it. */
export interface Asked {
  readonly id: string;
  readonly name: string;
  readonly namespace?: string;
  readonly kind: CallKind;
  /** Raw: JSON text, or the text itself for custom tools. */
  readonly arguments: string;
  /** The wire had no types: strings may be coerced by the schema. */
  readonly untyped?: boolean;
  /** Read from a text that nothing marked as a call: it may be a quotation, so its commands wait for a person. */
  readonly markerless?: boolean;
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
  /** What the handler threw, where it ended without an output. */
  readonly error?: CallError;
  /** What its command did, where that is held back until it has been judged. */
  readonly effects?: Effects;
  /** What became of it. */
  readonly settled?: Settled;
  /** The output is that of an earlier call; the handler was not run. */
  readonly cached?: true;
  /** What the model is told beside the output. */
  readonly remarks?: readonly string[];
}

/** How it ended, for the model, the journal and the operator. Plain JSON. */
export interface Ended extends Asked {
  /** Canonical name, once bound. */
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
  /** The result of an earlier call of the same tool with the same input was given again. */
  readonly cached?: true;
  /** The person said not only no, but stop: the turn ends here. */
  readonly stopsTurn?: boolean;
  /** What a held command did, and what of it was kept; a long list is cut. */
  readonly effects?: Pick<Effects, "run" | "list"> & Pick<Settled, "kept" | "conflicts">;
  /** Bytes that were cut, and the file that holds the whole. */
  readonly cut?: { readonly bytes: number; readonly file?: string };
}

/** A decision with who or what made it and why. */
export interface Ruling {
  readonly decision: "allow" | "ask" | "deny";
  readonly reason: string;
  /** The rule's id or text, where one decided. */
  readonly rule?: string;
  readonly by: "policy" | "rule" | "person" | "hook" | "memory";
  /** The commands found in the call, as words. */
  readonly commands?: readonly (readonly string[])[];
}

/** A person was asked and will answer later: the call has not run and has not ended. It goes down the line again then. */
export class Waiting extends Error {
  override readonly name = "Waiting";

  static is(error: unknown): error is Waiting {
    return error instanceof Waiting;
  }
}

/** A no of the gate: what the model is told, with the ruling for the record. */
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
