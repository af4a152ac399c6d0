/** The small server that a browser returns to after a login: any page may send it anything. */
import { request } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { openCallback } from "../../src/mcp/auth/callback.ts";

test("what is no address is answered, and the login goes on", async () => {
  const callback = await openCallback();
  onTestFinished(callback.close);
  const { port } = new URL(callback.url);
  const status = await new Promise<number>((resolve, reject) => {
    request({ port, path: "//" }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
      .on("error", reject)
      .end();
  });
  expect(status).toBe(404);
  const answered = callback.wait("state", AbortSignal.timeout(5_000));
  expect((await fetch(`${callback.url}?state=state&code=c`)).status).toBe(200);
  expect((await answered).get("code")).toBe("c");
});
