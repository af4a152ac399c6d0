import { afterAll, describe, expect, test } from "vitest";
import type { ShellDialect } from "../../src/spec/access.ts";
import type { Rule } from "../../src/gate/rules.ts";
import { createWorkspace } from "./workspace.ts";

const workspace = createWorkspace();
afterAll(() => workspace.remove());
const decide = (shell: string, dialect: ShellDialect, rules: readonly Rule[] = []) =>
  workspace.decide({ shell, dialect, cwd: workspace.ws }, { rules }).decision;
const deny: Rule[] = [{ command: "rm", decision: "deny" }];

describe("zsh", () => {
  test.each(["ls -la", "git status | head", "cat README.md && echo 'a $b'", 'grep -n "hello" README.md 2>/dev/null'])(
    "%s passes: both shells read it alike",
    (line) => expect(decide(line, "zsh")).toBe("allow"),
  );
  test.each([
    "=touch x",
    "ls *(e:'touch x':)",
    "ls *(.)",
    "echo x >! f",
    "echo x >>| f",
    "cat =(touch x)",
    "echo ${(e)x}",
    "echo ${x:gs/a/b}",
    "repeat 3 touch x",
    "noglob touch x",
    "ls &! touch x",
    "ls &| touch x",
    "- touch x",
    "print -P '%x'",
    "ls **/*.md",
    "ls ~x",
    "ls ^x",
    "< /etc/passwd",
    "{ ls } always { touch x }",
    "foreach x (a b); touch $x; end",
    "ls $x",
    "eval ls",
    "zmodload zsh/system",
    "printf %d 'psvar[$(id)1]'",
    "'printf' %d 'psvar[$(id)1]'",
    "autoload -U x",
    "cat a# b",
  ])("%s asks", (line) => expect(decide(line, "zsh")).not.toBe("allow"));
  test.each([
    "=rm x",
    "noglob rm x",
    "- rm x",
    "nocorrect rm x",
    "repeat 3 rm x",
    "ls *(e:'rm x':)",
    "cat =(rm x)",
    "exec -a x rm y",
    "command rm x",
  ])("%s is denied where rm is", (line) => expect(decide(line, "zsh", deny)).toBe("deny"));
});

describe("PowerShell", () => {
  test.each([
    "Get-ChildItem",
    "ls",
    "powershell -EncodedCommand ZQ==",
    "iex 'x'",
    "& 'x'",
    "Remove-Item -Recurse x",
    "$a='x'; & $a",
    "Start-Process x",
    ". ./x.ps1",
    "cmd /c del x",
  ])("%s asks: it is not parsed", (line) => expect(decide(line, "powershell")).toBe("ask"));
  test.each([
    "rm x",
    "Remove-Item x",
    "ri x",
    "del x",
    "RM -Recurse x",
    "& 'rm' x",
    "cmd /c rd x",
    "iex ('r'+'m x')",
    "$c='r'+'m'; & $c x",
    "powershell -enc ZQ==",
    "[Diagnostics.Process]::Start('x')",
    "`r`m x",
  ])("%s is denied where rm is", (line) => expect(decide(line, "powershell", deny)).toBe("deny"));
  test("a plain line stays a question where something else is denied", () =>
    expect(decide("Get-ChildItem src", "powershell", deny)).toBe("ask"));
});
