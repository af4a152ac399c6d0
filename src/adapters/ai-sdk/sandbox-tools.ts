/** The tools behind `toAiSdkSandbox`: commands and files for the program that hosts an engine. */
import { resolve } from "node:path";
import type { Queue } from "../../base/queue.ts";
import { defineTool } from "../../registry/define.ts";
import type { CapturedOutput } from "../../spec/capability.ts";
import type { AnyTool, ToolContext } from "../../spec/tool.ts";
import { hostGroup } from "../calls.ts";

/** The names of these tools. Rules may mention them, and `toAiSdkTools` never offers them to a model. */
export const sandboxToolNames = {
  run: "sandbox_run",
  read: "sandbox_read",
  write: "sandbox_write",
  look: "sandbox_look",
  remove: "sandbox_delete",
} as const;

/**
 * What one operation gives to its tool and gets back from it directly, while the call itself is judged and
 * recorded.
 */
export interface Job {
  readonly data?: Uint8Array;
  readonly stdout?: Queue<string>;
  readonly stderr?: Queue<string>;
  result?: unknown;
}

/** How much of one stream a host is given. More than this should be written to a file. */
const maxOutputBytes = 16 * 1024 * 1024;

export interface Looked {
  readonly type: "file" | "directory" | "other";
  readonly size: number;
  readonly entries?: { name: string; type: "file" | "directory" | "symlink" | "other" }[];
}

const pathInput = {
  type: "object",
  properties: { path: { type: "string" } },
  required: ["path"],
  additionalProperties: false,
} as const;

/**
 * Ordinary tools that are judged by what they touch. Bytes are passed through the job of the call, because
 * results are text.
 */
export function sandboxTools(jobs: ReadonlyMap<string, Job>): readonly AnyTool[] {
  const finish = (ctx: ToolContext, result: unknown): string => {
    const job = jobs.get(ctx.callId);
    if (job !== undefined) job.result = result;
    return "done";
  };
  const isThere = async (ctx: ToolContext, path: string) => (await ctx.files.stat(path)) !== undefined;
  return [
    defineTool({
      name: sandboxToolNames.run,
      group: hostGroup,
      description: "Runs a command for the program that hosts this engine.",
      input: {
        type: "object",
        properties: { command: { type: "string" }, cwd: { type: "string" } },
        required: ["command"],
        additionalProperties: false,
      },
      parallel: true,
      access: ({ command, cwd }, at) => ({ commands: [{ shell: command, cwd: resolve(at.cwd, cwd ?? ".") }] }),
      async run({ command, cwd }, ctx) {
        const job = jobs.get(ctx.callId);
        const { exitCode, stdout, stderr } = await ctx.exec.run({
          shell: command,
          cwd: resolve(ctx.cwd, cwd ?? "."),
          maxOutputBytes,
          onOutput: ({ stream, text }) => job?.[stream]?.push(text),
        });
        return finish(ctx, { exitCode: exitCode ?? 128, stdout: whole(stdout), stderr: whole(stderr) });
      },
    }),
    defineTool({
      name: sandboxToolNames.read,
      group: hostGroup,
      description: "Reads a file for the program that hosts this engine.",
      input: pathInput,
      parallel: true,
      access: ({ path }) => ({ read: [path] }),
      run: async ({ path }, ctx) =>
        finish(ctx, (await isThere(ctx, path)) ? Uint8Array.from(await ctx.files.read(path)) : undefined),
    }),
    defineTool({
      name: sandboxToolNames.write,
      group: hostGroup,
      description: "Writes a file for the program that hosts this engine.",
      input: pathInput,
      access: ({ path }) => ({ write: [path] }),
      async run({ path }, ctx) {
        await ctx.files.write(path, jobs.get(ctx.callId)?.data ?? "", { parents: true, evenIfChanged: true });
        return finish(ctx, undefined);
      },
    }),
    defineTool({
      name: sandboxToolNames.look,
      group: hostGroup,
      description: "Looks at a file or folder for the program that hosts this engine.",
      input: pathInput,
      parallel: true,
      access: ({ path }) => ({ read: [path] }),
      async run({ path }, ctx) {
        const found = await ctx.files.stat(path);
        if (found === undefined) return finish(ctx, undefined);
        const entries = found.type === "directory" ? await ctx.files.list(path) : undefined;
        const looked: Looked = {
          type: found.type === "link" ? "other" : found.type,
          size: found.sizeBytes,
          ...(entries && {
            entries: entries.map(({ name, type }) => ({ name, type: type === "link" ? "symlink" : type })),
          }),
        };
        return finish(ctx, looked);
      },
    }),
    defineTool({
      name: sandboxToolNames.remove,
      group: hostGroup,
      description: "Removes a file for the program that hosts this engine.",
      input: pathInput,
      access: ({ path }) => ({ write: [path] }),
      async run({ path }, ctx) {
        const there = await isThere(ctx, path);
        if (there) await ctx.files.remove(path);
        return finish(ctx, there);
      },
    }),
  ];
}

function whole({ head, tail, droppedBytes }: CapturedOutput): string {
  return droppedBytes === 0 ? head + tail : `${head}\n[${droppedBytes} bytes left out]\n${tail}`;
}
