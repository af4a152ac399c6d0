/** What a handler leaves out of a command is filled in from its call. */
import { expect, test } from "vitest";
import { toLaunch } from "../../src/runtime/exec.ts";
import { lineShell } from "../../src/runtime/shell.ts";
import type { Grant } from "../../src/spec/access.ts";

const grant: Grant = {
  policy: "workspace-write",
  confined: false,
  write: ["/ws"],
  protect: [],
  mask: ["/secret"],
  network: "on",
};
const launch = (request: Partial<Parameters<typeof toLaunch>[0]>, more: Partial<Grant> = {}) =>
  toLaunch({ argv: ["x"], ...request }, { A: "1" }, { cwd: "/ws", grant: { ...grant, ...more } });

test("folder, environment and limits", () => {
  expect(launch({})).toMatchObject({ cwd: "/ws", env: { A: "1" }, limits: { processes: 4096, openFiles: 65_536 } });
  expect(launch({ cwd: "src", env: { A: "2" } })).toMatchObject({ cwd: "/ws/src", env: { A: "2" } });
  expect(launch({ limits: { processes: 0, openFiles: 7 } }).limits).toMatchObject({ openFiles: 7 });
  expect(launch({ limits: { processes: 0 } }).limits).not.toHaveProperty("processes");
  expect(launch({}).limits).not.toHaveProperty("timeoutMs");
  expect(launch({ timeoutMs: 5 }, { patience: 10 }).limits?.timeoutMs).toBe(50);
  for (const argv of [[], [""]])
    expect(() => launch({ argv })).toThrow(expect.objectContaining({ code: "invalid_input" }));
});

test("a line is handed to the shell, and a command is either words or a line", () => {
  const options = { cwd: "/ws", grant, shell: "/opt/bash" };
  expect(toLaunch({ shell: "ls | wc -l" }, {}, options).argv).toEqual(["/opt/bash", "-c", "ls | wc -l"]);
  expect(toLaunch({ shell: "ls" }, {}, { cwd: "/ws", grant }).argv).toEqual([lineShell(), "-c", "ls"]);
  for (const neither of [{}, { argv: [] }, { shell: "ls", argv: ["ls"] }])
    expect(() => toLaunch(neither, {}, options)).toThrow(expect.objectContaining({ code: "invalid_input" }));
});

test("what is isolated is narrower than any grant, and what was hidden stays so", () => {
  expect(launch({}).grant).toEqual(grant);
  expect(launch({ isolated: true }).grant).toEqual({
    policy: "read-only",
    confined: true,
    write: [],
    protect: [],
    network: "off",
    mask: ["/secret"],
  });
});
