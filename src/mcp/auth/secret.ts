/** Reads secrets from where the settings say they are, when they are needed, and stores them nowhere. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { promisify } from "node:util";
import type { SecretSource } from "./config.ts";

const run = promisify(execFile);
const timeoutMs = 30_000;
const maxBytes = 1024 * 1024;

/** Rejects with the place that was searched, never with what was found there. */
export async function readSecret(source: SecretSource, env: NodeJS.ProcessEnv): Promise<string> {
  const text = (await read(source, env)).trim();
  if (text === "") throw new Error(`${nameOf(source)} is empty`);
  return text;
}

async function read(source: SecretSource, env: NodeJS.ProcessEnv): Promise<string> {
  if ("env" in source) return env[source.env] ?? missing(source);
  if ("file" in source) {
    try {
      return readFileSync(source.file.replace(/^~(?=\/)/, homedir()), "utf8");
    } catch (error) {
      return missing(source, error);
    }
  }
  const [program, ...words] = source.command;
  try {
    return (await run(program!, words, { env, timeout: timeoutMs, maxBuffer: maxBytes, windowsHide: true })).stdout;
  } catch (error) {
    return missing(source, error);
  }
}

function missing(source: SecretSource, cause?: unknown): never {
  const code = (cause as { readonly code?: unknown } | undefined)?.code;
  throw new Error(`${nameOf(source)} cannot be read${code === undefined ? "" : ` (${String(code)})`}`);
}

function nameOf(source: SecretSource): string {
  if ("env" in source) return `the variable ${source.env}`;
  return "file" in source ? source.file : `what '${source.command[0]}' prints`;
}
