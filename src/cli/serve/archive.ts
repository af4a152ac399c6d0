/** The archive that a session's folder begins with: had from its host, measured, and only then unpacked. */
import { execFile, spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import type { IncomingMessage } from "node:http";
import { get, type RequestOptions } from "node:https";
import { isIP } from "node:net";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";

const maxMs = 10 * 60_000;

/** What an archive may unpack to. */
export interface ArchiveLimits {
  readonly bytes: number;
  /** Files, links and folders, also the folders that only a file's path names. */
  readonly entries: number;
}

/** As much as may be downloaded, and four times the files of a folder that follows its session to another worker. */
export const archiveLimits: ArchiveLimits = { bytes: 1024 * 1024 * 1024, entries: 200_000 };

const run = promisify(execFile);

/** Nothing is unpacked of an archive that is beyond the limits. */
export async function unpackArchive(file: string, folder: string, limits = archiveLimits): Promise<void> {
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
/** More than any path that the system takes, with every byte of it escaped. */
const maxLine = 32_768;

/**
 * Sums up what the archive says of its entries, and stops reading it once that is too much. Sizes are
 * those the files will have, so a file with holes counts in full.
 */
async function measure(file: string, limits: ArchiveLimits): Promise<void> {
  const env = { ...process.env, LC_ALL: "C", TZ: "UTC" };
  const args = ["-tvf", file, "--numeric-owner"];
  const tar = spawn("tar", args, { env, stdio: ["ignore", "pipe", "ignore"], timeout: maxMs });
  const ended = new Promise<number | null>((resolve, reject) => tar.once("error", reject).once("close", resolve));
  ended.catch(() => undefined); // looked at below
  const count = createCount(limits);
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

function createCount(limits: ArchiveLimits): (line: string) => void {
  let bytes = 0;
  let entries = 0;
  let last: readonly string[] = [];
  return (line) => {
    const [, kind, size, words] = listed.exec(line) ?? throwUnreadable();
    // A link's target is no part of its path. Where the words are in the path itself, more is counted.
    const end = kind === "l" ? words!.lastIndexOf(" -> ") : kind === "h" ? words!.lastIndexOf(" link to ") : -1;
    const path = (end === -1 ? words! : words!.slice(0, end)).split("/").filter((part) => part !== "" && part !== ".");
    // Folders that the entry before lies in as well are there already, so a tree in its order is counted once.
    const known = path.findIndex((part, place) => part !== last[place]);
    entries += Math.max(1, known === -1 ? 1 : path.length - known);
    last = path;
    bytes += kind === "b" || kind === "c" ? 0 : Number(size);
    if (bytes > limits.bytes) throw new Error(`the archive unpacks to more than ${toSize(limits.bytes)}`);
    if (entries > limits.entries)
      throw new Error(`the archive unpacks to more than ${limits.entries.toLocaleString("en")} files and folders`);
  };
}

function toSize(bytes: number): string {
  const gigabytes = bytes / (1024 * 1024 * 1024);
  return gigabytes >= 1 ? `${gigabytes} GB` : `${bytes} bytes`;
}

/** From this address and nowhere else, whatever the host's name leads to a moment later. */
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
      done(bytes > archiveLimits.bytes ? new Error("the archive is larger than 1 GB") : null, chunk);
    },
  });
  await pipeline(response, counted, createWriteStream(file, { mode: 0o600 }));
}
