import { TooLarge, Unreadable } from "../http/read-body.ts";
import { KeyReused, Unavailable } from "../store/session-store.ts";

/** The reason why a request is refused, sent as application/problem+json (RFC 9457). */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly status: number;
  /** A word for programs: the end of the problem's `type`. */
  readonly kind: string;
  /** After how many milliseconds the request may be tried again. */
  readonly retryAfterMs: number | undefined;
  /** The methods that the path has. */
  readonly allow: readonly string[] | undefined;

  constructor(status: number, kind: string, detail: string, retryAfterMs?: number, allow?: readonly string[]) {
    super(detail);
    this.status = status;
    this.kind = kind;
    this.retryAfterMs = retryAfterMs;
    this.allow = allow;
  }

  toJson() {
    return {
      type: `urn:callgate:${this.kind}`,
      title: titles[this.status] ?? "Error",
      status: this.status,
      detail: this.message,
    };
  }
}

const titles: Readonly<Record<number, string>> = {
  400: "Bad request",
  401: "Not known",
  403: "Not allowed",
  404: "Not found",
  405: "Method not allowed",
  409: "Conflict",
  413: "Too large",
  415: "Not JSON",
  422: "Not the same request",
  429: "Too many",
  500: "Internal error",
  503: "Not ready",
  504: "Timed out",
};

/** The problem that a client is told for an error. An unforeseen error is reported without its details. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof TooLarge) return new Problem(413, "too-large", error.message);
  if (error instanceof Unreadable) return new Problem(error.status, "encoding", error.message);
  if (error instanceof KeyReused) return new Problem(422, "key-reused", error.message);
  if (error instanceof Unavailable)
    return new Problem(503, "unavailable", "The store cannot be reached just now: try again in a moment.", 1_000);
  return new Problem(500, "internal", "The service could not answer this request.");
}
