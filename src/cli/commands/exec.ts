import { fstatSync } from "node:fs";
import { buildCommand } from "@stricli/core";
import { defined } from "../../base/json.ts";
import type { SessionEvent, TurnEnded } from "../../session/index.ts";
import { assemble } from "../assemble.ts";
import { sessionFlags, type SessionFlags, toggle } from "../config/flags.ts";
import { exitCodes, isTerminal, readStdin, runCommand, say, UsageError } from "../io.ts";
import { createLinePrinter } from "../line-printer.ts";
import { prepare } from "../prepare.ts";
import { setSessionFlags } from "../v8-flags.ts";
import { createTimeline } from "../chat/timeline.ts";
import type { Denial } from "../../spec/access.ts";

interface ExecFlags extends SessionFlags {
  readonly json?: boolean;
  readonly resume?: string;
  readonly outputSchema?: string;
  readonly ephemeral?: boolean;
}

export const command = buildCommand({
  docs: { brief: "run one headless turn: a prompt in, the answer out; never waits for a person" },
  parameters: {
    flags: {
      ...sessionFlags,
      json: toggle("every event as a JSON line on stdout"),
      resume: {
        kind: "parsed",
        parse: String,
        optional: true,
        brief: "continue this session (an id, its beginning, or 'last')",
        placeholder: "ID",
      },
      outputSchema: {
        kind: "parsed",
        parse: String,
        optional: true,
        brief: "the answer must be JSON that fits this schema",
        placeholder: "FILE",
      },
      ephemeral: toggle("keep no journal"),
    },
    positional: {
      kind: "array",
      parameter: {
        brief: "the prompt; piped input is added to it, or is the prompt if there is none ('-' waits for input)",
        parse: String,
        placeholder: "PROMPT",
      },
    },
  },
  func: (flags: ExecFlags, ...words: readonly string[]) => runCommand(() => exec(flags, words)),
});

async function exec(flags: ExecFlags, words: readonly string[]): Promise<number> {
  const { cwd, config } = await prepare(flags);
  const prompt = await readPrompt(words);
  const { resume, ephemeral = false } = flags;
  const outputSchema = await loadWanted(flags.outputSchema);
  const printer = createLinePrinter();
  const assembled = await assemble({
    config,
    cwd,
    env: process.env,
    ephemeral,
    flags,
    ...defined({ resume, outputSchema }),
    ...(flags.json ? { onEvent: printer.print } : {}),
  });
  const { session, close } = assembled;
  setSessionFlags(session);
  const stop = () => session.interrupt();
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  const show = isTerminal() ? showAll() : showAnswer();
  try {
    let ended: TurnEnded | undefined;
    let denied = 0;
    const refusedBySandbox: Denial[] = [];
    for await (const event of session.send(prompt)) {
      if (!flags.json) show(event);
      if (event.type === "turn.ended") ended = event;
      if (event.type !== "call.ended") continue;
      if (event.call.ruling?.decision === "deny") denied++;
      if (event.call.denied !== undefined) refusedBySandbox.push(event.call.denied);
    }
    if (!flags.json && ended !== undefined && ended.refused > 0) say(whatNow(ended.refused, denied));
    const opening = flags.json ? undefined : howToOpen(refusedBySandbox, cwd);
    if (opening !== undefined) say(opening);
    return exitCodeOf(ended);
  } finally {
    printer.flush();
    process.off("SIGINT", stop);
    process.off("SIGTERM", stop);
    await close();
  }
}

async function loadWanted(schemaFile: string | undefined) {
  if (schemaFile === undefined) return undefined;
  const { loadOutputSchema } = await import("../output-schema.ts");
  return loadOutputSchema(schemaFile);
}

/** Shows everything as it comes, for a person at a terminal. */
function showAll(): (event: SessionEvent) => void {
  return createTimeline({ words: (text) => process.stdout.write(text), line: say });
}

/** Writes the answer and nothing else to stdout, for a file or a program. What was said on the way goes to stderr. */
function showAnswer(): (event: SessionEvent) => void {
  let words = "";
  const timeline = createTimeline({ words: (text) => (words += text), line: say });
  return (event) => {
    if (event.type === "call.asked" || event.type === "request.sent") {
      process.stderr.write(words);
      words = "";
    }
    timeline(event);
    if (event.type === "turn.ended") process.stdout.write(words);
  };
}

/** For the person who reads the log of a run in which nobody could be asked. */
function whatNow(refused: number, denied: number): string {
  const head = `callgate: ${refused === 1 ? "one call was" : `${refused} calls were`} refused ('callgate show last' has the reason).`;
  if (denied >= refused)
    return `${head} 'callgate policy check --shell LINE' says which rule or setting denies a command.`;
  return `${head} In a terminal 'callgate' asks you; 'callgate policy suggest --shell LINE' shows the rule that would allow a command.`;
}

/** What was not refused by a rule can be opened: by a flag, unless it is a protected name in the workspace itself. */
function howToOpen(denials: readonly Denial[], workspace: string): string | undefined {
  const open = denials.filter(({ rule }) => rule === undefined);
  if (open.length === 0) return undefined;
  const isOutside = ({ what, target = "" }: Denial) => what === "write" && !target.startsWith(`${workspace}/`);
  const flags = [
    ...(open.some(isOutside) ? ["--add-dir DIR lets commands write there"] : []),
    ...(open.some(({ what }) => what === "network") ? ["--allow-host HOST lets commands reach a host"] : []),
    "in a terminal 'callgate' asks you",
  ];
  return `callgate: the sandbox refused something: ${flags.join("; ")}.`;
}

/** 3 means that something was refused because nobody could approve it, even if the model found another way to end. */
function exitCodeOf(ended: TurnEnded | undefined): number {
  if (ended === undefined || ended.reason === "error" || ended.reason === "loop" || ended.reason === "limit")
    return exitCodes.failed;
  if (ended.reason === "interrupted") return exitCodes.interrupted;
  if (ended.reason === "stopped") return exitCodes.refused;
  return ended.refused > 0 ? exitCodes.refused : exitCodes.done;
}

async function readPrompt(words: readonly string[]): Promise<string> {
  const waits = words.length === 0 || words.at(-1) === "-";
  const given = (words.at(-1) === "-" ? words.slice(0, -1) : words).join(" ");
  if (waits && process.stdin.isTTY)
    throw new UsageError("give a prompt, or pipe one in ('callgate' alone starts an interactive session)");
  const piped = waits ? await readStdin() : await readBeside();
  if (given.trim() === "" && piped.trim() === "")
    throw new UsageError("the prompt is empty: give one, as in callgate exec 'list .', or pipe one in");
  if (given.trim() === "" || piped.trim() === "") return given.trim() === "" ? piped : given;
  return `${given}\n\n<stdin>\n${piped.trimEnd()}\n</stdin>`;
}

const firstByteMs = 3_000;

/**
 * What is piped in beside a prompt. A program that starts us may leave its end open for ever, so the
 * first byte has to come soon. What has begun is read to its end.
 */
async function readBeside(): Promise<string> {
  if (!isPipeOrFile()) return "";
  const { stdin } = process;
  const first = await new Promise<"data" | "late">((resolve) => {
    const late = setTimeout(() => resolve("late"), firstByteMs);
    const come = () => {
      clearTimeout(late);
      resolve("data");
    };
    for (const event of ["readable", "end", "error"] as const) stdin.once(event, come);
  });
  if (first === "data") return readStdin();
  stdin.destroy();
  say("callgate: nothing came on stdin within 3 s, going on without it ('-' after the prompt waits for it)");
  return "";
}

/** A terminal has a person, /dev/null has nothing. */
function isPipeOrFile(): boolean {
  try {
    const stats = fstatSync(0);
    return stats.isFIFO() || stats.isFile() || stats.isSocket();
  } catch {
    return false; // it is closed
  }
}
