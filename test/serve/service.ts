/** A real service on a free port with a scripted model, for the tests of this folder. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, type Client, type Role } from "../../src/client/index.ts";
import { createEngine, defineTool } from "../../src/index.ts";
import {
  createFileStore,
  createService,
  openTokenFile,
  issueToken,
  startServing,
  type OpenSession,
  type ServeOptions,
  type ServiceOptions,
  type SessionStore,
  type TokenStore,
} from "../../src/serve/index.ts";
import { createSession } from "../../src/session/index.ts";
import { createScriptedModel, type ScriptedStep } from "../../src/testing/index.ts";

export interface TestService {
  readonly url: string;
  readonly store: SessionStore;
  /** Calls that ran, by the text they were given. */
  readonly ran: string[];
  link(): string;
  token(tenant?: string, roles?: readonly Role[]): Promise<string>;
  client(tenant?: string, roles?: readonly Role[]): Promise<Client>;
  close(): Promise<void>;
}

export interface TestServiceOptions extends Partial<Omit<ServiceOptions, "open">> {
  /** What the model says to the n-th turn of a session. */
  readonly steps: readonly ScriptedStep[];
  readonly folder?: string;
  readonly http?: Partial<ServeOptions>;
  readonly tokens?: TokenStore;
  /** Answers requests and runs no session. */
  readonly isApi?: boolean;
  /** Awaited by the tool `slow`. */
  readonly hold?: () => Promise<void>;
}

export const newFolder = () => mkdtempSync(join(tmpdir(), "callgate-serve-"));

export async function startTestService(options: TestServiceOptions): Promise<TestService> {
  const { steps, folder = newFolder(), http, hold, isApi = false, ...rest } = options;
  const ran: string[] = [];
  const noted = (name: string, mutates: boolean) =>
    defineTool({
      name,
      description: "Notes that it ran.",
      input: { type: "object", properties: { text: { type: "string" } } } as const,
      mutates,
      ...(name === "deploy" ? { access: () => ({ servers: [{ server: "production", name: "deploy" }] }) } : {}),
      run: async ({ text = "" }) => {
        if (name === "slow") await hold?.();
        ran.push(`${name} ${text}`);
        return "done";
      },
    });
  const tools = [noted("look", false), noted("deploy", true), noted("slow", false)];
  const open: OpenSession = async ({ stored, records, journal, approver, onEvent }) => {
    const engine = createEngine({ tools, workspace: folder, approval: "unless-trusted", sandbox: "read-only" });
    const answered = records.filter(({ type, finish }) => type === "item.added" && finish !== undefined).length;
    const session = createSession({
      id: stored.id,
      engine,
      model: createScriptedModel(steps.slice(answered)),
      approver,
      records,
      journal,
      onEvent,
      keepDiffs: true,
    });
    return { session, close: engine.close };
  };
  const store = rest.store ?? createFileStore({ folder, ownTenant: "main" });
  const tokens = rest.tokens ?? openTokenFile();
  const service = await createService({
    checkSettings: async (_tenant, settings) => ({ cwd: folder, settings }),
    look: { tools: async () => [], rules: async () => [], checkPolicy: async () => ({ decision: "ask" }) },
    version: "0.0.0",
    model: "scripted",
    folder: join(folder, "serve"),
    ...(isApi ? {} : { open }),
    ...rest,
    store,
    tokens,
  });
  const serving = await startServing({ service, ...http });
  const all: readonly Role[] = ["watch", "talk", "approve", "administer"];
  const token = async (tenant = "main", roles = all) =>
    (await issueToken(tokens, { tenant, name: "test", roles })).token;
  return {
    url: serving.url,
    store,
    ran,
    link: () => serving.link({ tenant: "main", name: "browser", roles: all }),
    token,
    client: async (tenant, roles) => createClient({ url: serving.url, token: await token(tenant, roles) }),
    close: serving.close,
  };
}

/** Waits until so many turns of the session have ended, and gives their reasons. */
export async function untilEnded(client: Client, id: string, turns = 1): Promise<readonly unknown[]> {
  for (let tries = 0; tries < 600; tries++) {
    const { records } = await client.records(id);
    const ends = records.filter(({ type }) => type === "turn.ended").map((record) => record["reason"]);
    if (ends.length >= turns) return ends;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`the session did not come to the end of turn ${turns}`);
}

/** Waits until the session stands so. */
export async function untilStatus(client: Client, id: string, status: string): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    if ((await client.session(id)).session.status === status) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`the session did not come to be ${status}`);
}
