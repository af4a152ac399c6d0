/** Code mode: a script calls tools down the whole line, in a Node that can reach nothing else. */
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { parseAst } from "rolldown/parseAst";
import { afterAll, describe, expect, test } from "vitest";
import { createEngine, defineTool, type AnyTool, type ApprovalRequest, type EngineOptions } from "../../src/index.ts";
import { trySandboxes } from "../../src/runtime/sandbox/sandbox.ts";
import { createSession } from "../../src/session/index.ts";
import { openJournal, readJournal } from "../../src/store/index.ts";
import { createScriptedModel } from "../../src/testing/index.ts";
import { toDeclarations } from "../../src/tools/code/declare.ts";
import { addCodeMode, builtins, type CodeModeOptions } from "../../src/tools/index.ts";
import { escapes, leaks, parseOutcomes } from "../attacks/expected.ts";
import { createScene } from "../attacks/scene.ts";
import { manyTools } from "../registry/many-tools.ts";

const sandboxes = (await trySandboxes()).filter(({ ok }) => ok);
const folder = realpathSync(mkdtempSync("/var/tmp/callgate-code-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const number = { type: "number" } as const;
const add = defineTool({
  name: "math/add",
  origin: { server: "math", name: "add" },
  description: "Adds two numbers.",
  input: { type: "object", properties: { a: number, b: number }, required: ["a", "b"] },
  output: { type: "object", properties: { sum: number }, required: ["sum"] },
  mutates: false,
  parallel: true,
  run: ({ a, b }) => ({ sum: a + b }),
});
const deploy = defineTool({
  name: "deploy",
  description: "Puts a version online.",
  input: { type: "object", properties: { version: { type: "string" } }, required: ["version"] },
  mutates: true,
  run: ({ version }) => `version ${version} is online`,
});
const free: Partial<EngineOptions> = { gate: { rules: [{ tool: "math/*", decision: "allow" }] } };

function open(options: Partial<EngineOptions> = {}, code: CodeModeOptions = {}, tools: readonly AnyTool[] = []) {
  const engine = createEngine({ tools: [add, deploy, ...tools], workspace: folder, ...free, ...options });
  addCodeMode(engine.registry, code);
  return { engine, run: (script: string, signal?: AbortSignal) => engine.call("run_code", script, signal) };
}

describe("declarations", () => {
  test("are made from the schemas: what is required, lists, choices, results", () => {
    const parameters = {
      type: "object",
      properties: {
        title: { type: "string", description: "What it is\ncalled */." },
        labels: { type: "array", items: { type: ["string", "null"] } },
        state: { enum: ["open", "closed"] },
        size: { $ref: "#/$defs/size" },
        "odd-name": { anyOf: [{ type: "integer" }, { type: "boolean" }] },
      },
      required: ["title"],
      $defs: { size: { type: "object", additionalProperties: { type: "number" } } },
    };
    expect(
      toDeclarations([
        {
          name: "hub/create",
          description: "Makes one.",
          parameters,
          outputSchema: { type: "array", items: { type: "string" } },
        },
      ]),
    ).toBe(
      [
        "declare const tools: {",
        "  hub: {",
        "    /** Makes one. */",
        '    create(input: { /** What it is called * /. */ title: string; labels?: (string | null)[]; state?: "open" | "closed"; size?: Record<string, number>; "odd-name"?: number | boolean }): Promise<string[]>;',
        "  };",
        "};",
      ].join("\n"),
    );
  });

  test("are TypeScript, whatever a server puts into its schemas", () => {
    const schema = fc.letrec((tie) => ({
      schema: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom<unknown>(true, false, {}, { type: "string" }, { type: ["integer", "null"] }, { $ref: "#" }),
        fc.record({ enum: fc.array(fc.jsonValue()) }),
        fc.record({ const: fc.jsonValue(), description: fc.string() }),
        fc.record({ anyOf: fc.array(tie("schema")) }),
        fc.record({ allOf: fc.array(tie("schema")) }),
        fc.record({ type: fc.constant("array"), items: tie("schema") }),
        fc.record({ type: fc.constant("array"), prefixItems: fc.array(tie("schema")) }),
        fc.record({
          type: fc.constant("object"),
          properties: fc.dictionary(fc.string(), tie("schema")),
          required: fc.array(fc.string()),
        }),
      ),
    })).schema;
    fc.assert(
      fc.property(fc.string(), fc.string(), schema, schema, (name, description, input, output) => {
        const parameters = { type: "object", properties: { input } } as never;
        const text = toDeclarations([{ name, description, parameters, outputSchema: output as never }]);
        expect(() => parseAst(text, { lang: "ts" }), text).not.toThrow();
      }),
      { numRuns: Number(process.env["RUNS"] ?? 40) },
    );
  });
});

describe("the list of tools", () => {
  test("holds run_code only where code mode is on, and then the servers' tools are declared in it", async () => {
    const off = createEngine({ tools: [add, deploy], workspace: folder });
    expect(
      off
        .offer("m")
        .specs()
        .map(({ name }) => name),
    ).toEqual(["deploy", "math/add"]);
    const { engine } = open();
    const specs = engine.offer("m").specs();
    expect(specs.map(({ name }) => name)).not.toContain("math/add");
    expect(JSON.stringify(specs.find(({ name }) => name === "run_code"))).toContain(
      "add(input: { a: number; b: number }): Promise<{ sum: number }>",
    );
    await Promise.all([off.close(), engine.close()]);
  });

  test("stays small with five hundred tools, whose declarations a script finds", async () => {
    const { engine, run } = open({}, {}, manyTools);
    const session = createSession({ id: "many", engine, model: createScriptedModel([]) });
    expect(JSON.stringify(session.tools()).length).toBeLessThan(4_000);
    await session.close();
    if (sandboxes.length > 0) {
      const { text } = await run('return await findTools("stripe refund create")');
      expect(text).toMatch(/stripe: \{[\s\S]*create_refund\(input/);
    }
    await engine.close();
  });
});

describe.skipIf(sandboxes.length === 0)("a script (needs a sandbox)", () => {
  test("calls tools by name and by server, one after the other and side by side, and returns data", async () => {
    const { engine, run } = open();
    const ended: (string | undefined)[] = [];
    engine.on((event) => void (event.type === "call.ended" && ended.push(event.call.tool)));
    const { ok, text } = await run(`
      let sum = 0;
      for (const n of [1, 2, 3]) ({ sum } = await tools.math.add({ a: sum, b: n }));
      const more = await Promise.all([10, 20].map((a) => tools.math.add({ a, b: sum })));
      console.log("so far", sum);
      return more.map((one) => one.sum);`);
    expect({ ok, text }).toEqual({ ok: true, text: "Printed:\nso far 6\n\n[\n 16,\n 26\n]" });
    expect(ended).toEqual([...Array<string>(5).fill("math/add"), "run_code"]);
    await engine.close();
  });

  test("gets the whole of a result that is too long for a model", async () => {
    const { engine, run } = open({}, {}, builtins);
    const { text } = await run("return (await tools.shell_command({ command: 'seq 1 200000' })).split('\\n').length");
    expect(Number(text)).toBe(200_001);
    await engine.close();
  });

  test("is told of a call that is refused, and so is the journal, below the script's own call", async () => {
    const { engine } = open({ approver: { ask: async () => ({ answer: "no" }) } });
    const path = join(folder, "session.jsonl");
    const script = 'try { await tools.deploy({ version: "1" }) } catch (error) { return [error.name, error.code] }';
    const model = createScriptedModel([{ calls: [{ name: "run_code", input: { code: script } }] }, { text: "ok" }]);
    const session = createSession({ id: "refused", engine, model, journal: openJournal(path) });
    for await (const _ of session.send("go"));
    await session.close();
    const result = session.history.find((item) => item.type === "result");
    expect(JSON.stringify(result)).toContain("ToolError");
    expect(JSON.stringify(result)).toContain("rejected");
    const records = readJournal(path).records.map((record) => JSON.stringify(record));
    const refused = records.find((record) => record.includes('"deploy"') && record.includes('"code":"rejected"'));
    expect(refused).toContain('"parent":');
    expect(refused).toContain("version"); // what was asked for is in it
    await engine.close();
  });

  test("waits for a person as long as the person takes, and that time is not its own", async () => {
    const asked: ApprovalRequest[] = [];
    const approver: EngineOptions["approver"] = {
      async ask(request) {
        asked.push(request);
        await new Promise((resolve) => setTimeout(resolve, 2_500));
        return { answer: "once" };
      },
    };
    const { engine, run } = open({ approver }, { timeoutMs: 2_000 });
    expect((await run('return await tools.deploy({ version: "2" })')).text).toBe("version 2 is online");
    expect(asked.map(({ call }) => call.tool)).toEqual(["deploy"]);
    await engine.close();
  });

  test("throws its own errors with their line, and a script that cannot be read says where", async () => {
    const { engine, run } = open();
    const failed = await run('const x = 1;\nthrow new TypeError("no such thing");');
    expect(failed).toMatchObject({ ok: false, code: "failed" });
    expect(failed.text).toMatch(/TypeError: no such thing\n.*script\.js:2/);
    expect((await run("const x = 1;\nconst y = ;")).text).toMatch(/script\.js:2[\s\S]*SyntaxError/);
    expect((await run("return 1n")).text).toContain("cannot be written as JSON");
    expect((await run("process.exit(3)")).text).toContain("exit code 3");
    expect((await run("return await tools.run_code('1')")).text).toContain("cannot run another script");
    expect((await run("return await tools.math.ad({})")).text).toContain("math/add");
    expect((await run("```js\nreturn 7\n```")).text).toBe("7");
    await engine.close();
  });

  test("ends at its limits of time, calls, memory and output", async () => {
    const limits = { timeoutMs: 1_000, maxCalls: 3, memoryBytes: 64 * 1024 * 1024, maxOutputBytes: 2_000 };
    const { engine, run } = open({}, limits);
    expect((await run("for (;;);")).text).toContain("more than 1 seconds");
    expect((await run("await new Promise(() => {})")).text).toContain("more than 1 seconds");
    expect((await run("for (;;) await tools.math.add({ a: 1, b: 1 })")).text).toContain("more than 3 calls");
    expect((await run("const all = []; for (;;) all.push(new Array(1e5).fill(1.5))")).text).toContain("more memory");
    const { text } = await run('for (let i = 0; i < 1e4; i++) console.log("line", i); return 1');
    expect(text.length).toBeLessThan(6_000);
    expect(text).toMatch(/… \d+ bytes …/);
    await engine.close();
  });

  test("is stopped with its call, and the calls that it waits for as well", async () => {
    const stop = new AbortController();
    let stopped = false;
    const slow = defineTool({
      name: "slow",
      description: "Waits.",
      input: { type: "object" },
      run: (_input, ctx) =>
        new Promise((_resolve, reject) => {
          ctx.signal.addEventListener("abort", () => {
            stopped = true;
            reject(ctx.signal.reason as Error);
          });
          stop.abort();
        }),
    });
    const { engine, run } = open({}, {}, [slow]);
    expect(await run("return await tools.slow()", stop.signal)).toMatchObject({ ok: false, code: "aborted" });
    expect(stopped).toBe(true);
    await engine.close();
  });

  test("finds nothing of the script before it, and writes nowhere, also where commands may write everywhere", async () => {
    const { engine, run } = open({ sandbox: "full-access", approval: "never" });
    await run("globalThis.left = 1");
    expect((await run("return typeof left")).text).toBe("undefined");
    const { ok, text } = await run('require("node:fs").writeFileSync("made", "1")');
    expect({ ok, made: existsSync(join(folder, "made")) }).toEqual({ ok: false, made: false });
    expect(text).toMatch(/EROFS|EACCES/);
    await engine.close();
  });

  test("is let through where rules deny commands, which do not start in it either, and not where a rule denies it", async () => {
    const rules = [{ command: "rm", decision: "deny" }] as const;
    const { engine, run } = open({ gate: { rules }, approval: "unless-trusted" });
    const script = 'return require("node:child_process").spawnSync("rm", ["--version"]).status';
    const { ok, text } = await run(script);
    expect(ok).toBe(true);
    expect(text).not.toBe("0");
    const denying = open({ gate: { rules: [{ tool: "run_code", decision: "deny" }] } });
    expect(await denying.run("return 1")).toMatchObject({ ok: false, code: "denied" });
    await Promise.all([engine.close(), denying.engine.close()]);
  });

  test("cannot get out: the whole escape suite, started by a script", async () => {
    const scene = await createScene();
    const engine = createEngine({
      tools: [add],
      workspace: scene.workspace,
      gate: { mask: scene.grant.mask },
      environment: { inherit: "all", set: scene.env },
    });
    addCodeMode(engine.registry);
    writeFileSync(join(scene.workspace, "note"), "x");
    const script = `return require("node:child_process").spawnSync(${JSON.stringify(scene.probe[0])}, ${JSON.stringify(scene.probe.slice(1))}, { encoding: "utf8" }).stdout`;
    const { text } = await engine.call("run_code", script);
    const outcomes = parseOutcomes(text);
    const { name } = await engine.confinement();
    const known = Object.entries(leaks).find(
      ([id]) => name.startsWith(id) || (name.startsWith("bwrap(bound") && id === "bwrap-bound-proc"),
    );
    expect(outcomes.size).toBeGreaterThan(100);
    expect(escapes(outcomes, known?.[1] ?? [])).toEqual([]);
    expect(outcomes.get("write_workspace")).not.toBe("ok");
    expect(readFileSync(join(scene.outside, "victim"), "utf8")).toBe("untouched\n");
    await engine.close();
    await scene.close();
  });
});
