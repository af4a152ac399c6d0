import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test, vi } from "vitest";
import { CallError } from "../../src/base/error.ts";
import type { GateOptions, GateRecord } from "../../src/gate/gate.ts";
import type { Rule } from "../../src/gate/rules.ts";
import type { Access } from "../../src/spec/access.ts";
import type { Checked, Ended } from "../../src/spec/call.ts";
import type { CallEvent } from "../../src/spec/stages.ts";
import { answering, codeOf, createCalls, permit } from "./calls.ts";
import { createWorkspace } from "./workspace.ts";

const workspace = createWorkspace();
afterAll(() => workspace.remove());
const signal = new AbortController().signal;

const { checked, run, gate } = createCalls(workspace);

describe("the table of modes", () => {
  const harmless = run("ls");
  const dangerous = run("rm -rf src");
  const other = run("npm test");
  const escalated = { ...run("npm test"), escalation: { justification: "why not" } };
  const modes = ["never", "on-request", "on-failure", "unless-trusted", "auto", "disabled"] as const;
  const outcome = async (access: Access, options: Partial<GateOptions>) =>
    permit(gate(options).pass(checked(access), signal)).then(
      (permitted) => (permitted.grant.confined ? "confined" : "open"),
      (error: unknown) => (CallError.is(error) ? error.code : "fault"),
    );
  const row = (access: Access, sandbox: "workspace-write" | "full-access", available = true) =>
    Promise.all(
      modes.map((approval) =>
        outcome(access, { settings: { approval, sandbox }, confinement: { name: "x", available } }),
      ),
    );

  test("known harmless runs in every mode but 'disabled', which runs nothing", async () => {
    const confined = ["confined", "confined", "confined", "confined", "confined", "denied"];
    expect(await row(harmless, "workspace-write")).toEqual(confined);
    expect(await row(harmless, "full-access")).toEqual(["open", "open", "open", "open", "open", "denied"]);
  });
  test("dangerous is refused or asked about, with or without a sandbox; 'auto' runs it where it may", async () => {
    const asked = ["denied", "needs_approval", "needs_approval", "needs_approval"];
    expect(await row(dangerous, "workspace-write")).toEqual([...asked, "confined", "denied"]);
    expect(await row(dangerous, "full-access")).toEqual([...asked, "open", "denied"]);
  });
  test("other runs confined, or is asked about under unless-trusted", async () => {
    const confined = ["confined", "confined", "confined", "needs_approval", "confined", "denied"];
    expect(await row(other, "workspace-write")).toEqual(confined);
  });
  test("other with nothing to confine it runs only under full access", async () => {
    expect(await row(other, "full-access")).toEqual(["open", "open", "open", "needs_approval", "open", "denied"]);
    const asked = ["denied", "needs_approval", "needs_approval", "needs_approval", "denied", "denied"];
    expect(await row(other, "workspace-write", false)).toEqual(asked);
  });
  test("escalation is refused or asked about; where nothing confines there is nothing to leave", async () => {
    const asked = ["denied", "needs_approval", "needs_approval", "needs_approval", "denied", "denied"];
    expect(await row(escalated, "workspace-write")).toEqual(asked);
    expect(await row(escalated, "full-access")).toEqual(["open", "open", "open", "needs_approval", "open", "denied"]);
  });
});

describe("a person is asked", () => {
  const settings = { approval: "unless-trusted", sandbox: "workspace-write" } as const;

  test("yes once is for once", async () => {
    const { asked, approver } = answering({ answer: "once" });
    const one = gate({ settings, approver });
    expect((await permit(one.pass(checked(run("npm test")), signal))).ruling.by).toBe("person");
    await one.pass(checked(run("npm test")), signal);
    expect(asked).toHaveLength(2);
  });

  test("a command that nothing marked as a call waits for a person, even a harmless one a rule allows", async () => {
    const { asked, approver } = answering({ answer: "once" });
    const open = { approval: "on-request", sandbox: "workspace-write" } as const;
    const one = gate({ settings: open, approver });
    const quoted = { ...checked(run("ls")), markerless: true };
    expect((await permit(one.pass(checked(run("ls")), signal))).ruling.by).not.toBe("person");
    expect((await permit(one.pass(quoted, signal))).ruling.by).toBe("person");
    expect(asked).toHaveLength(1);
    expect(await codeOf(gate({ settings: { ...open, approval: "never" } }).pass(quoted, signal))).toBe("denied");
  });

  test("yes for the session is for the same command, however it is spaced, and for no other", async () => {
    const { asked, approver } = answering({ answer: "session" });
    const one = gate({ settings, approver });
    await one.pass(checked(run("npm test -- a")), signal);
    expect((await permit(one.pass(checked(run("  npm   test -- 'a'")), signal))).ruling.by).toBe("memory");
    // What was agreed to is the command, whichever tool runs it.
    await one.pass(checked(run("npm test -- a"), { name: "shell_command" }), signal);
    expect(asked).toHaveLength(1);
    await one.pass(checked(run("npm test -- b")), signal);
    await one.pass(checked({ commands: [{ shell: "npm test -- a", cwd: join(workspace.ws, "src") }] }), signal);
    expect(asked).toHaveLength(3);
  });

  test("a session's yes to two files is a yes to each of them", async () => {
    const { asked, approver } = answering({ answer: "session" });
    const one = gate({ settings, approver });
    await one.pass(checked({ write: ["a.txt", "b.txt"] }, { name: "apply_patch" }), signal);
    await one.pass(checked({ write: ["b.txt"] }, { name: "apply_patch" }), signal);
    expect(asked).toHaveLength(1);
    await one.pass(checked({ write: ["c.txt"] }, { name: "apply_patch" }), signal);
    expect(asked).toHaveLength(2);
  });

  test("always writes the rule that was shown, and it holds at once", async () => {
    const saved: Rule[] = [];
    const { asked, approver } = answering({ answer: "always" });
    const one = gate({
      settings,
      approver,
      always: { file: "/rules.toml", save: async (rule) => void saved.push(rule) },
    });
    await one.pass(checked(run("npm run build")), signal);
    expect(asked[0]?.always).toMatchObject({
      rule: 'command = ["npm", "run", "build"], decision = "allow"',
      file: "/rules.toml",
    });
    expect(saved).toEqual([{ command: ["npm", "run", "build"], decision: "allow" }]);
    expect((await permit(one.pass(checked(run("npm run build --verbose")), signal))).ruling.by).toBe("rule");
  });

  test.each(["yes", "allow", "", "ONCE", 1, null])(
    "the answer %j is none: nothing runs, and the author is told",
    async (word) => {
      const one = gate({
        approver: { ask: async () => ({ answer: word }) as never },
        settings: { approval: "unless-trusted" },
      });
      await expect(one.pass(checked(run("npm test")), signal)).rejects.toThrow(TypeError);
    },
  );

  test("a rule that cannot be written down is no yes: the call does not run", async () => {
    const { approver } = answering({ answer: "always" });
    const save = () => Promise.reject(new Error("disk full"));
    const one = gate({ approver, settings: { approval: "unless-trusted" }, always: { file: "/rules.toml", save } });
    await expect(one.pass(checked(run("npm test")), signal)).rejects.toThrow("disk full");
  });

  test("a yes for once or for the session writes no rule; always where no rule was shown lasts for the session", async () => {
    for (const [answer, line, saves, questions] of [
      ["once", "npm test", 0, 2],
      ["session", "npm test", 0, 1],
      ["always", "npm test", 1, 1],
      ["always", 'eval "$X"', 0, 1],
    ] as const) {
      const saved: Rule[] = [];
      const { asked, approver } = answering({ answer });
      const save = async (rule: Rule) => void saved.push(rule);
      const settings = { approval: "unless-trusted" } as const;
      const one = gate({ approver, settings, always: { file: "/rules.toml", save } });
      await permit(one.pass(checked(run(line)), signal, {}));
      await permit(one.pass(checked(run(line)), signal, {}));
      expect([answer, line, saved.length, asked.length]).toEqual([answer, line, saves, questions]);
    }
  });
  test("always is not offered for what would allow everything", async () => {
    const { asked, approver } = answering({ answer: "once" });
    const one = gate({ settings, approver, always: { file: "/rules.toml", save: async () => undefined } });
    for (const line of ["bash x.sh", "python3 x.py", "sudo ls", "rm x", "$X y", "npm test > /tmp/x"])
      await one.pass(checked(run(line)), signal);
    expect(asked.map((request) => request.always)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  test("no is told with its message, stop ends the turn", async () => {
    const no = gate({ settings, approver: answering({ answer: "no", message: "use pnpm" }).approver });
    await expect(no.pass(checked(run("npm test")), signal)).rejects.toMatchObject({
      code: "rejected",
      message: "The user said no: use pnpm",
    });
    const stop = gate({ settings, approver: answering({ answer: "stop" }).approver });
    await expect(stop.pass(checked(run("npm test")), signal)).rejects.toMatchObject({
      code: "rejected",
      data: { stopTurn: true },
    });
  });

  test("nobody there means needs_approval, at once", async () => {
    expect(await codeOf(gate({ settings }).pass(checked(run("npm test")), signal))).toBe("needs_approval");
    expect(
      await codeOf(gate({ settings, approver: answering(undefined).approver }).pass(checked(run("npm test")), signal)),
    ).toBe("needs_approval");
  });

  test("a link swapped while the person reads voids the yes", async () => {
    const path = join(workspace.ws, "swapped");
    mkdirSync(path);
    const approver = {
      ask: async () => {
        rmSync(path, { recursive: true });
        symlinkSync(workspace.out, path);
        return { answer: "once" } as const;
      },
    };
    const one = gate({ settings, approver });
    expect(await codeOf(one.pass(checked({ write: ["swapped/new.txt"] }), signal))).toBe("stale");
    rmSync(path);
  });

  test("a file changed while the person reads its diff voids the yes", async () => {
    const path = join(workspace.ws, "changing.txt");
    writeFileSync(path, "as shown\n");
    const approver = {
      ask: async () => {
        writeFileSync(path, "another text\n");
        return { answer: "once" } as const;
      },
    };
    const one = gate({ settings, approver });
    expect(await codeOf(one.pass(checked({ write: ["changing.txt"] }), signal))).toBe("stale");
    rmSync(path);
  });

  test("asking and the answer are events", async () => {
    const events: CallEvent[] = [];
    await gate({
      settings,
      approver: answering({ answer: "once" }).approver,
      emit: (event) => events.push(event),
    }).pass(checked(run("npm test")), signal);
    expect(events.map((event) => event.type)).toEqual(["approval.asked", "approval.answered"]);
  });

  test("a changed definition of an MCP tool asks again", async () => {
    const { asked, approver } = answering({ answer: "session" });
    const one = gate({ approver });
    const call = (properties: object) => {
      const made = checked({ servers: [{ server: "mail", name: "send" }] }, { name: "mail/send", mutates: true });
      return { ...made, tool: { ...made.tool, input: { type: "object", properties } } } as Checked;
    };
    await one.pass(call({ to: { type: "string" } }), signal);
    await one.pass(call({ to: { type: "string" } }), signal);
    expect(asked).toHaveLength(1);
    await one.pass(call({ to: { type: "string" }, context: { type: "string" } }), signal);
    expect(asked).toHaveLength(2);
  });
});

describe("grants", () => {
  const grantOf = async (access: Access, options: Partial<GateOptions> = {}, name = "shell") =>
    (await permit(gate(options).pass(checked(access, { name }), signal))).grant;

  test("a tool that states no writing gets none, and no network", async () => {
    expect(await grantOf({ read: ["README.md"] })).toMatchObject({ write: [], network: "off" });
    expect(await grantOf({})).toMatchObject({ write: [], network: "off" });
  });
  test("a command gets the workspace, and protected names stay", async () => {
    const grant = await grantOf(run("npm test"));
    expect(grant.write).toEqual([workspace.ws]);
    expect(grant.protect).toContain(".git");
    expect(grant.mask).toContain(join(workspace.home, ".ssh"));
  });
  test("read-only grants no writing", async () => {
    expect(await grantOf(run("ls"), { settings: { approval: "on-request", sandbox: "read-only" } })).toMatchObject({
      write: [],
      policy: "read-only",
    });
  });
  test("an agreed write outside opens exactly that", async () => {
    const { approver } = answering({ answer: "once" });
    expect((await grantOf({ write: [join(workspace.out, "new.txt")] }, { approver })).write).toEqual([
      join(workspace.out, "new.txt"),
    ]);
  });
  test("an agreed read opens the mask over it, and no other", async () => {
    const { approver } = answering({ answer: "once" });
    const masked = (await grantOf({}, { approver })).mask;
    const opened = (await grantOf({ read: [join(workspace.home, ".ssh/id_rsa")] }, { approver })).mask;
    expect(masked).toContain(join(workspace.home, ".ssh"));
    expect(opened).toEqual(masked.filter((path) => path !== join(workspace.home, ".ssh")));
  });
  test("an agreed write to a protected file opens that file and not the workspace", async () => {
    const { approver } = answering({ answer: "once" });
    expect((await grantOf({ write: [".git/config"] }, { approver })).write).toEqual([
      join(workspace.ws, ".git/config"),
    ]);
  });
  test("an agreed escalation is outside the sandbox", async () => {
    const { approver } = answering({ answer: "once" });
    expect(await grantOf({ ...run("npm test"), escalation: {} }, { approver })).toMatchObject({
      policy: "full-access",
      confined: false,
      network: "on",
    });
  });
  test("a denied path is masked for commands too", async () => {
    const grant = await grantOf(run("npm test"), { rules: [{ path: "./.env", access: "read", decision: "deny" }] });
    expect(grant.mask).toContain(join(workspace.ws, ".env"));
  });
});

describe("paths of tools", () => {
  const decision = async (access: Access, options: Partial<GateOptions> = {}) =>
    permit(gate(options).pass(checked(access, { name: "apply_patch" }), signal)).then(
      () => "allow",
      (error: unknown) => (CallError.is(error) ? error.code : "fault"),
    );
  test.each([
    ".git/hooks/pre-commit",
    ".GIT/config",
    ".git::$INDEX_ALLOCATION/config",
    ".git./config",
    ".git /config",
    "GIT~1/config",
    ".callgate/rules.toml",
    "../out/x",
    "/etc/passwd",
    "src/../../out/x",
    "a\0b",
  ])("writing %j asks", async (path) => {
    expect(await decision({ write: [path] })).toBe("needs_approval");
    expect(await decision({ write: [path] }, { settings: { approval: "never", sandbox: "workspace-write" } })).toBe(
      "denied",
    );
  });
  test("writing inside is confined by the file capability", async () => {
    expect(await decision({ write: ["src/new.txt", ".githubby/x.yml", ".gitignore"] })).toBe("allow");
  });
  test("so is reading inside, whether or not there is a sandbox for commands", async () => {
    const settings = { approval: "on-request", sandbox: "workspace-write" } as const;
    const one = gate({ settings, confinement: { name: "none", available: false } });
    expect((await permit(one.pass(checked({ read: [".env"] }), signal))).ruling.decision).toBe("allow");
    expect(await codeOf(one.pass(checked(run("npm test")), signal))).toBe("needs_approval");
  });
  test("links are followed before deciding", async () => {
    symlinkSync(workspace.out, join(workspace.ws, "outdir"));
    symlinkSync(join(workspace.out, "secret.txt"), join(workspace.ws, "outfile"));
    symlinkSync(join(workspace.out, "not-there"), join(workspace.ws, "dangling"));
    expect(await decision({ write: ["outdir/new.txt"] })).toBe("needs_approval");
    expect(await decision({ write: ["dangling"] })).toBe("needs_approval");
    expect(await decision({ read: ["outfile"] })).toBe("needs_approval");
  });
  test("a file with secrets is known by where a link leads", async () => {
    writeFileSync(join(workspace.ws, ".env"), "KEY=1");
    symlinkSync(join(workspace.ws, ".env"), join(workspace.ws, "harmless.txt"));
    const careful = { settings: { approval: "unless-trusted", sandbox: "workspace-write" } } as const;
    const read = (path: string) => gate(careful).pass(checked({ read: [path] }), signal);
    expect((await permit(read("README.md"))).ruling.decision).toBe("allow");
    expect(await codeOf(read(".env"))).toBe("needs_approval");
    expect(await codeOf(read("harmless.txt"))).toBe("needs_approval");
  });
  test("a deny rule for a name holds for a link to it", async () => {
    writeFileSync(join(workspace.ws, ".env"), "K=V\n");
    symlinkSync(".env", join(workspace.ws, "notes.txt"));
    const rules: Rule[] = [{ path: ".env", access: "read", decision: "deny" }];
    expect(await decision({ read: ["notes.txt"] }, { rules })).toBe("denied");
    expect(await decision({ read: [".env"] }, { rules })).toBe("denied");
    expect(await decision(run("cat notes.txt"), { rules })).toBe("denied");
    expect(await decision(run("cat < notes.txt"), { rules })).toBe("denied");
    expect(await decision({ read: ["README.md"] }, { rules })).toBe("allow");
  });
  test("a path of thousands of parts is decided quickly", async () => {
    const before = process.cpuUsage();
    await decision({ write: ["a/".repeat(5_000)] });
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(1_000);
  });
});

describe("tools, servers, hosts", () => {
  const decision = async (call: Checked, rules: readonly Rule[], settings?: GateOptions["settings"]) =>
    permit(gate({ rules, ...(settings === undefined ? {} : { settings }) }).pass(call, signal)).then(
      () => "allow",
      (error: unknown) => (CallError.is(error) ? error.code : "fault"),
    );
  test("an MCP tool that changes something asks; an allow-list lets it pass; a deny wins over it", async () => {
    const call = () => checked({ servers: [{ server: "mail", name: "send" }] }, { name: "mail/send", mutates: true });
    expect(await decision(call(), [])).toBe("needs_approval");
    expect(await decision(call(), [{ mcp: "mail", decision: "allow" }])).toBe("allow");
    expect(await decision(call(), [{ mcp: "mail/send", decision: "allow" }])).toBe("allow");
    expect(await decision(call(), [{ mcp: "mailer", decision: "allow" }])).toBe("needs_approval");
    expect(
      await decision(call(), [
        { mcp: "mail/*", decision: "allow" },
        { mcp: "mail/send", decision: "deny" },
      ]),
    ).toBe("denied");
  });
  test("a tool can be denied by name or pattern", async () => {
    expect(
      await decision(checked({ read: ["README.md"] }, { name: "read_file" }), [{ tool: "read_*", decision: "deny" }]),
    ).toBe("denied");
  });
  test("a tool rule does not wave danger through", async () => {
    const settings = { approval: "unless-trusted", sandbox: "workspace-write" } as const;
    const rules: Rule[] = [{ tool: "shell", decision: "allow" }];
    expect(await decision(checked(run("npm test")), rules, settings)).toBe("allow");
    expect(await decision(checked(run("rm -rf src")), rules, settings)).toBe("needs_approval");
  });
  test("a host must be granted or allowed by a rule, label by label", async () => {
    const call = (host: string) => checked({ network: [host] }, { name: "fetch" });
    const rules: Rule[] = [{ host: "*.example.org", decision: "allow" }];
    expect(await decision(call("api.example.org"), rules)).toBe("allow");
    expect(await decision(call("api.example.org:8080"), rules)).toBe("allow");
    for (const host of [
      "example.org.evil.invalid",
      "evilexample.org",
      "example.org",
      "x.example.org\0.evil.invalid",
      "*.example.org.evil",
    ])
      expect(await decision(call(host), rules)).toBe("needs_approval");
  });
});

describe("widening after a refusal", () => {
  const denied = { what: "write", target: "/data/x", reason: "read-only" } as const;
  test("asks for repeatable calls, and opens only what was refused", async () => {
    const { asked, approver } = answering({ answer: "once" });
    const one = gate({ approver });
    const permitted = await permit(one.pass(checked(run("npm test")), signal));
    const wider = await one.widen(permitted, denied, signal);
    expect(wider?.grant.write).toEqual([workspace.ws, "/data/x"]);
    expect(wider?.grant.network).toBe("off");
    expect(asked).toHaveLength(1);
  });
  test("not without somebody to ask, not under never, not for what cannot be repeated", async () => {
    const { approver } = answering({ answer: "once" });
    const call = checked(run("npm test"));
    const widen = async (options: Partial<GateOptions>, made: Checked) => {
      const one = gate(options);
      return one.widen(await permit(one.pass(made, signal)), denied, signal);
    };
    expect(await widen({}, call)).toBeUndefined();
    expect(
      await widen({ approver, settings: { approval: "never", sandbox: "workspace-write" } }, call),
    ).toBeUndefined();
    expect(await widen({ approver }, checked(run("npm test"), { repeatable: false }))).toBeUndefined();
  });
  test("no ends the call as rejected", async () => {
    const one = gate({ approver: answering({ answer: "no" }).approver });
    const permitted = await permit(one.pass(checked(run("npm test")), signal));
    expect(await codeOf(one.widen(permitted, denied, signal))).toBe("rejected");
  });
});

describe("hooks", () => {
  test("a hook can block, and its reason is told", async () => {
    const one = gate({ hooks: [{ tool: "sh*", before: () => ({ block: "not on Fridays" }) }] });
    await expect(one.pass(checked(run("ls")), signal)).rejects.toMatchObject({
      code: "denied",
      message: "Blocked by a hook: not on Fridays",
    });
  });
  test("a rewritten call comes back to be checked from the start", async () => {
    const one = gate({
      hooks: [{ before: ({ input }) => (JSON.stringify(input) === "{}" ? { input: { safe: true } } : undefined) }],
    });
    const passed = await one.pass(checked(run("ls")), signal);
    expect(passed).toMatchObject({ rewritten: { arguments: '{"safe":true}' } });
  });
  test("a hook that fails or takes too long blocks", async () => {
    const failing = gate({ hooks: [{ before: () => Promise.reject(new Error("broken")) }] });
    expect(await codeOf(failing.pass(checked(run("ls")), signal))).toBe("denied");
    const slow = gate({ hooks: [{ timeoutMs: 20, before: () => new Promise(() => undefined) }] });
    expect(await codeOf(slow.pass(checked(run("ls")), signal))).toBe("denied");
  });
  test("an after-hook replaces what the model is told", async () => {
    const one = gate({ hooks: [{ after: () => ({ content: "hidden" }) }] });
    const ended: Ended = {
      id: "1",
      name: "shell",
      tool: "shell",
      kind: "function",
      arguments: "{}",
      askedAt: 0,
      ok: true,
      content: [{ type: "text", text: "secret" }],
      endedAt: 1,
      durationMs: 1,
    };
    expect((await one.after(ended, signal)).content).toEqual([{ type: "text", text: "hidden" }]);
  });
});

test("every decision is recorded with who made it", async () => {
  const records: GateRecord[] = [];
  const one = gate({
    record: (entry) => void records.push(entry),
    rules: [{ command: "npm", decision: "deny", reason: "we use pnpm" }],
  });
  await one.pass(checked(run("ls")), signal);
  await one.pass(checked(run("npm test")), signal).catch(() => undefined);
  expect(records.map(({ outcome, ruling }) => [outcome, ruling.by, ruling.reason])).toEqual([
    ["permitted", "policy", "ls only looks"],
    ["refused", "rule", "we use pnpm"],
  ]);
});

test("what confines is looked at once, when the first command comes", async () => {
  const confinement = vi.fn(async () => ({ name: "none", available: false }));
  const one = gate({ confinement });
  await one.pass(checked({ read: ["README.md"] }), signal);
  expect(confinement).not.toHaveBeenCalled();
  expect(await codeOf(one.pass(checked(run("npm test")), signal))).toBe("needs_approval");
  await one.pass(checked(run("ls")), signal);
  expect(confinement).toHaveBeenCalledTimes(1);
});

describe("a yes is bound to what will run", () => {
  const settings = { approval: "unless-trusted", sandbox: "workspace-write" } as const;
  const script = (text: string) => writeFileSync(join(workspace.ws, "bound.sh"), text, { mode: 0o755 });
  const lines = ["./bound.sh", "bash bound.sh", "cd src && ../bound.sh", "env X=1 ./bound.sh", "bash -c './bound.sh'"];

  test.each(lines)("%s: a script swapped while the person reads does not run", async (line) => {
    script("echo one\n");
    const approver = {
      ask: async () => {
        script("echo swapped\n");
        return { answer: "once" } as const;
      },
    };
    expect(await codeOf(gate({ settings, approver }).pass(checked(run(line)), signal))).toBe("stale");
  });

  test.each(lines)("%s: a yes for the session ends with the script's content", async (line) => {
    script("echo one\n");
    const { approver, asked } = answering({ answer: "session" });
    const one = gate({ settings, approver });
    await one.pass(checked(run(line)), signal);
    await one.pass(checked(run(line)), signal);
    expect(asked).toHaveLength(1);
    script("echo two\n");
    await one.pass(checked(run(line)), signal);
    expect(asked).toHaveLength(2);
  });

  test("make and npm count with the file they run", async () => {
    writeFileSync(join(workspace.ws, "Makefile"), "x:\n\techo one\n");
    const approver = {
      ask: async () => {
        writeFileSync(join(workspace.ws, "Makefile"), "x:\n\techo two\n");
        return { answer: "once" } as const;
      },
    };
    expect(await codeOf(gate({ settings, approver }).pass(checked(run("make x")), signal))).toBe("stale");
    rmSync(join(workspace.ws, "Makefile"));
  });
});

test("a place that a rule allows can be written by a redirection without a question", () => {
  const rules: Rule[] = [{ path: `${workspace.out}/log.txt`, decision: "allow" }];
  const settings = { approval: "unless-trusted", sandbox: "workspace-write" } as const;
  expect(workspace.decide("echo x > {OUT}/log.txt", { settings }).decision).toBe("ask");
  expect(workspace.decide("echo x > {OUT}/log.txt", { settings, rules }).decision).toBe("allow");
  expect(workspace.decide("echo x > {OUT}/other.txt", { settings, rules }).decision).toBe("ask");
});

describe("a yes for the session", () => {
  const yes = () => answering({ answer: "session" });
  const strict = { approval: "unless-trusted", sandbox: "workspace-write" } as const;

  test("to a line that nobody can understand is for the folder it was asked in", async () => {
    const { asked, approver } = yes();
    const asking = gate({ approver, settings: strict });
    const inFolder = (cwd?: string): Access => ({ commands: [{ shell: 'eval "$X"', ...(cwd ? { cwd } : {}) }] });
    await permit(asking.pass(checked(inFolder(workspace.ws)), signal, {}));
    await permit(asking.pass(checked(inFolder()), signal, {}));
    expect(asked).toHaveLength(1);
    await permit(asking.pass(checked(inFolder(join(workspace.ws, "src"))), signal, {}));
    expect(asked).toHaveLength(2);
  });

  test("to a script in a folder that the line enters ends when the script changes, in any shell", async () => {
    const { asked, approver } = yes();
    const asking = gate({ approver, settings: strict });
    mkdirSync(join(workspace.ws, "sub"), { recursive: true });
    const script = join(workspace.ws, "sub", "build.ps1");
    writeFileSync(script, "one");
    const line: Access = { commands: [{ shell: "cd sub; ./build.ps1", cwd: workspace.ws, dialect: "powershell" }] };
    await permit(asking.pass(checked(line), signal, {}));
    await permit(asking.pass(checked(line), signal, {}));
    expect(asked).toHaveLength(1);
    writeFileSync(script, "two");
    await permit(asking.pass(checked(line), signal, {}));
    expect(asked).toHaveLength(2);
  });

  test.each<[string, Access, Access]>([
    ["a path is for that path", { write: ["/o/a"] }, { write: ["/o/b"] }],
    ["a host is for that host", { network: ["a.test"] }, { network: ["b.test"] }],
    ["a file read is no yes to change it", { read: ["/o/a"] }, { write: ["/o/a"] }],
    ["a command inside the sandbox is none outside", run("make"), { ...run("make"), escalation: {} }],
    [
      "a line for one shell is none for another",
      run("make"),
      { commands: [{ shell: "make", cwd: workspace.ws, dialect: "zsh" }] },
    ],
    ["a line is none to type it", run("make"), { commands: [{ shell: "make", cwd: workspace.ws, typed: ["bash"] }] }],
    [
      "a server's tool is for that tool",
      { servers: [{ server: "s", name: "a" }] },
      { servers: [{ server: "s", name: "b" }] },
    ],
    ["with other variables is another command", run("make"), run("A=1 make")],
    ["with another file to write is another command", run("make > a"), run("make > b")],
  ])("to %s", async (_name, first, second) => {
    const { asked, approver } = yes();
    const asking = gate({ approver, settings: strict });
    const call = (access: Access) => checked(access, { mutates: true });
    await permit(asking.pass(call(first), signal, {}));
    await permit(asking.pass(call(first), signal, {}));
    expect(asked).toHaveLength(1);
    await permit(asking.pass(call(second), signal, {}));
    expect(asked).toHaveLength(2);
  });

  test("to a tool that says nothing ends when its description or its input changes", async () => {
    const { asked, approver } = yes();
    const asking = gate({ approver, settings: strict });
    const call = checked({}, { mutates: true });
    const described = { ...call, tool: { ...call.tool, description: "another tool" } };
    const wider = { ...call, tool: { ...call.tool, input: { type: "object", properties: { all: {} } } } };
    for (const one of [call, call, described, described, wider]) await permit(asking.pass(one, signal, {}));
    expect(asked).toHaveLength(3);
  });
});

test("a decision shows what the rehearsal found, and is made without one where nobody rehearses", async () => {
  const { approver, asked } = answering({ answer: "no" });
  const asking = gate({ approver });
  const call = checked({ write: [join(workspace.out, "x")] }, { mutates: true });
  const shown = await asking.decide(call, async () => "-a\n+b\n");
  expect(shown).toMatchObject({ decision: "ask", request: { diff: "-a\n+b\n" } });
  const plain = await asking.decide(call);
  expect(plain.request).not.toHaveProperty("diff");
  expect(asked).toHaveLength(0);
});
