/** `callgate decode`: what a recorded answer says, as one JSON object. */
import { buildCommand } from "@stricli/core";
import { isObject, parseJson } from "../../base/json.ts";
import type { TextDecoderOptions } from "../../dialect/index.ts";
import type { Answer } from "../../spec/model.ts";
import { isWireName } from "../../wire/codec.ts";
import { codecs, collect, decodeRecording } from "../../wire/index.ts";
import { reportAnswer } from "../../wire/report.ts";
import { runBatch } from "../batch.ts";
import { toggle } from "../config/flags.ts";
import { printJson, readInput, runCommand, UsageError } from "../io.ts";

interface Flags {
  readonly wire?: string;
  readonly tools?: string;
  readonly batch?: boolean;
}

export const command = buildCommand<Flags, [string?]>({
  docs: {
    brief: "decode a recorded answer of a model: its calls, its text and how it ended",
    fullDescription:
      "Reads a recorded stream (server-sent events, a JSON body, or a model's plain text) from FILE or stdin and prints what it says as JSON. " +
      "With --batch: JSON lines {id, wire, input, tools?, chunks?} in, {id, outcome, calls, …} out.",
  },
  parameters: {
    flags: {
      wire: {
        kind: "parsed",
        parse: String,
        optional: true,
        placeholder: "WIRE",
        brief: "chat, responses, messages, gemini or text:DIALECT",
      },
      tools: {
        kind: "parsed",
        parse: String,
        optional: true,
        placeholder: "FILE",
        brief: "JSON list of the declared tools: names, or {name, parameters}",
      },
      batch: toggle("JSON lines in, JSON lines out"),
    },
    positional: {
      kind: "tuple",
      parameters: [
        { parse: String, placeholder: "FILE", brief: "the recording; - or nothing is stdin", optional: true },
      ],
    },
  },
  func: (flags: Flags, file?: string) =>
    runCommand(async () => {
      const tools = flags.tools === undefined ? [] : readTools(parseTools(await readInput(flags.tools), flags.tools));
      if (flags.batch) return runBatch((line) => answerLine(line, flags.wire, tools));
      if (flags.wire === undefined) throw new UsageError(`decode needs --wire ${wireNames}`);
      // A recorded failure is read like any other recording; the report says what happened.
      printJson(reportAnswer(await decode(flags.wire, [await readInput(file)], tools)));
    }),
});

const wireNames = "chat|responses|messages|gemini|text:DIALECT";

interface DeclaredTool {
  readonly name: string;
  readonly [key: string]: unknown;
}

async function answerLine(
  line: Record<string, unknown>,
  wire: string | undefined,
  tools: readonly DeclaredTool[],
): Promise<object> {
  const { input, chunks } = line;
  const chosen = line["wire"] ?? wire;
  if (typeof chosen !== "string") throw new UsageError(`'wire' must be ${wireNames}`);
  if (typeof input !== "string") throw new UsageError("'input' must be a string");
  const declared = line["tools"] === undefined || line["tools"] === null ? tools : readTools(line["tools"]);
  const startsIn = line["starts_in"] === "reasoning" || line["starts_in"] === "text" ? line["starts_in"] : "unknown";
  return reportAnswer(await decode(chosen, cut(input, Array.isArray(chunks) ? chunks : []), declared, startsIn));
}

/** `startsIn`: where a text answer begins, if the caller knows whether its prompt ended inside thoughts. */
async function decode(
  wire: string,
  chunks: readonly string[],
  tools: readonly DeclaredTool[],
  startsIn: "text" | "reasoning" | "unknown" = "unknown",
): Promise<Answer> {
  if (isWireName(wire)) return decodeRecording(codecs[wire], chunks, { declared: tools.map((tool) => tool.name) });
  if (wire === "text") return decodeText({ dialect: "auto", tools, startsIn }, chunks);
  if (wire.startsWith("text:")) return decodeText({ dialect: wire.slice("text:".length), tools, startsIn }, chunks);
  throw new UsageError(`there is no wire '${wire}'; there are ${wireNames}`);
}

async function decodeText(
  options: TextDecoderOptions & { readonly dialect: string },
  chunks: readonly string[],
): Promise<Answer> {
  const { createTextDecoder, findDialect } = await import("../../dialect/index.ts");
  const { unknownDialect } = await import("../../dialect/dialects.ts");
  if (findDialect(options.dialect) === undefined)
    throw new UsageError(`${unknownDialect(options.dialect)} ('callgate dialects' lists them)`);
  const decoder = createTextDecoder(options);
  return collect([...chunks.flatMap((chunk) => decoder.push(chunk)), ...decoder.end()]);
}

function parseTools(text: string, file: string): unknown {
  const parsed = parseJson(text);
  if (!parsed.ok) throw new UsageError(`${file} is not JSON: ${parsed.message}`);
  return parsed.value;
}

/** Names, `{name, parameters}`, or tools in the form a Chat or Responses request has them. */
function readTools(value: unknown): readonly DeclaredTool[] {
  const list = isObject(value) ? value["tools"] : value;
  if (!Array.isArray(list)) throw new UsageError("the tools must be a JSON list of names or of {name, parameters}");
  return list.flatMap((tool: unknown) => {
    if (typeof tool === "string") return [{ name: tool }];
    const inner = isObject(tool) && isObject(tool["function"]) ? tool["function"] : tool;
    if (!isObject(inner)) throw new UsageError("a tool must be a name or have one");
    // A tool without a name cannot be called, so it is ignored.
    return typeof inner["name"] === "string" ? [{ ...inner, name: inner["name"] }] : [];
  });
}

/** The text in pieces of so many code points; what is left over comes last. */
function cut(text: string, lengths: readonly unknown[]): readonly string[] {
  if (lengths.length === 0) return [text];
  const points = Array.from(text);
  const pieces: string[] = [];
  let from = 0;
  for (const length of lengths) {
    if (typeof length !== "number" || from >= points.length) continue;
    pieces.push(points.slice(from, from + length).join(""));
    from += Math.max(0, length);
  }
  if (from < points.length) pieces.push(points.slice(from).join(""));
  return pieces;
}
