import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import type { Confined, Sink } from "../../../src/runtime/process/child.ts";
import { createFrameReader, encodeFrame, encodeLaunch } from "../../../src/runtime/process/launcher-protocol.ts";
import { createLauncherSpawner } from "../../../src/runtime/process/launcher.ts";
import { launchers, unconfined } from "./spawners.ts";

const folder = mkdtempSync(join(tmpdir(), "callgate-launcher-"));
const env = { PATH: "/usr/local/bin:/usr/bin:/bin" };

interface Observed {
  readonly launch: Confined;
  readonly sink: Sink;
  readonly seen: string[];
}

function launchOf(argv: readonly string[], more: Partial<Confined> = {}): Observed {
  const seen: string[] = [];
  const onOutput: Sink["onOutput"] = (stream, bytes) => seen.push(`${stream}:${bytes.toString()}`);
  const sink = { liveBytes: 1 << 20, tailBytes: 1 << 20, graceMs: 100, onDropped: () => {}, onOutput };
  return { launch: unconfined({ argv, cwd: folder, env, ...more }), sink, seen };
}

const encode = ({ launch, sink }: Observed) => encodeLaunch(launch, sink);

test("no request, however broken, makes the parser read where it should not", () => {
  const fuzz = fileURLToPath(new URL("../../../scripts/fuzz-launcher.mjs", import.meta.url));
  const run = spawnSync(process.execPath, [fuzz, "50000", "1"], { encoding: "utf8" });
  expect(run).toMatchObject({ status: 0, stdout: expect.stringContaining("50000 requests") });
});

describe("frames", () => {
  test("come out as they went in, wherever the stream is cut", () => {
    const frames = fc.array(
      fc.tuple(fc.constantFrom("o", "e", "x"), fc.nat(0xffff_ffff), fc.uint8Array({ maxLength: 300 })),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(frames, fc.integer({ min: 1, max: 50 }), (list, step) => {
        const stream = Buffer.concat(list.map(([type, id, body]) => encodeFrame(type, id, body)));
        const seen: unknown[] = [];
        const read = createFrameReader(({ type, id, body }) => seen.push([type, id, new Uint8Array(body)]));
        for (let at = 0; at < stream.length; at += step) read(stream.subarray(at, at + step));
        expect(seen).toEqual(list);
      }),
    );
  });
});

describe.each(launchers.filter(({ launcher }) => launcher !== "off"))("$name", ({ launcher }) => {
  const spawner = createLauncherSpawner({ path: launcher });
  const start = ({ launch, sink }: Observed) => spawner.start(launch, sink);
  afterAll(() => spawner.close());

  test("says what a command used", async () => {
    const { usage } = await (await start(launchOf(["bash", "-c", "for ((i=0;i<20000;i++)); do :; done"]))).ended;
    expect(usage?.cpuMs).toBeGreaterThan(1);
    expect(usage?.peakBytes).toBeGreaterThan(1_000_000);
  });

  test("runs a script without a first line as a shell would", async () => {
    writeFileSync(join(folder, "script"), 'echo "script $1"\n', { mode: 0o755 });
    const launch = launchOf(["./script", "ran"]);
    expect((await (await start(launch)).ended).exitCode).toBe(0);
    expect(launch.seen).toEqual(["stdout:script ran\n"]);
  });

  test("finds programs by the path of the command's own environment", async () => {
    const failing = await start(launchOf(["ls"], { env: { PATH: folder } }));
    await expect(failing.ended).rejects.toMatchObject({ step: "exec", code: "ENOENT" });
  });

  test("sets limits in the command only", async () => {
    const launch = launchOf(["bash", "-c", "ulimit -n; ulimit -f"], {
      limits: { openFiles: 77, fileBytes: 1024 * 1024 },
    });
    await (
      await start(launch)
    ).ended;
    expect(launch.seen.join("").replaceAll("stdout:", "")).toBe("77\n1024\n");
  });

  test("gives no descriptor but the three to a command", async () => {
    const launch = launchOf(["ls", "/proc/self/fd"]);
    await (
      await start(launch)
    ).ended;
    expect(launch.seen.join("").replaceAll("stdout:", "").trim().split(/\s+/)).toEqual(["0", "1", "2", "3"]); // 3 is ls's own
  });

  test("applies Landlock rules: what has no rule cannot be written", async () => {
    const abi = Number(spawnSync(launcher, ["landlock-abi"], { encoding: "utf8" }).stdout);
    expect(abi).toBeGreaterThan(0); // a kernel without Landlock cannot show anything here
    const [read, write, all] = [0x1 | 0x4 | 0x8, 0x2 | 0x100 | 0x20, 0x1fff];
    const inside = mkdtempSync(join(folder, "inside-"));
    const allow = Buffer.from([0x06, 0, 0, 0, 0, 0, 0xff, 0x7f]); // one instruction: return ALLOW
    const launch = launchOf(
      [
        "bash",
        "-c",
        `echo x > ${inside}/yes && echo x > ${folder}/no; grep -c . /etc/passwd; grep CapEff /proc/self/status`,
      ],
      {
        landlock: {
          handledFs: all,
          handledNet: 0,
          scoped: 0,
          rules: [
            { path: "/", access: read },
            { path: inside, access: read | write },
            { path: "/not/there", access: read },
            { path: "/dev/null", access: read | write },
          ],
          netRules: [],
          held: [],
          seccomp: allow,
        },
      },
    );
    expect((await (await start(launch)).ended).exitCode).toBe(0);
    expect(existsSync(join(inside, "yes"))).toBe(true);
    expect(existsSync(join(folder, "no"))).toBe(false);
    expect(launch.seen.join("")).toContain("CapEff:\t0000000000000000");
  });

  test("does one request without serving, for a sandbox that is tried out", () => {
    const request = encode(launchOf(["bash", "-c", "echo once; exit 5"]));
    const file = join(folder, "request");
    writeFileSync(file, request);
    const shell = spawnSync("bash", ["-c", `exec ${launcher} once 3 3< ${file}`], { encoding: "utf8" });
    expect(shell).toMatchObject({ stdout: "once\n", status: 5 });
    expect(spawnSync("bash", ["-c", `exec ${launcher} once 3 3< /dev/null`]).status).toBe(125);
  });

  test("answers whatever it is sent with an error, and serves the next request", async () => {
    const good = encodeFrame("S", 7, encode(launchOf(["echo", "fine"])));
    const body = good.subarray(9);
    const spoilt = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.tuple(fc.nat(body.length - 1), fc.nat(255)).map(([at, value]) => Uint8Array.from(body.with(at, value))),
      fc.nat(body.length).map((length) => Uint8Array.from(body.subarray(0, length))),
    );
    const types = fc.constantFrom(..."SPIEGKRMQzS");
    const server = spawn(launcher, ["serve"], { stdio: ["ignore", "ignore", "inherit", "pipe"] });
    const socket = server.stdio[3] as Socket; // a pipe of ours, and a socket underneath
    const seen = new Map<number, string>();
    socket.on(
      "data",
      createFrameReader(({ type, id, body: text }) => seen.set(id, type + text.toString())),
    );
    for (const [index, [type, bytes]] of fc.sample(fc.tuple(types, spoilt), { numRuns: 1500, seed: 11 }).entries()) {
      socket.write(encodeFrame(type, 100 + index, bytes));
    }
    const done = new Promise<void>((resolve) => socket.on("data", () => seen.get(7)?.startsWith("x") && resolve()));
    socket.write(good);
    await done;
    expect(server.exitCode).toBe(null);
    socket.destroy();
    await new Promise((resolve) => server.once("exit", resolve));
    expect(server.signalCode).toBe(null);
  });
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));
