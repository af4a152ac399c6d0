/** One request while it is answered: what came, what answers it, and the outcome. */
import type { ServerResponse } from "node:http";
import type { JsonObject } from "../base/json.ts";
import type { Transport } from "../model/transport.ts";
import type { Answer, ModelRequest } from "../spec/model.ts";
import type { Codec, WireName } from "../wire/codec.ts";
import type { Sign } from "../wire/envelope.ts";
import type { Budget } from "./budget.ts";
import type { ClientInfo, Headers } from "./clients.ts";
import type { Conversations } from "./conversations.ts";
import type { GovernOptions } from "./govern.ts";
import type { GatewayJournal } from "./journal.ts";
import type { Search } from "./search.ts";
import type { Secrets } from "./secrets.ts";
import type { StateStore } from "./state.ts";
import type { ToolCache } from "./tool-cache.ts";
import type { Upstreams } from "./upstreams.ts";

/** One request as it came. */
export interface ClientRequest {
  readonly wire: WireName;
  readonly bytes: Uint8Array;
  readonly body: JsonObject;
  readonly headers: Headers;
  readonly query: string;
  /** The model that the path names, on wires that put it there. */
  readonly model?: string;
  readonly stream?: boolean;
  /** The name of the client's key. */
  readonly key: string;
  /** Changes a whole answer before it is written, for endpoints that wrap one. */
  readonly finish?: (answer: JsonObject) => JsonObject;
}

export interface Services {
  readonly upstreams: Upstreams;
  readonly state: StateStore;
  readonly conversations: Conversations;
  readonly budget: Budget;
  readonly sign: Sign;
  readonly transport: Transport;
  readonly tools: ToolCache;
  readonly keepAliveMs: number;
  readonly secrets?: Secrets;
  readonly journal?: GatewayJournal;
  readonly governance?: Omit<GovernOptions, "onRefusal">;
  readonly search?: Search;
  readonly now: () => number;
}

/** The outcome of a request, for the operator. */
export interface RequestRecord {
  readonly client: string;
  readonly conversation: string;
  readonly session?: string;
  readonly wire: WireName;
  readonly model: string;
  readonly target: string;
  readonly status: number;
  readonly outcome: Answer["outcome"];
  readonly error?: string;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly costUsd?: number;
  readonly calls: number;
  readonly refused: readonly { readonly call: string; readonly reason: string }[];
  readonly untouched: boolean;
  readonly durationMs: number;
}

/** One request with everything that answering it needs. */
export interface Turn {
  readonly asked: ClientRequest;
  /** The body with its references inserted. */
  readonly body: JsonObject;
  readonly codec: Codec;
  readonly request: ModelRequest;
  readonly who: ClientInfo;
  readonly services: Services;
  readonly response: ServerResponse;
  readonly signal: AbortSignal;
  readonly refusals: { readonly call: string; readonly reason: string }[];
}
