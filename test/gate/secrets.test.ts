/** Files with secrets are not read without a question, whichever way they are read. */
import { writeFileSync } from "node:fs";
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

test("a key is taken out of a message, known or by its shape", () => {
  const redact = createRedactor(["Bearer secret-value/1", undefined, "short"]);
  expect(redact("wrong key secret-value/1 (secret-value%2F1)")).toBe("wrong key [key] ([key])");
  expect(redact("Incorrect API key provided: sk-proj-abcdefghijklmnopqrst.")).toBe(
    "Incorrect API key provided: [key].",
  );
  expect(redact("a short word stays")).toBe("a short word stays");
});
