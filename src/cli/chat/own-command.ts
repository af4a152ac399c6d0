/** `!command`: the person's own shell, with their own rights. The model is told about it with the next message. */
import { spawn } from "node:child_process";
import { text, type Part } from "../../base/content.ts";

export interface OwnCommandEnd {
  /** What it printed: all of it, or its beginning and its end. */
  readonly output: string;
  /** Undefined if a signal ended it. */
  readonly exitCode: number | undefined;
}

const keptHead = 8_000;
const keptTail = 16_000;

export function runOwnCommand(
  line: string,
  cwd: string,
  onOutput: (text: string) => void,
  signal: AbortSignal,
): Promise<OwnCommandEnd> {
  return new Promise((resolve) => {
    const child = spawn(process.env["SHELL"] || "/bin/sh", ["-c", line], {
      cwd,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    let head = "";
    let tail = "";
    let dropped = 0;
    const take = (text: string) => {
      onOutput(text);
      const room = keptHead - head.length;
      head += text.slice(0, room);
      tail += text.slice(Math.max(0, room));
      if (tail.length <= keptTail * 2) return;
      dropped += tail.length - keptTail;
      tail = tail.slice(-keptTail);
    };
    const end = (exitCode: number | undefined) => {
      signal.removeEventListener("abort", stop);
      const gap = dropped === 0 ? "" : `\n[… ${dropped} characters left out …]\n`;
      resolve({ output: `${head}${gap}${tail}`, exitCode });
    };
    const stop = () => {
      try {
        // The whole group is ended, so that what the command started ends with it.
        if (child.pid !== undefined) process.kill(-child.pid, "SIGTERM");
      } catch {
        // It has just ended by itself.
      }
    };
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", take);
    child.once("error", (error) => {
      take(`${error.message}\n`);
      end(127);
    });
    child.once("close", (code) => end(code ?? undefined));
    signal.addEventListener("abort", stop, { once: true });
  });
}

/** A message, with what the model has to be told beside it. */
export function withBeside(before: readonly string[], content: string | readonly Part[]): string | readonly Part[] {
  const told = before.join("\n\n");
  if (told === "") return content;
  return typeof content === "string" ? `${told}\n\n${content}` : [text(told), ...content];
}

/** What the model is told about a command of the person's own. */
export function tellOwnCommand(line: string, { output, exitCode }: OwnCommandEnd): string {
  const end = exitCode === undefined ? "it was interrupted" : `exit code ${exitCode}`;
  return `[The user ran a command of their own (${end})]\n$ ${line}\n${output.trimEnd() || "(no output)"}`;
}
