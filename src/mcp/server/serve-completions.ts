import type { Server, ServerContext } from "@modelcontextprotocol/server";
import { complete, type Completions } from "./completions.ts";
import type { ServedPrompts } from "./served-prompts.ts";
import type { ServedResources } from "./served-resources.ts";

/** What a person may want to type next, for a prompt's arguments and an address's variables. */
export function serveCompletions(
  server: Server,
  prompts?: ServedPrompts,
  resourcesOf?: (request?: ServerContext) => ServedResources,
): void {
  server.registerCapabilities({ completions: {} });
  server.setRequestHandler("completion/complete", async ({ params: { ref, argument, context } }, ctx) => {
    const completions =
      ref.type === "ref/prompt"
        ? prompts?.find(ref.name)?.arguments?.find(({ name }) => name === argument.name)?.complete
        : ofTemplate(resourcesOf?.(ctx), ref.uri, argument.name);
    return { completion: await complete(completions, argument.value, context?.arguments ?? {}) };
  });
}

function ofTemplate(resources: ServedResources | undefined, uri: string, name: string): Completions | undefined {
  const given = resources?.templates.find(({ uriTemplate }) => uriTemplate === uri)?.complete ?? {};
  return Object.hasOwn(given, name) ? given[name] : undefined;
}
