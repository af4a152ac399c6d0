import { execFileSync, spawnSync } from "node:child_process";
import { cli, tempFolder } from "./run.ts";

export const hasTmux = spawnSync("tmux", ["-V"]).status === 0;

/** The real command in a real terminal. */
export interface Terminal {
  readonly cwd: string;
  readonly home: string;
  /** What a person sees, line by line. */
  screen(): string;
  /** Waits until the screen shows it; fails with the screen. */
  sees(words: string | RegExp): Promise<string>;
  type(text: string): void;
  key(...names: readonly string[]): void;
  paste(text: string): void;
  title(): string;
  close(): void;
}

export interface TerminalOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly home?: string;
  /** Columns and rows. */
  readonly size?: readonly [number, number];
}

const patienceMs = 45_000;
let count = 0;

export function openTerminal({ args = [], env = {}, size = [100, 40], ...at }: TerminalOptions): Terminal {
  const cwd = at.cwd ?? tempFolder("work");
  const home = at.home ?? tempFolder("state");
  const server = `callgate-test-${process.pid}-${++count}`;
  const tmux = (...words: readonly string[]) =>
    execFileSync("tmux", ["-L", server, "-f", "/dev/null", ...words], { encoding: "utf8" });
  const variables = { CALLGATE_HOME: home, HOME: tempFolder("home"), ...env };
  const line = [
    "env",
    ...Object.entries(variables).map(([name, value]) => `${name}=${value}`),
    process.execPath,
    cli,
    ...args,
  ];
  // The shell stays, so that the end and its exit code can be seen.
  const shell = `${line.map((word) => `'${word}'`).join(" ")}; echo "ended with $?"; sleep 60`;
  tmux("new-session", "-d", "-s", "s", "-x", String(size[0]), "-y", String(size[1]), "-c", cwd, shell);

  const screen = () => tmux("capture-pane", "-p", "-t", "s");
  return {
    cwd,
    home,
    screen,
    async sees(words) {
      const start = Date.now();
      for (;;) {
        const shown = screen();
        if (typeof words === "string" ? shown.includes(words) : words.test(shown)) return shown;
        if (Date.now() - start > patienceMs) throw new Error(`never saw ${String(words)}:\n${shown}`);
        await new Promise((resolve) => setTimeout(resolve, 60));
      }
    },
    type: (text) => void tmux("send-keys", "-t", "s", "-l", text),
    key: (...names) => void tmux("send-keys", "-t", "s", ...names),
    paste(text) {
      tmux("set-buffer", text);
      tmux("paste-buffer", "-p", "-t", "s");
    },
    title: () => tmux("display-message", "-p", "-t", "s", "#{pane_title}").trim(),
    close: () => void spawnSync("tmux", ["-L", server, "kill-server"]),
  };
}

/** As long as a person needs to read a question: what is typed before that is thrown away, on purpose. */
export function readQuestion(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1_500));
}
