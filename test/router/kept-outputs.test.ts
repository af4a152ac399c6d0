import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { createEngine } from "../../src/index.ts";
import { execCommand } from "../../src/tools/exec-command.ts";

test.skipIf(!existsSync("/bin/bash"))(
  "the first command of an engine runs in bash, as the gate has read it (bash is needed)",
  async () => {
    const engine = createEngine({ tools: [execCommand], approval: "on-request", sandbox: "full-access" });
    const { content } = await engine.call("exec_command", { cmd: "echo ${BASH_VERSION:+bash}" });
    await engine.close();
    expect(JSON.stringify(content)).toContain("bash");
  },
);
