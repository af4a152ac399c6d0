import { runConfined, type Launch, type Sandbox } from "../../../src/runtime/sandbox/sandbox.ts";
import type { ConfineOptions } from "../../../src/runtime/sandbox/sandbox.ts";

/**
 * Runs a command in the sandbox to its end. Sockets of tests that run beside this one come and go while a sandbox is
 * built, which then cannot be: it is built anew, as the engine does too.
 */
export async function confineAndRun(sandbox: Sandbox, launch: Launch, timeoutMs?: number, how?: ConfineOptions) {
  for (let tries = 3; ; tries--) {
    const command = await sandbox.confine(launch, how);
    const end = await runConfined(command, timeoutMs);
    const denied = await command.cleanup(end);
    if (end.neverBegan === undefined || tries === 1) return { ...end, command, denied };
  }
}
