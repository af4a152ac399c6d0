/** How large a repository may be that a session begins with: real ones, made by git, against small limits. */
import { execFileSync } from "node:child_process";
import { lookup } from "node:dns/promises";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { cloneRepository } from "../../src/cli/serve/repository.ts";
import { makeCertificate } from "../certificate.ts";
import { has } from "../needs.ts";
import { tempFolder } from "./run.ts";

// A folder stands for the host here: everything but its own protocol is as it always is.
beforeAll(() => {
  vi.stubEnv("GIT_CONFIG_COUNT", "1");
  vi.stubEnv("GIT_CONFIG_KEY_0", "protocol.file.allow");
  vi.stubEnv("GIT_CONFIG_VALUE_0", "always");
});
afterAll(() => vi.unstubAllEnvs());

const git = (folder: string, args: readonly string[], input = "") =>
  execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@localhost", "-C", folder, ...args], { input })
    .toString()
    .trim();

const repository = (fill: (folder: string) => void) => {
  const folder = tempFolder("repository");
  git(folder, ["init", "-q", "-b", "main"]);
  fill(folder);
  git(folder, ["add", "-A"]);
  git(folder, ["commit", "-qm", "all", "--allow-empty"]);
  return folder;
};

const clone = async (from: string, limits = {}, ref?: string) => {
  const folder = tempFolder("cloned");
  const all = { bytes: 10_000_000, entries: 1000, pathBytes: 2048, ...limits };
  await cloneRepository({ url: pathToFileURL(from), address: "127.0.0.1", ref, folder, limits: all });
  return folder;
};

/** Three entries, six bytes. */
const small = (folder: string) => {
  mkdirSync(join(folder, "a"));
  writeFileSync(join(folder, "a/one"), "one");
  writeFileSync(join(folder, "two"), "two");
};

test("a repository within its limits is there, whatever it is called by: a branch, a tag, a commit", async () => {
  const from = repository(small);
  git(from, ["tag", "first"]);
  git(from, ["checkout", "-qb", "other"]);
  writeFileSync(join(from, "two"), "changed");
  git(from, ["commit", "-qam", "second"]);
  const second = git(from, ["rev-parse", "HEAD"]);
  git(from, ["checkout", "-q", "main"]);
  const read = async (ref?: string) =>
    readFileSync(join(await clone(from, { entries: 100, pathBytes: 5 }, ref), "two"), "utf8");
  expect(await read()).toBe("two");
  expect(await read("first")).toBe("two");
  expect(await read("main")).toBe("two");
  expect(await read("other")).toBe("changed");
  expect(await read(second)).toBe("changed");
  await expect(read("nowhere")).rejects.toThrow("no ref 'nowhere'");
  await expect(read("--help")).rejects.toThrow("no ref '--help'");
});

/** Ten times the same folder in each folder, nine deep: a thousand million files in a few hundred bytes. */
const bomb = (folder: string) => {
  let object = git(folder, ["hash-object", "-w", "--stdin"], "x");
  for (let depth = 0; depth < 9; depth++) {
    const kind = depth === 0 ? "100644 blob" : "040000 tree";
    const rows = Array.from({ length: 10 }, (_, n) => `${kind} ${object}\t${n}\n`);
    object = git(folder, ["mktree"], rows.join(""));
  }
  const commit = git(folder, ["commit-tree", object, "-m", "bomb"]);
  git(folder, ["tag", "bomb", commit]);
};

test.each([
  ["many", many, { entries: 59 }, "unpacks to more than 59 files and folders", undefined],
  ["bytes, well packed", zeros, { bytes: 2_999_999 }, "unpacks to more than 2999999 bytes", undefined],
  ["folders of folders", bomb, { entries: 5000 }, "unpacks to more than 5,000 files and folders", "bomb"],
  ["a long path", deep, { pathBytes: 80 }, "a path of more than 80 bytes", undefined],
])(
  "a repository beyond a limit is refused before a file of it is there: %s",
  async (_name, fill, limits, words, ref) => {
    const folder = tempFolder("cloned");
    const all = { bytes: 10_000_000, entries: 1000, pathBytes: 2048, ...limits };
    const given = { url: pathToFileURL(repository(fill)), address: "127.0.0.1", ref, folder, limits: all };
    await expect(cloneRepository(given)).rejects.toThrow(words);
    expect(readdirSync(folder)).toEqual([".git"]);
  },
);

test("a history beyond the limit is refused, though little of it would be checked out", async () => {
  const from = repository(small);
  const noise = Array.from({ length: 40_000 }, (_, n) => (n * 2_654_435_761) % 4_294_967_296).join(" ");
  writeFileSync(join(from, "noise"), noise);
  git(from, ["add", "-A"]);
  git(from, ["commit", "-qm", "noise"]);
  git(from, ["rm", "-q", "noise"]);
  git(from, ["commit", "-qm", "gone"]);
  await expect(clone(from, { bytes: 100_000 })).rejects.toThrow("the repository is larger than 100000 bytes");
  expect(readdirSync(await clone(from, { bytes: 1_000_000 })).toSorted()).toEqual([".git", "a", "two"]);
});

test.skipIf(!has("openssl"))(
  "a host that sends without end is left once it has sent too much (needs openssl)",
  async () => {
    const { key, certificate } = makeCertificate();
    vi.stubEnv("GIT_SSL_CAINFO", certificate);
    const id = "0123456789abcdef0123456789abcdef01234567";
    let isLeft = false;
    const server = createServer({ key: readFileSync(key), cert: readFileSync(certificate) }, (request, response) => {
      const { pathname } = new URL(request.url ?? "/", "https://x");
      if (pathname === "/r.git/info/refs") return void response.end(`${id}\trefs/heads/main\n`);
      if (pathname === "/r.git/HEAD") return void response.end("ref: refs/heads/main\n");
      if (pathname === "/r.git/objects/info/packs") return void response.end(`P pack-${id}.pack\n\n`);
      if (!pathname.endsWith(".idx")) return void response.writeHead(404).end();
      const timer = setInterval(() => response.write(Buffer.alloc(64 * 1024)), 10);
      response.on("close", () => {
        isLeft = true;
        clearInterval(timer);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
    onTestFinished(() => void server.close());
    const url = new URL(`https://localhost:${(server.address() as AddressInfo).port}/r.git`);
    const { address } = await lookup("localhost");
    const limits = { bytes: 1_000_000, entries: 1000, pathBytes: 2048 };
    const cloning = cloneRepository({ url, address, ref: undefined, folder: tempFolder("cloned"), limits });
    await expect(cloning).rejects.toThrow("the repository is larger than 1000000 bytes");
    // Its helpers are gone with it.
    await expect.poll(() => isLeft).toBe(true);
  },
);

function many(folder: string): void {
  for (let n = 0; n < 60; n++) writeFileSync(join(folder, `f${n}`), "");
}

function zeros(folder: string): void {
  writeFileSync(join(folder, "zeros"), Buffer.alloc(3_000_000));
}

function deep(folder: string): void {
  const path = join(folder, ...Array.from({ length: 40 }, () => "d"));
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, "f"), "");
}

test("nothing is measured any more once git has failed, also if that was under way", async () => {
  const programs = tempFolder("programs");
  // It fails while the folder, which has many files, is being measured for the first time.
  writeFileSync(join(programs, "git"), "#!/bin/sh\nsleep 0.22\nexit 1\n", { mode: 0o755 });
  const folder = tempFolder("many");
  for (let n = 0; n < 4000; n++) writeFileSync(join(folder, `${n}`), "");
  const path = process.env["PATH"] ?? "";
  vi.stubEnv("PATH", `${programs}:${path}`);
  onTestFinished(() => void vi.stubEnv("PATH", path));
  const limits = { bytes: 1000, entries: 4000, pathBytes: 100 };
  const url = new URL("https://nobody.invalid/");
  await expect(cloneRepository({ url, address: "127.0.0.1", ref: undefined, folder, limits })).rejects.toThrow("git");
  const timers = () => process.getActiveResourcesInfo().filter((one) => one === "Timeout").length;
  const before = timers();
  // Longer than what was under way can take: then the next measurement would be planned.
  for (let n = 0; n < 15; n++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(timers()).toBeLessThanOrEqual(before);
  }
});
