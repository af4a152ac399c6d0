/**
 * Asking a person: the hash that binds a request to the exact call, the keys of what was agreed to,
 * and a function as approver.
 */
import { createHash } from "node:crypto";
import { stableStringify } from "../base/json.ts";
import type { Grant } from "../spec/access.ts";
import type { Checked } from "../spec/call.ts";
import type { ApprovalAnswer, ApprovalRequest, Approver } from "../spec/stages.ts";
import { understand } from "./command/understand.ts";
import { contentOf, filesOf } from "./command-files.ts";
import { statOf } from "./paths.ts";
import type { Policy } from "./policy.ts";

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** The same hash for equal values, whatever the order of their keys. */
function hashOf(value: unknown): string {
  return hash(stableStringify(value));
}

/**
 * Covers the call, the grant, and what the call touches with every link followed now. If any of it
 * changes, the yes is void. A file to be changed counts with its content, because its diff was shown;
 * so does every file of the workspace that a command names or runs. `content: false` leaves the latter
 * out, for a call that nobody was asked about.
 */
export function callHash(
  checked: Checked,
  grant: Grant,
  policy: Policy,
  { content = true }: { readonly content?: boolean } = {},
): string {
  const { access, input, tool } = checked;
  const { read = [], write = [], commands = [] } = access;
  const places = [...read, ...commands.map(({ cwd = "." }) => cwd)];
  const leads = [
    ...places.map((path) => identify(path, policy, false)),
    ...write.map((path) => identify(path, policy, true)),
  ];
  const files = content && commands.length > 0 ? filesOf(commands, policy) : [];
  return hashOf([tool.name, input, access, leads, grant, files]);
}

/**
 * Where a path leads and what kind of thing is there; with `content`, also what it holds. Nothing in
 * it depends on the machine, so that a yes given to one process is valid in another that sees the same
 * files.
 */
function identify(path: string, policy: Policy, content: boolean): readonly (string | number)[] {
  const real = policy.real(path, policy.workspace) ?? "";
  const stats = statOf(real);
  if (stats === undefined) return [real];
  if (content && stats.isFile()) return [real, contentOf(real, stats)];
  return [real, stats.isFile() ? "file" : stats.isDirectory() ? "folder" : "other"];
}

/**
 * One key for each thing that was agreed to, so that a later call that needs fewer of them passes too.
 * A command that is understood counts by its words, so blanks and quoting do not matter. An MCP tool
 * counts with its definition, so that a changed tool asks again.
 */
export function memoryKeys(checked: Checked, grant: Grant, policy: Policy): readonly string[] {
  const { access, tool } = checked;
  // For a command, the folders it may write count. A file to be written is a key by itself.
  const roots = access.commands === undefined ? [] : [...grant.write].toSorted();
  const commands = (access.commands ?? []).map((command) => {
    const understood = understand(command, policy);
    const plain = command.typed === undefined && understood.doubts.length === 0 && understood.unclear.length === 0;
    const canonical = plain
      ? {
          argv: understood.steps.map((step) => [step.argv, step.found.env, step.found.cwds]),
          redirects: understood.redirects,
        }
      : { text: command.shell ?? command.argv ?? "", typed: command.typed };
    return {
      command: canonical,
      // A script that has changed since is a different script.
      files: filesOf([command], policy),
      cwd: command.cwd ?? policy.workspace,
      dialect: command.dialect ?? "bash",
      escalation: access.escalation !== undefined,
    };
  });
  const paths = (use: "read" | "write") =>
    (access[use] ?? []).map((path) => ({ [use]: policy.real(path, policy.workspace) ?? path }));
  const hosts = (access.network ?? []).map((host) => ({ host }));
  const things: readonly object[] = [...commands, ...paths("read"), ...paths("write"), ...hosts];
  const uses = (access.servers ?? []).map((server) => ({ server }));
  const own =
    things.length === 0
      ? [
          {
            tool: tool.name,
            servers: access.servers,
            definition: hashOf({
              input: toPlain(tool.input),
              description: typeof tool.description === "string" ? tool.description : "",
            }),
          },
        ]
      : [...things, ...uses];
  return own.map((thing) =>
    hashOf({
      thing,
      grant: { ...grant, write: roots },
      tool: things.length === 0 ? tool.name : undefined,
    }),
  );
}

function toPlain(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value ?? null));
  } catch {
    // A schema object that cannot be written as JSON is told apart only by its tool's name.
    return null;
  }
}

/** A function as approver. */
export function createCallbackApprover(
  ask: (
    request: ApprovalRequest,
    signal: AbortSignal,
  ) => ApprovalAnswer | undefined | Promise<ApprovalAnswer | undefined>,
): Approver {
  return { ask: async (request, signal) => ask(request, signal) };
}
