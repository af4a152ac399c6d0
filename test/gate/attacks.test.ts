/** Every recorded attack that is a command, in a real workspace with its setup, decided by the built command. */
import { beforeAll, expect, test } from "vitest";
import { ensureBuilt, lines, run } from "../cli/run.ts";
import { prepare, rowsOf, toText, type Text } from "../attacks/rows.ts";

const played = rowsOf("command").map(([id, row]) => ({ id, row, folders: prepare(row) }));
let answers: readonly { readonly decision: string; readonly reason: string }[] = [];

beforeAll(async () => {
  ensureBuilt();
  const input = played.map(({ id, row, folders }) => {
    const [, kind, prefix] = /^(allow|deny):(.*)$/s.exec(row.policy ?? "") ?? [];
    const shell = folders.fill(toText(row.input as Text));
    const rule = kind === undefined ? {} : { [kind]: [prefix] };
    return `${JSON.stringify({ id, shell, dialect: row.shell, cwd: folders.ws, approval: "unless-trusted", ...rule })}\n`;
  });
  const { stdout } = await run(["policy", "check", "--batch"], { input: input.join("") });
  answers = lines(stdout) as unknown as typeof answers;
});

const expectations: Readonly<Record<string, RegExp>> = {
  must_not_auto_approve: /^(ask|deny): /,
  must_not_leak: /^(ask|deny): /,
  must_be_denied: /^deny: /,
  should_auto_approve: /^allow: /,
};

test.each(played.map(({ id, row }, index) => [id, row.expected, index] as const))("%s: %s", (_id, expected, index) => {
  const { decision, reason } = answers[index]!;
  expect(`${decision}: ${reason}`).toMatch(expectations[expected]!);
});
