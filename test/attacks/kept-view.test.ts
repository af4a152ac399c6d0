/**
 * The sandbox of the last command is used again only while the disk is as its plan saw it. Here the disk is changed
 * between two commands, and the second one must be confined as if it were the first.
 */
import { execFileSync } from "node:child_process";
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { createExec } from "../../src/runtime/exec.ts";
import { createProcesses } from "../../src/runtime/processes.ts";
import { createSandbox } from "../../src/runtime/sandbox/sandbox.ts";
import type { Grant } from "../../src/spec/access.ts";
import { works } from "./denied-programs.ts";

const base = realpathSync(mkdtempSync(join(homedir(), ".callgate-kept-view-")));
afterAll(() => rmSync(base, { recursive: true, force: true }));

/** More than eight in one folder, so that the folder is listed, and one deeper down, which is looked at by itself. */
const protect = ".git .a .b .c .d .e .f .g .h .callgate .config/fish".split(" ");

interface Scene {
  /** Everything that the scene may change; the workspace is `ws` in it. */
  readonly at: (name: string) => string;
  readonly grant: Grant;
}

function scene(name: string): Scene {
  const folder = join(base, name);
  const at = (path: string) => join(folder, path);
  for (const path of ["ws/sub", "secret", "other"]) mkdirSync(at(path), { recursive: true });
  writeFileSync(at("secret/key"), "KEY\n");
  writeFileSync(at("secret.txt"), "KEY\n");
  symlinkSync(at("ws"), at("link"));
  const write = [at("ws")];
  const mask = [at("secret"), at("secret.txt")];
  return { at, grant: { policy: "workspace-write", confined: true, write, protect, mask, network: "off" } };
}

function open() {
  const processes = createProcesses({});
  const sandbox = createSandbox({ only: "bwrap" });
  const signal = new AbortController().signal;
  const env = { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: homedir() };
  return {
    async run(line: string, grant: Grant, cwd: string) {
      const exec = createExec({ processes, sandbox, grant, cwd, env, signal, shell: "/bin/bash" });
      const { exitCode, output, denied } = await exec.run({ shell: line, login: false, timeoutMs: 20_000 });
      return { exitCode, output: output.head, denied: denied?.target };
    },
    async close() {
      await processes.close();
      await sandbox.close();
    },
  };
}

interface Attack {
  readonly what: string;
  /** Before the first command. */
  readonly given?: (scene: Scene) => void;
  /** Between the two. */
  readonly change: (scene: Scene) => void;
  readonly line: string;
  readonly cwd?: string;
  readonly grant?: (scene: Scene) => Partial<Grant>;
  /** What the second command prints, or the file that it must not have changed. */
  readonly prints?: string;
  readonly unchanged?: string;
}

const repository = (folder: string) => {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "config"), "mine\n");
};
const spoil = (file: string) => `echo evil >> ${file}; true`;

const attacks: readonly Attack[] = [
  {
    what: "a protected folder appears",
    change: ({ at }) => repository(at("ws/.git")),
    line: spoil(".git/config"),
    unchanged: "ws/.git/config",
  },
  {
    what: "it appears and the folder's times are put back",
    change({ at }) {
      repository(at("ws/.git"));
      utimesSync(at("ws"), 1, 1);
    },
    given: ({ at }) => utimesSync(at("ws"), 1, 1),
    line: spoil(".git/config"),
    unchanged: "ws/.git/config",
  },
  {
    what: "one takes the place of another name, so that there are as many names as before",
    given: ({ at }) => writeFileSync(at("ws/harmless"), ""),
    change({ at }) {
      rmSync(at("ws/harmless"));
      repository(at("ws/.git"));
    },
    line: spoil(".git/config"),
    unchanged: "ws/.git/config",
  },
  {
    what: "a protected name that lies deeper appears",
    change: ({ at }) => repository(at("ws/.config/fish")),
    line: spoil(".config/fish/config"),
    unchanged: "ws/.config/fish/config",
  },
  {
    what: "a protected folder is replaced by another of the same name",
    given: ({ at }) => repository(at("ws/.git")),
    change({ at }) {
      renameSync(at("ws/.git"), at("other/old"));
      repository(at("ws/.git"));
    },
    line: spoil(".git/config"),
    unchanged: "ws/.git/config",
  },
  {
    what: "a protected folder becomes a link to one that was open",
    given({ at }) {
      repository(at("ws/.git"));
      repository(at("ws/sub/real"));
    },
    change({ at }) {
      rmSync(at("ws/.git"), { recursive: true });
      symlinkSync("sub/real", at("ws/.git"));
    },
    line: spoil("sub/real/config"),
    unchanged: "ws/sub/real/config",
  },
  {
    what: "a protected link leads elsewhere",
    given({ at }) {
      repository(at("ws/sub/one"));
      repository(at("ws/sub/two"));
      symlinkSync("sub/one", at("ws/.git"));
    },
    change({ at }) {
      rmSync(at("ws/.git"));
      symlinkSync("sub/two", at("ws/.git"));
    },
    line: spoil("sub/two/config"),
    unchanged: "ws/sub/two/config",
  },
  {
    what: "a .git file comes to name another folder, in the same file",
    given({ at }) {
      repository(at("ws/sub/one"));
      repository(at("ws/sub/two"));
      writeFileSync(at("ws/.git"), "gitdir: sub/one\n");
    },
    change: ({ at }) => writeFileSync(at("ws/.git"), "gitdir: sub/two\n"),
    line: spoil("sub/two/config"),
    unchanged: "ws/sub/two/config",
  },
  {
    what: "a repository appears further down",
    change: ({ at }) => repository(at("ws/sub/deep/.git")),
    line: spoil("sub/deep/.git/config"),
    unchanged: "ws/sub/deep/.git/config",
  },
  {
    what: "a repository further down becomes another folder",
    given: ({ at }) => repository(at("ws/sub/deep/.git")),
    change({ at }) {
      renameSync(at("ws/sub/deep"), at("ws/sub/moved"));
      repository(at("ws/sub/deep/.git"));
    },
    line: spoil("sub/deep/.git/config"),
    unchanged: "ws/sub/deep/.git/config",
  },
  {
    what: "a hidden file is replaced",
    change({ at }) {
      writeFileSync(at("secret.new"), "KEY\n");
      renameSync(at("secret.new"), at("secret.txt"));
    },
    line: "cat ../secret.txt 2>/dev/null; true",
    prints: "",
  },
  {
    what: "a hidden file becomes a folder",
    change({ at }) {
      rmSync(at("secret.txt"));
      mkdirSync(at("secret.txt"));
      writeFileSync(at("secret.txt/key"), "KEY\n");
    },
    line: "cat ../secret.txt/key 2>/dev/null; true",
    prints: "",
  },
  {
    what: "a hidden folder is replaced",
    change({ at }) {
      renameSync(at("secret"), at("other/secret"));
      mkdirSync(at("secret"));
      writeFileSync(at("secret/key"), "KEY\n");
    },
    line: "cat ../secret/key 2>/dev/null; true",
    prints: "",
  },
  {
    what: "the workspace is replaced",
    change({ at }) {
      renameSync(at("ws"), at("other/ws"));
      mkdirSync(at("ws"));
      writeFileSync(at("other/ws/file"), "mine\n");
    },
    line: "echo evil > file; true",
    unchanged: "other/ws/file",
  },
  {
    what: "the granted folder is a link that comes to lead elsewhere",
    grant: ({ at }) => ({ write: [at("link")] }),
    given: ({ at }) => writeFileSync(at("ws/file"), "mine\n"),
    change({ at }) {
      rmSync(at("link"));
      symlinkSync(at("other"), at("link"));
    },
    line: "echo evil > file; true",
    unchanged: "ws/file",
  },
  {
    what: "the folder that the command starts in becomes a link",
    cwd: "ws/sub",
    given: ({ at }) => writeFileSync(at("other/file"), "mine\n"),
    change({ at }) {
      rmSync(at("ws/sub"), { recursive: true });
      symlinkSync(at("other"), at("ws/sub"));
    },
    line: "echo evil > file; true",
    unchanged: "other/file",
  },
  {
    what: "a protected file gets a second name",
    given: ({ at }) => writeFileSync(at("ws/.callgate"), "mine\n"),
    change: ({ at }) => linkSync(at("ws/.callgate"), at("other/name")),
    line: spoil(".callgate"),
    unchanged: "ws/.callgate",
  },
];

describe.skipIf(!works("bwrap"))("a view of the disk that was kept (needs bubblewrap)", () => {
  test.each(attacks)("is not used when $what", async ({ what, given, change, line, cwd = "ws", ...attack }) => {
    const name = what.replaceAll(/\W+/g, "-");
    const places = { used: scene(`${name}-used`), fresh: scene(`${name}-fresh`) };
    const told: Record<string, unknown> = {};
    for (const [kind, place] of Object.entries(places)) {
      const { run, close } = open();
      const grant = { ...place.grant, ...attack.grant?.(place) };
      given?.(place);
      if (kind === "used") for (let count = 0; count < 3; count++) await run("true", grant, place.at(cwd));
      change(place);
      const before = attack.unchanged === undefined ? undefined : readFileSync(place.at(attack.unchanged), "utf8");
      const end = await run(line, grant, place.at(cwd));
      if (attack.prints !== undefined) expect(end.output).toBe(attack.prints);
      if (attack.unchanged !== undefined) expect(readFileSync(place.at(attack.unchanged), "utf8")).toBe(before);
      told[kind] = JSON.parse(JSON.stringify(end).replaceAll(place.at(""), "/"));
      await close();
    }
    // Whatever else can be seen of it is what a sandbox that was built for it alone shows.
    expect(told["used"]).toEqual(told["fresh"]);
  });

  test("is not used for a call that was granted less, and neither is the other way round", async () => {
    const { run, close } = open();
    const { at, grant } = scene("grants");
    const cwd = at("ws");
    writeFileSync(at("ws/file"), "mine\n");
    writeFileSync(at("open.txt"), "KEY\n");
    const narrower: readonly (readonly [Partial<Grant>, string])[] = [
      [{ write: [at("ws/sub")] }, "(echo evil > file) 2>/dev/null; cat file"],
      [{ policy: "read-only", write: [] }, "(echo evil > file) 2>/dev/null; cat file"],
      [{ protect: [...protect, "file"] }, "(echo evil > file) 2>/dev/null; cat file"],
      [{ mask: [...grant.mask, at("open.txt")] }, "cat ../open.txt 2>/dev/null; cat file"],
    ];
    for (const [less, line] of narrower)
      for (let round = 0; round < 2; round++) {
        expect(await run("cat file ../open.txt", grant, cwd)).toMatchObject({ output: "mine\nKEY\n" });
        expect(await run(line, { ...grant, ...less }, cwd)).toMatchObject({ output: "mine\n" });
      }
    await close();
  });

  test("what a command makes under a protected name is moved away after the second command as after the first", async () => {
    const { run, close } = open();
    const { at, grant } = scene("made");
    for (let round = 0; round < 3; round++) {
      expect(await run("mkdir .callgate .git; true", grant, at("ws"))).toMatchObject({ exitCode: 0 });
      expect(execFileSync("ls", ["-A", at("ws")], { encoding: "utf8" })).toBe("sub\n");
      expect(await run("ls -A", grant, at("ws"))).toMatchObject({ output: "sub\n", denied: undefined });
    }
    await close();
  });
});
