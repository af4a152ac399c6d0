// Workers of `callgate serve --database` are killed, frozen and cut off while they run sessions, and the database is
// restarted under them. Every call leaves a line in a ledger outside the journal, and at the end the two are compared:
// no call ran twice, none is lost without a word, no answer to a question is lost, and each session's folder holds
// exactly what its ended calls wrote, though every worker has folders of its own.
//   node scripts/kill-workers.mjs [--sessions N] [--calls N] [--kills N] [--freezes N] [--restarts N] [--cuts N] [--workers N] [--minutes N] [--held 1] [--add FILE]
// With `--add` the figures go into a list in that file, and the sum of all runs in it is printed as well: five hundred
// kills are made in runs of some minutes each.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "../dist/client.js";
import { startPostgres } from "./postgres.mjs";

const wanted = (name, otherwise) => {
  const at = process.argv.indexOf(`--${name}`);
  return at === -1 ? otherwise : Number(process.argv[at + 1]);
};
const sessions = wanted("sessions", 200);
const calls = wanted("calls", 10);
const workerCount = wanted("workers", 3);
/** At most so many are open at once; others begin as these end. */
const openAtOnce = wanted("open", 24);
const left = {
  kill: wanted("kills", 500),
  freeze: wanted("freezes", 50),
  restart: wanted("restarts", 3),
  cut: wanted("cuts", 5),
};
const pauseMs = wanted("pause", 700);
const livesMs = wanted("lives", 4_000);
const minutes = wanted("minutes", Infinity);
const frozenAfter = 3;
const addTo = process.argv.includes("--add") ? process.argv[process.argv.indexOf("--add") + 1] : undefined;

// Not among the temporary files: the sandbox gives commands temporary files of their own.
const root = mkdtempSync(join(process.cwd(), "node_modules", ".kill-workers-"));
const ledger = join(root, "ledger");
const config = join(root, "config", "callgate");
for (const folder of [ledger, config]) mkdirSync(folder, { recursive: true });
// With `--held 1` the question comes after the command has run with its writes held back; otherwise before it runs.
const held = wanted("held", 0) === 1 ? "asked" : "off";
writeFileSync(join(config, "callgate.toml"), `writable_roots = [${JSON.stringify(ledger)}]\nheld = "${held}"\n`);
writeFileSync(join(config, "rules.toml"), `[[rule]]\ncommand = "tee"\ndecision = "ask"\n`);

const bin = existsSync("/usr/lib/postgresql")
  ? join("/usr/lib/postgresql", readdirSync("/usr/lib/postgresql").sort((a, b) => b - a)[0], "bin")
  : "/usr/local/bin";
const postgres = await startPostgres(bin);
const startedAt = Date.now();
const state = { isOver: false };
const workers = [];
const problems = [];
const done = { kill: 0, freeze: 0, restart: 0, cut: 0 };

const api = await start(["--role", "api"], join(root, "api"));
api.child.once("exit", () => {
  if (!state.isOver) end(`the process that answers requests ended: ${api.words()}`);
});
const client = createClient({ url: api.told.url, token: api.told.token });
for (let n = 0; n < workerCount; n++) workers.push(await startWorker(n));

for (const signal of ["SIGTERM", "SIGINT"])
  process.once(signal, () => end(`ended by ${signal} after ${JSON.stringify(done)}: nothing was checked`));
for (const fault of ["unhandledRejection", "uncaughtException"])
  process.on(fault, (error) => end(error instanceof Error ? error.stack : String(error)));
const made = [];
if (process.argv.includes("--verbose")) console.error(`${workers.length} workers run`);
const disturbing = disturb();
await Promise.all(Array.from({ length: openAtOnce }, playSessions));
state.isOver = true;
await disturbing;
while (workers.some((worker) => worker.isDown)) await sleep(100);
const told = await check();
for (const { child } of [...workers, api]) child.kill("SIGKILL");
await postgres.stop();
rmSync(root, { recursive: true, force: true });

const figures = {
  sessions: made.length,
  calls: told.calls,
  ...done,
  twice: told.twice,
  lost: told.lost,
  answersLost: told.answersLost,
  cutOff: told.cutOff,
  undone: told.undone,
  foldersWrong: told.foldersWrong,
  parked: made.filter(({ isParked }) => isParked).length,
  takeOverMs: quantiles(told.silences),
  seconds: Math.round((Date.now() - startedAt) / 1000),
};
console.log(JSON.stringify(figures));
if (addTo !== undefined) console.log(JSON.stringify(addRun(addTo, figures, told.silences)));
for (const problem of problems.slice(0, 20)) console.log(`  ${problem}`);
process.exit(problems.length === 0 ? 0 : 1);

/** Writes one more run into the file, and gives the sum of all that are in it. */
function addRun(path, { takeOverMs: _takeOver, ...run }, takeOvers) {
  const at = new Date().toISOString().slice(0, 16);
  const before = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")).runs : [];
  const runs = [...before, { at, ...run, problems: problems.length, takeOvers: takeOvers.toSorted((a, b) => a - b) }];
  const names = Object.keys(run);
  const total = Object.fromEntries(names.map((name) => [name, runs.reduce((all, one) => all + (one[name] ?? 0), 0)]));
  const sum = { runs: runs.length, ...total, takeOverMs: quantiles(runs.flatMap((one) => one.takeOvers)) };
  const lines = runs.map((one) => `    ${JSON.stringify(one)}`);
  writeFileSync(path, `{\n  "sum": ${JSON.stringify(sum)},\n  "runs": [\n${lines.join(",\n")}\n  ]\n}\n`);
  return sum;
}

/** Nothing is left running, whatever has gone wrong. */
function end(reason) {
  console.log(reason);
  for (const one of [...workers, api]) one.child.kill("SIGKILL");
  void postgres.stop().finally(() => {
    rmSync(root, { recursive: true, force: true });
    process.exit(1);
  });
}

/** One process of the command; resolves with what it prints once it is ready. */
function start(args, data) {
  return new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      ["dist/cli.cjs", "serve", "--database", postgres.url, "--data", data, "--json", ...args],
      {
        env: { ...process.env, XDG_CONFIG_HOME: join(root, "config"), NODE_NO_WARNINGS: "1" },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    let words = "";
    child.stderr.on("data", (part) => {
      words = `${words}${part}`.slice(-2_000);
      if (process.argv.includes("--verbose")) process.stderr.write(part);
    });
    createInterface(child.stdout).once("line", (line) =>
      resolve({ child, told: JSON.parse(line), words: () => words }),
    );
    child.once("exit", (code, signal) => reject(new Error(`a process ended: ${code ?? signal} ${words}`)));
  });
}

async function startWorker(place) {
  for (let tries = 0; ; tries++) {
    try {
      return {
        place,
        ...(await start(
          ["--role", "worker", "--places", "16", "--frozen-after", String(frozenAfter)],
          join(root, `worker-${place}`),
        )),
        since: Date.now(),
      };
    } catch (error) {
      if (tries > 20) throw error; // the database may be away for a moment
      await sleep(300);
    }
  }
}

async function disturb() {
  while (!state.isOver && !isLate() && Object.values(left).some((n) => n > 0)) {
    await sleep(pauseMs * (0.5 + Math.random()));
    const kinds = Object.keys(left).filter((kind) => left[kind] > 0);
    const total = kinds.reduce((sum, kind) => sum + left[kind], 0);
    let at = Math.random() * total;
    const kind = kinds.find((one) => (at -= left[one]) < 0) ?? kinds[0];
    const worker = workers[Math.floor(Math.random() * workers.length)];
    // A worker that never lives long enough to get anywhere proves nothing: its sessions are put aside as faulty.
    if (worker === undefined || worker.isDown || Date.now() - worker.since < livesMs) continue;
    left[kind]--;
    done[kind]++;
    if (kind === "kill") void replace(worker);
    else if (kind === "freeze") void freeze(worker);
    else if (kind === "restart") await postgres.restart();
    else
      await postgres
        .query(
          "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and usename = 'postgres' and random() < 0.5",
        )
        .catch(() => undefined);
  }
}

async function replace(worker) {
  worker.isDown = true;
  worker.child.kill("SIGKILL");
  workers[workers.indexOf(worker)] = await startWorker(worker.place);
}

async function freeze(worker) {
  worker.isDown = true;
  worker.child.kill("SIGSTOP");
  await sleep(frozenAfter * 1000 + 2_000 + Math.random() * 2_000);
  worker.child.kill("SIGCONT");
  worker.isDown = false;
  worker.since = Date.now();
}

/** One after the other, until there are enough sessions and enough has been done to the workers. */
async function playSessions() {
  while ((made.length < sessions && !isLate()) || (isLeft() && made.length < sessions * 50)) {
    const name = `s${made.length}`;
    const session = { name, answers: [] };
    made.push(session);
    const lines = Array.from({ length: calls }, (_, n) => toLine(name, n));
    session.id = (await insist(() => client.create({ base: { kind: "empty" } }, name))).id;
    await insist(() => client.send(session.id, { text: lines.join("\n") }, name));
    await untilEnded(session);
  }
}

function isLeft() {
  return !isLate() && (left.kill > 0 || left.freeze > 0);
}

/** Nothing more is begun then; what runs comes to its end, and is checked. */
function isLate() {
  return Date.now() - startedAt > minutes * 60_000;
}

/** Outside the folder, inside it, with a question before it runs, or with one after the sandbox has stopped it. */
function toLine(name, n) {
  const key = `${name}-${n}`;
  if (n === 3) return `run echo ${key} >> ${join(root, "closed")}`;
  if (n === Math.floor(calls / 2)) return `run echo ${key} | tee -a ${join(ledger, name)}`;
  return `run echo ${key} >> ${n % 2 === 0 ? join(ledger, name) : "log"} && sleep 0.05`;
}

async function untilEnded(session) {
  for (let tries = 0; tries < 6_000; tries++) {
    const { session: row } = await insist(() => client.session(session.id));
    if (row.status === "faulty") {
      const errors = (await readAll(session.id)).filter(({ type }) => type === "error");
      for (const { message } of errors) problems.push(`${session.name} is faulty: ${message}`);
      // Its workers were killed five times in a row before they got anywhere: put aside, as it should be.
      session.isParked = errors.length === 0;
      return;
    }
    if (row.status === "idle" && row.updatedAt !== row.startedAt) {
      const records = await readAll(session.id);
      if (records.some(({ type }) => type === "turn.ended")) return;
    }
    if (row.status === "waiting" && row.waitingFor !== undefined) await answer(session, row.waitingFor.callId);
    await sleep(150);
  }
  problems.push(`${session.name} did not come to its end`);
}

/** The records come in pages. */
async function readAll(id) {
  const all = [];
  for (;;) {
    const { records, more } = await insist(() => client.records(id, all.length - 1));
    all.push(...records);
    if (!more) return all;
  }
}

async function answer(session, callId) {
  const records = await readAll(session.id);
  const asked = records.findLast(({ type, id }) => type === "approval.asked" && id === callId);
  if (asked === undefined) return;
  try {
    await insist(() => client.approve(session.id, callId, { answer: "once", hash: asked.request.hash }));
    session.answers.push(callId);
  } catch (error) {
    if (error.status === 409) return void session.answers.push(callId); // taken, and the answer to us was lost
    if (error.status !== 404) throw error;
  }
}

/** The database is away now and then. */
async function insist(ask) {
  for (let tries = 0; ; tries++) {
    try {
      return await ask();
    } catch (error) {
      if ((error.status !== undefined && error.status < 500) || tries > 200) throw error;
      await sleep(200);
    }
  }
}

/** The ledger and the folders against the journal. */
async function check() {
  const sum = { calls: 0, twice: 0, lost: 0, answersLost: 0, cutOff: 0, undone: 0, foldersWrong: 0, silences: [] };
  for (const session of made) {
    const records = await readAll(session.id);
    const path = join(ledger, session.name);
    const lines = existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
    const twice = lines.length - new Set(lines).size;
    if (twice > 0) problems.push(`${session.name}: ${twice} calls ran twice: ${lines.join(" ")}`);
    sum.twice += twice;
    // A run that was held back and not decided has not happened: its call may begin once more.
    const heldAt = (id) =>
      records.findLastIndex(
        (record) => record.type === "approval.asked" && record.id === id && record.request.effects !== undefined,
      );
    const startedOf = (id) =>
      records.filter((record, place) => record.type === "call.started" && record.id === id && place > heldAt(id));
    const endedOf = (id) => records.find((record) => record.type === "call.ended" && record.call.id === id);
    const undone = new Set(records.flatMap((record) => (record.type === "workspace.restored" ? record.undone : [])));
    const asked = records.flatMap((record) =>
      record.type === "item.added" && record.item.type === "call" ? [record.item] : [],
    );
    const inside = [];
    for (const call of asked) {
      sum.calls++;
      const key = /(s\d+-\d+)/.exec(JSON.stringify(call.arguments))?.[1];
      const ended = endedOf(call.id);
      const isInside = JSON.stringify(call.arguments).includes(">> log");
      if (startedOf(call.id).length > 1) {
        sum.twice++;
        problems.push(`${session.name}: ${key} was started twice`);
      }
      if (ended === undefined) {
        sum.cutOff++;
        if (undone.has(call.id)) sum.undone++;
        // Told to the model by the result that every rebuilt history has; a call that never began must not be missing one.
        if (startedOf(call.id).length === 0 && !session.isParked) {
          sum.lost++;
          problems.push(`${session.name}: ${key} neither began nor ended`);
        }
        continue;
      }
      if (ended.call.ok && isInside) inside.push(key);
      if (ended.call.ok && !isInside && !lines.includes(key)) {
        sum.lost++;
        problems.push(`${session.name}: ${key} is said to have ended well and left no line`);
      }
    }
    if (asked.length !== calls && !session.isParked) {
      const words = records.filter(({ type }) => type === "turn.ended" || type === "error" || type === "warning");
      const why = words.map(({ reason, message }) => [reason, message].filter(Boolean).join(": ")).join("; ");
      problems.push(`${session.name}: ${asked.length} of ${calls} calls were asked for (${why})`);
    }
    for (const callId of session.answers) {
      const isTaken = records.some((record) => record.type === "approval.answered" && record.id === callId);
      const isDecided = records.some((record) => record.type === "effects.decided" && record.id === callId);
      if ((isTaken && (startedOf(callId).length > 0 || isDecided)) || session.isParked) continue;
      sum.answersLost++;
      problems.push(`${session.name}: the answer to ${callId} came to nothing`);
    }
    // The folder of one that was put aside is set back when it is next opened, and it is not.
    if (!session.isParked) checkFolder(session, records, inside, sum);
    sum.silences.push(...silencesOf(records));
  }
  return sum;
}

/** The worker that had it last has the folder as it stands. */
function checkFolder(session, records, inside, sum) {
  const begun = records.findLast(({ type }) => type === "session.started");
  if (begun === undefined) return void (session.isParked || problems.push(`${session.name} never began`));
  const path = join(begun.cwd, "log");
  const lines = existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
  const started = records.filter(({ type }) => type === "workspace.restored").flatMap(({ undone }) => undone);
  if (lines.join() === inside.join()) return;
  // What could not be undone may have left its line.
  const extra = lines.filter((line) => !inside.includes(line));
  if (inside.every((line) => lines.includes(line)) && extra.length > 0 && started.length === 0) return;
  sum.foldersWrong++;
  problems.push(`${session.name}: its folder has ${lines.join(" ")} and not ${inside.join(" ")}`);
}

/** How long nothing was recorded before another process went on with an open turn. */
function silencesOf(records) {
  const opening = new Set(["workspace.restored", "workspace.kept", "session.started"]);
  return records.flatMap((record, place) => {
    const before = records[place - 1];
    const isTakeOver = opening.has(record.type) && before !== undefined && !opening.has(before.type);
    return isTakeOver && before.type !== "turn.waiting" && before.type !== "turn.ended" ? [record.at - before.at] : [];
  });
}

function quantiles(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  return { cases: sorted.length, p50: at(0.5), p90: at(0.9), p99: at(0.99), max: sorted.at(-1) };
}
