/** What the whole line costs for a tool that does nothing, against calling its handler, and against the AI SDK. */
import { tool } from "ai";
import { createEngine, defineTool } from "callgate";
import * as z from "zod";
import { perOperation, type BenchRow } from "./measure.ts";

const parameters = { type: "object", properties: { a: { type: "number" } }, required: ["a"] } as const;

export async function run(): Promise<readonly BenchRow[]> {
  const noop = defineTool({
    name: "noop",
    description: "Nothing.",
    input: parameters,
    parallel: true,
    run: ({ a }) => String(a),
  });
  const engine = createEngine({ tools: [noop], approval: "never", sandbox: "full-access" });
  const handler = async (input: { a: number }) => String(input.a);
  const sdk = tool({ description: "Nothing.", inputSchema: z.object({ a: z.number() }), execute: handler });
  const callSdk = async () => {
    // What the SDK does between a parsed call and the handler: validate, then execute.
    const input = await (sdk.inputSchema as z.ZodType<{ a: number }>).parseAsync(JSON.parse('{"a":1}'));
    return sdk.execute!(input, { toolCallId: "1", messages: [], context: {} } as never);
  };

  await perOperation(5_000, 2, () => engine.call("noop", { a: 1 }));
  const direct = await perOperation(20_000, 5, () => handler({ a: 1 }));
  const viaSdk = await perOperation(20_000, 5, callSdk);
  const first = await perOperation(10_000, 1, () => engine.call("noop", { a: 1 }));
  const line = await perOperation(10_000, 8, () => engine.call("noop", { a: 1 }));
  const last = await perOperation(10_000, 1, () => engine.call("noop", { a: 1 }));
  await engine.close();
  return [
    { name: "handler called directly", value: direct, unit: "µs" },
    {
      name: "AI SDK: validate and execute only",
      value: viaSdk,
      unit: "µs",
      ratio: viaSdk / direct,
      baseline: "direct",
    },
    { name: "the whole line", value: line, unit: "µs", ratio: line / viaSdk, baseline: "AI SDK", aim: "≤ 8 µs" },
    {
      name: "calls 90,000–100,000 against the first 10,000",
      value: last,
      unit: "µs",
      ratio: last / first,
      baseline: "first",
      aim: "flat",
    },
  ];
}
