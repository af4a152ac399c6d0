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
  /**
   * Keys of clients: the key itself (`createKey`), or its name and hash as a key file lists them. An empty
   * list admits nobody; `"none"` admits everybody on this machine.
   */
  readonly keys: readonly (ClientKey | string)[] | (() => readonly (ClientKey | string)[]) | "none";
  /** 0 takes a free one. */
  readonly port?: number;
  /** The address to listen on. Left out: loopback. */
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
  /** What conversations, days and keys may spend, and how often a call may repeat. Left out: there is no limit. */
  readonly budget?: Omit<BudgetOptions, "file">;
  /** What the user's policy says about a call. Left out: calls are not judged. */
  readonly judge?: Judge;
  /** Refused calls do not reach the client. Left out: they are only reported. */
  readonly enforce?: boolean;
  /** Answers web searches that a client leaves to its provider, where the model's provider has none. */
  readonly search?: Search;
  /** The environment that holds the providers' keys. Left out: the process's own. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The longest request that is read. Left out: 64 MiB. */
  readonly maxBodyBytes?: number;
  /** How often a silent stream sends a sign of life. Left out: 15 seconds. */
  readonly keepAliveMs?: number;
  /** A GenAI span for each request with its tokens, if the host has OpenTelemetry (`createTelemetry`). */
  readonly telemetry?: Pick<Telemetry, "exchanged">;
  /** Called when a request has been answered or refused. */
  readonly onRequest?: (record: RequestRecord) => void;
  /** Called with what went wrong in the gateway itself. */
  readonly onError?: (error: unknown) => void;
  /** The clock, for tests. */
  readonly now?: () => number;
}

/** Checked when a gateway starts: a word nobody knows is a mistake. */
export const gatewayShape = optionsShape<GatewayOptions>(
  {
    routes: { list: "table" },
    // A text alone would be a list of keys with one letter each.
    keys: {
      either: [
        { list: { either: ["string", "table"], words: "a key, or its name and hash" } },
        "function",
        { oneOf: ["none"] },
      ],
      words: "a list of keys, a function that returns one, or 'none'",
    },
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
