import { methods, type AgentContext } from "@agentclientprotocol/sdk";
import type { Engine } from "../router/engine.ts";
import type { Files } from "../spec/capability.ts";
import type { AnyTool, ToolContext } from "../spec/tool.ts";

/**
 * Reading a file shows what the editor has open, saved or not. The path is judged like any read before
 * the editor is asked. What the editor does not provide is read from the disk.
 */
export function readUnsaved(engine: Engine, editor: AgentContext, sessionId: string): void {
  const original = engine.registry.find("read_file");
  if (original === undefined) return;
  const handler: AnyTool["run"] = original.run;
  const wrapped: AnyTool = {
    ...original,
    // The runtime calls it like every handler; only its files ask the editor first.
    run: (input: never, ctx: ToolContext) => handler(input, withFiles(ctx, editorFiles(ctx.files, editor, sessionId))),
  };
  engine.registry.replace((tool) => tool === original, [wrapped]);
}

/** Inherits from `ctx`, so that everything else stays the same. */
function withFiles(ctx: ToolContext, files: Files): ToolContext {
  return Object.create(ctx, { files: { value: files, enumerable: true } }) as ToolContext;
}

function editorFiles(files: Files, editor: AgentContext, sessionId: string): Files {
  const openText = async (path: string): Promise<string | undefined> => {
    const real = await files.resolve(path, "read");
    const answer = await editor
      .request(methods.client.fs.readTextFile, { sessionId, path: real })
      .catch(() => undefined); // not a file it can show
    return answer?.content;
  };
  return {
    ...files,
    async readText(path) {
      const saved = await files.readText(path);
      const text = await openText(path);
      return text === undefined ? saved : { ...saved, text };
    },
    async slice(path, from, to, limits) {
      const saved = await files.slice(path, from, to, limits);
      const text = await openText(path);
      if (text === undefined) return saved;
      const lines = text.split(/\r?\n/);
      if (lines.at(-1) === "") lines.pop();
      const place = (line: number) => (line < 0 ? lines.length + line + 1 : line);
      const first = Math.max(1, place(from));
      const last = place(to);
      return {
        ...saved,
        lines: lines.slice(first - 1, last),
        first,
        more: last < lines.length,
        sizeBytes: text.length,
      };
    },
  };
}
