/** The commands about how much each tenant may use. */
import { buildCommand, buildRouteMap } from "@stricli/core";
import { resolve } from "node:path";
import { stateDir } from "../../base/paths.ts";
import { defined } from "../../base/json.ts";
import { defaultLimits, limitNames, writeLimits, type LimitStore, type TenantLimits } from "../../serve/limits.ts";
import { toggle } from "../config/flags.ts";
import { print, printJson, runCommand, UsageError } from "../io.ts";
import { withBooks } from "./backing.ts";
import { data, database, tenant, type TenantFlags } from "./tokens.ts";

const every = { ...tenant, brief: "the tenant (left out: every tenant without limits of its own)" } as const;

const limit = (brief: string) =>
  ({ kind: "parsed", parse: readLimit, optional: true, brief, placeholder: "N|none" }) as const;

type SetFlags = TenantFlags & Partial<TenantLimits>;

const limitsOf = <T>({ data: given, database: url }: TenantFlags, work: (limits: LimitStore) => Promise<T>) =>
  withBooks({ folder: resolve(given ?? stateDir(process.env)), database: url }, (books) => work(books.limits));

export const limits = buildRouteMap({
  routes: {
    show: buildCommand({
      docs: { brief: "show the limits of every tenant" },
      parameters: { flags: { data, database, json: toggle("as JSON") } },
      func: (flags: Omit<TenantFlags, "tenant"> & { readonly json?: boolean }) =>
        runCommand(async () => {
          const own = await limitsOf(flags, (store) => store.list());
          const everybody = { ...defaultLimits, ...own.find((one) => one.tenant === undefined)?.limits };
          const rows = [
            { tenant: undefined, limits: everybody },
            ...own.flatMap((one) =>
              one.tenant === undefined ? [] : [{ tenant: one.tenant, limits: { ...everybody, ...one.limits } }],
            ),
          ];
          if (flags.json)
            printJson(rows.map((row) => ({ ...defined({ tenant: row.tenant }), limits: writeLimits(row.limits) })));
          else for (const row of rows) print(`${row.tenant ?? "every other tenant"}: ${inWords(row.limits)}`);
        }),
    }),
    set: buildCommand({
      docs: {
        brief: "set limits of a tenant, or of all tenants without their own; limits that are not named stay",
        fullDescription:
          "What a running service refuses because of a limit it tells as HTTP 429 with Retry-After, and notes in the tenant's audit log. A change is in force within a second. 'none' is without a limit.",
      },
      parameters: {
        flags: {
          data,
          database,
          tenant: every,
          running: limit("sessions that run at once; the others wait (50)"),
          sessions: limit("sessions that are kept (10000)"),
          messagesPerMinute: limit("messages a minute (120)"),
          requestsPerMinute: limit("requests a minute, of each process (6000)"),
          listeners: limit("streams of events open at once, of each process (2000)"),
          callsPerDay: limit("calls of tools a day, in UTC (none)"),
          usdPerDay: { ...limit("US dollars a day that models cost, in UTC (none)"), parse: readNumber },
        },
      },
      func: (flags: SetFlags) =>
        runCommand(async () => {
          const given = defined(Object.fromEntries(limitNames.map((name) => [name, flags[name]])));
          if (Object.keys(given).length === 0)
            throw new UsageError("name a limit, such as --calls-per-day 500 ('callgate serve limits set --help')");
          await limitsOf(flags, async (store) => {
            const before = (await store.list()).find((one) => one.tenant === flags.tenant)?.limits;
            await store.set(flags.tenant, { ...before, ...given });
          });
        }),
    }),
    clear: buildCommand({
      docs: { brief: "remove a tenant's own limits, so that the general ones apply" },
      parameters: { flags: { data, database, tenant: every } },
      func: (flags: TenantFlags) => runCommand(() => limitsOf(flags, (store) => store.set(flags.tenant, {}))),
    }),
  },
  defaultCommand: "show",
  docs: { brief: "how much each tenant may use" },
});

function inWords(all: TenantLimits): string {
  return limitNames.map((name) => `${name} ${all[name] === Infinity ? "none" : all[name]}`).join(", ");
}

function readLimit(given: string): number {
  const limited = readNumber(given);
  if (limited !== Infinity && !Number.isInteger(limited)) throw new Error(`'${given}' is no whole number`);
  return limited;
}

function readNumber(given: string): number {
  if (given === "none") return Infinity;
  if (!/^\d+(\.\d+)?$/.test(given)) throw new Error(`'${given}' is no limit: a number, or 'none'`);
  return Number(given);
}
