import { toTextRequest, wrapTextCalls } from "../dialect/index.ts";
import type { Model, ToolSpec } from "../spec/model.ts";
import { spellNames } from "../spec/name.ts";

/** A model that only writes text, given tools through a dialect: taught in the prompt, read back from the answer. */
export function createTextModel(inner: Model, dialect: string): Model {
  return {
    name: inner.name,
    ask(asked, signal) {
      const request = { ...asked, tools: spelled(asked.tools) };
      const options = { dialect, tools: request.tools, history: request.input };
      return wrapTextCalls(inner.ask(toTextRequest(request, dialect), signal), options);
    },
  };
}

/** Made once per list: a session asks with the same one again and again. */
const known = new WeakMap<readonly ToolSpec[], readonly ToolSpec[]>();

/** `server/tool` can be no tag: it is taught as other wires spell it, and the registry knows every spelling. */
function spelled(tools: readonly ToolSpec[]): readonly ToolSpec[] {
  let list = known.get(tools);
  if (list === undefined) {
    const names = spellNames(tools.map(({ name }) => name));
    known.set(tools, (list = tools.map((tool) => ({ ...tool, name: names.get(tool.name) ?? tool.name }))));
  }
  return list;
}
