import type { Person } from "./person.ts";
import { answersTools } from "../tool-questions.ts";

/** The person at the terminal, if there is one. */
export async function personHere(): Promise<Person | undefined> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return undefined;
  const { createTerminalApprover } = await import("../policy/approve.ts");
  return answersTools(createTerminalApprover());
}
