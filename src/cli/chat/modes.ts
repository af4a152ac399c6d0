/**
 * The policy of a running session: what is asked about, what commands may touch, and plan mode, in
 * which nothing changes.
 */
import { toSettings, type ApprovalName, type SandboxName } from "../../gate/modes.ts";
import type { Engine } from "../../router/engine.ts";
import type { PolicySettings } from "../../spec/stages.ts";
import type { Config } from "../config/config.ts";

export interface Modes {
  readonly now: Mode;
  /** Its name in few words, for a line of the screen. */
  readonly label: string;
  set(change: { readonly approval?: ApprovalName; readonly sandbox?: SandboxName }): void;
  setPlan(on: boolean): void;
  /** Goes to the next mode. No key leads to fewer questions or more access than the settings gave. */
  next(): void;
  /** What the model has not been told yet. It goes with the next message. */
  takeNotice(): string | undefined;
}

export interface Mode extends PolicySettings {
  readonly isPlan: boolean;
}

const plan: Mode = { approval: "never", sandbox: "read-only", isPlan: true };

/** `kept` is the mode that the session was in before it was put together again. */
export function createModes(engine: Pick<Engine, "setPolicy">, config: Config, kept?: Mode): Modes {
  // The names have been checked with the settings.
  const given = toSettings(config.approval as ApprovalName | undefined, config.sandbox as SandboxName | undefined);
  let now: Mode = { ...given, isPlan: false };
  let before = now;
  let told = now;
  const change = (mode: Mode) => {
    if (!now.isPlan) before = now;
    now = mode;
    engine.setPolicy({ approval: mode.approval, sandbox: mode.sandbox });
  };
  if (kept !== undefined && !isSame(kept, now)) change(kept);
  const row = (): readonly Mode[] => {
    const usual: readonly Mode[] = [
      { ...given, isPlan: false },
      {
        approval: "unless-trusted",
        sandbox: given.sandbox === "read-only" ? "read-only" : "workspace-write",
        isPlan: false,
      },
      plan,
    ];
    return usual.filter((mode, index) => usual.findIndex((other) => isSame(other, mode)) === index);
  };
  return {
    get now() {
      return now;
    },
    get label() {
      return now.isPlan ? "plan: changes nothing" : `${now.sandbox}, ${now.approval}`;
    },
    set(wanted) {
      const base = now.isPlan ? before : now;
      change({ ...base, ...wantedSettings(base, wanted), isPlan: false });
    },
    setPlan: (on) => change(on ? plan : before),
    next() {
      const modes = row();
      change(modes[(modes.findIndex((mode) => isSame(mode, now)) + 1) % modes.length]!);
    },
    takeNotice() {
      if (isSame(told, now)) return undefined;
      const wasPlan = told.isPlan;
      told = now;
      if (now.isPlan)
        return "[Plan mode is on: look around and propose a plan. Nothing can be changed until the user switches it off.]";
      const words = `sandbox ${now.sandbox}, approval ${now.approval}`;
      return wasPlan ? `[Plan mode is off: ${words}.]` : `[From now on: ${words}.]`;
    },
  };
}

function wantedSettings(base: Mode, { approval, sandbox }: Parameters<Modes["set"]>[0]): PolicySettings {
  const read = toSettings(approval, sandbox);
  return {
    approval: approval === undefined ? base.approval : read.approval,
    sandbox: sandbox === undefined && approval !== "auto" ? base.sandbox : read.sandbox,
  };
}

function isSame(a: Mode, b: Mode): boolean {
  return a.approval === b.approval && a.sandbox === b.sandbox && a.isPlan === b.isPlan;
}
