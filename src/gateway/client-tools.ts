/**
 * The tools of well-known agents, and what a call of each will touch: one table, so that one policy
 * serves them all. These tools never run here; the gate only judges what they state.
 */
import { isObject, parseJson } from "../base/json.ts";
import { decideAccess, type Policy } from "../gate/policy.ts";
import type { Access } from "../spec/access.ts";
import type { CallItem } from "../spec/model.ts";
import type { Judge } from "./govern.ts";

/** A tool that changes something and states nothing is unknown to the gate, which then does not let it pass. */
type State = (input: Readonly<Record<string, unknown>>) => Access;

const textOf = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

/** Agents give a command as one line or as a list of words, under one of several names. */
const command: State = (input) => {
  const given = input["command"] ?? input["cmd"] ?? input["script"] ?? input["chars"];
  const cwd = textOf(input["workdir"]) ?? textOf(input["cwd"]) ?? textOf(input["dir_path"]);
  const at = cwd === undefined ? {} : { cwd };
  if (Array.isArray(given)) return { commands: [{ argv: given.map(String), ...at }] };
  const line = textOf(given);
  return line === undefined ? {} : { commands: [{ shell: line, ...at }] };
};

const pathNames = ["file_path", "filePath", "path", "absolute_path", "notebook_path", "dir_path", "directory"];
const pathsOf = (input: Readonly<Record<string, unknown>>) => pathNames.flatMap((name) => textOf(input[name]) ?? []);
const read: State = (input) => ({ read: pathsOf(input) });
const write: State = (input) => {
  const paths = pathsOf(input);
  return paths.length === 0 ? {} : { write: paths };
};
const network: State = (input) => {
  const url = textOf(input["url"]);
  return url !== undefined && URL.canParse(url) ? { network: [new URL(url).hostname] } : {};
};
const nothing: State = () => ({});

/** A patch names its files in its own lines. */
const patch: State = (input) => {
  const body = textOf(input["input"]) ?? textOf(input["patch"]) ?? "";
  const paths = [...body.matchAll(/^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$/gm)].map((match) =>
    (match[1] ?? match[2] ?? "").trim(),
  );
  return paths.length === 0 ? {} : { write: paths };
};

const table: Readonly<Record<string, State>> = {
  // codex
  exec_command: command,
  shell: command,
  shell_command: command,
  local_shell: command,
  write_stdin: command,
  apply_patch: patch,
  view_image: read,
  update_plan: nothing,
  // Claude Code
  Bash: command,
  BashOutput: nothing,
  Read: read,
  Write: write,
  Edit: write,
  MultiEdit: write,
  NotebookEdit: write,
  Glob: read,
  Grep: read,
  LS: read,
  WebFetch: network,
  WebSearch: nothing,
  TodoWrite: nothing,
  Task: nothing,
  // gemini-cli
  run_shell_command: command,
  read_file: read,
  read_many_files: read,
  write_file: write,
  replace: write,
  list_directory: read,
  glob: read,
  search_file_content: read,
  web_fetch: network,
  // opencode, pi, Cline and others
  bash: command,
  read: read,
  write: write,
  edit: write,
  patch: patch,
  list: read,
  grep: read,
  ls: read,
  find: read,
  webfetch: network,
  execute_command: command,
  write_to_file: write,
  replace_in_file: write,
};

/** What a call of a known client's tool will touch. `undefined` for a tool that is not in the table. */
function accessOfCall(call: CallItem): { readonly access: Access; readonly mutates: boolean } | undefined {
  const state = Object.hasOwn(table, call.name) ? table[call.name] : undefined;
  if (state === undefined) return undefined;
  const parsed =
    call.kind === "custom" ? { ok: true as const, value: { input: call.arguments } } : parseJson(call.arguments);
  const input = parsed.ok && isObject(parsed.value) ? parsed.value : {};
  return { access: state(input), mutates: state !== read && state !== nothing };
}

/**
 * The user's policy as the judge of calls that other clients will run. What the policy would ask
 * about, the client asks itself.
 */
export function createPolicyJudge(policy: Policy): Judge {
  return async (call) => {
    // A tool that is not in the table can be judged only by its name.
    const stated = accessOfCall(call) ?? { access: {}, mutates: false };
    const verdict = decideAccess({ tool: call.name, ...stated }, policy);
    if (verdict.decision !== "deny") return undefined;
    return { reason: verdict.reason, ...(verdict.rule === undefined ? {} : { rule: verdict.rule }) };
  };
}
