/**
 * The command's table of contents: one line per command, and the file that is loaded when it is
 * asked for. Nothing here may import a stage, so that `callgate --version` stays as cheap as node.
 */
import type { Command, CommandContext, RouteMap } from "@stricli/core";

export interface Route {
  readonly brief: string;
  readonly load: () => Promise<{ readonly command: Command<CommandContext> | RouteMap<CommandContext> }>;
}

export const routes: Readonly<Record<string, Route>> = {
  patch: { brief: "apply a patch to this folder: all files or none", load: () => import("./commands/patch.ts") },
};
