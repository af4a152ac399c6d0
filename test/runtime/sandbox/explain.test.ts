/** What a person and a model are told about a grant: never more than it gives, never less than it takes. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { explainPlan, explainSharedNetwork } from "../../../src/runtime/sandbox/explain.ts";
import type { Grant } from "../../../src/spec/access.ts";

const there = mkdtempSync(join(tmpdir(), "callgate-explain-"));
const base: Grant = {
  policy: "workspace-write",
  confined: true,
  write: [there],
  protect: [],
  mask: [],
  network: "off",
};
const said = (more: Partial<Grant> = {}) => explainPlan({ ...base, ...more }, { tempDir: "/tmp" });

test("which files may be changed", () => {
  expect(said()[0]).toBe(`Files may be changed below ${there}, a private /tmp; everywhere else they are read-only.`);
  expect(said({ write: [join(there, "no")] })[0]).toContain(`${there}/no (not there)`);
  expect(said({ write: [], policy: "read-only" })[0]).toBe("No file of the host may be changed; a private /tmp may.");
  expect(said({ policy: "full-access", write: ["/"] })[0]).toBe("Every file may be changed.");
});

test("what stays read-only is told where something else may be written, and many names are counted", () => {
  expect(said({ protect: [".git"] })[1]).toBe(
    "Read-only even there: .git; one that does not exist yet is moved aside if a command makes it.",
  );
  const names = Array.from({ length: 13 }, (_, n) => `n${n}`);
  expect(said({ protect: names })[1]).toContain("n11 and 1 more names");
  expect(said({ protect: names.slice(1) })[1]).not.toContain("more names");
  for (const none of [{}, { protect: ["x"], write: [] }, { protect: ["x"], policy: "full-access" as const }])
    expect(said(none).join("\n")).not.toContain("Read-only even there");
});

test("what is hidden is told if it is there", () => {
  expect(said({ mask: [there, join(there, "no")] })).toContain(`Hidden: ${there}.`);
  expect(said({ mask: [join(there, "no")] }).join("\n")).not.toContain("Hidden");
});

test("how far the network reaches, and that loopback goes too where it is the host's own", () => {
  expect(said({ network: "on" })).toContain("The network is on.");
  expect(said({ network: "off" })).toContain("The network is off; loopback inside the sandbox works.");
  expect(said({ network: [] })).toContain("The network is off; loopback inside the sandbox works.");
  expect(said({ network: ["a.test", "b.test"] })).toContain("The network reaches only a.test, b.test, by HTTP proxy.");
  expect(explainSharedNetwork({ ...base, network: "off" })).toBe("The network is off, loopback too.");
  expect(explainSharedNetwork({ ...base, network: [] })).toBe("The network is off, loopback too.");
  expect(explainSharedNetwork({ ...base, network: "on" })).toBe("The network is on.");
  expect(explainSharedNetwork({ ...base, network: ["a.test"] })).toContain("only a.test");
});

test("that the host's sockets stay visible under full access is not hidden", () => {
  expect(said().at(-1)).toContain("the host's sockets");
  expect(said({ policy: "full-access" }).at(-1)).not.toContain("sockets");
});
