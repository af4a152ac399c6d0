/** The public names of each entry, as committed lists: a name enters or leaves by a deliberate edit of `api/`. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const entries: Readonly<Record<string, string>> = {
  index: "src/index.ts",
  ...Object.fromEntries(
    [
      "tools",
      "gate",
      "wire",
      "dialect",
      "template",
      "model",
      "session",
      "store",
      "mcp",
      "testing",
      "gateway",
      "serve",
      "client",
    ].map((name) => [name, `src/${name}/index.ts`]),
  ),
  "ai-sdk": "src/adapters/ai-sdk/index.ts",
  ui: "src/adapters/ui/index.ts",
  agents: "src/adapters/agents.ts",
  langchain: "src/adapters/langchain.ts",
  from: "src/adapters/from.ts",
  sandbox: "src/runtime/sandbox/sandbox.ts",
  "serve-postgres": "src/serve/postgres.ts",
};

/** Exported names, types included, read from the source. */
function namesOf(file: string): readonly string[] {
  const source = readFileSync(join(root, file), "utf8");
  const listed = [...source.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap((match) => match[1]!.split(","));
  const declared = [...source.matchAll(/^export (?:async )?(?:const|function|class|interface|type) (\w+)/gm)].map(
    (match) => match[1]!,
  );
  const names = listed
    .map((entry) =>
      entry
        .trim()
        .replace(/^type /, "")
        .split(" as ")
        .at(-1)!
        .trim(),
    )
    .filter((name) => name !== "");
  return [...new Set([...names, ...declared])].toSorted();
}

test.each(Object.entries(entries))("the names of %s are the committed ones", (entry, file) => {
  const list = join(root, "api", `${entry}.txt`);
  const names = namesOf(file);
  if (process.env["UPDATE_API"]) writeFileSync(list, `${names.join("\n")}\n`);
  expect(names).toEqual(readFileSync(list, "utf8").trim().split("\n"));
});

test("every list belongs to an entry", () => {
  expect(readdirSync(join(root, "api")).toSorted()).toEqual(
    Object.keys(entries)
      .map((name) => `${name}.txt`)
      .toSorted(),
  );
});

test("the main entry has forty values at most", async () => {
  expect(Object.keys(await import("../src/index.ts")).length).toBeLessThanOrEqual(40);
});
