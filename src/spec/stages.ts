/** The stages as the line sees them. Folders implement these interfaces, and none of them knows another. */
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
  /**
   * Asked to Bound. Throws a CallError `unknown_tool` that names the nearest tools. If a tool is still
   * arriving, it waits for it.
   */
  bind(asked: Asked, signal: AbortSignal): Bound | Promise<Bound>;
}

/** The stage that decides whether a call may run. */
export interface Gate {
  /**
   * Checked to Permitted. Or returns a call that a hook rewrote, which is checked again from the start;
   * or throws a CallError.
   */
  pass(checked: Checked, signal: AbortSignal, asking?: Asking): Promise<Permitted | Rewritten>;
  /**
   * What `pass` would decide, with the question it would ask. Nothing is asked, recorded or remembered,
   * and no hook runs.
   */
  decide(checked: Checked, rehearse?: Rehearse): Promise<Decided>;
  /**
   * After a sandbox refusal: returns a wider grant, if the call may be repeated and somebody agrees.
   * `undefined` means that it ends with what it had. Throws if a person said no.
   */
  widen(permitted: Permitted, denied: Denial, signal: AbortSignal): Promise<Permitted | undefined>;
  /** After a held run: decides by rules, memory or a person what is kept. Without an answer, nothing is. */
  judge(ran: Ran, effects: Effects, signal: AbortSignal): Promise<Judgement>;
  /** Runs the user's after-hooks, which may replace what the model is told. */
  after(ended: Ended, signal: AbortSignal): Promise<Ended>;
  /** The default grant of a call, shown in descriptions and by `policy check`. */
  baseGrant(): Grant;
}

/**
 * What a call would change, as a diff for whoever is asked. The grant says what may be read; nothing
 * is ever written. Files for which `isHidden` is true are left out.
 */
export type Rehearse = (grant: Grant, isHidden: (path: string) => boolean) => Promise<string | undefined>;

/** Options for the question whether one call may run. */
export interface Asking {
  readonly rehearse?: Rehearse;
  /** The hash of a question that somebody answered with yes earlier. It is valid for exactly that question. */
  readonly approved?: string;
}

/** A decision without a run: what would happen to the call now, and why. */
export interface Decided {
  readonly decision: "allow" | "ask" | "deny";
  readonly reason: string;
  /** Left out if the call did not get as far as the gate. */
  readonly ruling?: Ruling;
  /** With `ask`: the question to show. Its `hash` is given to a later run as `approved`. */
  readonly request?: ApprovalRequest;
  /** With `deny`: what the model would be told. */
  readonly error?: CallError;
}

/** What becomes of a held run, and who decided it. */
export interface Judgement {
  readonly choice: Choice;
  readonly ruling: Ruling;
  /** What the model is told if nothing was kept. */
  readonly error?: CallError;
  /** Somebody agreed to run the call again without holding it. */
  readonly direct?: Pick<Permitted, "grant" | "ruling">;
}

/** A call that a hook has changed: it goes through the line from the start. */
export interface Rewritten {
  readonly rewritten: Asked;
}

export interface Runtime {
  /** `idempotencyKey` identifies exactly this call, in whatever process it runs. */
  run(permitted: Permitted, signal: AbortSignal, makeCall: MakeCall, idempotencyKey: string): Promise<Ran>;
  /** Runs the handler of a tool that can be rehearsed, on files that remember changes instead of writing them. */
  rehearse(checked: Checked, ...how: [...Parameters<Rehearse>, AbortSignal]): ReturnType<Rehearse>;
  /** Keeps or drops what a held run did. */
  settle(ran: Ran, choice: Choice): Promise<Settled>;
}

/** A call that a handler makes. It runs until its own end, or until the handler is stopped. */
export type MakeCall = (name: string, input: Json, signal: AbortSignal) => Promise<CallOutcome>;

/** What the machine can confine commands with. It is decided once, by probes. */
export interface Confinement {
  /** `bwrap+seccomp`, `bwrap(bound /proc)+seccomp`, `landlock+seccomp`, `seatbelt`, `container`, `none`. */
  readonly name: string;
  readonly available: boolean;
}

/** The stage that records what starts and what ended. */
export interface Recorder {
  /** Before a call runs, with its decision. Resolves when it is on disk. */
  started(permitted: Permitted): Promise<void>;
  /** After it was said what is kept of a held run, and before it is done. Resolves when the decision is on disk. */
  decided(id: string): Promise<void>;
  ended(ended: Ended): Promise<void>;
}

/** When a person is asked. */
export type ApprovalMode = "never" | "on-request" | "on-failure" | "unless-trusted" | "auto" | "disabled";

/** A question for a person, or for whatever stands in for one. */
export interface ApprovalRequest {
  readonly call: { readonly id: string; readonly tool: string; readonly input: unknown };
  readonly reason: string;
  readonly access: Access;
  readonly grant: Grant;
  readonly commands: readonly (readonly string[])[];
  /** Bound to the exact call, and checked again when it runs. */
  readonly hash: string;
  /** The smallest rule that 'always' would save, what else it allows, and where it is saved. */
  readonly always?: { readonly rule: string; readonly alsoAllows: string; readonly file: string };
  /** A unified diff, if the call changes files. */
  readonly diff?: string;
  /** What the call did, if it has already run held. The question is then whether to keep that. */
  readonly effects?: Effects;
}

/** A person's answer to the question whether a call may run. */
export type ApprovalAnswer =
  /** `keep`: only these paths of a held run. */
  | { readonly answer: "once" | "session" | "always"; readonly keep?: readonly string[] }
  /**
   * For a held run that failed because it was held (`effects.direct`): nothing of it is kept, and it
   * runs again, writing directly.
   */
  | { readonly answer: "direct" }
  | { readonly answer: "no"; readonly message?: string }
  | { readonly answer: "stop"; readonly message?: string };

/** Whoever is asked whether a call may run. */
export interface Approver {
  /**
   * `undefined`: nobody can answer, and the call ends as needs_approval. `later`: the answer will come
   * another time, perhaps to another process; a session leaves its turn open until then.
   */
  ask(request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalAnswer | "later" | undefined>;
  /** Answers what tools ask on their own. Left out: nobody does, and the tool is told so. */
  readonly answerer?: Answerer;
}

/** What happens on the line, as it happens. */
export type CallEvent =
  | { readonly type: "call.asked"; readonly call: Asked }
  /** A call that may change something began or stopped waiting until its turn is ready for changes. */
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
      /** The hash of the question, if the answer came later than the question. */
      readonly hash?: string;
    }
  /** A yes that outlasts its call, with the key by which the gate will recognise it. */
  | { readonly type: "approval.remembered"; readonly id: string; readonly keys: readonly string[] }
  | { readonly type: "call.progress"; readonly id: string; readonly progress: ToolProgress }
  | {
      readonly type: "call.log";
      readonly id: string;
      readonly level: keyof Logger;
      readonly message: string;
      readonly fields?: JsonObject;
    }
  /** What a command prints, as it comes and up to a limit. The last event says how much was left out. */
  | ({ readonly type: "exec.output"; readonly id: string } & ExecChunk)
  /** A command whose network is a list of hosts asked for a host, whether on the list or not. */
  | {
      readonly type: "exec.request";
      readonly id: string;
      readonly method: string;
      readonly host: string;
      readonly port: number;
      readonly allowed: boolean;
      readonly reason?: string;
    }
  /**
   * What a command of the call started, if each start was judged. A long list is cut, but refusals are
   * always listed.
   */
  | ({ readonly type: "exec.programs"; readonly id: string } & StartedPrograms)
  /** A file that the call's handler created, changed or removed through `ctx.files`. */
  | ({ readonly type: "file.changed"; readonly id: string } & ChangedText)
  /** What a held command did, before anything is decided about it. A long list is cut; `counts` cover all of it. */
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
  /** The whole text before and after, if the file existed, is text and is not longer than 256 KB. */
  readonly before?: string;
  readonly after?: string;
}

/** Hears the events of a call. */
export type Emit = (event: CallEvent) => void;

/** The two modes of a policy. */
export interface PolicySettings {
  /** What happens to calls that no rule decides. */
  readonly approval: ApprovalMode;
  /** What commands may write. */
  readonly sandbox: SandboxPolicy;
}
