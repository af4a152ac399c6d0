/** The commands about who may use the service, and the flags that they share with it. */
import { buildCommand, buildRouteMap } from "@stricli/core";
import { resolve } from "node:path";
import { stateDir } from "../../base/paths.ts";
import type { Role } from "../../client/index.ts";
import { issueToken, type TokenStore } from "../../serve/index.ts";
import { roles } from "../../serve/tenants.ts";
import { toggle } from "../config/flags.ts";
import { print, printJson, runCommand, UsageError } from "../io.ts";
import { withBooks } from "./backing.ts";

/** The tenant of whoever starts the service. */
export const operator = "main";

export const data = {
  kind: "parsed",
  parse: String,
  optional: true,
  brief: "keep sessions, tokens and logs below this folder",
  placeholder: "DIR",
} as const;

export const database = {
  kind: "parsed",
  parse: readDatabase,
  optional: true,
  brief: "keep them in PostgreSQL, for any number of processes (needs the packages pg and @dbos-inc/dbos-sdk)",
  placeholder: "postgres://…",
} as const;

export interface TenantFlags {
  readonly data?: string;
  readonly database?: string;
  readonly tenant?: string;
}

interface ListFlags extends TenantFlags {
  readonly json?: boolean;
}

interface AddFlags extends ListFlags {
  readonly roles?: readonly Role[];
}

export const tenant = {
  kind: "parsed",
  parse: readTenant,
  optional: true,
  brief: "its tenant (main)",
  placeholder: "NAME",
} as const;
const tokenName = { brief: "a name for whoever has it", parse: String, placeholder: "NAME" } as const;
const tokensOf = <T>({ data: given, database: url }: TenantFlags, work: (tokens: TokenStore) => Promise<T>) =>
  withBooks({ folder: resolve(given ?? stateDir(process.env)), database: url }, ({ tokens }) => work(tokens));

export const token = buildRouteMap({
  routes: {
    add: buildCommand({
      docs: { brief: "add a token; it is shown only once" },
      parameters: {
        flags: {
          data,
          database,
          tenant,
          roles: {
            kind: "enum",
            values: roles,
            optional: true,
            variadic: ",",
            brief: "what it may do: watch,talk,approve,administer (watch)",
          },
          json: toggle("as JSON"),
        },
        positional: { kind: "tuple", parameters: [tokenName] },
      },
      func: (flags: AddFlags, name: string) =>
        runCommand(async () => {
          const who = { tenant: flags.tenant ?? operator, name, roles: flags.roles ?? ["watch" as const] };
          const made = await tokensOf(flags, (tokens) => issueToken(tokens, who));
          if (flags.json) printJson({ ...made, ...who }, false);
          else print(made.token);
        }),
    }),
    list: buildCommand({
      docs: { brief: "list the tokens of a tenant, without their values" },
      parameters: { flags: { data, database, tenant, json: toggle("as JSON") } },
      func: (flags: ListFlags) =>
        runCommand(async () => {
          const all = await tokensOf(flags, (tokens) => tokens.list(flags.tenant ?? operator));
          if (flags.json) printJson(all.map(({ hash: _hash, ...rest }) => rest));
          else for (const { id, name, roles: may } of all) print(`${id}  ${name}  ${may.join(",")}`);
        }),
    }),
    remove: buildCommand({
      docs: { brief: "revoke a token" },
      parameters: {
        flags: { data, database, tenant },
        positional: { kind: "tuple", parameters: [{ brief: "its id", parse: String, placeholder: "ID" }] },
      },
      func: (flags: TenantFlags, id: string) =>
        runCommand(async () => {
          if (!(await tokensOf(flags, (tokens) => tokens.remove(flags.tenant ?? operator, id))))
            throw new UsageError(`there is no token ${id}`);
        }),
    }),
  },
  docs: { brief: "who may use the service" },
});

function readDatabase(given: string): string {
  if (!/^postgres(ql)?:\/\//.test(given)) throw new Error("a database is an address such as postgres://user@host/name");
  return given;
}

function readTenant(given: string): string {
  if (!/^[\w.-]{1,64}$/.test(given)) throw new Error("a tenant's name has letters, digits, '.', '_' and '-'");
  return given;
}
