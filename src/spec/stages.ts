/** The stages as the line sees them. Folders implement these; none of them knows another. */
import type { Access, Denial, Grant, SandboxPolicy } from "./access.ts";
import type { Json, JsonObject } from "../base/json.ts";
import type { CallError } from "../base/error.ts";
import type { ExecChunk, StartedPrograms } from "./capability.ts";
import type { Choice, Effect, Effects, Settled } from "./effects.ts";
import type { Answerer } from "./question.ts";
import type { CallOutcome, Logger, ToolProgress } from "./tool.ts";
import type { Asked, Bound, Checked, Ended, Permitted, Ran, Ruling } from "./call.ts";

/** The stage that finds the tool of a call. */
export interface Binder {
  /** Asked to Bound, or CallError `unknown_tool` naming the nearest tools. A tool that is still on its way is waited for. */
  bind(asked: Asked, signal: AbortSignal): Bound | Promise<Bound>;
}

/** The stage that decides whether a call may run. */
export interface Gate {
  /** Checked to Permitted, or a call rewritten by a hook (checked again from the start), or CallError. */
  pass(checked: Checked, signal: AbortSignal, asking?: Asking): Promise<Permitted | Rewritten>;
  /** What `pass` would say, with the question it would ask. Nothing is asked, recorded or remembered, and no hook runs. */
  decide(checked: Checked, rehearse?: Rehearse): Promise<Decided>;
  /**
   * After a sandbox refusal: a wider grant, if the call may be repeated and somebody agrees. `undefined`: it ends with
   * what it had. Throws when a person said no.
   */
  widen(permitted: Permitted, denied: Denial, signal: AbortSignal): Promise<Permitted | undefined>;
  /** After a held run: what of what it did is kept, from rules, from memory or from a person. No answer is nothing. */
  judge(ran: Ran, effects: Effects, signal: AbortSignal): Promise<Judgement>;
  /** The user's after-hooks: may replace what the model is told. */
  after(ended: Ended, signal: AbortSignal): Promise<Ended>;
  /** The grant a call gets when nothing special is said: shown in descriptions and by `policy check`. */
  baseGrant(): Grant;
}

/**
 * What a call would change, as a diff to show to whoever is asked. The grant says what may be read; nothing is ever
 * written. Files that `isHidden` names are left out.
 */
export type Rehearse = (grant: Grant, isHidden: (path: string) => boolean) => Promise<string | undefined>;

/** What belongs to the question whether one call may run. */
export interface Asking {
  readonly rehearse?: Rehearse;
  /** The hash of a question that somebody said yes to earlier: it holds for exactly that question. */
  readonly approved?: string;
}

/** A decision without a run: what would happen to the call now, and why. */
export interface Decided {
  readonly decision: "allow" | "ask" | "deny";
  readonly reason: string;
  /** Left out where the call did not get as far as the gate. */
  readonly ruling?: Ruling;
  /** With `ask`: the question, to be shown; its `hash` is what a later run is given as `approved`. */
  readonly request?: ApprovalRequest;
  /** With `deny`: what the model would be told. */
  readonly error?: CallError;
}

/** What becomes of a held run, and who said so. */
export interface Judgement {
  readonly choice: Choice;
  readonly ruling: Ruling;
  /** What the model is told where nothing was kept. */
  readonly error?: CallError;
  /** Somebody agreed that the call runs again, without being held. */
  readonly direct?: Pick<Permitted, "grant" | "ruling">;
}

/** A call that a hook has changed: it goes through the line from the start. */
export interface Rewritten {
  readonly rewritten: Asked;
}

export interface Runtime {
  /** `idempotencyKey` names this very call, in whatever process it runs. */
  run(permitted: Permitted, signal: AbortSignal, nest: Nest, idempotencyKey: string): Promise<Ran>;
  /** The handler of a tool that says it can be rehearsed, on files that remember instead of writing. */
  rehearse(checked: Checked, ...how: [...Parameters<Rehearse>, AbortSignal]): ReturnType<Rehearse>;
  /** Keeps, or drops, what a held run did. */
  settle(ran: Ran, choice: Choice): Promise<Settled>;
}

/** A call that a handler makes: runs until its own end, or until the handler is stopped. */
export type Nest = (name: string, input: Json, signal: AbortSignal) => Promise<CallOutcome>;

/** What the machine can confine commands with; decided once by probes. */
export interface Confinement {
  /** `bwrap+seccomp`, `bwrap(bound /proc)+seccomp`, `landlock+seccomp`, `seatbelt`, `container`, `none`. */
  readonly name: string;
  readonly available: boolean;
}

/** The stage that writes down what starts and what ended. */
export interface Recorder {
  /** Before a call runs, with its decision. Resolves when it is on disk. */
  started(permitted: Permitted): Promise<void>;
  ended(ended: Ended): Promise<void>;
}

/** When a person is asked. */
export type ApprovalMode = "never" | "on-request" | "on-failure" | "unless-trusted" | "auto" | "disabled";

/** Asked of a person, or of whatever stands in for one. */
export interface ApprovalRequest {
  readonly call: { readonly id: string; readonly tool: string; readonly input: unknown };
  readonly reason: string;
  readonly access: Access;
  readonly grant: Grant;
  readonly commands: readonly (readonly string[])[];
  /** Bound to the exact call; checked again when it runs. */
  readonly hash: string;
  /** The smallest rule an 'always' would write, with what else it allows, and where. */
  readonly always?: { readonly rule: string; readonly alsoAllows: string; readonly file: string };
  /** A unified diff, where the call is a change of files. */
  readonly diff?: string;
  /** It has run already, and this is what it did: the question is whether that is kept. */
  readonly effects?: Effects;
}

/** What a person says to the question whether a call may run. */
export type ApprovalAnswer =
  /** `keep`: of a held run, only these paths. */
  | { readonly answer: "once" | "session" | "always"; readonly keep?: readonly string[] }
  /** Where a held run failed because it was held (`effects.direct`): nothing of it is kept, and it runs again, writing directly. */
  | { readonly answer: "direct" }
  | { readonly answer: "no"; readonly message?: string }
  | { readonly answer: "stop"; readonly message?: string };

/** Whoever is asked whether a call may run. */
export interface Approver {
  /**
   * `undefined`: nobody can answer; the call ends as needs_approval. `later`: the answer will come another time, perhaps
   * to another process; a session parks its turn until then.
   */
  ask(request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalAnswer | "later" | undefined>;
  /** Answers what tools ask on their own. Left out: nobody does, and the tool is told so. */
  readonly answerer?: Answerer;
}

/** What happened on the line, as it happens. */
export type CallEvent =
  | { readonly type: "call.asked"; readonly call: Asked }
  /** A call that may change something waits until its turn is ready for changes, and was let go. */
  | {
      readonly type: "call.waiting";
      readonly id: string;
      readonly tool: string;
      readonly state: "waiting" | "released";
    }
  | {
      readonly type: "call.permitted";
      readonly id: string;
      readonly tool: string;
      readonly mutates: boolean;
      readonly grant: Grant;
      readonly ruling: Ruling;
    }
  | { readonly type: "approval.asked"; readonly id: string; readonly request: ApprovalRequest }
  | {
      readonly type: "approval.answered";
      readonly id: string;
      readonly answer: ApprovalAnswer | undefined;
      /** Of the question that was answered, where the answer came later than the question. */
      readonly hash?: string;
    }
  /** A yes that outlasts its call: what the gate will know it by. */
  | { readonly type: "approval.remembered"; readonly id: string; readonly keys: readonly string[] }
  | { readonly type: "call.progress"; readonly id: string; readonly progress: ToolProgress }
  | {
      readonly type: "call.log";
      readonly id: string;
      readonly level: keyof Logger;
      readonly message: string;
      readonly fields?: JsonObject;
    }
  /** What a command prints, as it comes and up to a bound: the last one says how much was left out. */
  | ({ readonly type: "exec.output"; readonly id: string } & ExecChunk)
  /** A command whose network is a list of hosts asked for one of them, or for another. */
  | {
      readonly type: "exec.request";
      readonly id: string;
      readonly method: string;
      readonly host: string;
      readonly port: number;
      readonly allowed: boolean;
      readonly reason?: string;
    }
  /** What a command of the call started, where each start was judged; a long list is cut, refusals never. */
  | ({ readonly type: "exec.programs"; readonly id: string } & StartedPrograms)
  /** A file that the call's handler made, changed or removed through `ctx.files`. */
  | ({ readonly type: "file.changed"; readonly id: string } & ChangedText)
  /** What a held command did, before anything of it is decided. A long list is cut; `counts` are of all of it. */
  | {
      readonly type: "effects.listed";
      readonly id: string;
      readonly run: string;
      readonly counts: Readonly<Record<Effect["kind"], number>>;
      readonly entries: readonly Effect[];
      readonly conflicts: readonly string[];
    }
  | {
      readonly type: "effects.decided";
      readonly id: string;
      readonly run: string;
      readonly ruling: Ruling;
      readonly kept: "all" | "none" | readonly string[];
    }
  | ({ readonly type: "effects.settled"; readonly id: string } & Settled)
  | { readonly type: "call.ended"; readonly call: Ended };

/** A file that a call would change or has changed. */
export interface ChangedText {
  readonly path: string;
  readonly change: "created" | "changed" | "removed";
  /** The whole text before and after, where there was a file, it is text, and not longer than 256 KB. */
  readonly before?: string;
  readonly after?: string;
}

/** Hears the events of a call. */
export type Emit = (event: CallEvent) => void;

/** The two modes of a policy. */
export interface PolicySettings {
  readonly approval: ApprovalMode;
  readonly sandbox: SandboxPolicy;
}
