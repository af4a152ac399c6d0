import { createInterface } from "node:readline/promises";
import type { Session } from "../session/index.ts";
import { print } from "./io.ts";
import { createTimeline } from "./timeline.ts";

/** The interactive session as plain lines: for dumb terminals, screen readers and logs. */
export async function runPlainChat(session: Session, greeting: string): Promise<undefined> {
  print(greeting);
  const show = createTimeline({ words: (text) => process.stdout.write(text), line: print });
  const stop = () => session.interrupt();
  process.on("SIGINT", stop);
  try {
    for (;;) {
      const prompt = await readPrompt();
      if (prompt === undefined || prompt === "/quit") return undefined;
      if (prompt !== "") for await (const event of session.send(prompt)) show(event);
    }
  } finally {
    process.off("SIGINT", stop);
  }
}

/** Undefined at the end of input. A fresh reader each time, so that questions in between can have the terminal. */
async function readPrompt(): Promise<string | undefined> {
  const reader = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return await Promise.race([
      reader.question("› ").then((line) => line.trim()),
      new Promise<undefined>((resolve) => reader.once("close", () => resolve(undefined))),
    ]);
  } finally {
    reader.close();
  }
}
