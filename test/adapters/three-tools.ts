/** Three tools that every host is tried with: one gives an image, one asks, one streams. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine, defineTool, result, type Engine, type EngineOptions } from "../../src/index.ts";

/** One red pixel. */
export const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

export interface Runs {
  picture: number;
  publish: string[];
  count: number;
  /** Calls of `wait` that were told to stop. */
  stopped: number;
}

export function createThree(options: EngineOptions = {}): { engine: Engine; runs: Runs; folder: string } {
  const runs: Runs = { picture: 0, publish: [], count: 0, stopped: 0 };
  const empty = { type: "object", properties: {}, additionalProperties: false } as const;
  const picture = defineTool({
    name: "picture",
    description: "A picture of the place.",
    input: empty,
    parallel: true,
    run() {
      runs.picture++;
      return result({
        content: [
          { type: "text", text: "one pixel" },
          { type: "image", data: pixel, mediaType: "image/png" },
        ],
      });
    },
  });
  const publish = defineTool({
    name: "publish",
    description: "Publishes a text for everybody to read.",
    input: {
      type: "object",
      properties: { text: { type: "string" }, copies: { type: "integer" } },
      required: ["text"],
      additionalProperties: false,
    },
    mutates: true,
    run({ text }) {
      runs.publish.push(text);
      return `published: ${text}`;
    },
  });
  const count = defineTool({
    name: "count",
    description: "Counts, and tells each number.",
    input: { type: "object", properties: { to: { type: "integer" } }, required: ["to"], additionalProperties: false },
    async *run({ to }) {
      runs.count++;
      for (let number = 1; number <= to; number++) yield `number ${number}`;
      return `counted to ${to}`;
    },
  });
  const wait = defineTool({
    name: "wait",
    description: "Waits until it is told to stop.",
    input: empty,
    async run(_input, ctx) {
      ctx.progress("waiting");
      await new Promise<void>((_resolve, reject) => {
        const stop = () => {
          runs.stopped++;
          reject(ctx.signal.reason as Error);
        };
        if (ctx.signal.aborted) stop();
        else ctx.signal.addEventListener("abort", stop);
      });
      return "never";
    },
  });
  const engine = createEngine({
    workspace: mkdtempSync(join(tmpdir(), "callgate-adapters-")),
    tools: [picture, publish, count, wait],
    gate: { rules: [{ tool: "publish", decision: "ask", reason: "everybody will read it" }] },
    ...options,
  });
  return { engine, runs, folder: mkdtempSync(join(tmpdir(), "callgate-calls-")) };
}
