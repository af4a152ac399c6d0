/** The maintainers' lines that once started a denied program, decided by the built command; ours are in test/gate/lines. */
import { beforeAll, describe, expect, test } from "vitest";
import { prepare } from "../attacks/rows.ts";
import { ensureBuilt, lines, run } from "../cli/run.ts";
import { sharedFolder } from "../needs.ts";
import { sharedRows } from "./cases.ts";

interface DenyLine {
  readonly id: string;
  readonly deny: string;
  readonly line: string;
}

const rows = sharedRows("deny-lines.jsonl", (line) => JSON.parse(line) as DenyLine);

describe.skipIf(sharedFolder === undefined)("a denied program is not started (needs the shared cases)", () => {
  let answers: readonly { readonly decision: string }[] = [];
  beforeAll(async () => {
    ensureBuilt();
    const { ws } = prepare({ setup: ["touch f; tar cf a.tar README.md"] });
    const input = rows.map(({ id, deny, line }) => {
      const shell = line.replaceAll("$WS", ws);
      return `${JSON.stringify({ id, shell, cwd: ws, approval: "on-request", deny: [deny] })}\n`;
    });
    const { stdout } = await run(["policy", "check", "--batch"], { input: input.join("") });
    answers = lines(stdout) as unknown as typeof answers;
  });

  test.each(rows.map(({ deny, line }, index) => [deny, line, index] as const))("%s: %s", (_deny, _line, index) => {
    expect(answers[index]?.decision).not.toBe("allow");
  });
});
