import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createContainerBackend } from "../../../src/runtime/sandbox/container.ts";
import { thisMachine } from "../../../src/runtime/sandbox/machine.ts";
import { createShared } from "../../../src/runtime/sandbox/shared.ts";
import type { Grant } from "../../../src/spec/access.ts";
import { freshFolder } from "./folder.ts";

function confine(more: Partial<Grant> = {}, env: Record<string, string> = { PATH: "/bin", NAME: "value" }) {
  const workspace = freshFolder("/var/tmp");
  for (const name of [".git", ".env.d"]) mkdirSync(join(workspace, name));
  const machine = thisMachine({ uid: 1000, gid: 1000, stateDir: freshFolder() });
  const session = createShared(machine);
  onTestFinished(() => session.close());
  const grant: Grant = {
    policy: "workspace-write",
    confined: true,
    write: [workspace],
    protect: [".git"],
    mask: [join(workspace, ".env.d")],
    network: "off",
    ...more,
  };
  const command = createContainerBackend({ program: "podman", image: "node:20" }, machine, session).confine({
    argv: ["npm", "test"],
    cwd: workspace,
    env,
    grant,
  });
  return { workspace, command, line: command.argv.join(" ") };
}

test("the container has no network, no capabilities, a read-only image and the workspace with its protected names", () => {
  const { workspace, line } = confine();
  expect(line).toContain(
    "podman run --rm --init --interactive --network none --cap-drop ALL --security-opt no-new-privileges",
  );
  expect(line).toContain(`--mount type=bind,source=${workspace},target=${workspace} `);
  expect(line).toContain(`--mount type=bind,source=${workspace}/.git,target=${workspace}/.git,readonly`);
  expect(line).toContain(`--tmpfs ${workspace}/.env.d:ro,mode=000`);
  expect(line).toContain("--read-only");
  expect(line).toContain(`--user 1000:1000 --workdir ${workspace}`);
  expect(line).toMatch(/node:20 npm test$/);
});

test("variables are named, their values stay out of the process list", () => {
  const { command, line } = confine();
  expect(line).toContain("--env NAME");
  expect(line).not.toContain("value");
  expect(command.env).toMatchObject({ NAME: "value" });
});

test("a read-only command sees its folder read-only", () => {
  const { workspace, line } = confine({ policy: "read-only", write: [] });
  expect(line).toContain(`--mount type=bind,source=${workspace},target=${workspace},readonly`);
});

test("what a container cannot keep is refused, not loosened", () => {
  expect(() => confine({ policy: "full-access", write: ["/"] })).toThrow(
    expect.objectContaining({ code: "no_sandbox" }),
  );
});
