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
  /** Maps the names that clients ask for to the models that answer. The first match counts. */
  readonly routes: readonly RouteOptions[];
  /** Keys of clients. An empty list admits nobody; `"none"` admits everybody on this machine. */
  readonly keys: readonly ClientKey[] | (() => readonly ClientKey[]) | "none";
  /** 0 takes a free one. */
  readonly port?: number;
  /** Loopback unless told otherwise. */
  readonly host?: string;
  /** Web pages of these origins may send requests. Left out: none may. */
  readonly origins?: readonly string[];
  /** The folder for journals, budgets and what clients cannot carry themselves. Left out: nothing is stored. */
  readonly stateDir?: string;
  /** Journals are written only with a `stateDir`. */
  readonly journal?: boolean;
  /** Signs what clients carry for us, and makes the placeholders of secrets. Left out: a new one at each start. */
  readonly secret?: string;
  /** Values that models never see. */
  readonly secrets?: readonly string[];
  readonly budget?: Omit<BudgetOptions, "file">;
  /** What the user's policy says about a call. Left out: calls are not judged. */
  readonly judge?: Judge;
  /** Refused calls do not reach the client. Left out: they are only reported. */
  readonly enforce?: boolean;
  readonly search?: Search;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly maxBodyBytes?: number;
  readonly keepAliveMs?: number;
  /** A GenAI span for each request with its tokens, if the host has OpenTelemetry (`createTelemetry`). */
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
