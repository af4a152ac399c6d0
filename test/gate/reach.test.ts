/** A rule that allows a command by name covers what it does in the workspace, and ends where a word leads out of it. */
import { afterAll, describe, expect, test } from "vitest";
import type { Rule } from "../../src/gate/rules.ts";
import { createWorkspace } from "./workspace.ts";

const workspace = createWorkspace();
afterAll(() => workspace.remove());

const decide = (line: string, ...more: Rule[]) =>
  workspace.decide(line, { rules: [{ command: line.split(" ")[0]!, decision: "allow" }, ...more] }).decision;

describe("allowed as the rule says", () => {
  test.each([
    "builder",
    "builder src/a.txt",
    "builder --out=src/x",
    "builder of=src/x",
    "builder https://a.org/x",
    "builder --from=https://a.org/../x",
    "builder /dev/null",
    "builder --level=3 -v",
    "builder a=",
    "builder --mount type=bind,src=./src",
    "builder {WS}/src/a.txt",
    "cp p.sh src/p.sh",
    "cp ./p.sh src/p.sh",
    "builder p.sh",
  ])("%s", (line) => {
    expect(decide(line)).toBe("allow");
  });
});

describe("asked about all the same", () => {
  test.each([
    "builder /etc/x",
    "builder ../x",
    "builder src/../../x",
    "builder ~/x",
    "builder @/etc/passwd",
    "builder --out=/etc/x",
    "builder -o/etc/x",
    "builder -o../x",
    "builder of=/etc/x",
    "builder --mount type=bind,src=/",
    "builder -o 'ProxyCommand=touch /x'",
    "builder 'a:b /etc/x'",
    "builder --exec ./p.sh",
    "builder --exec=./p.sh",
    "builder -x./p.sh",
    "builder --exec './p.sh now'",
    "builder ./p.sh",
    "builder {OUT}/target.txt",
    "builder .git/config",
    "builder .git/hooks/pre-commit",
    "cd / && builder etc/x",
  ])("%s", (line) => {
    expect(workspace.decide(line, { rules: [{ command: "builder", decision: "allow" }] }).decision).toBe("ask");
  });
});

test("a place that another rule allows is no way out", () => {
  const allow: Rule = { path: "/etc/x", decision: "allow" };
  expect(decide("builder /etc/x", allow)).toBe("allow");
  expect(decide("builder /etc/y", allow)).toBe("ask");
  expect(decide("builder /etc/x", { path: "/etc/x", decision: "ask" })).toBe("ask");
  expect(decide("builder /etc/x", { path: "/etc/x", decision: "deny" })).toBe("deny");
});
