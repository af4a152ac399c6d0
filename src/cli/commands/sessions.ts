import { buildCommand } from "@stricli/core";
import { stateDir } from "../../base/paths.ts";
import { listSessions } from "../../store/index.ts";
import { toggle } from "../config/flags.ts";
import { print, printJson, runCommand } from "../io.ts";
import { visible } from "../chat/visible.ts";

interface SessionsFlags {
  readonly json?: boolean;
  readonly all?: boolean;
}

export const command = buildCommand({
  docs: { brief: "list the recorded sessions, newest first" },
  parameters: {
    flags: {
      json: toggle("as a JSON array"),
      all: toggle("all of them, not only the newest twenty"),
    },
  },
  func: (flags: SessionsFlags) => runCommand(async () => list(flags)),
});

function list(flags: SessionsFlags): void {
  const sessions = listSessions(stateDir(process.env));
  if (flags.json) return printJson(sessions.map(({ path: _path, ...session }) => session));
  if (sessions.length === 0) return print("No session has been recorded yet.");
  const shown = flags.all ? sessions : sessions.slice(0, 20);
  for (const { id, updatedAt, title, cwd } of shown)
    print(`${id}  ${updatedAt.slice(0, 16).replace("T", " ")}  ${visible(title) || "(no prompt)"}  ${cwd}`);
  if (shown.length < sessions.length) print(`… and ${sessions.length - shown.length} more (--all)`);
}
