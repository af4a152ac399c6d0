/** `local_shell`: the provider's own shell tool, and the same as a plain function. */
import { CallError, defineTool, type ExecRequest } from "../index.ts";
import { commandAccess, describeSandbox, runCommand } from "./command.ts";

/** What either form may contain: the provider's own action, or a function call with a command line. */
interface LocalShellInput {
  readonly command: string | string[];
  readonly timeout_ms?: number | null;
  readonly working_directory?: string | null;
  readonly workdir?: string;
  readonly env?: Record<string, unknown> | null;
  readonly request_permission_elevation?: boolean;
}

/**
 * `local_shell`: on the Responses API the provider's own type, whose calls contain an action with
 * words; on every other wire a function with a command line and `request_permission_elevation`.
 */
export const localShell = defineTool({
  name: "local_shell",
  native: { type: "local_shell" },
  description: (situation) =>
    `Execute shell commands locally. ${describeSandbox(situation, "request_permission_elevation: true")}`,
  input: {
    type: "object",
    properties: {
      command: { type: ["string", "array"], items: { type: "string" }, description: "Shell command to execute" },
      request_permission_elevation: {
        type: "boolean",
        default: false,
        description: "Request permission for elevated operations",
      },
      timeout_ms: { type: ["number", "null"], description: "Time limit in milliseconds. Default: 10000." },
      workdir: { type: "string", description: "Folder to run in." },
      working_directory: { type: ["string", "null"] },
      env: { type: ["object", "null"], additionalProperties: { type: "string" } },
      user: { type: ["string", "null"] },
      type: { type: "string" },
    },
    required: ["command"],
    additionalProperties: false,
  },
  // The provider's own calls contain these. A model that is offered a function does not need them.
  unlisted: ({ canEscalate }) => [
    "working_directory",
    "env",
    "user",
    "type",
    ...(canEscalate ? [] : ["request_permission_elevation"]),
  ],
  elevation: "request_permission_elevation=true",
  access: (input: LocalShellInput, at) =>
    commandAccess(toRequest(input), at.cwd, {
      with_escalated_permissions: input.request_permission_elevation === true,
    }),
  mutates: true,
  repeatable: true,
  run(input, ctx) {
    // Commands run as the user who runs Callgate. To accept another user's name silently would be misleading.
    if (typeof input.user === "string")
      throw new CallError("invalid_input", `cannot run as user ${input.user}`, { hint: "leave `user` out" });
    return runCommand(toRequest(input as LocalShellInput), ctx);
  },
});

function toRequest({
  command,
  timeout_ms: timeoutMs,
  working_directory: folder,
  workdir,
  env,
}: LocalShellInput): ExecRequest {
  return {
    ...(typeof command === "string" ? { shell: command } : { argv: command }),
    cwd: workdir ?? folder ?? undefined,
    timeoutMs: timeoutMs ?? undefined,
    // The schema lets only strings through.
    env: (env as Record<string, string> | null | undefined) ?? undefined,
  };
}
