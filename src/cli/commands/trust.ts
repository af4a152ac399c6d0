import { statSync } from "node:fs";
import { resolve } from "node:path";
import { buildCommand } from "@stricli/core";
import { stateDir } from "../../base/paths.ts";
import { toVisibleLine } from "../../gate/show.ts";
import { createTrust, type TrustStatus } from "../../gate/trust.ts";
import { toggle } from "../config/flags.ts";
import { exitCodes, print, printJson, runCommand, UsageError } from "../io.ts";

interface Flags {
  readonly yes?: boolean;
  readonly revoke?: boolean;
  readonly json?: boolean;
}

export const command = buildCommand<Flags, [string?]>({
  docs: {
    brief: "show what a project brings (settings, tools, servers, rules) and trust it",
    fullDescription:
      "Nothing a project brings is read before it is trusted. Trust is in the content: a change asks again.",
  },
  parameters: {
    flags: {
      yes: toggle("trust it as it is now"),
      revoke: toggle("trust it no longer"),
      json: toggle("print JSON"),
    },
    positional: {
      kind: "tuple",
      parameters: [{ parse: String, placeholder: "DIR", brief: "the project; left out: this folder", optional: true }],
    },
  },
  func: (flags, dir) =>
    runCommand(async () => {
      const workspace = resolve(dir ?? ".");
      if (!statSync(workspace, { throwIfNoEntry: false })?.isDirectory())
        throw new UsageError(`there is no folder ${toVisibleLine(workspace)}`);
      const trust = createTrust({ stateDir: stateDir(process.env) });
      if (flags.revoke) trust.revoke(workspace);
      const before = trust.status(workspace);
      if (!flags.json) describe(before);
      if (before.trusted || flags.revoke) return done(before, flags);
      if (!(flags.yes || (await agrees(before)))) return done(before, flags);
      if (!trust.grant(workspace, before.hash))
        throw new UsageError("it changed while you were looking; run the command again");
      return done(trust.status(workspace), flags);
    }),
});

function describe(status: TrustStatus): void {
  if (status.files.length === 0) return print(`${toVisibleLine(status.workspace)} brings nothing that needs trust.`);
  print(`${toVisibleLine(status.workspace)} brings:`);
  for (const file of status.files)
    print(`  ${status.changed.includes(file) ? "new or changed  " : "trusted         "}${toVisibleLine(file)}`);
}

/** Asks the person at the terminal. Without a terminal, the answer is no. */
async function agrees(status: TrustStatus): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return false;
  const { createInterface } = await import("node:readline/promises");
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await lines.question(
      `Trust these ${status.files.length} files as they are now? They can run programs. [y/N] `,
    );
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    lines.close();
  }
}

function done(status: TrustStatus, flags: Flags): number {
  if (flags.json) printJson(status);
  else if (status.files.length > 0)
    print(status.trusted ? "Trusted." : "Not trusted (callgate trust --yes trusts it as it is now).");
  return status.trusted || flags.revoke === true ? exitCodes.done : exitCodes.refused;
}
