/** What was tried in a third hour of attack, with the source in hand; counts and what was found are in SECURITY.md. */
import { afterAll, describe, expect, test } from "vitest";
import { has } from "../needs.ts";
import { createWall, hadEffect, works } from "./denied-programs.ts";

describe.each(["bwrap", "landlock"])(
  "programs that look another one up and run it themselves, under %s (needs a sandbox)",
  (backend) => {
    const wall = works(backend) ? createWall(backend, undefined) : undefined;
    afterAll(() => wall?.close());
    const lines = ["valgrind -q git push origin main", "valgrind -q --trace-children=yes sh -c 'git push origin main'"];
    for (const line of lines)
      test.skipIf(wall === undefined || !has("valgrind"))(`${line} (needs valgrind)`, async () => {
        const { folder } = await wall!.run(line, ["git push"]);
        expect(hadEffect("git push", folder)).toBe(false);
      });
  },
);
