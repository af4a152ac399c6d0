/** Recorded sessions through the command: gone on with, copied, damaged, in use, exported. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { lockFile } from "../../src/store/lock.ts";
import { cli, ensureBuilt, lines, run, tempFolder } from "./run.ts";

beforeAll(ensureBuilt, 60_000);

async function record(prompt: string) {
  const home = tempFolder("state");
  const cwd = tempFolder("work");
  const at = { cwd, env: { CALLGATE_HOME: home } };
  const { stdout } = await run(["exec", "--json", prompt], at);
  const id = String(lines(stdout)[0]!["session_id"]);
  const [month] = readdirSync(join(home, "sessions"));
  return { at, id, path: join(home, "sessions", month!, `${id}.jsonl`) };
}

test("'last' goes on with the newest session of this folder, and says where another one began", async () => {
  const env = { CALLGATE_HOME: tempFolder("state") };
  const [here, there] = [tempFolder("here"), tempFolder("there")];
  await run(["exec", "say here"], { cwd: here, env });
  await run(["exec", "say there"], { cwd: there, env });
  const own = await run(["exec", "--resume", "last", "say more"], { cwd: here, env });
  expect(own.stderr).not.toContain("began in");
  const titles = JSON.parse((await run(["sessions", "--json"], { env })).stdout) as readonly { title: string }[];
  expect(titles.map(({ title }) => title)).toEqual(["say here", "say there"]);
  const other = await run(["exec", "--resume", "last", "say more"], { cwd: tempFolder("new"), env });
  expect(other.code).toBe(0);
  expect(other.stderr).toContain(`this session began in ${here} and goes on in`);
});

test("replay --run runs in the folder of the session, wherever it is asked for", async () => {
  const env = { CALLGATE_HOME: tempFolder("state") };
  const cwd = tempFolder("work");
  writeFileSync(join(cwd, "note.txt"), "remember the milk\n");
  await run(["exec", "read note.txt"], { cwd, env });
  const { stderr } = await run(["replay", "last", "--run"], { cwd: tempFolder("elsewhere"), env });
  expect(stderr).toContain("Every call ended as it did before.");
});

test("the beginning of an id is enough, and goes on with the same conversation", async () => {
  const { at, id } = await record("run echo first");
  const events = lines((await run(["exec", "--json", "--resume", id.slice(0, -2), "say more"], at)).stdout);
  expect(events[0]).toMatchObject({ type: "session.started", session_id: id, resumed: true });
  expect(events.find(({ type }) => type === "request.sent")).toMatchObject({ turn: 2, items: 6 });
});

test("a session another process has open is not written by two; the process is named", async () => {
  const { at, path } = await record("say hi");
  const other = spawn("sleep", ["30"]);
  await once(other, "spawn");
  lockFile(path, other.pid!);
  const { code, stderr } = await run(["exec", "--resume", "last", "say more"], at);
  other.kill("SIGKILL");
  expect({ code, stderr }).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`in use by process ${other.pid}`),
  });
});

test("a torn journal goes on, an edited one is told with its line and does not", async () => {
  const { at, path } = await record("run echo first");
  appendFileSync(path, '{"n":99,"at":1,"ty');
  expect((await run(["exec", "--resume", "last", "say more"], at)).code).toBe(0);
  const text = readFileSync(path, "utf8").split("\n");
  text[2] = text[2]!.replace("first", "worst");
  writeFileSync(path, text.join("\n"));
  const { code, stderr } = await run(["exec", "--resume", "last", "say more"], at);
  expect(code).toBe(2);
  expect(stderr).toMatch(/line \d+: the line does not match its checksum/);
  expect((await run(["show", "last"], at)).stderr).toMatch(/line \d+ \(byte \d+\): edited/);
});

test("what a session holds cannot break out of the page it is exported to", async () => {
  const { at } = await record(`say <script>alert(1)</script> "quoted" & more`);
  const { stdout } = await run(["export", "last", "--format", "html"], at);
  expect(stdout).not.toContain("<script>");
  expect(stdout).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
});

test("show --web makes a page of its own and says where it is", async () => {
  const { at, id } = await record("run echo first");
  const { stdout } = await run(["show", id, "--web"], at);
  const page = readFileSync(new URL(stdout.trim()), "utf8");
  expect(page).toContain('<script type="application/json" id="records">');
  expect(page).toContain("echo first");
});

test("an export as JSON holds every record, and goes into a file", async () => {
  const { at, id, path } = await record("run echo first");
  const file = join(at.cwd, "out.json");
  expect((await run(["export", id, "--format", "json", "--output", file], at)).code).toBe(0);
  const exported = JSON.parse(readFileSync(file, "utf8")) as { id: string; records: unknown[] };
  expect(exported.id).toBe(id);
  expect(exported.records).toHaveLength(readFileSync(path, "utf8").trimEnd().split("\n").length);
});

test("replay runs the calls again under today's rules and says what differs", async () => {
  const { at } = await record("run echo first");
  writeFileSync(join(at.env.CALLGATE_HOME, "rules.toml"), '[[rule]]\ncommand = ["echo"]\ndecision = "deny"\n');
  const { stderr } = await run(["replay", "last", "--run"], at);
  expect(stderr).toContain("was ok, now denied");
});

test.each(["SIGINT", "SIGTERM"] as const)(
  "%s ends a turn with 130, its command with it, and the session goes on",
  async (signal) => {
    const at = { cwd: tempFolder("work"), env: { CALLGATE_HOME: tempFolder("state") } };
    const env = { PATH: process.env["PATH"] ?? "", HOME: tempFolder("home"), ...at.env };
    const child = spawn(process.execPath, [cli, "exec", "--json", "run echo begun; sleep 31.4"], { cwd: at.cwd, env });
    let out = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
      if (text.includes("begun\\n")) child.kill(signal);
    });
    const [code] = (await once(child, "close")) as [number];
    expect(code).toBe(130);
    expect(lines(out).at(-1)).toMatchObject({ type: "turn.ended", reason: "interrupted" });
    expect(runningCommands()).not.toContain("sleep 31.4");
    expect((await run(["exec", "--resume", "last", "say more"], at)).code).toBe(0);
  },
);

function runningCommands(): readonly string[] {
  return readdirSync("/proc").flatMap((pid) => {
    try {
      return /^\d+$/.test(pid) ? [readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim()] : [];
    } catch {
      return []; // gone while we looked
    }
  });
}

test("a start that fails half way ends at once, with nothing left open", async () => {
  const at = { cwd: tempFolder("work") };
  expect((await run(["exec", "--output-schema", "missing.json", "say hi"], at)).code).toBe(2);
});
