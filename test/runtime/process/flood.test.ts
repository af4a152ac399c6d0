import { tmpdir } from "node:os";
import { describe, expect, test } from "vitest";
import type { Grant } from "../../../src/spec/access.ts";
import { createExec } from "../../../src/runtime/exec.ts";
import { createProcesses } from "../../../src/runtime/processes.ts";
import { launchers } from "./spawners.ts";

const open: Grant = { policy: "full-access", confined: false, write: ["/"], protect: [], mask: [], network: "on" };

describe.each(launchers)("a flood through $name", ({ launcher }) => {
  test("of 1.5 GB grows memory by less than 40 MB and leaves head, tail and count", async () => {
    const processes = createProcesses({ launcher });
    const exec = createExec({
      processes,
      grant: open,
      cwd: tmpdir(),
      env: { PATH: "/usr/bin:/bin" },
      signal: new AbortController().signal,
    });
    // What reading a pipe leaves to the collector is there after a small flood as after a large one.
    await exec.run({ argv: ["bash", "-c", "yes warm-up | head -c 300000000"] });
    globalThis.gc?.();
    const before = process.memoryUsage().rss;
    let peak = before;
    const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 5);
    const { stdout } = await exec.run({
      argv: ["bash", "-c", "echo first; yes flood | head -c 1500000000; echo last"],
    });
    clearInterval(watch);
    await processes.close();
    expect(stdout.totalBytes).toBe(1_500_000_011);
    expect(stdout.head.startsWith("first\nflood\n")).toBe(true);
    expect(stdout.tail.endsWith("flood\nlast\n")).toBe(true);
    expect((peak - before) / 1e6).toBeLessThan(40);
  });
});
