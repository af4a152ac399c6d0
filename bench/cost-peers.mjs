// What a job costs the user in tokens: ten scripted jobs, the same for every agent, on the shared bench's model server
// (`node bench/cost-peers.mjs ../shared/bench callgate-responses,codex,claude,opencode`). Counted are the tokens of every
// request's prompt, those among them that the request before had already sent at the same place (what a provider's cache
// gives back cheaply), and what is left to pay in full. A token is taken as four bytes, for everybody alike.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [bench, peers = "callgate-responses,codex,claude,opencode"] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(resolve(bench, "lib", file)).href);
const [{ ModelServer, buildNative, runPeer, scripts }, { isolate }, { workDir }] = await Promise.all([
  load("run.mjs"),
  load("isolate.mjs"),
  load("run.mjs"),
]);

const read = (n) => ({ kind: "read", path: `src/file${n}.js` });
const shell = (cmd) => ({ kind: "shell", cmd });
const steps = (...turns) => [...turns.map((actions) => ({ actions: [actions].flat() })), { text: "Done." }];
const edit = (n) => ({ kind: "edit", path: "edit.txt", old: `counter = ${n}`, new: `counter = ${n + 1}` });
const editFile = { kind: "read", path: "edit.txt" };
// A test run of some length: the same each time it is asked for.
const tests = (n) =>
  shell(`for i in $(seq 1 400); do echo "ok $i - a test of the parser, with a name of some length"; done # ${n}`);

const jobs = {
  "answer a question": [{ text: "Hi." }],
  "look around": steps(shell("ls -la"), shell("ls src"), read(0), read(1)),
  "mend one line": steps(editFile, edit(0), shell("git diff --stat")),
  "six edits of a file": steps(editFile, ...[0, 1, 2, 3, 4, 5].map(edit)),
  "read, edit, read again": steps(editFile, edit(0), editFile, edit(1), editFile, edit(2), editFile),
  "the same file four times": steps(
    read(3),
    shell("true 1"),
    read(3),
    shell("true 2"),
    read(3),
    shell("true 3"),
    read(3),
  ),
  "a test run four times": steps(tests(1), editFile, edit(0), tests(2), edit(1), tests(3), edit(2), tests(4)),
  "search and read eight files": steps(shell("grep -rn MARK-3 src | head -20"), [1, 2, 3, 4, 5, 6, 7, 8].map(read)),
  "twenty small commands": steps(...Array.from({ length: 20 }, (_, n) => shell(`echo ${n}; git status --short`))),
  "an output of 2 MB": steps(shell("seq 1 300000"), shell("echo done")),
};

isolate(workDir);
buildNative();
const server = new ModelServer();
const folder = mkdtempSync(join(tmpdir(), "callgate-cost-"));
const totals = new Map();
try {
  for (const peer of peers.split(",")) {
    await runPeer(server, peer, { script: scripts.check(), warm: true });
    for (const [job, script] of Object.entries(jobs)) {
      const dump = join(folder, `${peer}-${job}.jsonl`.replaceAll(" ", "-"));
      const { launch, log } = await runPeer(server, peer, { script, dump, prompt: `Do the job: ${job}.` });
      const cost = costOf(
        readFileSync(dump, "utf8")
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line)),
      );
      totals.set(`${peer}/${job}`, { ...cost, ok: launch.code === 0 && log.served === log.steps });
      console.error(peer, job, JSON.stringify(totals.get(`${peer}/${job}`)));
    }
  }
} finally {
  server.stop();
  rmSync(folder, { recursive: true, force: true });
}
console.log(table(peers.split(",")));

/** Every request counts, a side request too: somebody pays for it. */
function costOf(requests) {
  let sent = 0;
  let cached = 0;
  let before = 0;
  const prompts = requests.map(({ body }) => promptOf(body));
  for (const [index, prompt] of prompts.entries()) {
    sent += prompt.length;
    const common = prompts.slice(0, index).map((other) => [commonPrefix(prompt, other), other.length]);
    const [most, whole] = common.toSorted(([a], [b]) => b - a)[0] ?? [0, 0];
    cached += most;
    before += whole;
  }
  const tokens = (bytes) => Math.round(bytes / 4);
  // Kept: of what a request had sent, how much the next one had at the same place.
  return {
    requests: requests.length,
    sent: tokens(sent),
    full: tokens(sent - cached),
    kept: before === 0 ? 1 : cached / before,
  };
}

/** What the model reads, in the order in which providers put it: tools, system, messages. */
function promptOf({ tools, system, instructions, messages, input, contents }) {
  const items = input ?? messages ?? contents ?? [];
  const list = typeof items === "string" ? [items] : items;
  return [tools, system ?? instructions, ...list].map((part) => JSON.stringify(part) ?? "").join("\n");
}

function commonPrefix(a, b) {
  const most = Math.min(a.length, b.length);
  let low = 0;
  let high = most;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (a.slice(0, middle) === b.slice(0, middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

function table(names) {
  const cell = ({ sent, full, kept, ok }) =>
    `${sent.toLocaleString("en")} / ${full.toLocaleString("en")} (${(kept * 100).toFixed(0)} %)${ok ? "" : " ✗"}`;
  const rows = Object.keys(jobs).map((job) => [job, ...names.map((peer) => cell(totals.get(`${peer}/${job}`)))]);
  const sums = names.map((peer) => {
    const all = Object.keys(jobs).map((job) => totals.get(`${peer}/${job}`));
    const sum = (field) => all.reduce((total, cost) => total + cost[field], 0);
    return `**${sum("sent").toLocaleString("en")} / ${sum("full").toLocaleString("en")}**`;
  });
  const lines = [["job", ...names], ["---", ...names.map(() => "--:")], ...rows, ["**all ten**", ...sums]];
  return lines.map((line) => `| ${line.join(" | ")} |`).join("\n");
}
