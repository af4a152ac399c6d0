/** Servers on loopback for the proxy's and fetch's tests, and names that lead to them. */
import { createServer } from "node:http";
import type { RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

/** Every name leads to loopback, as a hostile resolver could make it. */
export const toLoopback = async () => [{ address: "127.0.0.1", family: 4 }];
