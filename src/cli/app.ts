/**
 * The command's table of contents. Every command is a file of its own, loaded only when it is
 * asked for; nothing here may import a stage, so that `callgate --version` stays as cheap as node.
 */
import { buildApplication, buildRouteMap } from "@stricli/core";
import { routes } from "./routes.ts";
import { version } from "./version.ts";

export const app = buildApplication(
  buildRouteMap({ routes, docs: { brief: "Callgate: the tool-calling engine for LLM agents" } }),
  {
    name: "callgate",
    versionInfo: { currentVersion: version },
    scanner: { caseStyle: "allow-kebab-for-camel", allowArgumentEscapeSequence: true },
    documentation: { useAliasInUsageLine: true },
  },
);
