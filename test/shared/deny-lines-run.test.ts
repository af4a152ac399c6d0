/** The same lines as in deny-lines.test.ts, really run in the sandbox without the gate's reading. */
import { afterAll, describe, expect, test } from "vitest";
import { launcherPath } from "../../src/runtime/process/launcher-path.ts";
import { judgesStarts } from "../../src/runtime/sandbox/programs.ts";
import { createWall, hadEffect, works } from "../attacks/denied-programs.ts";
import { sharedRows } from "./cases.ts";

const lines = sharedRows(
  "deny-lines.jsonl",
  (line) => JSON.parse(line) as { readonly id: string; readonly deny: string; readonly line: string },
);
const launcher = launcherPath();
const judges = launcher !== undefined && judgesStarts(launcher);

describe.each(["bwrap", "landlock"])(
  "lines that started a denied program once, judged by %s alone (needs the shared cases)",
  (backend) => {
    const wall = judges && lines.length > 0 && works(backend) ? createWall(backend, undefined) : undefined;
    afterAll(() => wall?.close());

    test.skipIf(wall === undefined)("there are lines", () => expect(lines.length).toBeGreaterThan(0));

    for (const { id, deny, line } of lines)
      test.skipIf(wall === undefined)(`${id}: ${line}`, async () => {
        const { folder } = await wall!.run(line, [deny]);
        expect(hadEffect(deny, folder)).toBe(false);
      });
  },
);
