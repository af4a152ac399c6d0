import type { Approver } from "../spec/stages.ts";

/** The person at the terminal, where there is one. */
export async function approverHere(): Promise<Approver | undefined> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return undefined;
  const { createTerminalApprover } = await import("./approve.ts");
  return createTerminalApprover();
}
