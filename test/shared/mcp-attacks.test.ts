/** The maintainers' list of attacks on MCP: each has its test in test/mcp, by the name that says which. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { sharedFolder } from "../needs.ts";
import { sharedRows } from "./cases.ts";

const known: Readonly<Record<string, string>> = {
  "mcp-name-long": "a name too long for a provider",
  "mcp-rug-pull-schema": "an argument that appears after the user looked",
  "mcp-project-autostart": "a cloned project's server does not start before trust",
  "mcp-list-cursor-loop": "a list that never ends is given up",
  "mcp-result-huge": "",
  "mcp-result-ansi": "a result that would rewrite the screen",
  "mcp-oauth-js": "is never opened",
  "mcp-unknown-id": "answers nobody asked for",
  "mcp-progress-forever": "progress for ever ends at the total limit",
  "mcp-cross-client": "",
};

test.skipIf(sharedFolder === undefined)("every shared attack on MCP has its test (needs the shared cases)", () => {
  const ids = sharedRows(
    "attacks.jsonl",
    (line) => JSON.parse(line) as { readonly id: string; readonly kind: string },
  ).filter(({ kind }) => kind === "mcp");
  expect(ids.map(({ id }) => id).toSorted()).toEqual(Object.keys(known).toSorted());
  const tests = readFileSync(new URL("../mcp/attacks.test.ts", import.meta.url), "utf8");
  for (const title of Object.values(known)) expect(tests).toContain(title);
});
