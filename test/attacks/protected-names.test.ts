/** What a command does to the repositories of the workspace, so that git runs something of its own outside later. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { createExec } from "../../src/runtime/exec.ts";
import { createProcesses } from "../../src/runtime/processes.ts";
import { createSandbox } from "../../src/runtime/sandbox/sandbox.ts";
import type { Denial, Grant } from "../../src/spec/access.ts";
import { works } from "./denied-programs.ts";

const protect = [".git", ".callgate", ".codex", ".claude", ".mcp.json", "callgate.toml"];
const evil = 'printf "#!/bin/sh\\ntouch $WS/pwned\\n" > evil.sh; chmod +x evil.sh';
const big =
  'printf "#!/bin/sh\\ntouch $WS/pwned\\n# " > evil.sh; head -c 70000 /dev/zero | tr "\\0" x >> evil.sh; chmod +x evil.sh';
const config = 'printf "[core]\\n\\tfsmonitor = touch $WS/pwned;:\\n" >>';

/** Each would have something run at the next `git commit` or `git status` in the workspace or in `sub`. */
const attacks: readonly string[] = [
  `${evil}; ln -s ../../evil.sh .git/hooks/pre-commit`,
  `${evil}; mv evil.sh .git/hooks/pre-commit`,
  `${evil}; ln evil.sh .git/hooks/pre-commit`,
  `${big}; mv evil.sh .git/hooks/pre-commit`,
  `${evil}; mv evil.sh .git/hooks/pre-commit; mkdir .callgate`,
  `${config} .git/config; mkdir .callgate .claude; touch .mcp.json`,
  "mv .git .x; mkdir .callgate",
  `mv .git .x; cp -r .x .git; ${config} .git/config`,
  `mv .git a; git init -q; mv a .git/b; ${config} .git/config`,
  `mv .git a; mkdir b; mv a b/c; git init -q; ${config} .git/config`,
  `rm -rf .git/hooks; mkdir h; ${evil}; mv evil.sh h/pre-commit; ln -s ../h .git/hooks`,
  `for i in $(seq 400); do echo > .git/hooks/a$i; done; ${evil}; mv evil.sh .git/hooks/pre-commit`,
  `mkdir -p .git/a/b/c/d/e; ${config} .git/a/b/c/d/e/config; printf "[include]\\n\\tpath = a/b/c/d/e/config\\n" >> .git/config`,
  `chmod 777 .git/config; ${config} .git/config; touch -d 2001-01-01 .git/config`,
  `${config} sub/.git/config`,
  `${evil}; mv evil.sh sub/.git/hooks/pre-commit`,
  `mv sub sub2; cp -r sub2 sub; ${config} sub/.git/config`,
  `mv sub/.git g; cp -r g sub/.git; ${config} sub/.git/config`,
  `rm -rf sub; git init -q sub; ${config} sub/.git/config`,
  `git init -q new; ${config} new/.git/config; cp new/.git/config sub/.git/config`,
];

describe.each(["bwrap", "landlock"])("a repository's hooks and settings under %s (needs a sandbox)", (backend) => {
  const here = works(backend);
  const processes = createProcesses({});
  const sandbox = here ? createSandbox({ only: backend }) : undefined;
  const folders: string[] = [];
  afterAll(async () => {
    await processes.close();
    await sandbox?.close();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  function git(cwd: string, ...words: string[]): void {
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t", ...words], { cwd, stdio: "ignore" });
  }

  function workspace(): string {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "callgate-protected-")));
    folders.push(folder);
    for (const place of [folder, join(folder, "sub")]) {
      mkdirSync(place, { recursive: true });
      git(place, "init", "-q");
      writeFileSync(join(place, "a"), "a");
      git(place, "add", "a");
      git(place, "commit", "-qm", "one");
    }
    return folder;
  }

  async function run(folder: string, line: string): Promise<Denial | undefined> {
    const grant: Grant = {
      policy: "workspace-write",
      confined: true,
      write: [folder],
      protect,
      mask: [],
      network: "off",
    };
    const env = { PATH: process.env["PATH"] ?? "", HOME: folder, WS: folder };
    const signal = new AbortController().signal;
    const exec = createExec({ processes, sandbox: sandbox!, grant, cwd: folder, env, signal, shell: "/bin/bash" });
    return (await exec.run({ shell: line, login: false, timeoutMs: 30_000 })).denied;
  }

  test.skipIf(!here).each(attacks)("%s", async (line) => {
    const folder = workspace();
    const identity = statSync(join(folder, ".git")).ino;
    await run(folder, line);
    for (const place of [folder, join(folder, "sub")].filter((at) => existsSync(at))) {
      if (!existsSync(join(place, ".git"))) continue;
      git(place, "status");
      git(place, "commit", "--allow-empty", "-qm", "two");
    }
    if (existsSync(join(folder, "new", ".git"))) git(join(folder, "new"), "status");
    expect(existsSync(join(folder, "pwned"))).toBe(false);
    expect(statSync(join(folder, ".git")).ino).toBe(identity);
  });

  /** A bare repository is found by git from inside; `core.bare` is no wall, because the settings can take it back. */
  const bare =
    "[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = $WS\\n\\tfsmonitor = touch $WS/pwned\\n";
  test
    .skipIf(!here)
    .each([
      `printf "${bare}" > b.git/config`,
      `printf "${bare}" > c; mv c b.git/config`,
      `mv b.git x; cp -r x b.git; printf "${bare}" > b.git/config`,
      `mkdir c; cp -r b.git/HEAD b.git/objects b.git/refs c; printf "${bare}" > c/config; echo ../c > b.git/commondir`,
      `mkdir -p n/objects n/refs; cp .git/HEAD n; printf "${bare}" > n/config`,
      `git init -q --bare n; printf "${bare}" > n/config`,
    ])("in a bare repository: %s", async (line) => {
    const folder = workspace();
    git(folder, "init", "-q", "--bare", "b.git");
    await run(folder, line);
    for (const place of ["b.git", "c", "n"].map((name) => join(folder, name)).filter((at) => existsSync(at)))
      try {
        git(place, "status");
      } catch {} // a repository that nothing can be read from runs nothing
    expect(existsSync(join(folder, "pwned"))).toBe(false);
  });

  test.skipIf(!here)("and a bare repository can be pushed to", async () => {
    const folder = workspace();
    git(folder, "init", "-q", "--bare", "b.git");
    expect(await run(folder, "git push -q ./b.git HEAD:refs/heads/main")).toBeUndefined();
    expect(existsSync(join(folder, "b.git", "refs", "heads", "main"))).toBe(true);
  });

  test.skipIf(!here)("all of several refusals are told", async () => {
    const folder = workspace();
    const denied = await run(folder, "mkdir .callgate .claude; git init -q new");
    const all = [denied!, ...(denied?.more ?? [])].map(({ target }) => target);
    expect(all.toSorted()).toEqual([".callgate", ".claude", "new/.git"].map((name) => join(folder, name)));
  });

  test.skipIf(!here)("a command that leaves them alone changes nothing and is told nothing", async () => {
    const folder = workspace();
    expect(await run(folder, "git status && (cd sub && git log) && ls .git/hooks && touch b sub/c")).toBeUndefined();
    git(folder, "status");
  });
});

describe.each(["bwrap", "landlock"])("set-id bits under %s (needs a sandbox)", (backend) => {
  test.skipIf(!works(backend))("no file that runs as its owner is left behind", async () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "callgate-setid-")));
    const sandbox = createSandbox({ only: backend });
    const processes = createProcesses({});
    const grant: Grant = {
      policy: "workspace-write",
      confined: true,
      write: [folder],
      protect: [],
      mask: [],
      network: "off",
    };
    const env = { PATH: process.env["PATH"] ?? "", HOME: folder };
    const exec = createExec({ processes, sandbox, grant, cwd: folder, env, signal: new AbortController().signal });
    const open = 'import os; os.open("c", os.O_CREAT | os.O_WRONLY, 0o4755)';
    await exec.run({
      shell: `cp /bin/true a; chmod 4755 a; cp /bin/true b; chmod g+s b; python3 -c '${open}'; touch d; chmod 755 d`,
      login: false,
    });
    for (const name of ["a", "b", "c", "d"].filter((one) => existsSync(join(folder, one))))
      expect(statSync(join(folder, name)).mode & 0o6000).toBe(0);
    expect(statSync(join(folder, "d")).mode & 0o777).toBe(0o755);
    await processes.close();
    await sandbox.close();
    rmSync(folder, { recursive: true, force: true });
  });
});
