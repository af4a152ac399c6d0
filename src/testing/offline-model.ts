import { partsToText } from "../base/content.ts";
import type { JsonObject } from "../base/json.ts";
import type { CallItem, Item, Model, ModelRequest, ResultItem, ToolSpec } from "../spec/model.ts";
import { answerToEvents } from "../wire/answer.ts";
import { readIntents, type Intent } from "./intent.ts";
import { toAnswer, type ScriptedAnswer, type ScriptedCall } from "./scripted-model.ts";

const offlineModelName = "offline";

/**
 * The built-in model: a small deterministic planner that follows a few plain requests. It is not a
 * language model and says so. With it everything else can be tried and tested without a key and a
 * network.
 */
export function createOfflineModel(): Model {
  return {
    name: offlineModelName,
    async *ask(request, signal) {
      signal.throwIfAborted();
      yield* answerToEvents({ ...toAnswer(nextStep(request), request.input.length), usage: roughUsage(request) });
    },
  };
}

const lost = `I am the offline model: a small planner, no language model. I follow plain requests, one after another, such as:
  read README.md
  list src
  find 'TODO' in src
  run npm test
  replace 'a - b' with 'a + b' in src/add.js
  plan: look around; mend it; test it
  call server/tool {"key": "value"}
Join them with 'then' or write one a line. For a real model: callgate init.`;

/** The next step follows from the conversation alone, so a resumed session continues where it was. */
export function nextStep(request: ModelRequest): ScriptedAnswer {
  const turn = lastTurn(request);
  const intents = readRequests(turn.prompt, request.tools);
  if (intents.length === 0) return { text: lost };
  let used = 0;
  for (const intent of intents) {
    const plan = planFor(intent, request.tools);
    for (const makeCall of plan) {
      const result = turn.results[used++];
      if (result) continue;
      const call = makeCall(turn.results.slice(0, used - 1));
      if (call) return { text: describe(intent), calls: [call] };
      used--; // nothing to do for this step after all
    }
  }
  const said = intents.flatMap((intent) => (intent.kind === "say" ? [intent.words] : []));
  return { text: turn.calls.length === 0 && said.length > 0 ? said.join("\n") : summary(turn.calls, turn.results) };
}

interface LastTurn {
  readonly prompt: string;
  readonly calls: readonly CallItem[];
  readonly results: readonly ResultItem[];
}

/** Everything since the last message of a person that holds a request. */
function lastTurn({ input, tools }: ModelRequest): LastTurn {
  const at = input.findLastIndex(
    (item: Item) =>
      item.type === "message" && item.role === "user" && readRequests(partsToText(item.content), tools).length > 0,
  );
  const start = at === -1 ? input.findLastIndex((item) => item.type === "message" && item.role === "user") : at;
  const message = input[start];
  const since = input.slice(start + 1);
  return {
    prompt: message?.type === "message" ? partsToText(message.content) : "",
    calls: since.filter((item) => item.type === "call"),
    results: since.filter((item) => item.type === "result"),
  };
}

/** The requests in a message that the offered tools can carry out. Without any tools, our own are assumed. */
function readRequests(message: string, tools: readonly ToolSpec[]): readonly Intent[] {
  // Agents add context of their own to what a person wrote, in tags.
  const written = message.replaceAll(/<([a-z][\w-]*)>[\s\S]*?<\/\1>/g, "");
  const offers = (name: string) => tools.length === 0 || tools.some((tool) => tool.name === name);
  return readIntents(written).filter(({ kind }) => {
    if (kind === "plan") return offers("update_plan");
    if (kind === "replace") return offers("apply_patch");
    return true;
  });
}

type MakeCall = (results: readonly ResultItem[]) => ScriptedCall | undefined;

/** The calls for an intent, in order. A later call may use the results of earlier ones. */
function planFor(intent: Intent, tools: readonly ToolSpec[]): readonly MakeCall[] {
  switch (intent.kind) {
    case "say":
      return [];
    case "read":
      return [() => ownCall("read_file", { file_path: intent.path }, ["cat", intent.path], tools)];
    case "list":
      return [() => ownCall("list_dir", { dir_path: intent.path }, ["ls", "-la", intent.path], tools)];
    case "find":
      return [
        () =>
          ownCall(
            "grep_files",
            { pattern: intent.pattern, path: intent.path },
            ["grep", "-rn", "-e", intent.pattern, intent.path],
            tools,
          ),
      ];
    case "run":
      return [() => runCall(intent.command, tools)];
    case "plan":
      return [
        () => ({
          name: "update_plan",
          input: {
            plan: intent.steps.map((step, index) => ({ step, status: index === 0 ? "in_progress" : "pending" })),
          },
        }),
      ];
    case "call":
      return [() => ({ name: intent.tool, arguments: intent.input })];
    case "replace":
      return [
        () => ({ name: "read_file", input: { file_path: intent.path } }),
        (results) => replaceCall(intent, results.at(-1), tools),
      ];
  }
}

/** Tools that run a command line, ours and those of other agents, each with the parameter that takes it. */
const shells: readonly (readonly [name: string, parameter: string])[] = [
  ["shell_command", "command"],
  ["exec_command", "cmd"],
  ["Bash", "command"],
  ["bash", "command"],
  ["run_shell_command", "command"],
];

function runCall(command: string, tools: readonly ToolSpec[]): ScriptedCall {
  const [name, parameter] = shells.find(([shell]) => tools.some((tool) => tool.name === shell)) ?? shells[0]!;
  return { name, input: { [parameter]: command } };
}

/** Our own tool if it is offered. An agent on the gateway that has only a shell runs a command instead. */
function ownCall(name: string, input: JsonObject, argv: readonly string[], tools: readonly ToolSpec[]): ScriptedCall {
  const isOffered = tools.some((tool) => tool.name === name);
  const hasShell = tools.some((tool) => shells.some(([shell]) => shell === tool.name));
  if (isOffered || !hasShell) return { name, input };
  return runCall(
    argv.map((word) => (/^[\w./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" "),
    tools,
  );
}

/** A patch for the lines that contain the old text, made from what read_file showed. */
function replaceCall(
  intent: Extract<Intent, { kind: "replace" }>,
  read: ResultItem | undefined,
  tools: readonly ToolSpec[],
): ScriptedCall | undefined {
  const lines = partsToText(read?.content ?? [])
    .split("\n")
    .map((line) => line.replace(/^L\d+: /, ""))
    .filter((line) => line.includes(intent.old));
  if (lines.length === 0) return undefined;
  const hunks = lines.flatMap((line) => ["@@", `-${line}`, `+${line.replaceAll(intent.old, intent.new)}`]);
  const patch = ["*** Begin Patch", `*** Update File: ${intent.path}`, ...hunks, "*** End Patch", ""].join("\n");
  const isCustom = tools.some((tool) => tool.name === "apply_patch" && tool.kind === "custom");
  return isCustom
    ? { name: "apply_patch", kind: "custom", arguments: patch }
    : { name: "apply_patch", input: { input: patch } };
}

function describe(intent: Intent): string {
  switch (intent.kind) {
    case "read":
      return `I read ${intent.path}.`;
    case "list":
      return `I list ${intent.path}.`;
    case "find":
      return `I look for '${intent.pattern}' in ${intent.path}.`;
    case "run":
      return `I run: ${intent.command}`;
    case "replace":
      return `I replace '${intent.old}' with '${intent.new}' in ${intent.path}.`;
    case "plan":
      return "I write the plan down.";
    case "call":
      return `I call ${intent.tool}.`;
    case "say":
      return intent.words;
  }
}

function summary(calls: readonly CallItem[], results: readonly ResultItem[]): string {
  if (calls.length === 0) return "There was nothing to do.";
  const lines = calls.map((call, index) => {
    const result = results.find(({ callId }) => callId === call.id) ?? results[index];
    const words = partsToText(result?.content ?? [])
      .trim()
      .split("\n");
    const more = words.length > 1 ? ` (+${words.length - 1} lines)` : "";
    return `${index + 1}. ${call.name}: ${result?.ok ? "" : "failed: "}${words[0]?.slice(0, 100) ?? ""}${more}`;
  });
  return `Done.\n${lines.join("\n")}`;
}

/** There is no tokenizer here, only a rough count for the accounting. */
function roughUsage(request: ModelRequest) {
  return { input: Math.ceil(JSON.stringify(request.input).length / 4), output: 40 };
}
