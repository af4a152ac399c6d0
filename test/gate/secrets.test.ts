/** Files with secrets are not read without a question, whichever way they are read. */
import { appendFileSync, mkdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { createRedactor } from "../../src/base/redact.ts";
import { createWorkspace } from "./workspace.ts";

const plain = createWorkspace();
const workspace = createWorkspace();
writeFileSync(join(workspace.ws, ".env"), "KEY=1\n");
workspace.run("git add -f .env && git -c user.name=a -c user.email=a@b commit -qm env && mkdir sub");
afterAll(() => (plain.remove(), workspace.remove()));

// prettier-ignore
const reading = [
  "cat .env", "cat < .env", "sort < .env", "head -1 <.env", "grep -r '' .", "grep -r KEY", "grep -rn KEY .", "grep --recursive x .", "grep -d recurse KEY .", "cd sub && cat < ../.env", "while read l; do echo $l; done < .env",
  "rg --hidden KEY", "rg -uu KEY", "rg -. KEY .", "git grep -e ''", "git grep KEY", "git show HEAD:.env", "git show HEAD", "git show HEAD:./.env", "git cat-file -p HEAD:.env", "git diff HEAD~1", "git diff -- .env", "git log -p", "git log -p -- .env", "git blame .env", "git stash show -p",
  "tar cf - .", "cp -r . /tmp/x", "find . -exec cat {} +", "awk 1 .env", "sed -n p .env", "cat .e*",
];

describe("asks under unless-trusted", () => {
  test.each(reading)("%s", (line) => expect(workspace.decide(line).decision).toBe("ask"));
});

// prettier-ignore
const looking = ["cat README.md", "sort < README.md", "ls -a", "git status", "git log --oneline", "rg hello", "rg --files", "grep hello README.md"];

test.each(looking)("%s passes where a file with secrets lies beside", (line) =>
  expect(workspace.decide(line).decision).toBe("allow"),
);

test.each(["grep -r hello .", "rg --hidden hello", "git grep hello", "git show HEAD", "git diff", "git log -p"])(
  "%s passes where there is none",
  (line) => expect(`${line}: ${plain.decide(line).decision}`).toBe(`${line}: allow`),
);

describe("a search that an ignore file makes read hidden files", () => {
  const searched = createWorkspace();
  afterAll(() => searched.remove());
  mkdirSync(join(searched.ws, "deep"));
  writeFileSync(join(searched.ws, "deep", ".env.local"), "KEY=1\n");
  const asks = (file: string, text: string) => {
    const path = join(searched.ws, file);
    writeFileSync(path, text);
    const { decision } = searched.decide("rg KEY");
    rmSync(path);
    return decision;
  };

  test.each([
    [".gitignore", "!.env*\n"],
    [".ignore", "# a comment\n!.env.local\n"],
    [".rgignore", "!**/.env.?ocal\n"],
    [".gitignore", "!deep/.env.local\n"],
    ["deep/.ignore", "!.env.loca[l]\n"],
    ["deep/.gitignore", "!/.env.local/\n"],
  ])("%s with %j asks", (file, text) => {
    expect(asks(file, text)).toBe("ask");
  });

  test.each([
    [".gitignore", ".env*\n"],
    [".gitignore", "!.other\n"],
    [".ignore", "#!.env*\n"],
    ["notes.txt", "!.env*\n"],
  ])("%s with %j does not", (file, text) => {
    expect(asks(file, text)).toBe("allow");
  });
});

describe("a repository that cannot be looked through asks, whatever is in it", () => {
  const inspected = (change: (git: string) => void, line: string) => {
    const other = createWorkspace();
    change(join(other.ws, ".git"));
    const { decision } = other.decide(line);
    other.remove();
    return decision;
  };
  test.each<[string, (git: string) => void, string]>([
    ["settings without end", (git) => appendFileSync(join(git, "config"), `#${"x".repeat(2_000_000)}\n`), "git status"],
    ["an index without end", (git) => truncateSync(join(git, "index"), 20_000_001), "git status"],
    ["an index in two files", (git) => writeFileSync(join(git, "sharedindex.1"), ""), "git status"],
    ["an index that is cut off", (git) => truncateSync(join(git, "index"), 90), "git show HEAD"],
    [
      "a .git that is a file nobody understands",
      (git) => (rmSync(git, { recursive: true }), writeFileSync(git, "elsewhere\n")),
      "git status",
    ],
    ["a setting that is no setting", (git) => appendFileSync(join(git, "config"), "[core]\n= x\n"), "git status"],
    ["a setting outside any section", (git) => writeFileSync(join(git, "config"), "pager = x\n"), "git status"],
  ])("%s", (_what, change, line) => {
    expect(inspected(() => undefined, line)).toBe("allow");
    expect(inspected(change, line)).toBe("ask");
  });

  test("a comment that ends in a backslash does not hide the line below it, and a quoted mark is none", () => {
    const config = (text: string) => inspected((git) => appendFileSync(join(git, "config"), text), "git status");
    expect(config("# harmless \\\n[core]\n\tfsmonitor = ./p.sh\n")).toBe("ask");
    expect(config('[user]\n\tname = "a # b"\n')).toBe("allow");
    expect(config("[user]\n\tname = a \\\n fsmonitor = x\n")).toBe("allow");
  });
});

test("a key is taken out of a message, known or by its shape", () => {
  const redact = createRedactor(["Bearer secret-value/1", undefined, "short"]);
  expect(redact("wrong key secret-value/1 (secret-value%2F1)")).toBe("wrong key [key] ([key])");
  expect(redact("Incorrect API key provided: sk-proj-abcdefghijklmnopqrst.")).toBe(
    "Incorrect API key provided: [key].",
  );
  expect(redact("a short word stays")).toBe("a short word stays");
});
