/** One proxy per command, so that each request is known to belong to its call. Loaded only if a grant names hosts. */
import { randomBytes } from "node:crypto";
import { chmodSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { defined } from "../../base/json.ts";
import { createProxy } from "../proxy.ts";
import type { Grant } from "../../spec/access.ts";
import type { Backend, CommandProxy, ConfineOptions } from "./backend.ts";
import { makePrivateFolder, removePrivateFolder } from "./private-folder.ts";

export interface ProxySettings extends Pick<ConfineOptions, "onRequest"> {
  readonly allowPrivate?: boolean;
}

export async function openCommandProxy(
  by: Backend["proxyBy"],
  { network }: Grant,
  { onRequest, allowPrivate }: ProxySettings,
): Promise<CommandProxy> {
  const token = by === "port" ? randomBytes(16).toString("hex") : undefined;
  const proxy = createProxy({
    network,
    ...defined({ onRequest, allowPrivate, token }),
  });
  if (by === "port") {
    await new Promise<void>((resolve) => proxy.server.listen(0, "127.0.0.1", resolve));
    proxy.server.unref();
    // A listening TCP server has a port.
    const { port } = proxy.server.address() as AddressInfo;
    return { port, ...defined({ token }), close: () => proxy.close().then(proxy.refused) };
  }
  const folder = makePrivateFolder();
  const socket = join(folder, "proxy.sock");
  await new Promise<void>((resolve) => proxy.server.listen(socket, resolve));
  proxy.server.unref();
  // The command may run as another user. The folder's random name keeps strangers out.
  chmodSync(folder, 0o711);
  chmodSync(socket, 0o666);
  return {
    socket,
    async close() {
      await proxy.close();
      removePrivateFolder(folder);
      return proxy.refused();
    },
  };
}
