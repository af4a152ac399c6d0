import type { Telemetry } from "../result/telemetry.ts";
import { optionsShape } from "../base/shape.ts";
import type { BudgetOptions } from "./budget.ts";
import type { Judge } from "./govern.ts";
import type { ClientKey } from "./keys.ts";
import type { Search } from "./search.ts";
import type { RequestRecord } from "./turn.ts";
import type { RouteOptions } from "./upstreams.ts";

/** Options of `startGateway`. */
export interface GatewayOptions {
  /** From the names clients ask for to the models that answer. The first that matches counts. */
  readonly routes: readonly RouteOptions[];
  /** Keys of clients. An empty list lets nobody in; `"none"` lets everybody on this machine in. */
  readonly keys: readonly ClientKey[] | (() => readonly ClientKey[]) | "none";
  /** 0 takes a free one. */
  readonly port?: number;
  /** Loopback unless told otherwise. */
  readonly host?: string;
  /** Web pages of these origins may ask. Left out: none may. */
  readonly origins?: readonly string[];
  /** Journals, budgets and what clients cannot carry themselves are kept below this folder. Left out: nothing is. */
  readonly stateDir?: string;
  /** Journals are written only with a `stateDir`. */
  readonly journal?: boolean;
  /** Signs what clients carry for us and makes the placeholders of secrets. Left out: a new one each start. */
  readonly secret?: string;
  /** Values that models never see. */
  readonly secrets?: readonly string[];
  readonly budget?: Omit<BudgetOptions, "file">;
  /** What the user's policy says of a call. Left out: calls are not judged. */
  readonly judge?: Judge;
  /** Refused calls do not reach the client. Otherwise they are only told. */
  readonly enforce?: boolean;
  readonly search?: Search;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly maxBodyBytes?: number;
  readonly keepAliveMs?: number;
  /** A GenAI span for each request, and its tokens, where the host has OpenTelemetry (`createTelemetry`). */
  readonly telemetry?: Pick<Telemetry, "exchanged">;
  readonly onRequest?: (record: RequestRecord) => void;
  readonly onError?: (error: unknown) => void;
  readonly now?: () => number;
}

/** Checked when a gateway starts: a word nobody knows is a mistake. */
export const gatewayShape = optionsShape<GatewayOptions>(
  {
    routes: { list: "table" },
    keys: "any",
    port: { above: -1 },
    host: "string",
    origins: "strings",
    stateDir: "string",
    journal: "boolean",
    secret: "string",
    secrets: "strings",
    budget: "table",
    judge: "any",
    enforce: "boolean",
    search: "any",
    env: "table",
    maxBodyBytes: { above: 0 },
    keepAliveMs: { above: 0 },
    onRequest: "function",
    onError: "function",
    now: "function",
    telemetry: "any",
  },
  "routes",
  "keys",
);
