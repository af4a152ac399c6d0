import { createInterface } from "node:readline/promises";
import { print } from "../io.ts";
import { createTimeline } from "./timeline.ts";
import type { Person } from "./person.ts";
import { runOwnCommand, tellOwnCommand, withBeside } from "./own-command.ts";
import type { ChatContext, Restart } from "../tui/chat-context.ts";
import { readMessage } from "../tui/attach.ts";
import { createSlash } from "../tui/slash.ts";
import { visible } from "./visible.ts";

/** The interactive session as plain lines: for dumb terminals, screen readers and logs. */
export async function runPlainChat(context: ChatContext, person: Person): Promise<Restart | undefined> {
  const { session, typed, cwd, modes } = context;
  print(context.greeting);
  const show = createTimeline({ words: (words) => process.stdout.write(words), line: print });
  const left: { now?: boolean; restart?: Restart } = {};
  const beside: string[] = [];
  /** What a slash command wants to send after it has ended. */
  let toSend: string | undefined;
  let diff: string | undefined;
  let stopOwn: AbortController | undefined;
  const slash = createSlash({
    ...context,
    note: print,
    isBusy: () => false,
    lastDiff: () => diff,
    pick: async (words, choices) =>
      person.converse((asking) => asking.choose(words, choices.slice(0, 30)), new AbortController().signal),
    send: (words) => (toSend = words),
    restart: (restart) => Object.assign(left, { now: true, restart }),
    quit: () => (left.now = true),
    runCommand: async (args) => print(visible(await context.runCommand(args))),
  });
  const stop = () => {
    stopOwn?.abort();
    session.interrupt();
  };
  process.on("SIGINT", stop);
  const stopListening = session.on((event) => {
    if (event.type === "diff.updated") diff = visible(event.diff);
  });
  const runOwn = async (line: string) => {
    stopOwn = new AbortController();
    const ended = await runOwnCommand(line, cwd, (piece) => process.stdout.write(visible(piece)), stopOwn.signal);
    stopOwn = undefined;
    if (ended.exitCode !== 0) print(`  exit ${ended.exitCode ?? "by a signal"}`);
    beside.push(tellOwnCommand(line, ended));
  };
  const send = async (line: string) => {
    const { content, problems } = readMessage(line, cwd);
    for (const problem of problems) print(`! ${problem}`);
    const notice = modes.takeNotice();
    const before = [...beside.splice(0), ...(notice === undefined ? [] : [notice])];
    for await (const event of session.send(withBeside(before, content))) show(event);
  };
  try {
    while (!left.now) {
      const line = await readPrompt(typed.prompts);
      if (line === undefined) return undefined;
      if (line === "") continue;
      typed.add(line);
      if (line.startsWith("!")) await runOwn(line.slice(1).trim());
      else if (!line.startsWith("/") || line.slice(1).split(" ")[0]!.includes("/")) await send(line);
      else {
        await slash(line);
        if (toSend !== undefined) await send(toSend);
        toSend = undefined;
      }
    }
    return left.restart;
  } finally {
    stopListening();
    process.off("SIGINT", stop);
  }
}

/** Undefined at the end of input. A new reader each time, so that questions in between can use the terminal. */
async function readPrompt(history: readonly string[]): Promise<string | undefined> {
  const reader = createInterface({ input: process.stdin, output: process.stdout, history: history.toReversed() });
  try {
    return await Promise.race([
      reader.question("› ").then((line) => line.trim()),
      new Promise<undefined>((resolve) => reader.once("close", () => resolve(undefined))),
    ]);
  } finally {
    reader.close();
  }
}
