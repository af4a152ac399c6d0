/** Whatever the public entries make from options: a name that nobody knows is refused at once, with the nearest right one. */
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { toAgentsTools } from "../src/adapters/agents.ts";
import { toAiSdkTools } from "../src/adapters/ai-sdk/index.ts";
import { toLangChainTools } from "../src/adapters/langchain.ts";
import { createClient } from "../src/client/index.ts";
import { createTextDecoder, decodeText } from "../src/dialect/index.ts";
import { createCommandHook, createGate, createTrust } from "../src/gate/index.ts";
import { startGateway } from "../src/gateway/index.ts";
import { createEngine, createTelemetry, loadTools, toToolSpecs } from "../src/index.ts";
import { createMcpClients, createServedResources, createTokenStore, serveMcp } from "../src/mcp/index.ts";
import { createHttpModel, createProviderModel, createTextModel } from "../src/model/index.ts";
import { createSandbox } from "../src/runtime/sandbox/sandbox.ts";
import { createFileStore, createS3Blobs, createService, startServing } from "../src/serve/index.ts";
import {
  createAgent,
  createChangeTracker,
  createChatService,
  createSession,
  generate,
  selectProfile,
  stream,
} from "../src/session/index.ts";
import { createLocalDispatcher } from "../src/serve/dispatcher.ts";
import { createRunner } from "../src/serve/runner.ts";
import { openAudit, openCallFolder, verifyAudit } from "../src/store/index.ts";
import { createDbosDispatcher, createPostgresPacks, createPostgresStore } from "../src/serve/postgres.ts";
import { createScriptedModel, serveModel } from "../src/testing/index.ts";
import { createPatchProgress } from "../src/tools/index.ts";
import { codecs } from "../src/wire/index.ts";

const folder = mkdtempSync(join(tmpdir(), "callgate-law-"));
const engine = createEngine({ workspace: folder });
const model = createScriptedModel([]);
const nothing = () => undefined;
const codec = codecs.chat;
const common = { cwd: folder, env: {}, version: "1" };

/** Each with the options it needs, one that nobody knows among them. As JavaScript would call it. */
const factories: Readonly<Record<string, (unknown: object) => unknown>> = {
  createEngine: (more) => createEngine({ workspace: folder, ...more }),
  conversation: (more) => engine.conversation(more),
  createSession: (more) => createSession({ id: "s", engine, model, ...more }),
  createChangeTracker: (more) => createChangeTracker("/", "/nowhere", more),
  createChatService: (more) => createChatService({ engine, model, ...more }),
  createAgent: (more) => createAgent({ name: "a", description: "b", model, ...more }),
  generate: (more) => generate({ model, prompt: "x", ...more }),
  stream: (more) => stream({ model, prompt: "x", ...more }),
  selectProfile: (more) => selectProfile(more),
  createTelemetry: (more) => createTelemetry(more),
  loadTools: (more) => loadTools(folder, more),
  toToolSpecs: (more) => toToolSpecs(engine, more),
  createGate: (more) => createGate({ workspace: folder, confinement: { name: "test", available: true }, ...more }),
  createCommandHook: (more) => createCommandHook({ argv: ["true"], when: "before", ...more }),
  createTrust: (more) => createTrust({ stateDir: folder, ...more }),
  openAudit: (more) => openAudit({ path: join(folder, "audit"), ...more }),
  verifyAudit: (more) => verifyAudit(join(folder, "audit"), more),
  createFileStore: (more) => createFileStore({ folder, ...more }),
  createHttpModel: (more) => createHttpModel({ codec, baseUrl: "http://127.0.0.1:1", model: "m", ...more }),
  createProviderModel: (more) => createProviderModel({ model: "m", baseUrl: "http://127.0.0.1:1", ...more }),
  createTextModel: (more) => createTextModel(model, "xml", more),
  createTextDecoder: (more) => createTextDecoder({ dialect: "xml", ...more }),
  decodeText: (more) => decodeText("", { dialect: "xml", ...more }),
  createMcpClients: (more) =>
    createMcpClients({ servers: [], registry: engine.registry, stateDir: folder, warn: nothing, ...common, ...more }),
  createServedResources: (more) =>
    createServedResources({ folders: [], readText: async () => ({ text: "", cut: false }), ...more }),
  createTokenStore: (more) => createTokenStore({ stateDir: folder, ...more }),
  serveMcp: (more) =>
    serveMcp({
      engine,
      version: "1",
      tell: nothing,
      stdio: { input: new PassThrough(), output: new PassThrough() },
      ...more,
    }),
  createSandbox: (more) => createSandbox(more),
  createLocalDispatcher: (more) => createLocalDispatcher(more),
  createRunner: (more) => createRunner({ store: {} as never, open: nothing as never, ...more }),
  createService: (more) =>
    createService({
      store: {} as never,
      tokens: {} as never,
      checkSettings: nothing as never,
      look: {} as never,
      version: "1",
      model: "m",
      ...more,
    }),
  createDbosDispatcher: (more) => createDbosDispatcher({ database: {} as never, store: {} as never, ...more }),
  createPostgresStore: (more) => createPostgresStore({ database: {} as never, ...more }),
  createPostgresPacks: (more) => createPostgresPacks({ database: {} as never, ...more }),
  createS3Blobs: (more) =>
    createS3Blobs({ url: "https://s3.example/bucket", accessKeyId: "a", secretAccessKey: "b", ...more }),
  startServing: (more) => startServing({ service: {} as never, ...more }),
  startGateway: (more) => startGateway({ routes: [], keys: [], ...more }),
  createClient: (more) => createClient({ url: "http://127.0.0.1:1", ...more }),
  serveModel: (more) => serveModel(model, more),
  createPatchProgress: (more) => createPatchProgress(more),
  toAiSdkTools: (more) => toAiSdkTools(engine, more),
  toAgentsTools: (more) => toAgentsTools(engine, more),
  toLangChainTools: (more) => toLangChainTools(engine, more),
  openCallFolder: (more) => openCallFolder(folder, more),
};

test.each(Object.entries(factories))("%s refuses an option that nobody knows", async (_name, make) => {
  const attempt = async () => make({ nobodyKnowsThis: 1 });
  await expect(attempt()).rejects.toThrow(TypeError);
  await expect(attempt()).rejects.toThrow(/there is no \w+ 'nobodyKnowsThis'/);
});

/** Take options, and are not in the table: why each is not. */
const exceptions: Readonly<Record<string, string>> = {
  createCompletionsCodec: "needs a whole chat template; checked by the same function",
  createPolicy: "its options are those of createGate, which checks them",
  deferTools: "its options are an engine's, whose shapes are checked there",
  loadRules: "its options are the caller's place and clock",
  startConfined: "starts a process; checked by the same function",
};

/** Functions that make something that lasts, or hand tools to somebody. */
const makes = /^(create|serve|start|generate|stream|load|defer|verify|to\w*Tools$|toToolSpecs)/;

test("every public function that takes options is in the table", () => {
  const root = new URL("..", import.meta.url).pathname;
  const names = new Set(
    readdirSync(join(root, "api")).flatMap((file) => readFileSync(join(root, "api", file), "utf8").split("\n")),
  );
  const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".ts"),
  );
  const taking = sources.flatMap((file) =>
    [...readFileSync(join(root, "src", file), "utf8").matchAll(/^export (?:async )?function\*? ?(\w+)[^]*?\n?\{$/gm)]
      .filter(([head, name = ""]) => names.has(name) && makes.test(name) && /: \w+Options\b/.test(head))
      .map(([, name = ""]) => name),
  );
  const known = new Set([...Object.keys(factories), ...Object.keys(exceptions)]);
  expect([...new Set(taking)].filter((name) => !known.has(name))).toEqual([]);
});
