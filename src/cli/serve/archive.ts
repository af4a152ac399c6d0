/** The archive that a session's folder begins with: downloaded from its host, measured, and only then unpacked. */
import { execFile, spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import type { IncomingMessage } from "node:http";
import { get, type RequestOptions } from "node:https";
import { isIP } from "node:net";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { baseLimits, createCount, type BaseLimits } from "./base-limits.ts";

const maxMs = 10 * 60_000;

const run = promisify(execFile);

/** Nothing is unpacked of an archive that is beyond the limits. */
export async function unpackArchive(file: string, folder: string, limits = baseLimits): Promise<void> {
  await measure(file, limits);
  await run("tar", ["-xf", file, "--no-same-owner", "--no-same-permissions", "-C", folder], { timeout: maxMs }).catch(
    throwUnreadable,
  );
}

function throwUnreadable(): never {
  throw new Error("the archive is none that tar can read (.tar, .tar.gz, .tar.xz, .tar.zst)");
}

/** A line of `tar -tv` of GNU or of BSD: its kind, its size (a device has two numbers instead) and its path. */
const listed =
  /^(.)\S+\s+(?:\d+\/\d+|\d+\s+\d+\s+\d+)\s+(\d+)(?:,\s*\d+)?\s+(?:\d+-\d\d-\d\d \d\d:\d\d(?::\d\d)?|\w{3}\s+\d+\s+[\d:]+) (.*)$/s;
/** Longer than any path that the system accepts, even with every byte of it escaped. */
const maxLine = 32_768;

/**
 * Adds up what the archive says about its entries, and stops reading once that is too much. The sizes are
 * those that the files will have, so a file with holes counts in full.
 */
async function measure(file: string, limits: BaseLimits): Promise<void> {
  const env = { ...process.env, LC_ALL: "C", TZ: "UTC" };
  const args = ["-tvf", file, "--numeric-owner"];
  const tar = spawn("tar", args, { env, stdio: ["ignore", "pipe", "ignore"], timeout: maxMs });
  const ended = new Promise<number | null>((resolve, reject) => tar.once("error", reject).once("close", resolve));
  ended.catch(() => undefined); // its outcome is looked at below
  const add = createCount("the archive", limits);
  const count = (line: string) => {
    const { bytes, path } = readLine(line);
    // In a path, every byte that is not a plain character is escaped: by a backslash with a letter or three digits.
    add(bytes, path, path.replaceAll(/\\(?:[0-7]{3}|.)/g, "?").length);
  };
  try {
    let line = "";
    for await (const chunk of tar.stdout.setEncoding("latin1")) {
      const lines = (line + String(chunk)).split("\n");
      line = lines.pop() ?? "";
      for (const one of lines) count(one);
      if (line.length > maxLine) throwUnreadable();
    }
  } catch (error) {
    tar.kill("SIGKILL");
    throw error;
  }
  if ((await ended.catch(throwUnreadable)) !== 0) throwUnreadable();
}

/** Reads the size and the path of an entry from its line of the listing. */
function readLine(line: string): { readonly bytes: number; readonly path: string } {
  const [, kind, size, words] = listed.exec(line) ?? throwUnreadable();
  // The target of a link is not part of its path. If the path itself contains these words, more of the line counts
  // as the path, which is only stricter.
  const end = kind === "l" ? words!.lastIndexOf(" -> ") : kind === "h" ? words!.lastIndexOf(" link to ") : -1;
  const path = end === -1 ? words! : words!.slice(0, end);
  return { bytes: kind === "b" || kind === "c" ? 0 : Number(size), path };
}

/** Downloads from this address and nowhere else, whatever the host's name leads to a moment later. */
export async function downloadArchive(url: URL, address: string, file: string): Promise<void> {
  const family = isIP(address);
  const at: RequestOptions = {
    signal: AbortSignal.timeout(maxMs),
    lookup: (_host, options, done) => (options.all ? done(null, [{ address, family }]) : done(null, address, family)),
  };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, at, resolve).on("error", reject);
  });
  if (response.statusCode !== 200) {
    response.destroy();
    throw new Error(`the archive could not be had: HTTP ${response.statusCode}`);
  }
  let bytes = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      done(bytes > baseLimits.bytes ? new Error("the archive is larger than 1 GB") : null, chunk);
    },
  });
  await pipeline(response, counted, createWriteStream(file, { mode: 0o600 }));
}
