/** The manifests are well-formed, and say what the command understands. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";
import { beforeAll, expect, test } from "vitest";
import { ensureBuilt, run } from "../cli/run.ts";

/** The documents of a file; `merge` is how compose files share settings. */
function read(name: string): readonly unknown[] {
  const text = readFileSync(fileURLToPath(new URL(`../../deploy/${name}`, import.meta.url)), "utf8");
  return parseAllDocuments(text, { merge: true }).map((document) => {
    expect([...document.errors, ...document.warnings]).toEqual([]);
    return document.toJS() as unknown;
  });
}

/** Every list of words that begins with our command's own word. */
function findCommands(value: unknown): readonly (readonly string[])[] {
  if (Array.isArray(value)) {
    if (value[0] === "serve") return [value.map(String)];
    return value.flatMap(findCommands);
  }
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(findCommands) : [];
}

let help: string;
beforeAll(async () => {
  ensureBuilt();
  help = (await run(["serve", "start", "--help"])).stdout;
}, 120_000);

test.each(["compose.yaml", "kubernetes.yaml"])("%s starts both roles with flags that there are", (name) => {
  const commands = findCommands(read(name));
  const roles = commands.map((words) => words[words.indexOf("--role") + 1]);
  expect(roles.toSorted()).toEqual(["api", "worker"]);
  for (const words of commands)
    for (const flag of words.filter((word) => word.startsWith("--"))) expect(help).toMatch(new RegExp(`${flag}\\b`));
});

test("both give a worker longer to end than its longest call, and no worker an open port", () => {
  const [compose] = read("compose.yaml") as readonly [{ services: Record<string, Record<string, unknown>> }];
  expect(compose.services["worker"]).toMatchObject({ stop_grace_period: "10m" });
  expect(compose.services["worker"]).not.toHaveProperty("ports");
  const worker = JSON.stringify(read("kubernetes.yaml")[2]);
  expect(worker).toContain('"terminationGracePeriodSeconds":600');
  expect(worker).not.toContain("containerPort");
});

test("a role without a database, and a database that is none, are told in words", async () => {
  const role = await run(["serve", "--role", "worker"]);
  expect([role.code, role.stderr]).toEqual([2, expect.stringContaining("--role needs --database")]);
  const wrong = await run(["serve", "--database", "mysql://x"]);
  expect(wrong.stderr).toContain("postgres://user@host/name");
  const gone = await run(["serve", "--database", "postgres://nobody@127.0.0.1:1/none"]);
  expect([gone.code, gone.stderr]).toEqual([2, expect.stringContaining("cannot use the database")]);
});
