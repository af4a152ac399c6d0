/**
 * Asks at a plain terminal, without drawing a screen. Everything that came from a model is made
 * visible and marked, so that no escape code works and nothing can imitate the question.
 */
import { createWriteStream, openSync } from "node:fs";
import { createInterface } from "node:readline/promises";
import { ReadStream as TtyReadStream, type ReadStream, type WriteStream } from "node:tty";
import type { Readable, Writable } from "node:stream";
import { lookAlikes, toQuotedBlock, toVisibleCommand, toVisibleLine, toVisibleName } from "../../gate/show.ts";
import { chosenPaths } from "../../result/effects.ts";
import type { Grant } from "../../spec/access.ts";
import type { ApprovalAnswer, ApprovalRequest } from "../../spec/stages.ts";
import type { Asking, Person } from "../chat/person.ts";

export interface TerminalApproverOptions {
  readonly input?: Readable & Partial<Pick<ReadStream, "isTTY">>;
  readonly output?: Writable & Partial<Pick<WriteStream, "isTTY" | "rows">>;
  /** Where the terminal is reached if stdin is a pipe. */
  readonly terminal?: string;
}

/** One question at a time. Without a terminal nobody can answer, and the call ends at once. */
export function createTerminalApprover(options: TerminalApproverOptions = {}): Person {
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <Result>(talk: (terminal: Terminal) => Promise<Result | undefined>, signal: AbortSignal) => {
    const next = last.then(() => withTerminal(talk, signal, options));
    last = next.catch(() => undefined);
    return next;
  };
  return {
    ask: (request, signal) => inTurn((terminal) => askApproval(request, terminal), signal),
    converse: (talk, signal) => inTurn((terminal) => talk(toAsking(terminal)), signal),
  };
}

/** A terminal, as long as a question is shown on it. */
interface Terminal {
  write(text: string): void;
  /** The next line from now on; undefined at the end of input. */
  read(): Promise<string | undefined>;
  readonly rows: number;
}

async function withTerminal<Result>(
  talk: (terminal: Terminal) => Promise<Result | undefined>,
  signal: AbortSignal,
  options: TerminalApproverOptions,
): Promise<Result | undefined> {
  const streams = openStreams(options);
  if (streams === undefined || signal.aborted) return undefined;
  const { input, output, close } = streams;
  const reader = isTerminal(input) ? freshLines(input, output, signal) : linesOf(input, output, signal);
  try {
    return await talk({
      write: (text) => void output.write(text),
      read: reader.read,
      rows: options.output?.rows ?? 24,
    });
  } catch (error) {
    if (signal.aborted || (error instanceof Error && error.name === "AbortError")) return undefined;
    throw error;
  } finally {
    reader.close();
    close();
  }
}

interface LineReader {
  read(): Promise<string | undefined>;
  close(): void;
}

/** A stream that a program writes, in which every line is an answer. */
function linesOf(input: Readable, output: Writable, signal: AbortSignal): LineReader {
  const lines = createInterface({ input, output, terminal: false });
  const ended = new Promise<undefined>((resolve) => lines.once("close", () => resolve(undefined)));
  return { read: () => Promise.race([lines.question("", { signal }), ended]), close: () => lines.close() };
}

/** A person's terminal, where what was typed before the question was shown is thrown away. */
function freshLines(input: ReadStream, output: Writable, signal: AbortSignal): LineReader {
  return {
    async read() {
      if (await throwAway(input)) output.write("(what was typed before the question is not an answer)\n> ");
      const lines = linesOf(input, output, signal);
      try {
        return await lines.read();
      } finally {
        lines.close();
      }
    },
    close: () => undefined,
  };
}

const quietMs = 60;

/**
 * Reads until nothing is waiting, including half a line, which only raw mode returns. Returns whether
 * there was anything.
 */
async function throwAway(input: ReadStream): Promise<boolean> {
  let found = false;
  let interrupted = false;
  let at = Date.now();
  const take = (data: Buffer | string) => {
    found = true;
    at = Date.now();
    if (data.toString().includes("\u0003")) interrupted = true;
  };
  const wasRaw = input.isRaw;
  input.setRawMode(true);
  input.on("data", take);
  const until = Date.now() + 1_000;
  while (Date.now() - at < quietMs && Date.now() < until)
    await new Promise((resolve) => void setTimeout(resolve, quietMs / 3));
  input.off("data", take);
  input.pause();
  input.setRawMode(wasRaw);
  // In raw mode Ctrl-C is an ordinary character, so it is passed on as the signal it means.
  if (interrupted) process.kill(process.pid, "SIGINT");
  return found;
}

function isTerminal(input: Readable): input is ReadStream {
  return "isTTY" in input && input.isTTY === true && "setRawMode" in input;
}

function toAsking({ write, read }: Terminal): Asking {
  return {
    async choose(words, choices) {
      const rows = choices.map(
        ({ label, description }, n) => `  ${n + 1}  ${label}${description === undefined ? "" : `  (${description})`}`,
      );
      for (;;) {
        write(`${words}\n\n${rows.join("\n")}\n> `);
        const answer = await read();
        if (answer === undefined) return undefined;
        // Only a number that we offered counts, and an empty line is not a yes.
        const chosen = /^\s*\d+\s*$/.test(answer) ? choices[Number(answer) - 1] : undefined;
        if (chosen !== undefined) return chosen.value;
        write("Please answer with one of the numbers.\n");
      }
    },
    async write(words) {
      write(`${words}\n> `);
      return read();
    },
  };
}

async function askApproval(request: ApprovalRequest, terminal: Terminal): Promise<ApprovalAnswer | undefined> {
  const text = describeRequest(request).split("\n");
  const page = Math.max(10, terminal.rows - 6);
  let shown = 0;
  for (;;) {
    terminal.write(`${text.slice(shown, shown + page).join("\n")}\n`);
    shown = Math.min(text.length, shown + page);
    if (shown === text.length) break;
    terminal.write(`\n  … ${text.length - shown} more lines. Enter shows them, n says no: `);
    const more = await terminal.read();
    if (more === undefined) return undefined;
    if (more.trim().toLowerCase().startsWith("n")) return { answer: "no" };
  }
  for (;;) {
    terminal.write(`\n${choices(request)}\n> `);
    const answer = await terminal.read();
    if (answer === undefined) return undefined;
    const read = readChoice(answer, request);
    if (read !== undefined) return read;
    terminal.write("Please answer with one of the letters.\n");
  }
}

function choices(request: ApprovalRequest): string {
  if (request.effects !== undefined)
    return [
      "  y  keep all of it",
      "  k  keep only these lines: k 1 3-5",
      "  s  keep it, and changes in the same folders for this session",
      ...alwaysChoice(request),
      ...(request.effects.direct === undefined ? [] : ["  d  drop it, and run it again directly"]),
      "  n  drop it (n WORDS tells the model why)",
      "  q  drop it, and stop the turn",
    ].join("\n");
  return [
    "  y  once",
    "  s  for this session, exactly this",
    ...alwaysChoice(request),
    "  n  no (n WORDS tells the model why)",
    "  q  no, and stop the turn",
  ].join("\n");
}

function alwaysChoice({ always }: ApprovalRequest): readonly string[] {
  return always === undefined
    ? []
    : [
        `  a  always: writes  ${toVisibleLine(always.rule)}\n       to ${toVisibleLine(always.file)}\n       and allows ${toVisibleLine(always.alsoAllows)}`,
      ];
}

/** Only a letter that we offered counts, and an empty line is not a yes. */
export function readChoice(line: string, request: ApprovalRequest): ApprovalAnswer | undefined {
  const [letter = "", ...words] = line.trim().split(/\s+/);
  const message = words.join(" ");
  switch (letter.toLowerCase()) {
    case "y":
    case "yes":
      return { answer: "once" };
    case "k": {
      const keep = request.effects && chosenPaths(words, request.effects.lines);
      return keep === undefined ? undefined : { answer: "once", keep };
    }
    case "s":
      return { answer: "session" };
    case "d":
      return request.effects?.direct === undefined ? undefined : { answer: "direct" };
    case "a":
      return request.always === undefined ? undefined : { answer: "always" };
    case "n":
    case "no":
      return message === "" ? { answer: "no" } : { answer: "no", message };
    case "q":
      return message === "" ? { answer: "stop" } : { answer: "stop", message };
    default:
      return undefined;
  }
}

/** The whole request as text that is safe to print. */
export function describeRequest(request: ApprovalRequest): string {
  const { access, call, commands } = request;
  const lines = [`Approval needed: ${toVisibleName(call.tool)}`, `  why: ${toVisibleLine(request.reason)}`];
  for (const command of access.commands ?? []) {
    lines.push(
      command.shell === undefined
        ? `  runs:\n${toQuotedBlock(toVisibleCommand(command.argv ?? []))}`
        : `  runs${command.dialect === undefined ? "" : ` (${command.dialect})`}:\n${toQuotedBlock(command.shell)}`,
    );
    const foreign = lookAlikes(command.shell ?? command.argv?.join(" ") ?? "").slice(0, 8);
    if (foreign.length > 0) lines.push(`  ! not ASCII, though it may look so: ${foreign.join(", ")}`);
    if (command.cwd !== undefined) lines.push(`  in: ${toVisibleLine(command.cwd)}`);
  }
  if (commands.length > 1)
    lines.push("  that is:", ...commands.slice(0, 50).map((argv) => `  │ ${toVisibleCommand(argv)}`));
  if (commands.length > 50) lines.push(`  │ … and ${commands.length - 50} more`);
  for (const path of access.write ?? []) lines.push(`  changes: ${toVisibleLine(path)}`);
  for (const path of access.read ?? []) lines.push(`  reads: ${toVisibleLine(path)}`);
  for (const host of access.network ?? []) lines.push(`  contacts: ${toVisibleLine(host)}`);
  if (access.escalation !== undefined)
    lines.push(`  outside the sandbox: ${toVisibleLine(access.escalation.justification ?? "no reason given")}`);
  if (request.effects !== undefined) {
    lines[0] = `Approval needed: ${toVisibleName(call.tool)} has run, and nothing of what it did is kept yet`;
    const width = String(request.effects.lines.length).length;
    lines.push("  what it did:");
    for (const [at, { mark, text }] of request.effects.lines.entries())
      lines.push(`  ${String(at + 1).padStart(width)} ${mark} ${toVisibleLine(text)}`);
  }
  if (request.diff !== undefined) lines.push("  the change:", toQuotedBlock(request.diff));
  else if ((access.commands ?? []).length === 0)
    lines.push("  with:", toQuotedBlock(JSON.stringify(call.input, null, 2) ?? ""));
  lines.push(`  ${request.effects === undefined ? "a yes opens" : "it ran with"}: ${describeGrant(request.grant)}`);
  return lines.join("\n");
}

function describeGrant(grant: Grant): string {
  if (!grant.confined && grant.write.includes("/")) return "everything this user can do, without a sandbox";
  const network =
    typeof grant.network === "string"
      ? `network ${grant.network}`
      : `network to ${grant.network.map(toVisibleLine).join(", ")}`;
  const writes = grant.write.length === 0 ? "no writing" : `writing in ${grant.write.map(toVisibleLine).join(", ")}`;
  return `${writes}; ${network}${grant.confined ? "" : "; no sandbox"}`;
}

interface Streams {
  readonly input: Readable;
  readonly output: Writable;
  readonly close: () => void;
}

/** The streams that were given; otherwise stdin and stderr if they are a terminal; otherwise the terminal itself. */
function openStreams(options: TerminalApproverOptions): Streams | undefined {
  const { input, output } = options;
  if (input !== undefined && output !== undefined) return { input, output, close: () => undefined };
  if (process.stdin.isTTY && process.stderr.isTTY)
    return { input: process.stdin, output: process.stderr, close: () => undefined };
  if (!process.stderr.isTTY || options.terminal === undefined) return undefined;
  const reader = new TtyReadStream(openSync(options.terminal, "r"));
  const writer = createWriteStream(options.terminal);
  return { input: reader, output: writer, close: () => void (reader.destroy(), writer.end()) };
}
