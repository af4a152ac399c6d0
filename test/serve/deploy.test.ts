/** The manifests are well-formed, and say what the command understands. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";
import { beforeAll, expect, test } from "vitest";
import { ensureBuilt, run, tempFolder } from "../cli/run.ts";

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

test("what cannot be is told in words, and nothing is started", async () => {
  const database = ["--database", "postgres://nobody@127.0.0.1:1/none"];
  const cases: readonly (readonly [readonly string[], string])[] = [
    [["--role", "worker"], "--role needs --database"],
    [["--files", "x"], "--files needs --database"],
    [["--frozen-after", "5"], "--frozen-after needs --database"],
    [["--database", "mysql://x"], "postgres://user@host/name"],
    [database, "cannot use the database"],
    [[...database, "--role", "worker", "--port", "80"], "a worker opens no port"],
    [["--name", "x.example"], "--name needs --host"],
    [["--port", "70000"], "'70000' is not a port"],
    [["--places", "0"], "'0' is not a number of sessions"],
    [["--data", "/dev/null"], "/dev/null"],
    [["--plases", "3"], "--places"],
    [["--model"], "--model"],
  ];
  const ended = await Promise.all(cases.map(([args]) => run(["serve", ...args])));
  for (const [place, { stderr, stdout, code }] of ended.entries()) {
    expect(code, stderr).not.toBe(0);
    expect(stderr + stdout).toContain(cases[place]![1]);
    expect(stderr).not.toMatch(/\n +at /);
  }
});

test("limits are set, shown and cleared by command", async () => {
  const data = tempFolder("limits");
  const limits = async (...args: string[]) => run(["serve", "limits", ...args, "--data", data]);
  expect(await limits("set", "--calls-per-day", "500", "--usd-per-day", "2.5")).toMatchObject({ code: 0, stderr: "" });
  expect(await limits("set", "--tenant", "team", "--running", "2", "--calls-per-day", "none")).toMatchObject({
    code: 0,
  });
  expect(await limits("set", "--tenant", "team", "--sessions", "9")).toMatchObject({ code: 0 });
  const { stdout } = await limits("show", "--json");
  expect(JSON.parse(stdout)).toMatchObject([
    { limits: { running: 50, callsPerDay: 500, usdPerDay: 2.5 } },
    { tenant: "team", limits: { running: 2, sessions: 9, callsPerDay: null, usdPerDay: 2.5 } },
  ]);
  expect((await limits("set", "--tenant", "team")).stderr).toContain("name a limit");
  expect((await limits("set", "--running", "many")).stderr).toContain("'many' is no limit");
  await limits("clear", "--tenant", "team");
  expect((await limits()).stdout).toMatch(/^every other tenant: running 50, sessions 10000, .*callsPerDay 500.*\n$/);
});

/** The instructions of a Dockerfile, joined where a line goes on. */
test("the Dockerfile has what the command needs, and starts it as nobody special", () => {
  const path = fileURLToPath(new URL("../../deploy/Dockerfile", import.meta.url));
  const lines = readFileSync(path, "utf8").replaceAll("\\\n", " ").split("\n");
  const steps = lines.filter((line) => line !== "" && !line.startsWith("#")).map((line) => line.split(" "));
  const words = ["FROM", "RUN", "COPY", "USER", "WORKDIR", "ENTRYPOINT", "ENV", "ARG", "EXPOSE", "CMD"];
  for (const [word] of steps) expect(words).toContain(word);
  const find = (word: string) => steps.filter(([first]) => first === word).map((rest) => rest.slice(1).join(" "));
  expect(find("FROM")).toEqual([expect.stringMatching(/^node:(20|22|24)-/)]);
  expect(find("RUN").join("\n")).toMatch(/bubblewrap git ripgrep ca-certificates/);
  const { peerDependencies } = JSON.parse(
    readFileSync(fileURLToPath(new URL("../../package.json", import.meta.url)), "utf8"),
  ) as { peerDependencies: Record<string, string> };
  for (const name of ["pg", "@dbos-inc/dbos-sdk"]) {
    expect(find("RUN").join("\n")).toContain(name);
    expect(peerDependencies).toHaveProperty([name]);
  }
  expect(find("USER")).toEqual(["node"]);
  expect(JSON.parse(find("ENTRYPOINT")[0]!)).toEqual(["callgate"]);
  // The user comes before the place it works in, and after what only an administrator may install.
  const at = (word: string) => steps.findLastIndex(([first]) => first === word);
  expect(at("USER")).toBeGreaterThan(at("RUN"));
});
