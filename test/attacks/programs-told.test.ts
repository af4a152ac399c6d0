/** What a command started is part of its call's record, and a refusal among it is never cut away. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { partsToText } from "../../src/base/content.ts";
import { toEntries } from "../../src/cli/chat/transcript.ts";
import { createEngine } from "../../src/index.ts";
import { launcherPath } from "../../src/runtime/process/launcher-path.ts";
import { judgesStarts } from "../../src/runtime/sandbox/programs.ts";
import type { CallEvent } from "../../src/spec/stages.ts";
import type { StoredRecord } from "../../src/store/index.ts";
import { shellCommand } from "../../src/tools/shell-command.ts";
import { freshFolder } from "../runtime/sandbox/folder.ts";

const launcher = launcherPath();
const judges = launcher !== undefined && judgesStarts(launcher);

test.skipIf(!judges)("programs are told with the call, in one line for people (needs the launcher)", async () => {
  const workspace = freshFolder("/var/tmp");
  writeFileSync(join(workspace, "s.sh"), `for i in $(seq 80); do /bin/true $i; done; g=git; $g push precious\n`);
  const engine = createEngine({
    workspace,
    tools: [shellCommand],
    approval: "never",
    gate: { rules: [{ command: "git push", decision: "deny" }] },
  });
  onTestFinished(() => engine.close());
  const heard: CallEvent[] = [];
  engine.on((event) => event.type === "exec.programs" && heard.push(event));
  const { id } = await engine.call("shell_command", { command: "sh s.sh" });
  // What no rule denies runs as ever: a wall that lets nothing through would pass every other test.
  expect(partsToText((await engine.call("shell_command", { command: "echo well" })).content)).toBe("well\n");
  expect(heard).toHaveLength(2);
  const [event] = heard;
  if (event?.type !== "exec.programs") throw new Error("no such event");
  expect(event.id).toBe(id);
  expect(event.list.length).toBeLessThan(60);
  expect(event.list.length + event.unlisted).toBeGreaterThan(80);
  expect(event.list.at(-1)).toMatchObject({ argv: ["git", "push", "precious"], refusedBy: "deny command git push" });
  // As the journal has it.
  const [line] = toEntries([{ ...event, at: 1 } as unknown as StoredRecord]);
  expect(line?.body).toMatch(
    /^started: .*\bsh, seq, true and \d+ more; not started: git push precious \(rule 'deny command git push'\)$/,
  );
});
