import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { canHold, createHeldWorkspace, snapshot } from "./held.ts";

const has = (program: string) => spawnSync("sh", ["-c", `${program} --version`]).status === 0;
const tsc = fileURLToPath(new URL("../../../node_modules/typescript/bin/tsc", import.meta.url));
const git = "git -c user.name=n -c user.email=e@e -c gc.auto=0 -c init.defaultBranch=main";
const dated = "export GIT_AUTHOR_DATE=2020-01-01T00:00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00:00Z HOME=/nowhere;";
const repository = `${git} init -q .; echo one > a; mkdir d; echo two > d/b; ${git} add .; ${git} commit -qm first`;

/** `leave`: what differs between two runs of the same command, held or not. */
const rows: readonly { name: string; needs: string; before?: string; line: string; leave?: RegExp }[] = [
  {
    name: "git commit",
    needs: "git",
    before: repository,
    line: `echo x >> a; ${git} commit -qam second`,
    leave: /\.git\/index /,
  },
  {
    name: "git stash",
    needs: "git",
    before: `${repository}; echo x >> a`,
    line: `${git} stash -q`,
    leave: /\.git\/index /,
  },
  {
    name: "git rebase",
    needs: "git",
    before: `${repository}; ${git} checkout -qb side; echo s > s; ${git} add s; ${git} commit -qm side; ${git} checkout -q main; echo m > m; ${git} add m; ${git} commit -qm main`,
    line: `${git} rebase -q main side`,
    leave: /\.git\/(?:index|logs\/) ?/,
  },
  {
    name: "git gc",
    needs: "git",
    before: repository,
    line: `${git} gc -q --prune=now`,
    leave: /\.git\/(?:index|objects\/info\/|gc\.pid)/,
  },
  { name: "make", needs: "make", line: "make -s all; make -s clean; make -s all" },
  { name: "sed -i", needs: "sed", line: "sed -i s/hello/bye/ src/*.txt" },
  {
    name: "tar x",
    needs: "tar",
    // With a time of its own: the two workspaces may be made in different seconds.
    before: "tar --mtime=@0 -cf t.tar src; rm -rf src",
    line: "tar xf t.tar",
  },
  {
    name: "tsc",
    needs: "node",
    line: `node ${tsc} --strict --outDir out src/code.ts; node ${tsc} --noEmit src/wrong.ts`,
  },
  {
    name: "pytest",
    needs: "python3 -m pytest",
    line: "export HOME=$PWD/.home; python3 -B -m pytest -q -p no:cacheprovider src >/dev/null; code=$?; python3 -m pytest -q src >/dev/null; find . -name __pycache__ -o -name .pytest_cache | sort > found; rm -rf src/__pycache__ .pytest_cache .home; exit $code",
  },
  { name: "npm ci", needs: "npm", line: npm("ci") },
  { name: "npm uninstall", needs: "npm", before: npm("ci"), line: npm("uninstall local") },
  {
    name: "python compiles",
    needs: "python3",
    line: "python3 -m compileall -q --invalidation-mode unchecked-hash src",
  },
];

function npm(words: string): string {
  return `export HOME=$PWD/.home npm_config_cache=$PWD/.cache; npm ${words} --offline --no-audit --no-fund --loglevel=error; code=$?; rm -rf .home .cache; sed -i /resolved/d node_modules/.package-lock.json 2>/dev/null; exit $code`;
}

describe.skipIf(!canHold)("real tools, held and kept (skipped where nothing can be held: needs bubblewrap)", () => {
  const held = createHeldWorkspace();
  const plain = held.sibling("plain");
  afterAll(() => held.close());

  for (const { name, needs, before = "true", line, leave } of rows)
    test.skipIf(!has(needs))(
      `${name}: exit code and tree as if it had run directly`,
      async () => {
        for (const folder of [held.workspace, plain]) {
          await held.direct("find . -mindepth 1 -delete", folder);
          for (const [path, text] of Object.entries(project)) {
            mkdirSync(dirname(join(folder, path)), { recursive: true });
            writeFileSync(join(folder, path), text);
          }
          await held.direct(`${dated} { ${before}; } >/dev/null 2>&1`, folder);
        }
        const run = await held.hold(`${dated} ${line}`);
        expect(await run.settle("all")).toMatchObject({ conflicts: [] });
        expect([run.exitCode, run.output]).toEqual([await held.direct(`${dated} ${line}`, plain), run.output]);
        const tree = (folder: string) => snapshot(folder, "content").filter((entry) => leave?.test(entry) !== true);
        expect(tree(held.workspace)).toEqual(tree(plain));
        if (needs === "git") expect(await held.direct("git fsck --strict && git status --porcelain")).toBe(0);
      },
      60_000,
    );

  test("where renaming a folder fails, it fails only because it is held", async () => {
    await held.direct("find . -mindepth 1 -delete; mkdir d; echo x > d/f");
    const rename = "python3 -c \"import os; os.rename('d', 'e')\"";
    const { exitCode, settle } = await held.hold(rename);
    expect(exitCode).not.toBe(0);
    await settle("none");
    expect(await held.direct(rename)).toBe(0);
  });
});

const project: Readonly<Record<string, string>> = {
  "src/a.txt": "hello\n",
  "src/b.txt": "hello hello\n",
  "src/m.py": "print('hello')\n",
  "src/test_sum.py": "def test_right():\n    assert 1 + 1 == 2\ndef test_wrong():\n    assert 1 + 1 == 3\n",
  "src/code.ts": "export const two: number = 1 + 1;\n",
  "src/wrong.ts": "export const two: string = 1 + 1;\n",
  Makefile: "all: out/a out/b\nout/%: src/%.txt\n\t@mkdir -p out && cp $< $@\nclean:\n\t@rm -rf out\n",
  "package.json": '{"name":"p","version":"1.0.0","dependencies":{"local":"file:dep"}}\n',
  "package-lock.json":
    '{"name":"p","version":"1.0.0","lockfileVersion":3,"requires":true,"packages":{"":{"name":"p","version":"1.0.0","dependencies":{"local":"file:dep"}},"dep":{"name":"local","version":"1.0.0"},"node_modules/local":{"resolved":"dep","link":true}}}\n',
  "dep/package.json": '{"name":"local","version":"1.0.0"}\n',
};
