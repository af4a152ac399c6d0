/** The tables, as a list of steps. Each is applied once, in order, and never changed after a release. */

/** What can run queries: the database, or one of its transactions. */
export interface Queries {
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- whoever writes a query knows its rows
  query<Row = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
  ): Promise<{ readonly rows: readonly Row[]; readonly rowCount: number | null }>;
}

/** Milliseconds since the epoch by the database's clock, so that machines need not agree on the time. */
export const nowMs = "(extract(epoch from clock_timestamp()) * 1000)::bigint";

const journalParts = 8;
const tenantTables = ["session", "journal", "mail", "pack", "token", "usage", "audit"];

const steps: readonly string[] = [
  `
  create table callgate.session (
    id text primary key,
    tenant text not null,
    key text,
    title text not null,
    status text not null default 'idle',
    model text not null,
    cwd text not null,
    settings json not null,
    started_at bigint not null default ${nowMs},
    updated_at bigint not null default ${nowMs},
    questions json not null default '[]',
    usage json,
    takings int not null default 0,
    head int not null default 0,
    worker text,
    unique (tenant, key)
  ) with (fillfactor = 70);
  create index session_list on callgate.session (tenant, updated_at desc, id desc);
  create index session_changed on callgate.session (updated_at);
  create index session_running on callgate.session (id) where status = 'running';

  create table callgate.journal (
    session text not null,
    tenant text not null,
    n int not null,
    at bigint not null default ${nowMs},
    record json not null,
    primary key (session, n)
  ) partition by hash (session);
  ${Array.from(
    { length: journalParts },
    (_, part) =>
      `create table callgate.journal_${part} partition of callgate.journal for values with (modulus ${journalParts}, remainder ${part});`,
  ).join("\n")}

  create table callgate.mail (
    id bigint generated always as identity primary key,
    session text not null references callgate.session (id) on delete cascade,
    tenant text not null,
    kind text not null,
    key text,
    body json not null,
    at bigint not null default ${nowMs},
    taken int,
    unique (session, key)
  );
  create index mail_waiting on callgate.mail (session) where taken is null;

  create table callgate.pack (
    id bigint generated always as identity primary key,
    session text not null references callgate.session (id) on delete cascade,
    tenant text not null,
    bytes bytea,
    blob text
  );
  create index pack_of_session on callgate.pack (session, id);

  create table callgate.worker (id text primary key, started_at bigint not null default ${nowMs});

  create table callgate.token (
    id text primary key,
    tenant text not null,
    name text not null,
    roles text[] not null,
    hash text not null unique,
    created_at text not null,
    expires_at bigint
  );
  create table callgate.usage (
    tenant text not null,
    day date not null,
    calls bigint not null default 0,
    usd double precision not null default 0,
    primary key (tenant, day)
  );
  create table callgate.rate (
    what text primary key,
    remaining double precision not null,
    at bigint not null
  );
  create table callgate.audit (
    tenant text not null,
    n bigint not null,
    at bigint not null default ${nowMs},
    entry text not null,
    hash text not null,
    primary key (tenant, n)
  );

  grant usage on schema callgate to callgate_tenant;
  ${tenantTables
    .map(
      (table) => `
  alter table callgate.${table} enable row level security;
  create policy own on callgate.${table} to callgate_tenant using (tenant = current_setting('callgate.tenant', true));
  grant select, insert, update, delete on callgate.${table} to callgate_tenant;`,
    )
    .join("")}
  `,
  `
  alter table callgate.rate add column granted boolean not null default true;
  create table callgate.tenant_limits (tenant text primary key, limits json not null);
  `,
  `
  alter table callgate.session add column request text;
  alter table callgate.mail add column request text;
  `,
];

/** In one transaction and by one process at a time, because several may start at once. */
export async function migrate(transaction: Queries): Promise<void> {
  await transaction.query("select pg_advisory_xact_lock(hashtextextended('callgate schema', 0))");
  await transaction.query("create schema if not exists callgate");
  await transaction.query("create table if not exists callgate.version (step int not null)");
  await makeRole(transaction);
  const { rows } = await transaction.query<{ step: number }>("select step from callgate.version");
  const done = rows[0]?.step ?? 0;
  if (done > steps.length)
    throw new Error(
      `the database was made by a newer Callgate (step ${done} of its tables, this one knows ${steps.length}): update this one`,
    );
  if (done === steps.length) return;
  for (const step of steps.slice(done)) await transaction.query(step);
  await transaction.query("delete from callgate.version");
  await transaction.query("insert into callgate.version (step) values ($1)", [steps.length]);
}

/** Creates the role for tenants' queries. Roles belong to the whole server, so it may exist from another database. */
async function makeRole(transaction: Queries): Promise<void> {
  const { rows } = await transaction.query<{ is_there: boolean; may_use: boolean; may_make: boolean }>(`
    select exists (select from pg_roles where rolname = 'callgate_tenant') as is_there,
      exists (select from pg_roles where rolname = 'callgate_tenant' and pg_has_role(oid, 'member')) as may_use,
      (select rolcreaterole or rolsuper from pg_roles where rolname = current_user) as may_make`);
  const { is_there: isThere, may_use: mayUse, may_make: mayMake } = rows[0]!;
  if (isThere && mayUse) return;
  if (!mayMake)
    throw new Error(
      "the database has no role that tenants' queries could run as: as an administrator, run 'create role callgate_tenant nologin; grant callgate_tenant to' the user of --database",
    );
  if (!isThere) await transaction.query("create role callgate_tenant nologin");
  await transaction.query("grant callgate_tenant to current_user");
}
