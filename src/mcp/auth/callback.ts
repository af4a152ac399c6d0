/** Where the browser returns to after a login: a small server on loopback that accepts one answer. */
import { createServer, type ServerResponse } from "node:http";
import { listen, requestUrl, urlOf } from "../../http/server.ts";

export interface Callback {
  readonly url: string;
  /** Waits for the answer to the login with this `state`. */
  wait(state: string, signal: AbortSignal): Promise<URLSearchParams>;
  close(): void;
}

const path = "/callback";

export async function openCallback(port = 0): Promise<Callback> {
  const waiting = new Map<string, (params: URLSearchParams) => void>();
  const server = createServer((request, response) => {
    const url = requestUrl(request);
    const take = waiting.get(url?.searchParams.get("state") ?? "");
    if (request.method !== "GET" || url?.pathname !== path || take === undefined)
      return answer(response, 404, "Nobody asked for this.");
    const failed = url.searchParams.has("error");
    answer(response, 200, failed ? "The login was refused." : "You are logged in. You can close this page.");
    take(url.searchParams);
  });
  await listen(server, port, "127.0.0.1");
  return {
    url: `${urlOf(server, "127.0.0.1")}${path}`,
    wait: (state, signal) =>
      new Promise((resolve, reject) => {
        const stop = () => reject(new Error("nobody answered the login in time"));
        if (signal.aborted) return stop();
        signal.addEventListener("abort", stop, { once: true });
        waiting.set(state, (params) => {
          waiting.delete(state);
          signal.removeEventListener("abort", stop);
          resolve(params);
        });
      }),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function answer(response: ServerResponse, status: number, words: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" });
  response.end(`${words}\n`);
}
