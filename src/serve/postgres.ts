/** Entry of `callgate/serve-postgres`: the service over any number of processes. Needs `pg` and `@dbos-inc/dbos-sdk`. */
export { createDbosDispatcher } from "./dbos-dispatcher.ts";
export type { DbosDispatcherOptions } from "./dbos-dispatcher.ts";
export { createPostgresBooks, createPostgresLimits, createPostgresTokens } from "./postgres-tenants.ts";
export { openDatabase } from "../store/postgres/database.ts";
export type { Database, DatabaseOptions } from "../store/postgres/database.ts";
export { createPostgresPacks } from "../store/postgres/packs.ts";
export type { PostgresPacksOptions } from "../store/postgres/packs.ts";
export { createPostgresStore } from "../store/postgres/store.ts";
export type { PostgresStore, PostgresStoreOptions } from "../store/postgres/store.ts";
/** Types that the signatures above mention. */
export type { Dispatcher, WakeOptions } from "./dispatcher.ts";
export type { SharedBooks } from "./quotas.ts";
export type { LimitStore, Rates, TenantLimits, TenantUsage, UsageBook } from "./limits.ts";
export type { TokenStore } from "./tenants.ts";
export type { Connection, ConnectOptions, Queries, Transaction } from "../store/postgres/database.ts";
export type { Hold } from "../store/postgres/hold.ts";
