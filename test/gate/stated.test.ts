/** Stated, or unknown: what a tool does not say is never taken as harmless. */
import { once } from "node:events";
import { mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { check } from "../../src/check/check.ts";
import { approvalNames, sandboxNames, toSettings } from "../../src/gate/modes.ts";
import { createPolicy } from "../../src/gate/options.ts";
import { decideAccess } from "../../src/gate/policy.ts";
import type { Rule } from "../../src/gate/rules.ts";
import { createEngine, defineTool } from "../../src/index.ts";
import { isFreeform } from "../../src/spec/freeform.ts";
import { toSchema } from "../../src/schema/schema.ts";
import type { AnyTool } from "../../src/spec/tool.ts";
import { builtins } from "../../src/tools/index.ts";

const workspace = realpathSync(mkdtempSync(join(tmpdir(), "callgate-stated-")));
writeFileSync(join(workspace, "a.ts"), "let a;\n");
const anything = { type: "object" } as const;
const modes = approvalNames.flatMap((approval) => sandboxNames.map((sandbox) => [approval, sandbox] as const));

/** An input that a schema takes: its required fields, by their types. */
const given: Readonly<Record<string, unknown>> = {
  command: "touch made",
  cmd: "touch made",
  path: "a.ts",
  url: "http://example.test/",
  database: "data.sqlite",
  sql: "update t set a = 1",
  chars: "rm -rf /\n",
  session_id: 1,
};
const inputs: Readonly<Record<string, unknown>> = {
  shell: { command: ["touch", "made"] },
  str_replace_editor: { command: "create", path: "b.txt", file_text: "b" },
  update_plan: { plan: [{ step: "look", status: "pending" }] },
  write_stdin: { session_id: 1, chars: "rm -rf /\n" },
};
const grant = { policy: "workspace-write", confined: true, write: [], protect: [], mask: [], network: "off" } as const;
const terminals = [
  { id: 1, command: "bash", argv: ["bash"], cwd: workspace, tty: true, grant, startedAt: 0, running: true },
];
const patch = "*** Begin Patch\n*** Add File: b\n+x\n*** End Patch";

function sample(tool: AnyTool): string {
  if (isFreeform(tool.input)) return patch;
  if (tool.name in inputs) return JSON.stringify(inputs[tool.name]);
  const json = toSchema(tool.input).json as { readonly required?: readonly string[] };
  return JSON.stringify(Object.fromEntries((json.required ?? []).map((key) => [key, given[key] ?? "a.ts"])));
}

async function decided(tool: AnyTool, approval: (typeof modes)[number][0], sandbox: (typeof modes)[number][1]) {
  const asked = { id: "1", name: tool.name, kind: "function", arguments: sample(tool), askedAt: 0, tool } as const;
  const checked = await check(
    { ...asked, kind: isFreeform(tool.input) ? "custom" : "function" },
    { workspace, cwd: workspace, terminals },
  );
  const policy = createPolicy({
    settings: { approval, sandbox },
    workspace,
    confinement: { name: "test", available: true },
  });
  const { access, mutates } = checked;
  return { ...decideAccess({ tool: tool.name, access, mutates }, policy), access, mutates };
}

describe.each(builtins.map((tool) => [tool.name, tool] as const))("%s", (_name, tool) => {
  test.each(modes)(
    "under %s and %s passes unasked only what it states, or what is meant to run",
    async (approval, sandbox) => {
      const { decision, access, mutates, reason } = await decided(tool, approval, sandbox);
      const settings = toSettings(approval, sandbox);
      if (settings.approval === "disabled") return expect(decision).toBe("deny");
      if (settings.approval === "never") expect(decision).not.toBe("ask");
      if (settings.approval === "auto" && settings.sandbox === "full-access") return expect(decision).toBe("allow");
      const states = [access.write, access.commands, access.network, access.servers].some(
        (list) => (list ?? []).length > 0,
      );
      if (mutates && !states && settings.sandbox !== "full-access" && settings.approval !== "auto")
        expect(decision, reason).not.toBe("allow");
      if (mutates && settings.approval === "unless-trusted") expect(decision, reason).toBe("ask");
      if (mutates && settings.sandbox === "read-only" && (access.write ?? []).length > 0)
        expect(decision, reason).not.toBe("allow");
    },
  );
});

describe("a tool of the user's", () => {
  const tool = (more: object) =>
    defineTool({ name: "own", description: "x", input: anything, run: () => "ran", ...more });
  const run = async (more: object, options: object = {}) =>
    (await createEngine({ tools: [tool(more)], workspace, ...options }).call("own")).code ?? "ran";

  test("that states nothing, or that it changes nothing, runs", async () => {
    expect(await run({})).toBe("ran");
    expect(await run({ mutates: false })).toBe("ran");
    expect(await run({}, { approval: "unless-trusted" })).toBe("ran");
  });
  test("that states nothing is held to it: it can write nothing and reach nobody", async () => {
    const write = {
      run: async (_: unknown, ctx: { files: { write(path: string, text: string): Promise<unknown> } }) =>
        void (await ctx.files.write("x", "x")),
    };
    expect(await run(write)).toBe("sandbox_denied");
    expect(await run(write, { approval: "auto" })).toBe("sandbox_denied");
    const server = createServer((_request, response) => void response.end("reached")).listen(0, "127.0.0.1");
    await once(server, "listening");
    // A server that listens on a port has an address.
    const { port } = server.address() as AddressInfo;
    const reach = {
      run: async (_: unknown, ctx: { fetch(url: string): Promise<Response> }) =>
        (await ctx.fetch(`http://127.0.0.1:${port}/`)).text(),
    };
    expect(await run(reach)).not.toBe("ran");
    expect(await run({ ...reach, access: { network: [`127.0.0.1:${port}`] } }, { approval: "auto" })).toBe("ran");
    server.close();
  });
  test("that changes something and does not say what is unknown: it is asked about", async () => {
    for (const unsaid of [
      { mutates: true },
      { mutates: true, access: {} },
      { mutates: true, access: { read: ["a.ts"] } },
    ]) {
      expect(await run(unsaid)).toBe("needs_approval");
      expect(await run(unsaid, { approval: "never" })).toBe("denied");
      expect(await run(unsaid, { approval: "unless-trusted", sandbox: "full-access" })).toBe("needs_approval");
      expect(await run(unsaid, { sandbox: "full-access" })).toBe("ran");
      expect(await run(unsaid, { approval: "auto", sandbox: "restricted" })).toBe("ran");
    }
  });
  test("runs unasked where a rule allows it, and never where one denies it", async () => {
    const rule = (decision: string) => ({ gate: { rules: [{ tool: "own", decision }] } });
    expect(await run({ mutates: true }, rule("allow"))).toBe("ran");
    expect(await run({}, { ...rule("deny"), approval: "auto" })).toBe("denied");
    expect(await run({}, { ...rule("ask"), approval: "auto" })).toBe("ran");
    expect(await run({}, { ...rule("ask"), approval: "never" })).toBe("denied");
    expect(await run({}, { ...rule("allow"), approval: "disabled" })).toBe("denied");
  });
});

describe("a tool of an MCP server that says it only looks", () => {
  const decide = (approval: (typeof approvalNames)[number], rules: readonly Rule[] = []) =>
    decideAccess(
      { tool: "docs/search", access: { servers: [{ server: "docs", name: "search" }] }, mutates: false },
      createPolicy({
        settings: { approval, sandbox: "workspace-write" },
        workspace,
        confinement: { name: "test", available: true },
        rules,
      }),
    ).decision;

  test("is believed where what is merely likely counts, and not under 'unless-trusted'", () => {
    expect(decide("on-request")).toBe("allow");
    expect(decide("never")).toBe("allow");
    expect(decide("unless-trusted")).toBe("ask");
    expect(decide("disabled")).toBe("deny");
  });
  test("obeys the rules for its server", () => {
    expect(decide("on-request", [{ mcp: "docs", decision: "deny" }])).toBe("deny");
    expect(decide("unless-trusted", [{ mcp: "docs/search", decision: "allow" }])).toBe("allow");
    expect(decide("on-request", [{ mcp: "docs", decision: "deny", except: ["docs/search"] }])).toBe("allow");
  });
});
