/** A request that was admitted, and its answer. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { JsonObject } from "../base/json.ts";
import type { Principal } from "./tenants.ts";

export interface ApiRequest {
  readonly principal: Principal;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Checked against the route's schema. An empty object if there is none. */
  readonly body: JsonObject;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** An answer as JSON or text. Undefined if the route has answered by itself. */
export type Reply =
  | { readonly status: number; readonly json?: unknown; readonly headers?: Readonly<Record<string, string>> }
  | { readonly status: number; readonly text: string; readonly headers: Readonly<Record<string, string>> }
  | undefined;
