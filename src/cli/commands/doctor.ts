import { execFileSync } from "node:child_process";
import { buildCommand } from "@stricli/core";
import { defined } from "../../base/json.ts";
import { stateDir } from "../../base/paths.ts";
import { launcherBuild, launcherPath } from "../../runtime/process/launcher-path.ts";
import { howProcessesAreHeld, judgesStarts } from "../../runtime/sandbox/programs.ts";
import { findTrustedProgram } from "../../runtime/sandbox/machine.ts";
import { trySandboxes } from "../../runtime/sandbox/sandbox.ts";
import type { CandidateResult } from "../../runtime/sandbox/sandbox.ts";
import { nearest } from "../../base/text.ts";
import { loadConfig, type Config } from "../config/config.ts";
import { toggle } from "../config/flags.ts";
import { exitCodes, print, printJson, runCommand, UsageError } from "../io.ts";
import { isTrusted } from "../policy/trust.ts";
import { isOfflineConfig, listModelsOf, locateModel, missingKey } from "../select-model.ts";
import { stateProblem } from "../state-folder.ts";
import { version } from "../version.ts";

/** One capability of this machine. `missing` is worth knowing, `broken` keeps something from working. */
interface Finding {
  readonly name: string;
  readonly state: "ok" | "missing" | "broken";
  readonly detail: string;
  readonly fix?: string;
}

export const command = buildCommand<{ readonly json?: boolean }, []>({
  docs: {
    brief: "show what works on this machine and what does not",
    fullDescription:
      "Tries every sandbox for real and looks for what else callgate can use. Ends with 1 if commands cannot be confined or the config cannot be read.",
  },
  parameters: { flags: { json: toggle("as JSON") } },
  func: ({ json }) =>
    runCommand(async () => {
      const candidates = await sandboxFindings();
      const findings = [
        nodeFinding(),
        ...candidates,
        launcherFinding(),
        await effectsFinding(),
        ...programFindings(),
        ...(await configFindings()),
        stateFinding(),
      ];
      const usable = findings.find(({ name, state }) => name.startsWith("sandbox ") && state === "ok");
      const summary =
        usable === undefined
          ? "commands cannot be confined here: each one needs approval"
          : `commands are confined by ${usable.name.slice("sandbox ".length)}`;
      const isBroken = usable === undefined || findings.some(({ state }) => state === "broken");
      if (json) printJson({ version, ok: !isBroken, summary, findings });
      else report(findings, summary);
      return isBroken ? exitCodes.failed : exitCodes.done;
    }),
});

const marks = { ok: "ok     ", missing: "missing", broken: "BROKEN " } as const;

function report(findings: readonly Finding[], summary: string): void {
  const width = Math.max(...findings.map(({ name }) => name.length));
  // On a terminal a long detail goes on below its beginning; into a pipe it stays one line.
  const room = process.stdout.isTTY ? process.stdout.columns - width - 12 : Number.POSITIVE_INFINITY;
  const hang = (text: string) => wrap(text, Math.max(room, 30)).join(`\n${" ".repeat(width + 11)}`);
  for (const { name, state, detail, fix } of findings) {
    print(`${marks[state]}  ${name.padEnd(width)}  ${hang(detail)}`);
    if (fix !== undefined) print(`${" ".repeat(width + 11)}${hang(`fix: ${fix}`)}`);
  }
  print("");
  print(summary);
}

/** At spaces; a word that is longer than a line stays whole. */
function wrap(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length + 1 > columns) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

function nodeFinding(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const isNew = major > 20 || (major === 20 && minor >= 19);
  return {
    name: "node",
    state: isNew ? "ok" : "broken",
    detail: process.version,
    ...(isNew ? {} : { fix: "install Node 20.19 or later" }),
  };
}

/** Old forms are listed only if the new one of the same name fails. */
async function sandboxFindings(): Promise<readonly Finding[]> {
  const results = await trySandboxes();
  const isShown = (result: CandidateResult) =>
    !result.id.endsWith("-old") ||
    (result.ok && !results.some((other) => other.ok && other.name === result.name && other.id !== result.id));
  const tried = results.filter(isShown).map(({ id, name, ok, detail, fix }): Finding => ({
    name: `sandbox ${name}`,
    state: ok ? "ok" : "missing",
    detail: ok && id.startsWith("landlock") ? `${detail}; ${landlockGap}` : detail,
    ...defined({ fix }),
  }));
  return tried.length > 0 ? tried : [{ name: "sandbox none", state: "missing", detail: nothingToTry() }];
}

/** Its rules apply to what exists when the command starts. */
const landlockGap = "a single file that is not there yet cannot be opened for writing, only its folder";

function nothingToTry(): string {
  return process.platform === "win32"
    ? "approvals only: Windows has no backend yet; under WSL2 the Linux ones work"
    : "no sandbox program was found";
}

function launcherFinding(): Finding {
  const path = launcherPath();
  if (path !== undefined) {
    const judged = judgesStarts(path)
      ? "program starts are judged by deny rules"
      : "program starts cannot be judged on this kernel: a deny of words is held by reading the line only";
    return { name: "launcher", state: "ok", detail: `${path} (${judged}; ${limitsOf(path)})` };
  }
  return {
    name: "launcher",
    state: "missing",
    detail:
      "commands start by plain spawn: slower, no Landlock, no limits; deny rules are held by reading the line and by hiding the program's files",
    fix: `node ${launcherBuild()} (needs a C compiler)`,
  };
}

const holders: Readonly<Record<string, string>> = {
  namespace: "pid_max of its namespace",
  user: "RLIMIT_NPROC",
  group: "a control group",
  watched: "watching",
};

function limitsOf(launcher: string): string {
  const [inBwrap = "watched", elsewhere = "watched"] = howProcessesAreHeld(launcher) ?? [];
  const ways = [...new Set([inBwrap, elsewhere])].map((way) => holders[way] ?? way);
  return `the number of processes is held by ${ways.join(" in bubblewrap, elsewhere by ")}; memory and temp folder are watched`;
}

/** Really holds one command in this folder, and drops it again. */
async function effectsFinding(): Promise<Finding> {
  const [{ createSandbox }, { createProcesses }, { tryHeld }, { toBaseGrant }, { createPolicy }] = await Promise.all([
    import("../../runtime/sandbox/sandbox.ts"),
    import("../../runtime/processes.ts"),
    import("../../runtime/effects/probe.ts"),
    import("../../gate/grant.ts"),
    import("../../gate/options.ts"),
  ]);
  const cwd = process.cwd();
  const grant = toBaseGrant(createPolicy({ workspace: cwd, confinement: { name: "asked for", available: true } }));
  const sandbox = createSandbox();
  const processes = createProcesses();
  try {
    const { spawner } = processes;
    const why = (await sandbox.whyNotHeld(grant, cwd)) ?? (await tryHeld({ sandbox, spawner, grant, cwd }));
    return why === undefined
      ? { name: "effects", state: "ok", detail: "held (overlay): a command's changes are shown before they count" }
      : { name: "effects", state: "missing", detail: `undo of file tools only: ${why}` };
  } finally {
    await processes.close();
    await sandbox.close();
  }
}

interface Program {
  readonly name: string;
  readonly command: string;
  readonly without: string;
  readonly fix: string;
}

const programs: readonly Program[] = [
  ...(process.platform === "linux"
    ? [
        {
          name: "bubblewrap",
          command: "bwrap",
          without: "the strongest sandbox is not there",
          fix: "install the package bubblewrap",
        },
      ]
    : []),
  {
    name: "ripgrep",
    command: "rg",
    without: "searches use the built-in one, about half as fast",
    fix: "install the package ripgrep",
  },
  { name: "git", command: "git", without: "no undo of a session's changes by git", fix: "install the package git" },
];

function programFindings(): readonly Finding[] {
  return programs.map(({ name, command: program, without, fix }): Finding => {
    // Never a program of the workspace, which would run before anybody trusted it.
    const path = findTrustedProgram(program, process.env);
    return path === undefined
      ? { name, state: "missing", detail: without, fix }
      : { name, state: "ok", detail: `${path} (${firstLine(path)})` };
  });
}

function firstLine(path: string): string {
  try {
    return execFileSync(path, ["--version"], { encoding: "utf8", timeout: 5000 }).split("\n")[0] ?? "";
  } catch {
    return "does not say its version";
  }
}

async function configFindings(): Promise<readonly Finding[]> {
  try {
    const { config, files, untrusted } = await loadConfig({ env: process.env, cwd: process.cwd(), isTrusted });
    const ignored = untrusted.length === 0 ? "" : `; not read, because nobody trusted it yet: ${untrusted.join(", ")}`;
    const read = `${files.length === 0 ? "defaults, no file" : files.join(", ")}${ignored}`;
    return [{ name: "config", state: "ok", detail: read }, await modelFinding(config)];
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return [{ name: "config", state: "broken", detail: error.message, fix: "correct the file and line it names" }];
  }
}

/**
 * Whether there is a key, the server answers, and it has the model. It is really asked, but never for
 * an answer that costs money.
 */
async function modelFinding(given: Config): Promise<Finding> {
  const broken = (detail: string, fix: string): Finding => ({ name: "model", state: "broken", detail, fix });
  if (isOfflineConfig(given))
    return {
      name: "model",
      state: "ok",
      detail: "none is set: the built-in offline planner ('callgate init' sets one)",
    };
  let config: Config;
  try {
    ({ config } = await locateModel(given, process.env));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return broken(error.message, "name the provider in callgate.toml");
  }
  const { model = "(no name)", provider = config.base_url ?? "?" } = config;
  const missing = missingKey(config, process.env);
  if (missing !== undefined)
    return broken(`${model} at ${provider}: ${missing} is not set`, `export ${missing}=…, or 'callgate init --force'`);
  const listed = await listModelsOf(config, process.env);
  if (!listed.ok && listed.reason === "no-list")
    return { name: "model", state: "ok", detail: `${model} at ${provider} (it lists no models: not looked up)` };
  if (!listed.ok)
    return broken(
      `${model} at ${provider}: ${listed.detail}`,
      listed.reason === "key" ? "give it a right key" : "start it, or correct its address",
    );
  if (listed.models.length === 0 || listed.models.includes(model))
    return { name: "model", state: "ok", detail: `${model} at ${provider}: reached, the key is taken` };
  const [guess] = nearest(model, listed.models, 1);
  return broken(
    `${provider} has no model '${model}'${guess === undefined ? "" : `; did you mean '${guess}'?`}`,
    `it has ${listed.models.slice(0, 5).join(", ")}${listed.models.length > 5 ? ", …" : ""}`,
  );
}

function stateFinding(): Finding {
  const problem = stateProblem(process.env);
  if (problem === undefined) return { name: "state", state: "ok", detail: stateDir(process.env) };
  return { name: "state", state: "broken", detail: problem };
}
