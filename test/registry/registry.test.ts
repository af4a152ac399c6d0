import { expect, test } from "vitest";
import { CallError } from "../../src/base/error.ts";
import { createRegistry } from "../../src/registry/registry.ts";
import type { Asked } from "../../src/spec/call.ts";
import type { AnyTool } from "../../src/spec/tool.ts";

const tool = (name: string, extra: Partial<AnyTool> = {}): AnyTool => ({
  name,
  description: name,
  input: { type: "object" },
  run: () => name,
  ...(name.includes("/") ? { origin: { server: name.split("/")[0]!, name: name.split("/")[1]! } } : {}),
  ...extra,
});
const ask = (name: string, namespace?: string): Asked => ({
  id: "1",
  name,
  kind: "function",
  arguments: "{}",
  askedAt: 0,
  ...(namespace === undefined ? {} : { namespace }),
});

const registry = createRegistry([
  tool("read_file", { aliases: ["cat"] }),
  tool("internal_file_read", { group: "file" }),
  tool("github/create-issue"),
  tool("github/list"),
  tool("gitlab/list"),
  tool("files/read_file_lines", { xml: { tag: "read-lines" } }),
]);

test.each([
  ["read_file", "read_file"],
  ["cat", "read_file"],
  ["Read_File", "read_file"],
  ["read-file", "read_file"],
  ["github/create-issue", "github/create-issue"],
  ["mcp__github__create-issue", "github/create-issue"],
  ["mcp__github__create_issue", "github/create-issue"],
  ["mcp_github_create_issue", "github/create-issue"],
  ["github_create_issue", "github/create-issue"],
  ["github.create-issue", "github/create-issue"],
  ["create_issue", "github/create-issue"],
  ["read-lines", "files/read_file_lines"],
])("%s is understood as %s", (spelling, name) => {
  expect(registry.bind(ask(spelling)).tool.name).toBe(name);
});

test("a namespace and a name find the server's tool", () => {
  expect(registry.bind(ask("list", "mcp__gitlab")).tool.name).toBe("gitlab/list");
  expect(registry.bind(ask("list", "github")).tool.name).toBe("github/list");
});

test("a spelling that fits two tools fits none", () => {
  expect(registry.find("list")).toBeUndefined();
});

test("an unknown tool names the tools there are, nearest first", () => {
  let error: unknown;
  try {
    registry.bind(ask("raed_file"));
  } catch (caught) {
    error = caught;
  }
  expect(CallError.is(error)).toBe(true);
  expect(error).toMatchObject({ code: "unknown_tool", hint: "Did you mean read_file?" });
  expect((error as CallError).message).toMatch(/^Unknown tool: "raed_file"\. Available tools: read_file, /);
  expect((error as CallError).message).toContain("gitlab/list");
});

test.each(["__proto__", "constructor", "toString", "", "hasOwnProperty", "\u0000", "x".repeat(1_000_000)])(
  "the hostile name %.20j is merely unknown",
  (name) => {
    expect(() => registry.bind(ask(name))).toThrow(CallError);
  },
);

test("a name of a megabyte is told back in a line", () => {
  expect.assertions(2);
  try {
    registry.bind(ask("x".repeat(1_000_000)));
  } catch (error) {
    expect((error as CallError).message.length).toBeLessThan(2_000);
    expect(JSON.stringify((error as CallError).data).length).toBeLessThan(1_000);
  }
});

test("two tools of one name are refused at registration, and nothing is added", () => {
  const own = createRegistry([tool("a")]);
  expect(() => own.add(tool("b"), tool("a"))).toThrow(new TypeError("there are two tools named 'a'"));
  expect(own.list().map(({ name }) => name)).toEqual(["a"]);
});

test("a bad declaration is a TypeError that names the tool", () => {
  expect(() => createRegistry([tool("no spaces")])).toThrow(/tool "no spaces": a name is letters/);
  expect(() => createRegistry([{ ...tool("x"), run: undefined } as unknown as AnyTool])).toThrow(
    "tool 'x': run is not a function",
  );
});

test("the list is in name order whatever the order of adding", () => {
  const names = registry.list().map(({ name }) => name);
  expect(names).toEqual(names.toSorted());
  expect(createRegistry(registry.list().toReversed()).list()).toEqual(registry.list());
});

test("tools are grouped by their group or server", () => {
  expect(registry.groups().get("github")).toEqual(["github/create-issue", "github/list"]);
  expect(registry.groups().get("file")).toEqual(["internal_file_read"]);
});

test("a server's tools are exchanged at once and listeners hear of it", () => {
  const own = createRegistry([tool("a"), tool("s/one"), tool("s/two")]);
  let heard = 0;
  const stop = own.onChange(() => heard++);
  own.replace(({ name }) => name.startsWith("s/"), [tool("s/three")]);
  expect(own.list().map(({ name }) => name)).toEqual(["a", "s/three"]);
  expect(own.remove("a")).toBe(true);
  expect(own.remove("a")).toBe(false);
  stop();
  own.add(tool("z"));
  expect(heard).toBe(2);
});

test("a call that names a server never goes to another one, not even while the named one is missing", () => {
  const registry = createRegistry([tool("evil/bank_pay"), tool("evil/pay"), tool("a_b/c"), tool("read_file")]);
  for (const name of ["bank/pay", "mcp__bank__pay", "a/b_c", "mcp__a__b_c"])
    expect(registry.find(name), name).toBeUndefined();
  expect(registry.find("pay", "mcp__bank")).toBeUndefined();
  // Names that name no server, or the right one in another spelling, are understood as before.
  expect(registry.find("pay")?.name).toBe("evil/pay");
  expect(registry.find("mcp_evil_pay")?.name).toBe("evil/pay");
  expect(registry.find("Evil/Pay")?.name).toBe("evil/pay");
  expect(registry.find("mcp__A-B__c")?.name).toBe("a_b/c");
  expect(registry.find("read_file", "functions")?.name).toBe("read_file");
});

test("a call of a group that is on its way waits for it, and only such a call", async () => {
  const registry = createRegistry([tool("read_file")]);
  let arrive = () => undefined as unknown;
  registry.expect("my-server", new Promise<void>((resolve) => (arrive = resolve)));
  const { signal } = new AbortController();
  expect(registry.bind(ask("read_file"), signal)).toMatchObject({ tool: { name: "read_file" } });
  expect(() => registry.bind(ask("other/ping"), signal)).toThrow(CallError);
  const waiting = [ask("my-server/ping"), ask("mcp__my-server__ping"), ask("ping", "mcp__my-server")].map((asked) =>
    registry.bind(asked, signal),
  );
  for (const waited of waiting) expect(waited).toBeInstanceOf(Promise);
  const stop = new AbortController();
  const stopped = registry.bind(ask("my-server/ping"), stop.signal);
  stop.abort();
  await expect(stopped).rejects.toMatchObject({ code: "aborted" });
  registry.add(tool("my-server/ping"));
  arrive();
  for (const waited of waiting) expect((await waited).tool.name).toBe("my-server/ping");
  await new Promise((resolve) => setTimeout(resolve));
  expect(() => registry.bind(ask("my-server/pong"), signal)).toThrow(CallError);
});
