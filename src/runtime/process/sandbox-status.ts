/**
 * Whether the command began at all, if a sandbox program stands between us and it. Bubblewrap writes
 * JSON lines to a descriptor, with the exit code among them only if it executed the command. Without
 * it, what ended was the sandbox, and what was printed is not the command's output.
 */
import type { ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import type { Confined } from "./child.ts";
import { sandboxWords, StartError } from "./child.ts";

export interface SandboxStatus {
  /**
   * Takes the command's errors. They are passed on, unless they may be the sandbox program's, which
   * shows at the end.
   */
  take(bytes: Buffer): void;
  /** Called once, when all descriptors are closed. Returns why the command never began, if it did not. */
  end(exitCode: number | null): StartError | undefined;
}

const maxKeptBytes = 4096;
/** How bubblewrap begins each line of its own. */
const prefix = "bwrap: ";

/** The child was started with a pipe at `launch.statusFd`, if there is one. */
export function readSandboxStatus(
  child: ChildProcess,
  launch: Confined,
  handOn: (bytes: Buffer) => void = () => {},
): SandboxStatus {
  const { statusFd } = launch;
  let text = "";
  let kept = Buffer.alloc(0);
  let mayBeItsOwn = statusFd !== undefined;
  if (statusFd !== undefined) {
    const status = child.stdio[statusFd] as Readable | null | undefined; // opened as a pipe, hence readable
    status?.setEncoding("utf8").on("data", (more: string) => (text += more));
    status?.on("error", () => {}); // nothing was reported, which is an answer too
  }

  function flush(): void {
    if (kept.length > 0) handOn(kept);
    kept = Buffer.alloc(0);
  }

  return {
    take(bytes) {
      if (!mayBeItsOwn) return handOn(bytes);
      kept = Buffer.concat([kept, bytes]);
      mayBeItsOwn =
        prefix.startsWith(kept.subarray(0, prefix.length).toString("latin1")) && kept.length <= maxKeptBytes;
      if (!mayBeItsOwn) flush();
    },
    end(exitCode) {
      const began = statusFd === undefined || exitCode === null || exitCode === 0 || text.includes('"exit-code"');
      if (began) {
        flush();
        return undefined;
      }
      const said = kept.toString("utf8");
      const reason = /^bwrap: execvp .*: (.*)$/m.exec(said)?.[1];
      // The caller knows the program's name, so only the reason is told.
      return reason === undefined
        ? new StartError("sandbox", "EIO", sandboxWords(said, launch))
        : new StartError("exec", "EACCES", `the program could not be executed: ${reason}`);
    },
  };
}
