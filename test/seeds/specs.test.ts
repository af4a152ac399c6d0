/** A changed word in what a model is told of a built-in tool is seen in review. */
import { expect, test } from "vitest";
import { createEngine } from "../../src/index.ts";
import { profiles } from "../../src/session/index.ts";
import { builtins } from "../../src/tools/index.ts";

const wires = ["responses", "chat", "messages", "gemini"] as const;

test("every built-in is told as it was, per profile and wire", async () => {
  const engine = createEngine({
    tools: builtins,
    workspace: "/",
    approval: "on-request",
    sandbox: "read-only",
    approver: { ask: async () => undefined },
    service: { webSearch: async () => "" },
  });
  const told: string[] = [];
  for (const { name } of profiles) {
    for (const wire of wires) {
      const { tools, dropped } = await engine.toolsFor(wire, { profile: name, features: { WebSearchRequest: true } });
      told.push(`# ${name} on ${wire}`, ...tools.map((tool) => JSON.stringify(tool)));
      told.push(...dropped.map((tool) => `dropped ${tool.name}: ${tool.reason}`), "");
    }
  }
  await engine.close();
  await expect(told.join("\n")).toMatchFileSnapshot("specs.snap.txt");
});
