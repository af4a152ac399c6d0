import { toTextRequest, wrapTextCalls } from "../dialect/index.ts";
import type { Model, ModelRequest, ToolSpec } from "../spec/model.ts";
import { spellNames } from "../spec/name.ts";

/** A model that only writes text, given tools through a dialect: taught in the prompt, read back from the answer. */
export function createTextModel(inner: Model, dialect: string): Model {
  return {
    name: inner.name,
    ask(asked, signal, how) {
      const { loaded: _loaded, ...rest } = asked;
      const request: ModelRequest = { ...rest, tools: spelled(asked) };
      const options = { dialect, tools: request.tools, history: request.input };
      return wrapTextCalls(inner.ask(toTextRequest(request, dialect), signal, how), options);
    },
  };
}

/** Made once per list: a session asks with the same one again and again. */
const known = new WeakMap<readonly ToolSpec[], readonly ToolSpec[]>();

/**
 * `server/tool` can be no tag: it is taught as other wires spell it, and the registry knows every spelling. Tools that
 * came as items of the conversation are taught with the others: text has one list only.
 */
function spelled({ tools: declared, loaded = [] }: ModelRequest): readonly ToolSpec[] {
  const kept = loaded.length === 0 ? known.get(declared) : undefined;
  if (kept !== undefined) return kept;
  const tools = [...declared, ...loaded];
  const names = spellNames(tools.map(({ name }) => name));
  const list = tools.map((tool) => ({ ...tool, name: names.get(tool.name) ?? tool.name }));
  if (loaded.length === 0) known.set(declared, list);
  return list;
}
