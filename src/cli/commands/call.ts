import { buildCommand } from "@stricli/core";
import { partsToText } from "../../base/content.ts";
import { isRefusal } from "../../base/error.ts";
import { defined, isObject } from "../../base/json.ts";
import { createEngine, type Engine } from "../../router/engine.ts";
import type { Asked, Ended } from "../../spec/call.ts";
import { isFreeform } from "../../spec/freeform.ts";
import { runBatch } from "../batch.ts";
import { engineOptions } from "../engine-options.ts";
import { toolFlags, type ToolFlags, toggle } from "../config/flags.ts";
import { exitCodes, printJson, readInput, runCommand, UsageError } from "../io.ts";
import { chooseProfile } from "../offered-tools.ts";
import { loadOwnTools } from "../own-tools.ts";
import { personHere } from "../chat/person-here.ts";
import { prepare } from "../prepare.ts";
import { lazyModel } from "../select-model.ts";
import { visible } from "../chat/visible.ts";

interface CallFlags extends ToolFlags {
  readonly json?: boolean;
  readonly batch?: boolean;
  readonly parallel?: boolean;
  readonly untyped?: boolean;
}

export const command = buildCommand({
  docs: { brief: "call one tool, through every stage of the line" },
  parameters: {
    flags: {
      ...toolFlags,
      json: toggle("print the whole record of the call"),
      batch: toggle("JSON lines in: {id, tool, arguments}; one JSON line out per line"),
      parallel: toggle("with --batch: calls that only look run together"),
      untyped: toggle("arguments are strings, to be read by the schema (as from XML)"),
    },
    positional: {
      kind: "tuple",
      parameters: [
        { brief: "the tool's name, in any spelling", parse: String, placeholder: "TOOL", optional: true },
        { brief: "its arguments: JSON, '-' for stdin, @FILE", parse: String, placeholder: "JSON", optional: true },
      ],
    },
  },
  func: (flags: CallFlags, tool?: string, input?: string) => runCommand(() => call(flags, tool, input)),
});

async function call(flags: CallFlags, tool: string | undefined, input: string | undefined): Promise<number> {
  const { cwd, config } = await prepare(flags);
  const person = flags.batch ? undefined : await personHere();
  const engine = createEngine({
    ...(await engineOptions(config, cwd, process.env, { profile: await chooseProfile(config, config.model) })),
    ...(person ? { approver: person } : {}),
  });
  const lazy = lazyModel(config, process.env);
  const own = await loadOwnTools(engine, config, cwd, {
    model: lazy.model,
    ...(person ? { person } : {}),
    ...(tool === undefined || flags.batch ? {} : { wanted: tool }),
  });
  try {
    if (flags.batch) return await callBatch(engine, flags.parallel === true);
    if (tool === undefined) throw new UsageError("name a tool ('callgate tools' lists them)");
    return await callOnce(engine, tool, await readArguments(input), flags);
  } finally {
    await own.close();
    await lazy.close();
    await engine.close();
  }
}

async function callOnce(engine: Engine, name: string, raw: string, flags: CallFlags): Promise<number> {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const ended = await engine.run(
    { ...toAsked(engine, "call_1", name, raw), ...(flags.untyped ? { untyped: true } : {}) },
    stop.signal,
  );
  if (flags.json) printJson(ended);
  else process.stdout.write(withNewline(visible(partsToText(ended.content))));
  if (stop.signal.aborted) return exitCodes.interrupted;
  return exitCodeOf(ended);
}

/** One engine for all lines, in order unless `--parallel` is given. Then calls that only read run together. */
async function callBatch(engine: Engine, parallel: boolean): Promise<number> {
  const signal = new AbortController().signal;
  const lanes = engine.lanes({ signal });
  let count = 0;
  const answer = async (line: Record<string, unknown>) => {
    const name = line["tool"];
    if (typeof name !== "string")
      return { ok: false, code: "invalid_input", content: "the line names no tool", durationMs: 0 };
    const given = line["arguments"] ?? {};
    const raw = typeof given === "string" ? given : JSON.stringify(given);
    const asked = toAsked(engine, `call_${++count}`, name, raw);
    const { ok, code, content, durationMs, structured } = await (parallel
      ? lanes.add(asked)
      : engine.run(asked, signal));
    return {
      ok,
      ...defined({ code }),
      content: partsToText(content),
      ...defined({ structured }),
      durationMs,
    };
  };
  await runBatch(answer, { parallel });
  return exitCodes.done;
}

/** A freeform tool takes its text as it is. The check stage unwraps a JSON string or `{"input": …}`. */
function toAsked(engine: Engine, id: string, name: string, raw: string): Asked {
  const tool = engine.registry.find(name);
  const isText = tool !== undefined && isFreeform(tool.input) && !isJsonObject(raw);
  return { id, name, kind: isText ? "custom" : "function", arguments: raw, askedAt: Date.now() };
}

function isJsonObject(text: string): boolean {
  try {
    return isObject(JSON.parse(text));
  } catch {
    return false;
  }
}

async function readArguments(input: string | undefined): Promise<string> {
  if (input === undefined) return "{}";
  return input === "-" || input.startsWith("@") ? readInput(input) : input;
}

function exitCodeOf({ ok, code }: Ended): number {
  if (ok) return exitCodes.done;
  if (code === "aborted") return exitCodes.interrupted;
  return isRefusal(code) ? exitCodes.refused : exitCodes.failed;
}

function withNewline(text: string): string {
  return text === "" || text.endsWith("\n") ? text : `${text}\n`;
}
