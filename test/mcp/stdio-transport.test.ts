/** Messages to a server that reads slowly. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { createStdioTransport } from "../../src/mcp/client/stdio-transport.ts";

test("a server that reads slowly is waited for as often as it takes, and nothing stays behind", async () => {
  let child: ChildProcess | undefined;
  const transport = createStdioTransport(async () => {
    child = spawn("sh", ["-c", "sleep 0.5; exec cat >/dev/null"], { stdio: "pipe", detached: true });
    return child;
  });
  onTestFinished(() => transport.close());
  await transport.start();
  const before = child?.listenerCount("exit");
  const params = { text: "x".repeat(100_000) };
  const sent = Array.from({ length: 30 }, (_, id) => transport.send({ jsonrpc: "2.0", id, method: "m", params }));
  expect(child?.listenerCount("exit")).toBe((before ?? 0) + 1);
  await Promise.all(sent);
  expect(child?.listenerCount("exit")).toBe(before);
  expect(child?.stdin?.listenerCount("drain")).toBe(0);
});

test("one that ends in the meantime is told as gone", async () => {
  let child: ChildProcess | undefined;
  const transport = createStdioTransport(async () => {
    child = spawn("sh", ["-c", "sleep 0.3"], { stdio: "pipe", detached: true });
    return child;
  });
  onTestFinished(() => transport.close());
  await transport.start();
  const params = { text: "x".repeat(1_000_000) };
  await expect(transport.send({ jsonrpc: "2.0", id: 1, method: "m", params })).rejects.toThrow("the server is gone");
  if (child?.exitCode === null) await once(child, "exit");
  expect(child?.stdin?.listenerCount("drain")).toBe(0);
});
