import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createEngine } from "../../src/index.ts";
import { createMcpClients } from "../../src/mcp/index.ts";
import { createSession } from "../../src/session/index.ts";

const workspace = mkdtempSync(join(tmpdir(), "callgate-options-"));
const engine = createEngine({ workspace });
const model = { name: "none", async *ask() {} };

test.each<readonly [object, string]>([
  [{ id: undefined }, "its options need 'id'"],
  [{ modle: model }, "there is no option 'modle'; did you mean 'model'?"],
  [{ model: {} }, "'model' must be a model"],
  [{ engine: {} }, "'engine' must be an engine"],
  [{ limits: { maxCall: 1 } }, "there is no limit 'limits.maxCall'; did you mean 'maxCalls'?"],
  [{ limits: { maxCalls: "5" } }, "'limits.maxCalls' must be a number above 0"],
  [{ compaction: "modal" }, "did you mean 'model'?"],
  [{ request: { maxTokens: 5 } }, "there is no option 'request.maxTokens'"],
  [{ price: { input: 1 } }, "'price' needs 'output'"],
])("createSession with %j is a TypeError that says what is wrong", (more, message) => {
  const options = { id: "s", engine, model, ...more };
  expect(() => createSession(options as never)).toThrow(TypeError);
  expect(() => createSession(options as never)).toThrow(message);
});

test.each<readonly [object, string]>([
  [{ servers: undefined }, "its options need 'servers'"],
  [{ server: [] }, "there is no option 'server'; did you mean 'servers'?"],
  [{ servers: {} }, "'servers' must be a list"],
  [{ registry: {} }, "'registry' must be a registry"],
  [{ warn: "loud" }, "'warn' must be a function"],
])("createMcpClients with %j is a TypeError that says what is wrong", (more, message) => {
  const { registry } = engine;
  const options = {
    servers: [],
    registry,
    stateDir: workspace,
    cwd: workspace,
    env: {},
    version: "0",
    warn() {},
    ...more,
  };
  expect(() => createMcpClients(options as never)).toThrow(TypeError);
  expect(() => createMcpClients(options as never)).toThrow(message);
});
