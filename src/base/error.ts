/** Why a call ended without a result. The codes are stable: they are recorded in journals and matched by callers. */
export const callErrorCodes = [
  "unknown_tool",
  "invalid_input",
  "denied",
  "needs_approval",
  "rejected",
  "sandbox_denied",
  "no_sandbox",
  "timeout",
  "aborted",
  "network",
  "mcp",
  "stale",
  "withheld",
  "failed",
] as const;

/** Why a call failed, as a word that programs can rely on; docs/errors.md explains each. */
export type CallErrorCode = (typeof callErrorCodes)[number];

/**
 * The codes for calls that were not permitted, and so did not run. `withheld` is not among them,
 * because such a call ran and its result is kept back.
 */
const refusalCodes: ReadonlySet<string> = new Set(["denied", "needs_approval", "rejected", "no_sandbox"]);

export function isRefusal(code: string | undefined): boolean {
  return code !== undefined && refusalCodes.has(code);
}

/** What a `CallError` says besides its message. */
export interface CallErrorOptions {
  /** What the model can do next. */
  readonly hint?: string;
  /** The error that led to this one. It is for logs, and never told to the model. */
  readonly cause?: unknown;
  /** Facts for programs: positions, paths, names. JSON only. */
  readonly data?: unknown;
}

/**
 * An ending that the model is told about. Anything else thrown on the call path is a fault: it ends
 * the turn and is shown to the operator, never to the model.
 */
export class CallError extends Error {
  override readonly name = "CallError";
  readonly code: CallErrorCode;
  readonly hint: string | undefined;
  readonly data: unknown;

  constructor(code: CallErrorCode, message: string, options: CallErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
    this.data = options.data;
  }

  /** By name, not by prototype, so that two copies of this package agree. */
  static is(value: unknown): value is CallError {
    return value instanceof Error && value.name === "CallError" && "code" in value;
  }
}

/** What a handler throws to end the whole turn, because the model could do nothing about it. */
export class Fault extends Error {
  override readonly name = "Fault";

  static is(value: unknown): value is Fault {
    return value instanceof Error && value.name === "Fault";
  }
}

/** The code that Node and its libraries put on an error: `ENOENT`, `EPERM`, …. Undefined if it has none. */
export function errorCode(error: unknown): string | undefined {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : undefined;
}
