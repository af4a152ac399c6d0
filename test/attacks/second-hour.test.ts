/**
 * The second hour of attack, by somebody who had not written the code (SECURITY.md counts it). Lines that must not run
 * without a question are in second-hour-lines.txt; what is no line is here.
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { foldName } from "../../src/base/names.ts";
import { createRedactor } from "../../src/base/redact.ts";
import { runLaterOptions } from "../../src/cli/policy/run-later.ts";
import { callHash } from "../../src/gate/agree.ts";
import { toBaseGrant } from "../../src/gate/grant.ts";
import { createPolicy } from "../../src/gate/options.ts";
import { decideAccess } from "../../src/gate/policy.ts";
import { createTrust } from "../../src/gate/trust.ts";
import { createSecrets } from "../../src/gateway/secrets.ts";
import { createStateStore, stateOf } from "../../src/gateway/state.ts";
import { defineTool } from "../../src/index.ts";
import { createSandbox } from "../../src/runtime/sandbox/sandbox.ts";
import { coerce } from "../../src/schema/coerce.ts";
import type { Checked } from "../../src/spec/call.ts";
import { createWorkspace } from "../gate/workspace.ts";
import { confineAndRun } from "../runtime/sandbox/run-confined.ts";
import { createWall, hadEffect, works } from "./denied-programs.ts";

const workspace = createWorkspace();
const { ws, home } = workspace;
afterAll(() => workspace.remove());

/** Repositories whose settings run a program when git only looks, each hidden in its own way. */
function makeScene(): void {
  const file = (path: string, text: string) => writeFileSync(join(ws, path), text);
  for (const [path, text] of [
    ["a.txt", "a\n"],
    ["a.json", "{}\n"],
    [".env", "KEY=s3cret\n"],
    ["digit0", "plain\n"],
  ] as const)
    file(path, text);
  symlinkSync("../home/.ssh/id_rsa", join(ws, "digit1"));
  for (const folder of ["readmitted", "folder-a", "folder-b"]) mkdirSync(join(ws, folder));
  for (const folder of ["readmitted", "folder-a", "folder-b"]) file(`${folder}/.env`, `KEY=${folder}\n`);
  file("readmitted/.gitignore", "!.en?\n");
  workspace.run(`
    make() { git init -q -b main "$1"; echo y > "$1/y"; git -C "$1" add y; git -C "$1" -c user.name=a -c user.email=a@b commit -qm y; }
    for name in comment-continued value-continued head-is-link inner split-index worktree-like blank-name plain-monitor includes attributes
    do make $name; done
    git init -q --bare bare
    for name in head-is-link inner plain-monitor; do git -C $name config core.fsmonitor "touch {OUT}/pwned; :"; done
    mkdir inner/below && ln -s inner/below link-in
    rm head-is-link/.git/HEAD && ln -s refs/heads/other head-is-link/.git/HEAD
    git -C includes config include.path ../settings
    git -C attributes config diff.x.textconv "touch {OUT}/pwned; :"
    make split-index/sub && git -C split-index add sub && git -C split-index update-index --split-index
    mv worktree-like/.git worktree-like/common && printf ../common > worktree-like/commondir && cp worktree-like/common/HEAD worktree-like/HEAD
    mv blank-name/.git "blank-name/real " && printf 'gitdir: real \\n' > blank-name/.git && cp -r "blank-name/real " blank-name/real
    git -C "blank-name/real " config core.fsmonitor "touch {OUT}/pwned; :"`);
  const monitor = `fsmonitor = "touch ${workspace.out}/pwned; :"`;
  const add = (name: string, text: string) => writeFileSync(join(ws, name, ".git/config"), text, { flag: "a" });
  add("comment-continued", `[core]\n# a note \\\n\t${monitor}\n`);
  add("value-continued", `[core]\n\twhitespace = trailing-space\\\\\n\t${monitor}\n`);
}

makeScene();

describe("no line of the list runs without a question", () => {
  const lines = readFileSync(new URL("second-hour-lines.txt", import.meta.url), "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.replace(/^! /, "").replaceAll("⏎", "\n"));
  test.each(lines)("%s", (line) => expect(workspace.decide(line).decision).not.toBe("allow"));

  test("and what only looks still does not ask", () => {
    const looking = ["jq --arg a b . a.json", "awk '{print $1,\n$2}' a.txt", "grep -d skip a .", "diff a.txt a.json"];
    const more = ["git status", "git log --format=%H", "rg a src", "cat a.txt; echo $?", "cd src && git status"];
    for (const line of [...looking, ...more])
      expect(`${workspace.decide(line).decision} ${line}`).toBe(`allow ${line}`);
  });
});

describe("a denied program by the name of a variable whose value is known", () => {
  const lines = [
    "export HOME=rm; $HOME f",
    "for HOME in rm; do $HOME f; done",
    "select HOME in rm; do $HOME f; done",
    "declare PWD=rm; $PWD f",
    "read HOME <<< rm; $HOME f",
    "printf -v HOME rm; $HOME f",
    'export "H""OME=rm"; $HOME f',
    "HOME=rm bash -c '$HOME f'",
    "env HOME=rm sh -c '$HOME f'",
    "git send-pack origin main; git http-push x",
  ];
  test.each(lines)("%s", (line) => {
    const rules = ["rm", "git push"].map((command) => ({ command, decision: "deny" as const }));
    const settings = { approval: "on-request", sandbox: "workspace-write" } as const;
    expect(workspace.decide(line, { settings, rules }).decision).toBe("deny");
  });
});

test("options behind -- belong to what is started", () => {
  const settings = { approval: "on-request", sandbox: "workspace-write" } as const;
  const line = "start-stop-daemon --start --exec rm -- -rf src";
  expect(workspace.decide(line, { settings })).toMatchObject({ decision: "ask", risk: "dangerous" });
});

describe("a pipe in the place of a file keeps nobody waiting", () => {
  test.each(["config", "commondir", "index"])(".git/%s", (name) => {
    workspace.run(`rm -rf piped && git init -q piped && rm -f piped/.git/${name} && mkfifo piped/.git/${name}`);
    expect(workspace.decide("git -C piped status").decision).toBe(name === "index" ? "allow" : "ask");
  });

  test(".gitignore", () => {
    workspace.run("mkdir -p fifo && mkfifo fifo/.gitignore");
    expect(workspace.decide("rg a fifo").decision).toBe("allow");
  });
});

describe("what the settings have us run is protected", () => {
  const scripts = { hook: "hooks/check.sh", server: "server.mjs", tools: "tools/a.mjs" };
  for (const path of Object.values(scripts)) {
    mkdirSync(join(ws, path, ".."), { recursive: true });
    writeFileSync(join(ws, path), "", { mode: 0o755 });
  }
  const config = {
    hooks: { before: [{ command: ["sh", scripts.hook] }] },
    mcpServers: { own: { command: "node", args: [scripts.server, "src"] } },
    tools_dir: ["tools"],
  };
  const policy = workspace.policy({
    settings: { approval: "on-request", sandbox: "workspace-write" },
    ...runLaterOptions(config, ws, { HOME: home }),
  });
  const write = (path: string) =>
    decideAccess({ tool: "apply_patch", access: { write: [path] }, mutates: true }, policy).decision;

  test("a file tool asks before it writes one, and before nothing else", () => {
    expect(Object.values(scripts).map(write)).toEqual(["ask", "ask", "ask"]);
    expect([write("src/a.txt"), write("other.mjs")]).toEqual(["allow", "allow"]);
  });

  test.skipIf(!works("bwrap") && !works("landlock"))("a confined command cannot (needs a sandbox)", async () => {
    const grant = { ...toBaseGrant(policy), confined: true };
    const sandbox = createSandbox();
    const line =
      "mv hooks away; mkdir -p hooks tools; for f in hooks/check.sh server.mjs tools/b.mjs; do echo evil > $f; done";
    const env = { PATH: process.env["PATH"] ?? "", HOME: home };
    await confineAndRun(sandbox, { argv: ["bash", "-c", line], cwd: ws, env, grant }, 20_000);
    await sandbox.close();
    expect([scripts.hook, scripts.server].map((path) => readFileSync(join(ws, path), "utf8"))).toEqual(["", ""]);
    expect(() => readFileSync(join(ws, "tools/b.mjs"))).toThrow("ENOENT");
  });
});

describe("trust is in the content, behind links too", () => {
  const project = join(ws, "project");
  mkdirSync(join(project, ".callgate/tools"), { recursive: true });
  mkdirSync(join(project, "lib"));
  writeFileSync(join(project, "lib/tool.mjs"), "good");
  const trust = createTrust({ stateDir: join(home, "state") });
  const isTrusted = () => trust.status(project).trusted;
  const agree = () => trust.grant(project, trust.status(project).hash);

  test("a link's target that changes asks again", () => {
    symlinkSync("../../lib/tool.mjs", join(project, ".callgate/tools/tool.mjs"));
    agree();
    expect(isTrusted()).toBe(true);
    writeFileSync(join(project, "lib/tool.mjs"), "evil");
    expect(isTrusted()).toBe(false);
  });

  test("so does a file in a folder that is a link", () => {
    symlinkSync("../lib", join(project, ".callgate/skills"));
    agree();
    expect(isTrusted()).toBe(true);
    writeFileSync(join(project, "lib/more.mjs"), "evil");
    expect(isTrusted()).toBe(false);
  });

  test("a link out of the project, and one to itself, are never trusted", () => {
    symlinkSync(workspace.out, join(project, ".callgate/out"));
    agree();
    expect(isTrusted()).toBe(false);
    rmSync(join(project, ".callgate/out"));
    agree();
    expect(isTrusted()).toBe(true);
    symlinkSync(".", join(project, ".callgate/self"));
    expect(() => trust.status(project)).toThrow(/cannot be trusted|ELOOP/);
    rmSync(join(project, ".callgate/self"));
  });
});

describe("a yes is bound to every script that runs", () => {
  const tool = defineTool({
    name: "shell_command",
    description: "",
    input: { type: "object" },
    mutates: true,
    run: () => "",
  });
  const policy = createPolicy({
    settings: { approval: "on-request", sandbox: "workspace-write" },
    workspace: ws,
    confinement: { name: "test", available: true },
    home,
  });
  const hash = (shell: string) => {
    // Only what the hash looks at is there.
    const checked = {
      tool,
      input: { command: shell },
      access: { commands: [{ shell, cwd: ws }] },
    } as unknown as Checked;
    return callHash(checked, toBaseGrant(policy), policy);
  };
  const many = Array.from({ length: 500 }, (_, at) => `w${at}`).join(" ");
  test.each([
    ["behind hundreds of words", `true ${many}; ./deep/er/build.sh`],
    ["behind more folders than are searched", "ls d1 d2 d3 d4 d5 d6; cd d7 && ./build.sh"],
    ["in a folder that was named before its own", "ls er; cd deep && cd er && ./build.sh"],
    ["by a pattern", "sh ./deep/er/bu*.sh"],
  ])("%s", (_how, line) => {
    for (const folder of ["d1", "d2", "d3", "d4", "d5", "d6", "d7", "deep/er"])
      mkdirSync(join(ws, folder), { recursive: true });
    const write = (text: string) =>
      ["d7", "deep/er"].forEach((folder) => writeFileSync(join(ws, folder, "build.sh"), text, { mode: 0o755 }));
    write("good");
    const before = hash(line);
    expect(hash(line)).toBe(before);
    write("evil");
    expect(hash(line)).not.toBe(before);
  });
});

describe("texts that make a pattern try everything", () => {
  const long = (piece: string) => `${piece.repeat(200_000)}!`;
  // Each took minutes; what is left is far below the time that a test has.
  test("a number, nothing, a name, a key", () => {
    const schema = { type: "object", properties: { n: { type: "number" }, o: { type: ["null", "integer"] } } };
    coerce({ n: long("0"), o: long("\n") }, schema, []);
    expect(foldName(long(" "))).toHaveLength(200_001);
    expect(createRedactor()(`Bearer${long(" ")}`)).toContain("Bearer");
  });
});

describe("the gateway's clients", () => {
  test("one cannot name what another had kept", () => {
    const store = createStateStore();
    stateOf(store, "anna").put("response resp_1", { secret: true });
    expect(stateOf(store, "berta").get("response resp_1")).toBeUndefined();
    expect(stateOf(store, "berta").delete("response resp_1")).toBe(false);
    expect(stateOf(store, "anna").get("response resp_1")).toEqual({ secret: true });
  });

  test("a secret of several lines is hidden in JSON as well", () => {
    const secret = '-----BEGIN KEY-----\nabc"def\n-----END KEY-----';
    const secrets = createSecrets([secret], "key")!;
    const shown = JSON.stringify({ key: secret });
    const call = { type: "call", id: "1", name: "t", kind: "function", arguments: shown, complete: true } as const;
    expect(secrets.holds(shown, { model: "m", input: [], tools: [] })).toBe(true);
    // In the body of a request the arguments stand as a text, escaped once more.
    expect(secrets.holds(JSON.stringify({ shown }), { model: "m", input: [call], tools: [] })).toBe(true);
    const { input } = secrets.hide({ model: "m", input: [call], tools: [] });
    expect(JSON.stringify(input)).not.toContain("BEGIN");
    const hidden = input[0] as typeof call;
    const back = secrets.reveal({ type: "item.done", index: 0, item: hidden });
    expect(back).toMatchObject({ item: { arguments: shown } });
  });
});

const has = (program: string) => {
  try {
    execFileSync("sh", ["-c", `command -v ${program}`], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
};

describe.each(["bwrap", "landlock"])(
  "programs that run another one without the kernel's knowing, under %s (needs a sandbox)",
  (backend) => {
    const wall = works(backend) ? createWall(backend, undefined) : undefined;
    afterAll(() => wall?.close());
    const loader = "/lib64/ld-linux-x86-64.so.2";
    const lines = [
      { line: `cp ${loader} l; ./l /usr/bin/git push origin main`, needs: loader },
      { line: "cp $(command -v git) g; chmod 111 g; ./g push origin main" },
      { line: "qemu-x86_64-static /usr/bin/git push origin main", needs: "qemu-x86_64-static" },
      { line: "git send-pack remote.git main; /usr/lib/git-core/git-send-pack remote.git main" },
    ];
    for (const { line, needs = "git" } of lines)
      test.skipIf(wall === undefined || !has(needs))(`${line} (needs ${needs})`, async () => {
        const { folder } = await wall!.run(line, ["git push"]);
        expect(hadEffect("git push", folder)).toBe(false);
      });

    test.skipIf(wall === undefined)("and a denied program's file may still be named", async () => {
      const { result } = await wall!.run("ls -l /bin/rm && ls -l $(command -v git) && ls f", ["rm", "git push"]);
      expect(result).toMatchObject({ exitCode: 0 });
    });
  },
);

test.skipIf(!works("landlock"))("limits and priority of a process outside are its own (needs Landlock)", async () => {
  const outside = spawn("sleep", ["60"], { stdio: "ignore" });
  try {
    const grant = { ...toBaseGrant(workspace.policy()), confined: true };
    const sandbox = createSandbox({ only: "landlock" });
    const line = `prlimit --pid ${outside.pid} --nofile=64:64; renice 19 ${outside.pid}; ulimit -n 99 && nice true`;
    const env = { PATH: process.env["PATH"] ?? "", HOME: home };
    const end = await confineAndRun(sandbox, { argv: ["bash", "-c", line], cwd: ws, env, grant }, 20_000);
    await sandbox.close();
    expect(end.exitCode).toBe(0);
    expect(readFileSync(`/proc/${outside.pid}/limits`, "utf8")).not.toMatch(/open files +64 /);
  } finally {
    outside.kill();
  }
});
