import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { mayMatch, toDeniedProgram } from "../../src/gate/command/prefix.ts";
import { compileRules } from "../../src/gate/rules.ts";
import { encodeLaunch } from "../../src/runtime/process/launcher-protocol.ts";
import { launcherPath } from "../../src/runtime/process/launcher-path.ts";
import { judgesStarts } from "../../src/runtime/sandbox/programs.ts";
import { createWall, hadEffect, works } from "./denied-programs.ts";

const launcher = launcherPath();
const judges = launcher !== undefined && judgesStarts(launcher);
const has = (program: string) => {
  try {
    execFileSync("sh", ["-c", `command -v ${program}`], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
};

/** Each starts `rm f`, or `git push`, in a way that no reading of the line could be sure of. */
const compiler = has("cc");
const python = (code: string) => `python3 -c '${code}'`;
const lines: readonly { readonly deny: string; readonly line: string; readonly needs?: string }[] = [
  { deny: "rm", line: "rm f" },
  { deny: "rm", line: "/bin/rm f" },
  { deny: "rm", line: "exec -a ls rm f" },
  { deny: "rm", line: "cp /bin/rm x; ./x f" },
  { deny: "rm", line: "cat /bin/rm > x; chmod +x x; ./x f" },
  { deny: "rm", line: "ln -s /bin/rm x; ./x f" },
  { deny: "rm", line: "ln /bin/rm x; ./x f" },
  { deny: "rm", line: "dd if=/usr/bin/rm of=x status=none; chmod 755 x; ./x f" },
  { deny: "rm", line: "printf '#!/bin/rm -f\\n' > s; chmod +x s; ./s f" },
  { deny: "rm", line: "printf '#! /usr/bin/env rm\\n' > s; chmod +x s; ./s f" },
  { deny: "rm", line: "printf '#!/bin/rm\\n' > a; printf \"#!$PWD/a\\n\" > b; chmod +x a b; ./b f" },
  { deny: "rm", line: "/lib64/ld-linux-x86-64.so.2 /bin/rm f; /lib/ld-linux-aarch64.so.1 /bin/rm f" },
  { deny: "rm", line: "cp /lib64/ld-linux-x86-64.so.2 l; ./l /bin/rm f" },
  { deny: "rm", line: "busybox rm f; busybox sh -c 'rm f'; busybox env rm f", needs: "busybox" },
  { deny: "rm", line: "cp $(command -v busybox) rm; ./rm f; cp $(command -v busybox) x; ./x rm f", needs: "busybox" },
  { deny: "rm", line: python('import os; os.execv("/proc/self/root/bin/rm", ["x", "f"])') },
  { deny: "rm", line: python('import os; os.execve(os.open("/bin/rm", os.O_RDONLY), ["x", "f"], {})') },
  { deny: "rm", line: python('import os; os.chdir("/bin"); os.execv("./rm", ["x", os.environ["WS"] + "/f"])') },
  {
    deny: "rm",
    line: python(
      'import os; d = open("/bin/rm","rb").read(); m = os.memfd_create("x"); os.write(m, d); os.execve(m, ["x", "f"], {})',
    ),
  },
  { deny: "rm", line: 'perl -e \'exec {"/bin/rm"} "ls", "f"\'', needs: "perl" },
  { deny: "rm", line: "xargs -a <(echo f) rm", needs: "xargs" },
  { deny: "rm", line: "find . -name f -exec rm {} +" },
  { deny: "rm", line: "setsid -w nice env -i /bin/rm f" },
  { deny: "rm", line: "bash <<< 'r\\m f'" },
  { deny: "rm", line: 'node -e \'require("child_process").spawnSync("r"+"m",["f"])\'' },
  { deny: "rm", line: "make -f <(printf 'x:\\n\\trm f\\n') x", needs: "make" },
  { deny: "git push", line: "git push origin main" },
  { deny: "git push", line: "git -C . -c a.b=c push origin main" },
  { deny: "git push", line: "g=git; $g pu''sh origin main" },
  { deny: "git push", line: "git -c alias.p='push origin main' p" },
  { deny: "git push", line: "git -c alias.p='!git push origin main' p" },
  { deny: "git push", line: "/usr/lib/git-core/git push origin main" },
  { deny: "git push", line: "/usr/lib/git-core/git-push origin main" },
  { deny: "git push", line: "cp $(command -v git) g; ./g push origin main" },
  { deny: "git push", line: "ln -s $(command -v git) ls; ./ls push origin main" },
  { deny: "git push", line: "cp $(command -v git) g; echo >> g; ./g push origin main" },
  { deny: "git push", line: "/lib64/ld-linux-x86-64.so.2 /usr/bin/git push origin main" },
  { deny: "git push", line: "cp $(command -v git) g; /lib64/ld-linux-x86-64.so.2 ./g push origin main" },
  {
    deny: "git push",
    line: python(
      'import os; d = open("/usr/bin/git","rb").read(); m = os.memfd_create("x"); os.write(m, d); os.execve(m, ["x", "push", "origin", "main"], os.environ)',
    ),
  },
  { deny: "git push --force", line: "git push -f origin main" },
  { deny: "git push --force", line: "git push origin main --forc" },
];

/** What must go on working beside the same rules. */
const allowed = [
  "git status --short && git log --oneline && git -c alias.s=status s",
  "touch x && mv x y && cp y z && ls y z && ln -s y w && cat w",
  "printf '#!/bin/sh\\necho \"$@\"\\n' > s && chmod +x s && ./s rm git push",
  "bash -c 'cd /; ls >/dev/null' && env true && find . -name README.md -exec cat {} + && echo rm | grep rm",
  ...(has("python3")
    ? [python('import subprocess; subprocess.check_call(["ls"]); subprocess.run("true | cat", shell=True, check=True)')]
    : []),
  'node -e \'require("child_process").execFileSync("true")\'',
  "bash -c 'exec /proc/self/exe --version'",
  "(exec -c /bin/true)",
  "nosuchprogram; test $? = 127",
  "touch n; ./n; test $? = 126",
];

describe.each([{ backend: "bwrap" }, { backend: "bwrap-bound-proc" }, { backend: "landlock" }])(
  "programs that a rule denies, under $backend (needs a sandbox and the launcher)",
  ({ backend }) => {
    const here = judges && works(backend);
    const wall = here ? createWall(backend, undefined) : undefined;
    afterAll(() => wall?.close());

    for (const { deny, line, needs } of lines)
      test.skipIf(wall === undefined || (needs !== undefined && !has(needs)))(`deny ${deny}: ${line}`, async () => {
        const { folder, result } = await wall!.run(line, [deny]);
        expect(hadEffect(deny, folder)).toBe(false);
        if (!(result instanceof Error)) expect(result.exitCode).not.toBe(null);
      });

    test.skipIf(wall === undefined).each(allowed)("still works: %s", async (line) => {
      const { result } = await wall!.run(line, ["rm", "git push"]);
      expect(result).toMatchObject({ exitCode: 0 });
    });

    test.skipIf(wall === undefined)("what was started and what was refused is told, with the rule", async () => {
      const { result } = await wall!.run("true; /bin/ls README.md; git status -s >/dev/null; git push origin", [
        "git push",
      ]);
      if (result instanceof Error) throw result;
      const list = result.programs?.list ?? [];
      expect(list).toContainEqual({ argv: ["/bin/ls", "README.md"] });
      expect(list).toContainEqual({ argv: ["git", "push", "origin"], refusedBy: "deny command git push" });
      expect(result.denied).toMatchObject({ what: "command", rule: "deny command git push" });
    });

    test.skipIf(wall === undefined)("the list is bounded, and says how many it leaves out", async () => {
      const { result } = await wall!.run(
        "for i in {1..2000}; do /bin/true $i aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done",
        ["rm"],
      );
      if (result instanceof Error) throw result;
      const { list, unlisted } = result.programs!;
      expect(list.length + unlisted).toBe(2001);
      expect(unlisted).toBeGreaterThan(0);
    });

    test.skipIf(wall === undefined || !compiler)(
      "words that another thread changes while they are judged",
      async () => {
        const { folder, result } = await wall!.run(race, ["git push"]);
        expect(hadEffect("git push", folder)).toBe(false);
        if (result instanceof Error) throw result;
      },
    );
  },
);

const folder = dirname(fileURLToPath(import.meta.url));
/** A thread that flips `status` to `push` and back while another executes git with it, a few hundred times. */
const race = `cc -O1 -pthread -o race -x c - <<'C' && ./race\n${readFileSync(join(folder, "race.c"), "utf8")}\nC\n`;

describe("without the launcher (needs bubblewrap)", () => {
  const wall = works("bwrap") ? createWall("bwrap", null) : undefined;
  afterAll(() => wall?.close());
  test.skipIf(wall === undefined).each(["rm f", "cp /bin/rm x; ./x f", python('import os; os.system("r" + "m f")')])(
    "the files of a denied program are hidden all the same: %s",
    async (line) => {
      const { folder: at } = await wall!.run(line, ["rm"]);
      expect(existsSync(join(at, "f"))).toBe(true);
    },
  );
});

test.skipIf(launcher === undefined)(
  "the launcher and the gate read a rule alike (needs the launcher)",
  { timeout: 60_000 },
  () => {
    const word = fc.constantFrom(
      ..."git push pull -f --force --forc --f -rf -r -Rx -xf --recursive --recur=1 -- -C a b --no x=1 -- -".split(" "),
    );
    const words = fc.array(word, { maxLength: 6 });
    const place = fc.constantFrom(
      ...(["push", "-f", "--force", "-rf", ["push", "pull"], ["--force", "-x"], "a", ["-r", "b"]] as const),
    );
    fc.assert(
      fc.property(fc.array(place, { maxLength: 3 }), words, (places, args) => {
        const [rule] = compileRules([{ command: ["git", ...places], decision: "deny" }]).denials;
        const starts = { rules: [toDeniedProgram(rule!, "/")], files: [] };
        const nothing = { liveBytes: 0, tailBytes: 0, graceMs: 0 };
        const request = encodeLaunch({ argv: ["git", ...args], cwd: "/", env: {}, starts }, nothing);
        const answer = execFileSync(launcher!, ["match", "0"], { input: request, encoding: "utf8" });
        expect(answer.trim() !== "").toBe(mayMatch(args, rule!));
      }),
      { numRuns: 400 },
    );
  },
);
