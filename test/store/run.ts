/** Functions of the store in processes of their own: with a disk that fills up, killed, or several at once. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const modules = ["journal", "lock", "audit", "file-store", "packs"] as const;

/** Bundled once a test file, because a bare Node reads no TypeScript. Returns the folder of the modules. */
export async function bundleStore(): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), "callgate-store-bundle-"));
  const bundle = await rolldown({
    input: Object.fromEntries(
      modules.map((name) => [name, fileURLToPath(new URL(`../../src/store/${name}.ts`, import.meta.url))]),
    ),
    platform: "node",
    external: [/^node:/],
  });
  await bundle.write({ dir, format: "esm", entryFileNames: "[name].mjs", chunkFileNames: "[name]-[hash].mjs" });
  await bundle.close();
  return dir;
}

export interface Ran {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly lines: readonly string[];
  readonly stderr: string;
}

/** Runs a module's text beside the bundled modules. With `maxBlocks` no file may become larger, as on a full disk. */
export async function runBeside(
  folder: string,
  source: string,
  args: readonly string[],
  { maxBlocks }: { readonly maxBlocks?: number } = {},
): Promise<Ran> {
  // `ulimit -f` counts in blocks of 512 bytes.
  const limit = maxBlocks === undefined ? "" : `ulimit -f ${maxBlocks}; `;
  const command = `${limit}source=$1; shift; exec "$0" --input-type=module -e "$source" -- "$@"`;
  const child = spawn("/bin/sh", ["-c", command, process.execPath, source, ...args], { cwd: folder });
  child.stdin.end();
  const [stdout, stderr, [code, signal]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>,
  ]);
  return { code, signal, stderr, lines: stdout.split("\n").filter((line) => line !== "") };
}
