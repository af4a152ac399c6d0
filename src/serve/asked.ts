/** A request that the door let in, and what is answered. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { JsonObject } from "../base/json.ts";
import type { Principal } from "./tenants.ts";

export interface Asked {
  readonly principal: Principal;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Checked against the route's schema; an empty object where there is none. */
  readonly body: JsonObject;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** An answer in JSON or as text; undefined where the route has answered by itself. */
export type Reply =
  | { readonly status: number; readonly json?: unknown; readonly headers?: Readonly<Record<string, string>> }
  | { readonly status: number; readonly text: string; readonly headers: Readonly<Record<string, string>> }
  | undefined;
