/** The line above the editor: what is going on and for how long, or what the next request will weigh. */
import { truncateToWidth, type Component } from "@earendil-works/pi-tui";
import type { SessionEvent } from "../../session/index.ts";
import type { Theme } from "./theme.ts";

export interface StatusLine {
  readonly component: Component;
  hear(event: SessionEvent): void;
  /** Ends its clock. */
  stop(): void;
}

export interface StatusOptions {
  readonly model: string;
  readonly wire: string;
  readonly theme: Theme;
  readonly redraw: () => void;
  /** What a running call is called. */
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

  const stop = () => {
    clearInterval(clock);
    clock = undefined;
  };
  const idle = () => {
    const weight = tokens === undefined ? "" : ` · ${tokens} tokens`;
    const cost = options.costUsd() > 0 ? ` · $${options.costUsd().toFixed(4)}` : "";
    return `${options.model} · ${options.wire}${weight}${cost} · /help`;
  };
  const busy = () => {
    if (asking.size > 0) return `${seconds(now() - startedAt)} · waiting for your answer · ctrl-c interrupts`;
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
          ` ${doing === undefined ? theme.dim(idle()) : `${theme.accent("●")} ${theme.dim(busy())}`}`,
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
          doing = `waiting for ${options.model}`;
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
          return stop();
        default:
      }
    },
  };
}

function seconds(ms: number): string {
  const whole = Math.floor(ms / 1000);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
