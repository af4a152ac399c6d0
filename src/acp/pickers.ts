/** What an editor's person may choose while a session is open: the mode, and the model. */
import type { SessionConfigOption, SessionModeState } from "@agentclientprotocol/sdk";
import type { PolicyNames } from "../gate/modes.ts";

/** What an editor's person may choose from. `default` is what the settings say. */
export const modes: readonly { id: string; name: string; description: string; policy?: PolicyNames }[] = [
  { id: "default", name: "As configured", description: "The approval mode and the sandbox of the settings" },
  {
    id: "ask",
    name: "Ask",
    description: "Asks before every command that is not known to only look",
    policy: { approval: "unless-trusted", sandbox: "workspace-write" },
  },
  {
    id: "work",
    name: "Work alone",
    description: "Changes this folder in the sandbox and never asks; what would need a yes is refused",
    policy: { approval: "never", sandbox: "workspace-write" },
  },
  {
    id: "plan",
    name: "Plan",
    description: "Looks and changes nothing",
    policy: { approval: "never", sandbox: "read-only" },
  },
];

export function modeState(mode: string): SessionModeState {
  return {
    currentModeId: mode,
    availableModes: modes.map(({ id, name, description }) => ({ id, name, description })),
  };
}

/** The id under which the model is chosen. */
export const modelOption = "model";

/** If a server does not list its models quickly, only the present one is offered. */
const patienceMs = 2_000;

/** Names of models in their server's order, including the present one. */
export async function modelNames(current: string, list: () => Promise<readonly string[]>): Promise<readonly string[]> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<readonly string[]>((resolve) => (timer = setTimeout(() => resolve([]), patienceMs)));
  const names = await Promise.race([list().catch((): readonly string[] => []), late]).finally(() =>
    clearTimeout(timer),
  );
  return names.includes(current) ? names : [current, ...names];
}

export function configOptions(current: string, names: readonly string[]): SessionConfigOption[] {
  return [
    {
      type: "select",
      id: modelOption,
      name: "Model",
      category: "model",
      currentValue: current,
      options: names.map((name) => ({ value: name, name })),
    },
  ];
}
