import { createInterface } from "node:readline/promises";
import { print } from "../io.ts";
import { createTimeline } from "./timeline.ts";
import type { ChatContext, Restart } from "../tui/app.ts";
import { readMessage } from "../tui/attach.ts";
import { createSlash } from "../tui/slash.ts";
import { visible } from "./visible.ts";

/** The interactive session as plain lines: for dumb terminals, screen readers and logs. */
export async function runPlainChat(context: ChatContext): Promise<Restart | undefined> {
  const { session, prompts, cwd } = context;
  print(context.greeting);
  const show = createTimeline({ words: (text) => process.stdout.write(text), line: print });
  const left: { now?: boolean; restart?: Restart } = {};
  let diff: string | undefined;
  const slash = createSlash({
    ...context,
    note: print,
    isBusy: () => false,
    lastDiff: () => diff,
    restart: (restart) => Object.assign(left, { now: true, restart }),
    quit: () => (left.now = true),
    runCommand: async (args) => print(visible(await context.runCommand(args))),
  });
  const stop = () => session.interrupt();
  process.on("SIGINT", stop);
  const stopListening = session.on((event) => {
    if (event.type === "diff.updated") diff = visible(event.diff);
  });
  try {
    while (!left.now) {
      const line = await readPrompt(prompts.prompts);
      if (line === undefined) return undefined;
      if (line === "") continue;
      prompts.add(line);
      if (line.startsWith("/")) {
        await slash(line);
        continue;
      }
      const { content, problems } = readMessage(line, cwd);
      for (const problem of problems) print(`! ${problem}`);
      for await (const event of session.send(content)) show(event);
    }
    return left.restart;
  } finally {
    stopListening();
    process.off("SIGINT", stop);
  }
}

/** Undefined at the end of input. A fresh reader each time, so that questions in between can have the terminal. */
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
