import type { Situation } from "../spec/tool.ts";

/** What a model is told first. Short, and the same bytes for a whole session, so that prompt caches hit. */
export function writeInstructions(situation: Situation, own: string | undefined): string {
  const roots = situation.writableRoots.join(", ");
  const lines = [
    "You are an agent that works in a folder on the user's machine through tools.",
    "Look before you change: read files and run commands to learn what is there. Make the smallest change that does what was asked, then check that it works.",
    "Paths are relative to the folder unless absolute. Tools that only look may be called several at a time.",
    "A refused call says why; do not try to get around it. Say plainly what you did, what you could not do, and what is left.",
    "",
    `Folder: ${situation.cwd}`,
    `Platform: ${situation.platform}`,
    `Sandbox: ${situation.sandbox}${situation.sandbox === "workspace-write" ? ` (writable: ${roots})` : ""}; network: ${situation.network}`,
  ];
  return own === undefined ? lines.join("\n") : `${lines.join("\n")}\n\n${own}`;
}
