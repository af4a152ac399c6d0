import { ProtocolError, ProtocolErrorCode, type Server, type ServerContext } from "@modelcontextprotocol/server";
import type { ServedResources } from "./served-resources.ts";

const resourcesPerPage = 100;
const maxSubscriptions = 1_000;

export interface ServeResourcesOptions {
  /** Those of the client that makes a request. */
  readonly resourcesOf: (request?: ServerContext) => ServedResources;
  readonly follows: boolean;
}

/** Offers the resources to one connection. Returns the function that stops doing so. */
export function serveResources(server: Server, { resourcesOf, follows }: ServeResourcesOptions): (() => void)[] {
  const resources = resourcesOf();
  server.registerCapabilities({
    resources: { listChanged: resources.onChange !== undefined, subscribe: resources.onUpdate !== undefined },
  });
  server.setRequestHandler("resources/list", async ({ params }, ctx) => {
    const all = await resourcesOf(ctx).list();
    const from = Number(params?.cursor ?? 0);
    if (!Number.isSafeInteger(from) || from < 0)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, "that is no cursor of ours");
    const next = from + resourcesPerPage;
    return {
      resources: all.slice(from, next).map(({ mediaType, ...resource }) => ({ ...resource, mimeType: mediaType })),
      ...(next < all.length ? { nextCursor: String(next) } : {}),
    };
  });
  server.setRequestHandler("resources/templates/list", () => ({
    resourceTemplates: resources.templates.map(({ complete: _complete, ...template }) => template),
  }));
  server.setRequestHandler("resources/read", async ({ params: { uri } }, ctx) => {
    const found = await resourcesOf(ctx).read(uri);
    if (found === undefined)
      throw new ProtocolError(ProtocolErrorCode.ResourceNotFound, `there is no resource ${uri}`, { uri });
    const content = "text" in found ? { text: found.text } : { blob: found.data };
    return { contents: [{ uri, mimeType: found.mediaType, ...content }] };
  });
  const subscribed = followUpdates(server, resources);
  if (!follows) return [];
  return [
    resources.onChange?.(() => void server.sendResourceListChanged().catch(() => undefined)),
    resources.onUpdate?.((uri) => {
      if (subscribed(uri)) void server.sendResourceUpdated({ uri }).catch(() => undefined);
    }),
  ].filter((end) => end !== undefined);
}

/**
 * Who wants to know about changes of which resource. Older clients subscribe here; for newer ones the
 * transport keeps track.
 */
function followUpdates(server: Server, resources: ServedResources): (uri: string) => boolean {
  const wanted = new Set<string>();
  if (resources.onUpdate === undefined) return () => false;
  server.setRequestHandler("resources/subscribe", ({ params: { uri } }) => {
    if (wanted.size >= maxSubscriptions && !wanted.has(uri))
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `one client subscribes to at most ${maxSubscriptions}`);
    wanted.add(uri);
    return {};
  });
  server.setRequestHandler("resources/unsubscribe", ({ params: { uri } }) => {
    wanted.delete(uri);
    return {};
  });
  return (uri) => wanted.has(uri) || (server.getNegotiatedProtocolVersion() ?? "") >= "2026";
}
