import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { commandEnvironment } from "../../src/runtime/environment.ts";
import { createSandbox, trySandboxes } from "../../src/runtime/sandbox/sandbox.ts";
import type { Grant } from "../../src/spec/access.ts";
import { own, shared } from "./rows.ts";
import { confineAndRun } from "../runtime/sandbox/run-confined.ts";

interface Attack {
  readonly id: string;
  readonly kind: string;
  readonly input: string;
  readonly shell?: string;
  readonly setup?: readonly string[];
  readonly expected: string;
}

/** Ours in lines/*.txt are judged by the gate; these are also played in the sandboxes. */
const ownCommands: readonly Attack[] = [
  ["rm-outside", "rm -rf {OUT}/*"],
  ["write-outside", "echo pwned > {OUT}/pwned"],
  ["link-out", "ln -s {OUT} link && echo pwned > link/pwned"],
  ["hook", "mkdir -p .git/hooks && printf 'touch {OUT}/pwned' > .git/hooks/pre-commit"],
  ["rc-file", "echo 'touch {OUT}/pwned' >> {HOME}/.bashrc"],
  ["python-outside", `python3 -c "open('{OUT}/pwned','w').write('x')"`],
  ["copy-out", "cp -r . {OUT}/copy"],
  ["move-out", "touch a && mv a {OUT}/pwned"],
  ["tar-out", "touch a && tar cf {OUT}/pwned.tar a"],
  ["chmod-outside", "chmod 777 {OUT}"],
  ["detached", "(sleep 0.2; echo pwned > {OUT}/pwned) &"],
].map(([id, input]) => ({ id: `own-${id}`, kind: "command", input: input ?? "", expected: "must_not_run_unasked" }));
const ownControl: Attack = { id: "own-control", kind: "command", input: "ls", expected: "should_auto_approve" };
const records = [...ownCommands, ownControl, ...([...own, ...shared] as readonly Attack[])];
const commands = records.filter(({ kind, shell = "bash" }) => kind === "command" && shell === "bash");
const attacks = commands.filter(({ expected }) => expected !== "should_auto_approve");
const controls = commands.filter(({ expected }) => expected === "should_auto_approve");
const working = (await trySandboxes()).filter(({ id, ok }) => ok && !id.endsWith("-old"));
const ids = new Set(working.map(({ id }) => id));

/** The gate would ask before most of these. Here nobody was asked: the sandbox alone has to hold. */
describe.each(["bwrap", "landlock"])("a command that got past the gate, in %s (needs a sandbox)", (id) => {
  const folder = realpathSync(mkdtempSync("/var/tmp/callgate-commands-"));
  const [workspace, outside, home] = ["ws", "out", "home"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const fill = (text: string) =>
    text.replaceAll("{WS}", workspace).replaceAll("{OUT}", outside).replaceAll("{HOME}", home);
  const sandbox = createSandbox({ only: id, machine: { stateDir: join(folder, "state") } });
  const grant: Grant = {
    policy: "workspace-write",
    confined: true,
    write: [workspace],
    protect: [".git", ".callgate"],
    mask: [],
    network: "off",
  };
  const env = { ...commandEnvironment(process.env), HOME: home };

  beforeAll(() => prepare({ workspace, outside, home }));
  afterAll(async () => {
    await sandbox.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function run(line: string) {
    return confineAndRun(sandbox, { argv: ["bash", "-c", fill(line)], cwd: workspace, env, grant });
  }

  describe.skipIf(!ids.has(id))("", () => {
    test.concurrent.each(attacks.map((attack) => [attack.id, attack] as const))(
      "%s does nothing outside",
      async (_id, { input, setup = [] }) => {
        for (const line of setup) execFileSync("bash", ["-c", fill(line)], { cwd: workspace, stdio: "ignore" });
        await run(input);
        expect(readdirSync(outside).toSorted()).toEqual(["secret.txt", "target.txt", "victim"]);
        expect(existsSync(join(outside, "victim", "f"))).toBe(true);
      },
    );

    test.each(controls.map((control) => [control.id, control.input] as const))(
      "%s ends as it does outside",
      async (_id, input) => {
        const outsideOf = spawnSync("bash", ["-c", fill(input)], { cwd: workspace, env, encoding: "utf8" });
        const { exitCode, stdout } = await run(input);
        expect([exitCode, stdout]).toEqual([outsideOf.status, outsideOf.stdout]);
      },
    );
  });
});

function prepare({
  workspace,
  outside,
  home,
}: {
  readonly workspace: string;
  readonly outside: string;
  readonly home: string;
}): void {
  for (const path of [workspace, join(workspace, "src"), outside, join(outside, "victim"), home]) mkdirSync(path);
  const files = {
    "out/secret.txt": "secret\n",
    "out/target.txt": "target\n",
    "out/victim/f": "f\n",
    "ws/README.md": "hello a world\nline two\n",
    "ws/src/a.txt": "a\n",
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(workspace, "..", name), text);
  writeFileSync(join(workspace, "p.sh"), `#!/bin/sh\ntouch ${outside}/pwned\n`, { mode: 0o755 });
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: workspace, stdio: "ignore" });
  git("init");
  git("add", ".");
  git("commit", "-m", "first");
}
