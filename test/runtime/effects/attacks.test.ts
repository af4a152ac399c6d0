import { spawn } from "node:child_process";
import {
  closeSync,
  openSync,
  writeSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { canHold, createHeldWorkspace, snapshot } from "./held.ts";

/** More by `CALLGATE_ATTACKS=100 …` (20,000 steps) and `CALLGATE_SAVES=500 …`. */
const rounds = Number(process.env["CALLGATE_ATTACKS"] ?? 3);
const saves = Number(process.env["CALLGATE_SAVES"] ?? 24);

describe.skipIf(!canHold)("against held runs (skipped where nothing can be held: needs bubblewrap)", () => {
  const held = createHeldWorkspace();
  const { workspace } = held;
  afterAll(() => held.close());

  test("a folder that is swapped for a link while it is kept leads nowhere: no step goes outside", async () => {
    const outside = held.sibling("outside");
    const files = Array.from({ length: 200 }, (_, at) => `f${at}`);
    for (const file of files) writeFileSync(join(outside, file), "outside\n");
    const before = snapshot(outside, "times");
    let steps = 0;
    for (let round = 0; round < rounds; round++) {
      await held.direct("find . -mindepth 1 -delete; mkdir d; for i in {0..199}; do echo old > d/f$i; done");
      const { settle, effects } = await held.hold("for i in {0..199}; do echo new > d/f$i; done; echo x > d/added");
      expect(effects).toHaveLength(201);
      const swapper = spawn(process.execPath, ["-e", swap, workspace, outside], {
        stdio: ["ignore", "pipe", "ignore"],
      });
      await new Promise((ready) => swapper.stdout.once("data", ready));
      const { conflicts } = await settle("all");
      swapper.kill("SIGKILL");
      await new Promise((gone) => swapper.once("exit", gone));
      steps += 201;
      expect(snapshot(outside, "times")).toEqual(before);
      expect(conflicts.length).toBeLessThanOrEqual(201);
    }
    expect(steps).toBe(rounds * 201);
  }, 300_000);

  test("the run's folder is out of reach, and the overlay's marks cannot be forged", async () => {
    await held.direct("find . -mindepth 1 -delete; echo kept > victim; mkdir d; echo inside > d/f");
    const attempts = [
      "ls /dev/.callgate/runs; ls /dev/.callgate/0; ls -R /dev/.callgate",
      `ls ${held.home}/held; cat ${held.home}/held/*/*/start; touch ${held.home}/held/x`,
      "umount /dev/.callgate; mount -t tmpfs none .; umount .",
      "mknod victim2 c 0 0; rm -f victim2; mknod d/f2 c 0 0",
      "python3 -c \"import os; os.setxattr('d','user.overlay.opaque',b'y')\"",
      "python3 -c \"import os; os.setxattr('victim','user.overlay.whiteout',b'y')\"",
      "cat /proc/1/mountinfo /proc/1/environ; ls -l /proc/1/fd /proc/1/cwd /proc/1/root",
    ];
    const { settle, effects, output } = await held.hold(attempts.map((line) => `{ ${line}; } 2>&1`).join("\n"));
    expect(output).not.toMatch(/^(u0|w0|start|list|journal)$/m);
    const touched = effects.filter(({ kind }) => kind !== "mode").map(({ path }) => path);
    expect(touched).toEqual([]);
    await settle("all");
    expect(readFileSync(join(workspace, "victim"), "utf8")).toBe("kept\n");
    expect(readFileSync(join(workspace, "d/f"), "utf8")).toBe("inside\n");
    expect(readdirSync(dirname(held.home)).includes("x")).toBe(false);
  });

  test("masks and protections lie on top of the overlay", async () => {
    await held.direct(
      "find . -mindepth 1 -delete; mkdir .callgate secret; echo s > secret/key; echo p > .callgate/rules.toml; echo t > token",
    );
    const grant = { mask: [join(workspace, "secret"), join(workspace, "token")], protect: [".git", ".callgate"] };
    const tries =
      "cat secret/key token; ls secret; echo x > .callgate/rules.toml; mv .callgate c2; echo x > secret/new; rm -rf secret token .callgate";
    const { effects, output, settle } = await held.hold(`{ ${tries}; } 2>&1`, grant);
    expect(output).not.toMatch(/^[st]$/m);
    expect(effects.filter(({ path }) => /^(?:\.callgate|secret|token|c2)/.test(path))).toEqual([]);
    await settle("all");
    expect(readFileSync(join(workspace, ".callgate/rules.toml"), "utf8")).toBe("p\n");
    expect(readFileSync(join(workspace, "secret/key"), "utf8")).toBe("s\n");
  });

  test("an editor that saves while it runs, while it is asked about, or while it is kept loses nothing", async () => {
    const file = join(workspace, "edited");
    const save = async (text: string, how: "slowly" | "in place" | "by renaming") => {
      if (how === "by renaming") {
        writeFileSync(`${file}~`, text);
        return renameSync(`${file}~`, file);
      }
      const fd = openSync(file, "w"); // empty from here on, until it is written
      if (how === "slowly") await sleep(Math.random() * 4);
      writeSync(fd, text);
      closeSync(fd);
    };
    await held.direct("find . -mindepth 1 -delete; true");
    for (let round = 0; round < saves; round++) {
      await save(`before ${round}\n`, "by renaming");
      await sleep(12); // an edit in the clock's tick before the start is taken for one after it
      const mine = `mine ${round}\n`;
      const how = (["slowly", "by renaming", "in place", "by renaming"] as const)[round % 4]!;
      const holding = held.hold("sleep 0.03; echo command >> edited");
      const phase = round % 3;
      if (phase === 0) {
        await started(held.home);
        await save(mine, how);
      }
      const { settle } = await holding;
      if (phase === 1) await save(mine, how);
      const settling = settle("all");
      if (phase === 2) {
        await sleep(Math.random() * 8);
        await save(mine, how);
      }
      await settling;
      expect(readFileSync(file, "utf8")).toContain(mine);
    }
  }, 300_000);

  test("two runs over one workspace: the second to be kept finds the first one's changes and leaves them", async () => {
    await held.direct("find . -mindepth 1 -delete; echo old > shared");
    const one = await held.hold("echo one > shared");
    const two = await held.hold("echo two > shared; echo more > other");
    expect(await one.settle("all")).toMatchObject({ kept: "all" });
    expect(await two.settle("all")).toMatchObject({ kept: "part", conflicts: ["shared"] });
    expect(readFileSync(join(workspace, "shared"), "utf8")).toBe("one\n");
    expect(existsSync(join(workspace, "other"))).toBe(true);
  });
});

/** Waits until a command has begun: its start is marked in its run's folder. */
async function started(home: string): Promise<void> {
  for (;;) {
    for (const place of readdirSync(join(home, "held")))
      for (const run of readdirSync(join(home, "held", place)))
        if (
          run.startsWith("r") &&
          existsSync(join(home, "held", place, run, "start")) &&
          !existsSync(join(home, "held", place, run, "list"))
        )
          return;
    await sleep(1);
  }
}

const swap = `
const { renameSync, symlinkSync, unlinkSync } = require("node:fs");
const [workspace, outside] = process.argv.slice(1);
process.chdir(workspace);
console.log("ready");
for (;;) try { renameSync("d", "d2"); symlinkSync(outside, "d"); unlinkSync("d"); renameSync("d2", "d"); } catch {}
`;
