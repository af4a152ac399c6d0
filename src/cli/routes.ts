/**
 * The command's table of contents: one line per command, and the file that is loaded when it is
 * asked for. Nothing here may import a stage, so that `callgate --version` stays as cheap as node.
 */
import type { RoutingTarget, CommandContext } from "@stricli/core";

export interface Route {
  readonly brief: string;
  readonly load: () => Promise<{ readonly command: RoutingTarget<CommandContext> }>;
}

export const routes: Readonly<Record<string, Route>> = {
};
