import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { applyPatch } from "../../src/tools/patch/patch.ts";
import { filesIn, grantFor, newWorkspace } from "./workspace.ts";

interface Attack {
  readonly id: string;
  readonly kind: string;
  readonly input: { readonly op?: "read" | "write"; readonly path?: string; readonly patch?: string };
  readonly expected: string;
  readonly setup?: readonly string[];
  readonly policy?: string;
}

const file = fileURLToPath(new URL("../../../shared/data/attacks.jsonl", import.meta.url));
const attacks = readFileSync(file, "utf8")
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => JSON.parse(line) as Attack);

/** Told in words in the data, and played in test/runtime/files/attack.test.ts and test/session/undo.test.ts; start-up is the command's. */
const playedElsewhere = (attack: Attack) =>
  attack.policy === "startup" || ["path-toctou-swap", "path-undo-symlink"].includes(attack.id);

test.each(attacks.filter((attack) => attack.kind === "path" && !playedElsewhere(attack)))(
  "$id: $expected",
  async (attack) => {
    const { ws, out, before } = prepare(attack);
    const denied = attack.policy?.startsWith("deny-read:") ? [join(ws, attack.policy.slice("deny-read:".length))] : [];
    const files = filesIn(ws, { grant: grantFor(ws, { mask: denied }) });
    const path = attack.input.path!.replaceAll("{WS}", ws).replaceAll("{OUT}", out);
    const ended = await (
      attack.input.op === "read" ? files.readText(path) : files.write(path, "attacker", { parents: true })
    ).then(
      (value) => ("text" in value ? value.text : "written"),
      (error: { code?: string }) => ({ refused: error.code }),
    );
    expect(tree(out)).toEqual(before);
    if (attack.expected === "must_not_read_outside" || attack.expected === "must_be_denied")
      expect(ended).toMatchObject({ refused: "denied" });
    if (attack.expected === "must_not_auto_approve") expect(ended).toMatchObject({ refused: "denied" });
  },
);

test.each(attacks.filter((attack) => attack.kind === "patch"))("$id: $expected", async (attack) => {
  const { ws, out, before } = prepare(attack);
  const applied = await applyPatch(attack.input.patch!, { files: filesIn(ws), cwd: ws }).then(
    () => true,
    (error: { code?: string; message: string }) => {
      expect(error.code).toBeDefined();
      return false;
    },
  );
  expect(tree(out)).toEqual(before);
  if (attack.expected === "should_apply") expect(applied).toBe(true);
  if (attack.expected === "must_be_reported" || attack.expected === "must_not_write_outside")
    expect(applied).toBe(false);
});

function prepare(attack: Attack) {
  const parent = newWorkspace();
  const [ws, out] = [join(parent, "ws"), join(parent, "out")];
  mkdirSync(join(ws, "src"), { recursive: true });
  mkdirSync(join(out, "victim"), { recursive: true });
  writeFileSync(join(ws, "README.md"), "hello a world\nline two\n");
  writeFileSync(join(ws, "src/a.txt"), "a\n");
  for (const name of ["secret.txt", "victim/f", "target.txt"]) writeFileSync(join(out, name), `${name}\n`);
  for (const line of attack.setup ?? [])
    execFileSync("bash", ["-c", line.replaceAll("{OUT}", out).replaceAll("{WS}", ws)], { cwd: ws });
  return { ws, out, before: tree(out) };
}

function tree(dir: string): Record<string, string> {
  const names = readdirSync(dir, { recursive: true, encoding: "utf8" });
  return Object.fromEntries(
    names.map((name) => [name, statSync(join(dir, name)).isFile() ? readFileSync(join(dir, name), "utf8") : "folder"]),
  );
}
