/** Reads templates from where people have them: a file, a tokenizer's folder, a server. */
import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { readTemplateSource, TemplateError, type TemplateSource } from "../template/index.ts";
import { unreadable, UsageError } from "./io.ts";

/** GGUF keeps its header at the front; the weights behind it are never read. */
const headerBytes = 64 << 20;
const longestFile = 32 << 20;

/** Undefined: the file holds no template. */
export async function readTemplateFile(path: string): Promise<TemplateSource | undefined> {
  const file = existsSync(path) && statSync(path).isDirectory() ? join(path, "tokenizer_config.json") : path;
  const found = sourceIn(await bytesOf(file), file);
  if (found !== undefined || !file.endsWith(".json")) return found;
  // If tokenizer_config.json has no template, it is in a file beside it, as in newer repositories.
  for (const name of ["chat_template.jinja", "chat_template.json"]) {
    const beside = join(dirname(file), name);
    if (existsSync(beside)) return sourceIn(await readFile(beside), beside);
  }
  return undefined;
}

/** The user has to correct what is wrong with a template's file. */
function sourceIn(data: Uint8Array, path: string): TemplateSource | undefined {
  try {
    return readTemplateSource(data);
  } catch (error) {
    if (error instanceof TemplateError) throw new UsageError(`${path}: ${error.message}`);
    throw error;
  }
}

async function bytesOf(path: string): Promise<Uint8Array> {
  try {
    const size = statSync(path).size;
    if (size <= longestFile) return await readFile(path);
    const head = Buffer.alloc(Math.min(size, headerBytes));
    const handle = openSync(path, "r");
    readSync(handle, head, 0, head.length, 0);
    closeSync(handle);
    return head;
  } catch (error) {
    throw new UsageError(unreadable(path, error));
  }
}

/** A llama.cpp server gives its template at `/props`, next to the API. */
export async function askForTemplate(
  baseUrl: string,
): Promise<{ readonly source: TemplateSource; readonly from: string }> {
  const root = baseUrl.replace(/\/+$/, "").replace(/\/v\d+$/, "");
  const from = `${root}/props`;
  const answer = await fetch(from, { signal: AbortSignal.timeout(10_000) }).catch((error: unknown) => {
    throw new UsageError(
      `nobody answers at ${from} (${error instanceof Error ? error.message : String(error)}): give --template FILE`,
    );
  });
  const text = answer.ok ? await answer.text() : "";
  const source = text.length > longestFile ? undefined : readTemplateSource(text);
  if (source === undefined)
    throw new UsageError(`${from} tells no chat template (status ${answer.status}): give --template FILE`);
  return { source, from };
}
