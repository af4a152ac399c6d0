/** The sandboxes of two peers, where they are installed (BENCH_PEERS, or node_modules). Each as its users run it. */
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Way } from "./exec.ts";

const require = createRequire(join(process.env["BENCH_PEERS"] ?? process.cwd(), "index.js"));

export async function openPeers(cwd: string, argv: readonly string[]) {
  const codex = codexWay(cwd, argv);
  const runtime = await sandboxRuntime(cwd, argv);
  const ways = [codex, runtime?.way].filter((way) => way !== undefined);
  return { ways, close: async () => runtime?.close() };
}

function resolved(name: string): string | undefined {
  try {
    return require.resolve(name);
  } catch {
    return undefined; // not installed
  }
}

function codexWay(cwd: string, argv: readonly string[]): Way | undefined {
  const manifest = resolved("@openai/codex/package.json");
  if (manifest === undefined) return undefined;
  const home = join(cwd, ".codex-home");
  mkdirSync(home);
  const words = [join(manifest, "../bin/codex.js"), "sandbox", "-c", 'sandbox_mode="workspace-write"', "--", ...argv];
  return { name: "codex sandbox", run: () => finished(process.execPath, words, cwd, { CODEX_HOME: home }) };
}

/** What its README shows; the names of its settings as version 0.0.78 has them. */
interface SandboxManager {
  initialize(config: object): Promise<void>;
  wrapWithSandbox(line: string): Promise<string>;
  reset(): Promise<void>;
}

async function sandboxRuntime(cwd: string, argv: readonly string[]) {
  const path = resolved("@anthropic-ai/sandbox-runtime");
  if (path === undefined) return undefined;
  // Not a dependency, so without types of its own here.
  const { SandboxManager: manager } = (await import(pathToFileURL(path).href)) as { SandboxManager: SandboxManager };
  const network = { allowedDomains: [], deniedDomains: [] };
  await manager.initialize({ network, filesystem: { denyRead: [], allowWrite: [cwd], denyWrite: [] } });
  const line = argv.map((word) => `'${word}'`).join(" ");
  const way: Way = {
    name: "@anthropic-ai/sandbox-runtime",
    run: async () => finished("bash", ["-c", await manager.wrapWithSandbox(line)], cwd),
  };
  return { way, close: () => manager.reset() };
}

function finished(program: string, args: readonly string[], cwd: string, more: NodeJS.ProcessEnv = {}): Promise<void> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, ...more };
    const child = spawn(program, args, { cwd, env, stdio: ["ignore", "ignore", "inherit"] });
    child.once("close", (code) => (code === 0 ? resolve() : reject(new Error(`${program} ended with ${code}`))));
  });
}
