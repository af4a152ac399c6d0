/** `/resume` and `/model`: choose what to continue with, from a list or by name. */
import { nearest } from "../../base/text.ts";
import { guessProvider } from "../../model/providers.ts";
import type { ModelList } from "../../model/list-models.ts";
import { visible } from "../chat/visible.ts";
import type { SlashContext } from "./chat-context.ts";

/** Resumes the named session, or offers a list with the sessions of this folder first. */
export async function resume(at: SlashContext, id: string): Promise<void> {
  if (id !== "") return at.restart({ resume: id });
  const folder = at.engine.cwd;
  const others = at.sessions().filter((session) => session.id !== at.session.id);
  const ordered = [...others.filter(({ cwd }) => cwd === folder), ...others.filter(({ cwd }) => cwd !== folder)];
  if (ordered.length === 0) return at.note("there is no other session yet");
  const chosen = await at.pick(
    "Which session?",
    ordered.slice(0, 200).map(({ id: value, title, updatedAt, cwd }) => ({
      value,
      label: visible(title) || "(no prompt)",
      description: `${updatedAt.slice(0, 16).replace("T", " ")}${cwd === folder ? "" : `  ${visible(cwd)}`}`,
    })),
  );
  if (chosen !== undefined) at.restart({ resume: chosen });
}

export async function chooseModel(at: SlashContext, name: string): Promise<void> {
  if (at.isBusy()) return at.note("a turn is running: wait for it, or interrupt it");
  const listed = await at.listModels();
  if (name !== "") return changeModel(at, name, listed);
  if (!listed.ok || listed.models.length === 0)
    return at.note(
      `${at.model} over ${at.wire}${listed.ok ? "" : `; ${visible(listed.detail)}`} ('/model NAME' changes it)`,
    );
  const chosen = await at.pick(
    `Which model? Now ${visible(at.model)}.`,
    listed.models.map((model) => ({
      value: model,
      label: visible(model),
      ...(model === at.model ? { description: "now" } : {}),
    })),
  );
  if (chosen !== undefined && chosen !== at.model) at.restart({ config: { ...at.config, model: chosen } });
}

/** Accepts a name that this provider lists or that another provider is known for. Others change nothing. */
function changeModel(at: SlashContext, name: string, listed: ModelList): void {
  const isListed = listed.ok && listed.models.includes(name);
  const guess = isListed ? undefined : name === "offline" ? "offline" : guessProvider(name);
  const { provider, base_url: _address, wire: _wire, api_key_env: _key, ...rest } = at.config;
  if (guess !== undefined && guess !== provider)
    return at.restart({ config: { ...rest, model: name, ...(guess === "offline" ? {} : { provider: guess }) } });
  if (listed.ok && !isListed && listed.models.length > 0) {
    const [near] = nearest(name, listed.models, 1);
    return at.note(
      `there is no model '${visible(name)}' here${near === undefined ? "" : `; did you mean '${visible(near)}'?`} (/model lists them)`,
    );
  }
  at.restart({ config: { ...at.config, model: name } });
}
