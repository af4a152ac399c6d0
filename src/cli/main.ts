import { homedir } from "node:os";
import type { StricliProcess } from "@stricli/core";
import { exitCodes, isTerminal, openOutputsLate, print, say, whenPrinted, write } from "./io.ts";
import { routes, synonyms } from "./routes.ts";
import { version } from "./version.ts";

/** From argv to a command. `--version` and `--help` are answered here, before anything is loaded. */
async function main(argv: readonly string[]): Promise<void> {
  const [first, ...rest] = argv;
  if (first === "--version" || first === "-V" || first === "-v" || first === "version") return print(version);
  if (first === "--help" || first === "-h") return print(overview());
  if (first === "help") return rest.length === 0 ? print(overview()) : main([...rest, "--help"]);
  if (first === "completion") return complete(rest);
  const asked = first === undefined || first.startsWith("-") ? "chat" : first;
  const name = synonyms.get(asked) ?? asked;
  const given = asked === first ? rest : argv;
  const loaded = await loadCommand(name, given);
  if (loaded === undefined) return await unknownCommand(name);
  if (asksForHelp(given) || loaded.isWholeGroup) return print(loaded.formatHelp(loaded.root, [name, ...given]));
  const host = stricliHost();
  await loaded.stricli.run(loaded.app, [name, ...given], { process: host });
  // Stricli numbers a user's mistakes below zero; commands set process.exitCode themselves.
  if (typeof host.exitCode === "number" && host.exitCode !== 0) {
    process.exitCode = host.exitCode < 0 ? exitCodes.usage : exitCodes.failed;
  }
}

/** One command as an application. The others are not loaded. `given` are the words after its name. */
async function loadCommand(name: string, given: readonly string[] = []) {
  const route = Object.hasOwn(routes, name) ? routes[name] : undefined;
  if (route === undefined) return undefined;
  const [{ command }, stricli, help] = await Promise.all([route.load(), import("@stricli/core"), import("./help.ts")]);
  const { describeMistake, findTarget, formatHelp, unknownName, withShortFlags } = help;
  const root = stricli.buildRouteMap({
    routes: { [name]: withShortFlags(command) },
    docs: { brief: route.brief },
  });
  const { target, path } = findTarget(root, [name, ...given]);
  const hint = `(callgate ${path} --help)`;
  const app = stricli.buildApplication(root, {
    name: "callgate",
    scanner: {
      caseStyle: "allow-kebab-for-camel",
      allowArgumentEscapeSequence: true,
      // Stricli compares every flag with its own by edit distance, which takes longer than reading it. Our help looks for slips, and only after a mistake.
      distanceOptions: { threshold: 0, weights: { insertion: 1, deletion: 1, substitution: 1, transposition: 1 } },
    },
    localization: {
      text: {
        ...stricli.text_en,
        exceptionWhileParsingArguments: (error) => `callgate: ${describeMistake(error, target, path)} ${hint}`,
        noCommandRegisteredForInput: ({ input }) => `callgate: ${unknownName(input, target, path)} ${hint}`,
      },
    },
    documentation: { disableAnsiColor: !isTerminal() || process.env["NO_COLOR"] !== undefined },
  });
  // A group that was named alone, with no command of its own to stand for it, says what it has.
  const isWholeGroup =
    !("parameters" in target) && target.getDefaultCommand() === undefined && path === [name, ...given].join(" ");
  return { stricli, app, root, formatHelp, isWholeGroup };
}

/** Only before a `--`; after it the words are arguments. */
function asksForHelp(words: readonly string[]): boolean {
  const end = words.indexOf("--");
  return (end === -1 ? words : words.slice(0, end)).some((word) => word === "--help" || word === "-h");
}

/** Our process as Stricli sees it. */
function stricliHost(): StricliProcess {
  const env = Object.entries(process.env).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]]));
  const output = (name: "stdout" | "stderr") => ({
    write: (text: string) => write(name, text),
    getColorDepth: () => process[name].getColorDepth?.() ?? 1,
  });
  return { stdout: output("stdout"), stderr: output("stderr"), env: Object.fromEntries(env) };
}

/** Here and not in its own file, because it is about the table of commands itself. */
async function complete([shell = "", ...words]: readonly string[]): Promise<void> {
  if (shell === "--words") return propose(words);
  const { completionScript, completionShells } = await import("./completion.ts");
  const script = completionScript(shell);
  if (script !== undefined) return print(script);
  if (shell === "--help" || shell === "-h")
    return print(
      `callgate completion ${completionShells.join("|")}: a completion script for that shell, for example eval "$(callgate completion bash)"`,
    );
  say(`callgate: name a shell: callgate completion ${completionShells.join("|")}`);
  process.exitCode = exitCodes.usage;
}

/** What could replace the last word, one per line, for the completion scripts. */
async function propose(words: readonly string[]): Promise<void> {
  const [first = "", ...rest] = words;
  if (rest.length === 0 && !first.startsWith("-"))
    return [...Object.keys(routes), "completion"].filter((name) => name.startsWith(first)).forEach(print);
  const name = first.startsWith("-") ? "chat" : first;
  const loaded = await loadCommand(name);
  const host = stricliHost();
  const inputs = [name, ...(name === first ? rest : words)];
  const found = (await loaded?.stricli.proposeCompletions(loaded.app, inputs, { process: host })) ?? [];
  for (const { completion } of found) print(completion);
}

async function unknownCommand(name: string): Promise<void> {
  const { nearest } = await import("../base/text.ts");
  const [guess] = nearest(name, Object.keys(routes), 1);
  say(
    `callgate: there is no command '${name}'${guess ? `; did you mean '${guess}'?` : ""} (callgate --help lists them)`,
  );
  process.exitCode = exitCodes.usage;
}

function overview(): string {
  const shown = Object.entries(routes);
  const width = Math.max(...shown.map(([name]) => name.length), 0);
  return [
    "callgate: the tool-calling engine for LLM agents",
    "",
    "  callgate [FLAGS]            an interactive session in this folder (callgate chat --help)",
    "  callgate exec PROMPT        one turn without a terminal; piped input is added to the prompt",
    "  callgate COMMAND --help     what a command does and takes",
    "  callgate completion SHELL   a completion script for bash, zsh or fish",
    "",
    ...shown.map(([name, route]) => `  ${name.padEnd(width)}  ${route.brief}`),
    "",
    "Exit codes: 0 done, 1 ended in an error, 2 bad usage or config, 3 refused or nobody to approve, 130 interrupted.",
  ].join("\n");
}

/** The whole command, from its arguments to the end of the process. */
export async function run(argv: readonly string[]): Promise<void> {
  // Whoever reads our output may stop reading (`| head`). That is not an error, and nobody is left to be told.
  openOutputsLate({
    stdout(error) {
      if (error.code !== "EPIPE") say(`callgate: cannot write the output: ${error.code ?? error.message}`);
      process.exit(error.code === "EPIPE" ? exitCodes.done : exitCodes.failed);
    },
    stderr: () => process.exit(exitCodes.failed),
  });

  // Services and containers often start us without HOME, but the system's user list knows it.
  process.env["HOME"] ||= homedir();

  await main(argv);
  // The command has ended, so nothing that was left open (a server, a connection) may keep the process alive.
  whenPrinted(() => process.exit());
}
