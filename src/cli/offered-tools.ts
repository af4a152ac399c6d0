import type { Engine } from "../router/engine.ts";
import type { ToolSpec } from "../spec/model.ts";
import { isFreeform } from "../spec/freeform.ts";
import { toSchema } from "../spec/schema.ts";
import type { Config } from "./config.ts";
import type { SelectedModel } from "./select-model.ts";

const names = ["apply_patch", "grep_files", "list_dir", "read_file", "shell_command", "update_plan", "view_image"];

export async function offeredTools(
  engine: Engine,
  _config: Config,
  _model: SelectedModel,
): Promise<() => readonly ToolSpec[]> {
  const situation = engine.situation();
  const specs = engine.registry
    .list()
    .filter(({ name }) => names.includes(name))
    .map((tool): ToolSpec => {
      const description = typeof tool.description === "string" ? tool.description : tool.description(situation);
      if (isFreeform(tool.input))
        return {
          kind: "custom",
          name: tool.name,
          description,
          ...(tool.input.definition === undefined
            ? {}
            : { format: { type: "grammar", syntax: tool.input.syntax ?? "lark", definition: tool.input.definition } }),
        };
      return { kind: "function", name: tool.name, description, parameters: toSchema(tool.input).json };
    });
  return () => specs;
}
