/** Servers that answer as a test wants, each closed after its test. */
import { createServer, type RequestListener, type Server } from "node:http";
import { afterEach } from "vitest";

export const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** The base URL of a server that answers like this. */
export async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // It listens on a port, not on a path.
  const { port } = server.address() as { port: number };
  return `http://127.0.0.1:${port}/v1`;
}
