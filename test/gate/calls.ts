/** Calls as the check stage hands them over, a gate for them, and a person who answers as told. */
import { CallError } from "../../src/base/error.ts";
import { createGate, type GateOptions } from "../../src/gate/gate.ts";
import type { Access } from "../../src/spec/access.ts";
import type { Checked, Permitted } from "../../src/spec/call.ts";
import type { ApprovalAnswer, ApprovalRequest, Gate, Rewritten } from "../../src/spec/stages.ts";
import type { AnyTool } from "../../src/spec/tool.ts";
import type { TestWorkspace } from "./workspace.ts";

export interface Calls {
  checked(access: Access, more?: Partial<Checked> & { readonly name?: string; readonly repeatable?: boolean }): Checked;
  /** The access of a shell that runs this line in the workspace. */
  run(shell: string): Access;
  gate(options?: Partial<GateOptions>): Gate;
}

export function createCalls(workspace: TestWorkspace): Calls {
  let count = 0;
  return {
    checked(access, more = {}) {
      const tool: AnyTool = {
        name: more.name ?? "shell",
        description: "a tool",
        input: { type: "object" },
        repeatable: more.repeatable ?? true,
        run: () => undefined,
      };
      const mutates = (access.commands ?? access.write ?? access.network) !== undefined;
      return {
        id: `call-${count++}`,
        kind: "function",
        arguments: "{}",
        askedAt: 0,
        input: {},
        access,
        mutates,
        notes: [],
        ...more,
        name: tool.name,
        tool,
      };
    },
    run: (shell) => ({ commands: [{ shell, cwd: workspace.ws }] }),
    gate: (options) =>
      createGate({
        settings: { approval: "on-request", sandbox: "workspace-write" },
        workspace: workspace.ws,
        confinement: { name: "test", available: true },
        home: workspace.home,
        ...options,
      }),
  };
}

/** Gives these answers one after the other, the last one again and again, and keeps what was asked. */
export function answering(...answers: (ApprovalAnswer | "later" | undefined)[]) {
  const asked: ApprovalRequest[] = [];
  return {
    asked,
    approver: {
      ask: async (request: ApprovalRequest) => (asked.push(request), answers.length > 1 ? answers.shift() : answers[0]),
    },
  };
}

/** The code of the refusal that this ends with. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!CallError.is(error)) throw new Error(`expected a CallError, got ${String(error)}`);
  return error.code;
}

export async function permit(passing: Promise<Permitted | Rewritten>): Promise<Permitted> {
  const passed = await passing;
  if ("rewritten" in passed) throw new Error("was rewritten");
  return passed;
}
