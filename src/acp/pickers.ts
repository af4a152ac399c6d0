/** What an editor's person may choose while a session is open: the mode, and the model. */
import type { SessionConfigOption, SessionModeState } from "@agentclientprotocol/sdk";
import { modes } from "./permission.ts";

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
