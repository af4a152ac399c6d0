/**
 * The system's own store of secrets, used through its own program: no native module, and nothing
 * secret on a command line. If it does not work, there is none.
 */
import { spawn } from "node:child_process";
import { findProgram } from "../../runtime/sandbox/machine.ts";

/** The system's store of secrets. */
export interface Keyring {
  get(account: string): Promise<string | undefined>;
  /** False where it could not be kept. */
  set(account: string, secret: string): Promise<boolean>;
  delete(account: string): Promise<boolean>;
}

const service = "callgate";
/** A locked keyring asks the person. One that nobody unlocks is given up after this time. */
const timeoutMs = 20_000;

/** Undefined if the system has none. The macOS part was written from the manual page and has not been run. */
export function findKeyring(env: NodeJS.ProcessEnv, platform = process.platform): Keyring | undefined {
  if (platform === "darwin") return keychain(env);
  const program = platform === "linux" ? findProgram("secret-tool", env) : undefined;
  return program === undefined ? undefined : secretService(program, env);
}

function secretService(program: string, env: NodeJS.ProcessEnv): Keyring {
  const run = (words: readonly string[], input = "") => runProgram(program, words, input, env);
  const about = (account: string) => ["service", service, "account", account];
  return {
    get: async (account) => (await run(["lookup", ...about(account)]))?.trim() || undefined,
    set: async (account, secret) =>
      (await run(["store", `--label=Callgate: ${account}`, ...about(account)], secret)) !== undefined,
    delete: async (account) => (await run(["clear", ...about(account)])) !== undefined,
  };
}

function keychain(env: NodeJS.ProcessEnv): Keyring {
  const run = (words: readonly string[], input = "") => runProgram("/usr/bin/security", words, input, env);
  const about = (account: string) => ["-s", service, "-a", account];
  return {
    get: async (account) => (await run(["find-generic-password", ...about(account), "-w"]))?.trim() || undefined,
    async set(account, secret) {
      // Its interactive mode reads the secret from stdin, in hex, because other processes can read a command line.
      const words = about(account).map((word) => JSON.stringify(word));
      const line = ["add-generic-password", "-U", ...words, "-X", Buffer.from(secret).toString("hex")].join(" ");
      return (await run(["-i"], `${line}\n`)) !== undefined;
    },
    delete: async (account) => (await run(["delete-generic-password", ...about(account)])) !== undefined,
  };
}

/** What it printed. Undefined if it failed, does not exist or took too long. */
function runProgram(
  program: string,
  words: readonly string[],
  input: string,
  env: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = spawn(program, words, { env, stdio: ["pipe", "pipe", "ignore"], timeout: timeoutMs });
    let printed = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text));
    child.stdin.on("error", () => undefined); // it ended without reading: its exit code says so
    child.on("error", () => resolve(undefined));
    child.on("close", (code) => resolve(code === 0 ? printed : undefined));
    child.stdin.end(input);
  });
}
