/** The line above the editor: what is happening and for how long, or which model and folder the session uses. */
import { truncateToWidth, visibleWidth, type Component } from "@earendil-works/pi-tui";
import { existsSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import type { SessionEvent } from "../../session/index.ts";
import { visible } from "../chat/visible.ts";
import type { Theme } from "./theme.ts";

export interface StatusLine {
  readonly component: Component;
  hear(event: SessionEvent): void;
  /** Stops the clock. */
  stop(): void;
}

export interface StatusOptions {
  readonly model: string;
  /** The current sandbox and approval modes. */
  readonly mode: () => string;
  readonly cwd: string;
  /** The size of the model's context window in tokens, as soon as it is known. */
  readonly contextWindow: () => number | undefined;
  readonly theme: Theme;
  readonly redraw: () => void;
  /** The name of a running call. */
  readonly nameOf: (id: string) => string;
  readonly costUsd: () => number;
  readonly now?: () => number;
}

export function createStatusLine(options: StatusOptions): StatusLine {
  const { theme, now = Date.now } = options;
  const running = new Map<string, string>();
  const asking = new Set<string>();
  let doing: string | undefined;
  let startedAt = 0;
  let tokens: number | undefined;
  let clock: NodeJS.Timeout | undefined;
  let place = describePlace(options.cwd);

  const stop = () => {
    clearInterval(clock);
    clock = undefined;
  };
  /** If there is not enough room, what /status also shows is left out first. The policy is always visible. */
  const idle = (width: number) => {
    const cost = options.costUsd() > 0 ? `$${options.costUsd().toFixed(4)}` : undefined;
    const parts = [
      visible(options.model),
      options.mode(),
      place,
      describeContext(tokens, options.contextWindow()),
      cost,
      "/help",
    ];
    for (const less of [2, 5, 4, 3, 0]) {
      if (visibleWidth(joinParts(parts)) <= width) break;
      parts[less] = undefined;
    }
    return joinParts(parts);
  };
  const busy = () => {
    if (asking.size > 0)
      return `${seconds(now() - startedAt)} · waiting for your answer · y, n or a number · ctrl-c interrupts`;
    const calls = [...running.values()];
    const more = calls.length > 1 ? ` (+${calls.length - 1})` : "";
    const what = calls.length > 0 ? `running ${calls.at(-1)}${more}` : doing;
    return `${seconds(now() - startedAt)} · esc interrupts · enter queues · ${what}`;
  };

  return {
    component: {
      invalidate() {},
      render: (width) => [
        truncateToWidth(
          ` ${doing === undefined ? theme.dim(idle(width - 1)) : `${theme.accent("●")} ${theme.dim(busy())}`}`,
          width,
        ),
      ],
    },
    stop,
    hear(event) {
      switch (event.type) {
        case "turn.started":
          startedAt = now();
          doing = "starting";
          clock ??= setInterval(options.redraw, 1_000);
          return;
        case "request.sent":
          doing = `waiting for ${visible(options.model)}`;
          return;
        case "item.delta":
          doing = event.field === "reasoning" || event.field === "summary" ? "thinking" : "answering";
          return;
        case "approval.asked":
          asking.add(event.id);
          return;
        case "approval.answered":
          asking.delete(event.id);
          return;
        case "call.permitted":
          running.set(event.id, options.nameOf(event.id));
          return;
        case "call.ended":
          running.delete(event.call.id);
          return;
        case "usage.updated":
          tokens = event.contextTokens;
          return;
        case "turn.ended":
          doing = undefined;
          running.clear();
          asking.clear();
          place = describePlace(options.cwd); // the turn may have changed the branch
          return stop();
        default:
      }
    },
  };
}

function joinParts(parts: readonly (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined).join(" · ");
}

/** `84% context left` if the size of the context window is known, otherwise how much has been used. */
export function describeContext(tokens: number | undefined, window: number | undefined): string | undefined {
  if (window === undefined) return tokens === undefined ? undefined : `${tokens} tokens`;
  const left = Math.max(0, Math.round((1 - (tokens ?? 0) / window) * 100));
  return `${left}% context left`;
}

/** `~/work/app (main)`: the folder, and the branch of its repository. */
function describePlace(cwd: string): string {
  const home = homedir();
  const short = cwd === home ? "~" : cwd.startsWith(`${home}/`) ? `~${cwd.slice(home.length)}` : cwd;
  const name = short.length <= 32 ? short : `…/${basename(cwd)}`;
  const branch = findBranch(cwd);
  return visible(branch === undefined ? name : `${name} (${branch})`);
}

const maxFolders = 32;

/** Reads git's own files, so that no process has to be started for a line of the screen. */
function findBranch(cwd: string): string | undefined {
  try {
    for (let folder = cwd, n = 0; n < maxFolders; folder = dirname(folder), n++) {
      const git = join(folder, ".git");
      if (existsSync(git)) return branchOf(git);
      if (dirname(folder) === folder) return undefined;
    }
  } catch {
    // The file cannot be read, so the line is shown without the branch.
  }
  return undefined;
}

function branchOf(git: string): string | undefined {
  // In a worktree `.git` is a file that says where the real one is.
  const pointer = statSync(git).isFile() ? /^gitdir: (.+)$/m.exec(readFileSync(git, "utf8"))?.[1] : undefined;
  const folder = pointer === undefined ? git : resolve(dirname(git), pointer);
  const head = readFileSync(join(folder, "HEAD"), "utf8").trim();
  return /^ref: refs\/heads\/(.+)$/.exec(head)?.[1] ?? head.slice(0, 8);
}

function seconds(ms: number): string {
  const whole = Math.floor(ms / 1000);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
