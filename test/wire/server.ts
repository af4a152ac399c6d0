/** A real HTTP server on loopback that answers every request with one body and keeps what it was asked. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface TestServer {
  readonly url: string;
  readonly requests: { readonly path: string; readonly body: unknown }[];
  close(): Promise<void>;
}

export async function serve(
  answer: (body: unknown) => { readonly type: string; readonly body: string },
): Promise<TestServer> {
  const requests: TestServer["requests"] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8") || "null");
      requests.push({ path: request.url ?? "", body });
      const { type, body: text } = answer(body);
      response.writeHead(200, { "content-type": type });
      // In pieces, so that a client meets the seams it meets in the field.
      for (let at = 0; at < text.length; at += 97) response.write(text.slice(at, at + 97));
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // listening on a port, so not a path
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
