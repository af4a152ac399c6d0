import { describe, expect, test } from "vitest";
import { findPatchCommand, patchTargets } from "../../src/tools/command.ts";

const body = "*** Begin Patch\n*** Add File: a.txt\n+$HOME `x`\n*** End Patch";
const heredoc = (start: string, end = "EOF") => `${start}\n${body}\n${end}\n`;

describe("a patch typed as a command", () => {
  test.each<[string, readonly string[]]>([
    ["two words", ["apply_patch", body]],
    ["the other spelling", ["applypatch", body]],
    ["bash -lc", ["bash", "-lc", heredoc("apply_patch <<'EOF'")]],
    ["zsh -c", ["/usr/bin/zsh", "-c", heredoc('apply_patch <<"EOF"')]],
    ["an unquoted end", ["sh", "-c", heredoc("apply_patch <<EOF")]],
    ["an end of one's own", ["bash", "-lc", heredoc("apply_patch << 'PATCH-1'", "PATCH-1")]],
    ["tabs that are taken off", ["bash", "-c", `apply_patch <<-EOF\n\t${body.replaceAll("\n", "\n\t")}\n\tEOF`]],
    ["powershell", ["pwsh.exe", "-NoProfile", "-Command", heredoc("apply_patch <<'EOF'")]],
    ["cmd", ["C:\\Windows\\cmd.exe", "/c", heredoc("apply_patch <<'EOF'")]],
  ])("is found in %s, and nothing in it is expanded", (_name, argv) => {
    expect(findPatchCommand({ argv })).toEqual({ kind: "patch", text: body });
  });

  test.each([
    ["cd sub && apply_patch <<'EOF'", "sub"],
    ["cd 'my folder' && apply_patch <<'EOF'", "my folder"],
    ['cd "a b" && applypatch <<EOF', "a b"],
  ])("is found after %s", (start, workdir) => {
    const found = findPatchCommand({ shell: heredoc(start) });
    expect(found).toEqual({ kind: "patch", text: body, workdir });
    expect(found?.kind === "patch" && patchTargets(found, "/w")).toEqual([`/w/${workdir}/a.txt`]);
  });

  test.each([
    ["another command after it", `${heredoc("apply_patch <<'EOF'")}echo done`],
    ["another command before it", heredoc("echo start; apply_patch <<'EOF'")],
    ["a pipe", heredoc("apply_patch <<'EOF' | tee log")],
    ["an extra word", heredoc("apply_patch --force <<'EOF'")],
    ["two folders", heredoc("cd a && cd b && apply_patch <<'EOF'")],
    ["a folder of several words", heredoc("cd a b && apply_patch <<'EOF'")],
    ["a folder that must be expanded", heredoc("cd $HOME && apply_patch <<'EOF'")],
    ["or", heredoc("cd a || apply_patch <<'EOF'")],
    ["no end", `apply_patch <<'EOF'\n${body}\n`],
    ["no here-document", "apply_patch patch.txt"],
  ])("is an ordinary command with %s", (_name, line) => {
    expect(findPatchCommand({ shell: line })).toBeUndefined();
    expect(findPatchCommand({ argv: ["bash", "-lc", line] })).toBeUndefined();
  });

  test("without its command is told apart", () => {
    expect(findPatchCommand({ shell: body })).toEqual({ kind: "bare" });
    expect(findPatchCommand({ argv: [body] })).toEqual({ kind: "bare" });
    expect(findPatchCommand({ argv: ["bash", "-lc", body] })).toEqual({ kind: "bare" });
    expect(findPatchCommand({ argv: ["echo", body] })).toBeUndefined();
  });
});
