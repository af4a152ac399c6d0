import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createEngine } from "../../src/index.ts";
import type { CallEvent } from "../../src/spec/stages.ts";
import { shellCommand } from "../../src/tools/shell-command.ts";
import { has } from "../needs.ts";
import { freshFolder } from "./sandbox/folder.ts";

test.skipIf(!has("curl"))(
  "a command's requests are told with the call's id, allowed or refused (needs curl)",
  async () => {
    const server = createServer((_request, response) => response.end("served"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const workspace = freshFolder("/var/tmp");
    // In a file: the gate would ask about a line that says what it does.
    const line = `curl -s --noproxy '' http://127.0.0.1:${port}/; curl -s http://elsewhere.invalid/`;
    writeFileSync(join(workspace, "fetch.sh"), line);
    const engine = createEngine({
      workspace,
      tools: [shellCommand],
      approval: "never",
      gate: { network: [`127.0.0.1:${port}`] },
    });
    onTestFinished(() => engine.close());
    const heard: CallEvent[] = [];
    engine.on((event) => event.type === "exec.request" && heard.push(event));
    const { id } = await engine.call("shell_command", { command: "bash fetch.sh" });
    expect(heard).toEqual([
      { type: "exec.request", id, host: "127.0.0.1", port, method: "GET", allowed: true },
      expect.objectContaining({ type: "exec.request", id, host: "elsewhere.invalid", port: 80, allowed: false }),
    ]);
  },
);
