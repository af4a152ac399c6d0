/** Where a tool runs is said by its origin: a slash in a name decides nothing, a server's rules hold on every way to it. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createEngine, defineTool, type AnyTool, type EngineOptions } from "../../src/index.ts";
import { createResourceTools } from "../../src/mcp/index.ts";
import type { FunctionSpec } from "../../src/spec/model.ts";
import { toToolSpecs } from "../../src/registry/tool-spec.ts";
import { codecs } from "../../src/wire/index.ts";
import { call, program, stdio, useConnections } from "./connect.ts";

const { connect, cleanups } = useConnections();

const modes = ["never", "on-request", "on-failure", "unless-trusted", "disabled"] as const;

function engineWith(tool: AnyTool, options: EngineOptions = {}) {
  const workspace = mkdtempSync(join(tmpdir(), "callgate-origin-"));
  const engine = createEngine({ workspace, tools: [tool], ...options });
  cleanups.push(() => engine.close());
  return engine;
}

const tool = (name: string, extra: Partial<AnyTool> = {}): AnyTool =>
  defineTool({ name, description: "Does it.", input: { type: "object" }, run: () => "done", ...extra } as never);

test("a tool of the user's own may have a slash in its name, and is no server's", async () => {
  const engine = engineWith(tool("a/b", { mutates: false }), { approval: "unless-trusted" });
  const ended = await engine.call("a/b");
  expect(ended).toMatchObject({ ok: true });
  expect(ended.access?.servers).toBeUndefined();
  expect(ended.ruling?.reason).not.toContain("MCP");
  // A rule for a server of that name does not speak about it.
  const ruled = engineWith(tool("a/b", { mutates: false }), { gate: { rules: [{ mcp: "a", decision: "deny" }] } });
  expect(await ruled.call("a/b")).toMatchObject({ ok: true });
});

test.each(modes)("a server's tool without a slash is the server's, under %s", async (approval) => {
  const remote = tool("send", { mutates: true, origin: { server: "mail", name: "send" } });
  const ended = await engineWith(remote, { approval }).call("send");
  expect(ended.ok).toBe(false);
  expect(ended.access?.servers).toEqual([{ server: "mail", name: "send" }]);
  const rules = [{ mcp: "mail", decision: "deny" as const }];
  const reading = tool("look", { mutates: false, origin: { server: "mail", name: "look" } });
  expect(await engineWith(reading, { approval, gate: { rules } }).call("look")).toMatchObject({ code: "denied" });
});

test("that a server's tool only looks is the server's own word: it is asked where only what is known passes", async () => {
  const reading = tool("mail/look", { mutates: false, origin: { server: "mail", name: "look" } });
  expect(await engineWith(reading, { approval: "unless-trusted" }).call("mail/look")).toMatchObject({
    code: "needs_approval",
  });
  expect(await engineWith(reading, { approval: "disabled" }).call("mail/look")).toMatchObject({ code: "denied" });
  expect(await engineWith(reading, { approval: "never" }).call("mail/look")).toMatchObject({ ok: true });
});

test("an allow for one server does not open another that the same call reaches", async () => {
  const both = tool("both", {
    mutates: true,
    access: {
      servers: [
        { server: "one", name: "resources/list" },
        { server: "two", name: "resources/list" },
      ],
    },
  });
  const allow = (mcp: string) => ({ mcp, decision: "allow" as const });
  expect(await engineWith(both, { gate: { rules: [allow("one")] } }).call("both")).toMatchObject({ ok: false });
  expect(await engineWith(both, { gate: { rules: [allow("one"), allow("two")] } }).call("both")).toMatchObject({
    ok: true,
  });
});

test.each(modes)(
  "the resources of a denied server are denied with it, under %s",
  { timeout: 60_000 },
  async (approval) => {
    const { engine, clients } = await connect(
      { every: stdio(program("@modelcontextprotocol/server-everything"), "stdio") },
      { engine: { approval, gate: { rules: [{ mcp: "every", decision: "deny" }] } } },
    );
    engine.registry.add(...createResourceTools(clients));
    const uri = "demo://resource/static/document/features.md";
    for (const [name, input] of [
      ["every/echo", { message: "hello" }],
      ["list_mcp_resources", { server: "every" }],
      ["list_mcp_resources", {}],
      ["list_mcp_resource_templates", { server: "every" }],
      ["read_mcp_resource", { server: "every", uri }],
    ] as const)
      expect(await call(engine, name, input), name).toMatchObject({ ok: false, code: "denied" });
  },
);

test(
  "a rule may speak about one way to a server, and a yes for one server is none for another",
  { timeout: 60_000 },
  async () => {
    const asked: string[] = [];
    const server = stdio(program("@modelcontextprotocol/server-everything"), "stdio");
    const { engine, clients } = await connect(
      { one: server, two: server },
      {
        engine: {
          approval: "unless-trusted",
          sandbox: "workspace-write",
          gate: { rules: [{ mcp: "one/resources/templates/list", decision: "deny" }] },
          approver: {
            async ask({ access }) {
              asked.push(...(access.servers ?? []).map((use) => `${use.server}/${use.name}`));
              return { answer: "session" };
            },
          },
        },
      },
    );
    engine.registry.add(...createResourceTools(clients));
    expect(await call(engine, "list_mcp_resource_templates", { server: "one" })).toMatchObject({ code: "denied" });
    expect(await call(engine, "list_mcp_resources", { server: "one" })).toMatchObject({ ok: true });
    expect(await call(engine, "list_mcp_resources", { server: "one" })).toMatchObject({ ok: true });
    expect(asked).toEqual(["one/resources/list"]);
    expect(await call(engine, "list_mcp_resources", { server: "two" })).toMatchObject({ ok: true });
    expect(asked).toEqual(["one/resources/list", "two/resources/list"]);
  },
);

test("where a wire takes 128 tools, a server's are left out before any that run here", () => {
  const remote = Array.from({ length: 200 }, (_, n) => tool(`aa/t${n}`, { origin: { server: "aa", name: `t${n}` } }));
  const specs = toToolSpecs([...remote, tool("zz_own"), tool("zz/own")]);
  const { body, dropped } = codecs.chat.encodeRequest({ model: "gpt-5", input: [], tools: specs });
  const names = (body["tools"] as unknown as { function: FunctionSpec }[]).map((one) => one.function.name);
  expect(names).toHaveLength(128);
  expect(names).toContain("zz_own");
  expect(dropped).toHaveLength(74);
  expect(dropped.every(({ name }) => name.startsWith("aa/"))).toBe(true);
});
