import { expect, test } from "vitest";
import type { Plan } from "../../../src/runtime/sandbox/plan.ts";
import { createSeatbeltBackend } from "../../../src/runtime/sandbox/seatbelt.ts";
import { anyCase, seatbeltProfile } from "../../../src/runtime/sandbox/seatbelt-profile.ts";
import { createShared } from "../../../src/runtime/sandbox/shared.ts";
import { thisMachine } from "../../../src/runtime/sandbox/machine.ts";
import type { Grant } from "../../../src/spec/access.ts";
import { freshFolder } from "./folder.ts";
import { decide, parse } from "./sbpl.ts";
import type { Attempt } from "./sbpl.ts";

const workspace = "/Users/u/my ws";
const grant: Grant = {
  policy: "workspace-write",
  confined: true,
  write: [workspace],
  protect: [".git", ".callgate"],
  mask: ["/Users/u/.ssh"],
  network: "off",
};
const plan: Plan = {
  everything: false,
  roots: [workspace],
  watched: [],
  entries: [
    { path: "/Users/u/.ssh", use: "hide", kind: "directory" },
    { path: "/Users/u/agent.sock", use: "hide", kind: "file" },
  ],
};
const protect = [`${workspace}/.git`, `${workspace}/.callgate/rules`];

function profile(
  more: { readonly grant?: Partial<Grant>; readonly plan?: Partial<Plan>; readonly proxyPort?: number } = {},
) {
  const { proxyPort } = more;
  return seatbeltProfile({
    plan: { ...plan, ...more.plan },
    grant: { ...grant, ...more.grant },
    protect,
    tempFolder: "/private/tmp/cg",
    ...(proxyPort === undefined ? {} : { proxyPort }),
  });
}

function verdict(attempt: Attempt, of = profile()) {
  return decide(of.text, of.parameters, attempt);
}

/** The same questions the probes ask on Linux. */
const forbidden: Readonly<Record<string, Attempt>> = {
  write_outside: { operation: "file-write-data", path: "/Users/u/other" },
  unlink_outside: { operation: "file-write-unlink", path: "/Users/u/other" },
  chmod_outside: { operation: "file-write-mode", path: "/Users/u/other" },
  utimes_outside: { operation: "file-write-times", path: "/Users/u/other" },
  setxattr_outside: { operation: "file-write-xattr", path: "/Users/u/other" },
  write_sibling_with_the_same_start: { operation: "file-write-data", path: `${workspace}2/a` },
  write_etc: { operation: "file-write-create", path: "/private/etc/x" },
  write_git_config: { operation: "file-write-data", path: `${workspace}/.git/config` },
  create_git: { operation: "file-write-create", path: `${workspace}/.git` },
  create_git_in_another_case: { operation: "file-write-create", path: `${workspace}/.GIT/hooks/pre-commit` },
  rename_git: { operation: "file-write-unlink", path: `${workspace}/.git` },
  rename_the_folder_of_a_protected_file: { operation: "file-write-unlink", path: `${workspace}/.callgate` },
  read_secret: { operation: "file-read-data", path: "/Users/u/.ssh/id_ed25519" },
  see_secret: { operation: "file-read-metadata", path: "/Users/u/.ssh/id_ed25519" },
  connect_agent_socket: { operation: "network-outbound", socket: "/Users/u/agent.sock" },
  connect_docker: { operation: "network-outbound", socket: "/var/run/docker.sock" },
  connect_host: { operation: "network-outbound", ip: "localhost:5432" },
  connect_outside: { operation: "network-outbound", ip: "1.1.1.1:443" },
  listen: { operation: "network-bind", ip: "localhost:80" },
  signal_host: { operation: "signal" },
  trace: { operation: "mach-task-name" },
  open_disk: { operation: "file-write-data", path: "/dev/disk0" },
};

const allowed: Readonly<Record<string, Attempt>> = {
  write_workspace: { operation: "file-write-create", path: `${workspace}/src/a` },
  write_gitignore: { operation: "file-write-create", path: `${workspace}/.gitignore` },
  write_temp: { operation: "file-write-create", path: "/private/tmp/cg/a" },
  write_dev_null: { operation: "file-write-data", path: "/dev/null" },
  read_passwd: { operation: "file-read-data", path: "/private/etc/passwd" },
  read_git: { operation: "file-read-data", path: `${workspace}/.git/config` },
  serve_unix: { operation: "network-bind", socket: `${workspace}/app.sock` },
  connect_unix: { operation: "network-outbound", socket: `${workspace}/app.sock` },
  fork_exec: { operation: "process-exec", path: "/bin/ls" },
};

test.each(Object.entries(forbidden))("%s is denied", (_name, attempt) => {
  expect(verdict(attempt)).toBe("deny");
});

test.each(Object.entries(allowed))("%s is allowed", (_name, attempt) => {
  expect(verdict(attempt)).toBe("allow");
});

test("only the proxy's port opens when hosts are allowed, everything when the network is on", () => {
  const proxied = profile({ grant: { network: ["example.org"] }, proxyPort: 4000 });
  expect(verdict({ operation: "network-outbound", ip: "localhost:4000" }, proxied)).toBe("allow");
  expect(verdict({ operation: "network-outbound", ip: "localhost:4001" }, proxied)).toBe("deny");
  expect(verdict({ operation: "network-outbound", ip: "1.1.1.1:443" }, profile({ grant: { network: "on" } }))).toBe(
    "allow",
  );
});

test("read-only leaves the temp folder, full access everything but what is hidden", () => {
  const readOnly = profile({ plan: { roots: [] } });
  expect(verdict({ operation: "file-write-data", path: `${workspace}/a` }, readOnly)).toBe("deny");
  expect(verdict({ operation: "file-write-data", path: "/private/tmp/cg/a" }, readOnly)).toBe("allow");
  const full = profile({ plan: { everything: true, roots: ["/"] } });
  expect(verdict({ operation: "file-write-data", path: "/Users/u/other" }, full)).toBe("allow");
  expect(verdict(forbidden["read_secret"]!, full)).toBe("deny");
});

test("no path is pasted into the text as it is, and a hostile one cannot close an expression", () => {
  const hostile = '/Users/u/a")(allow default)("';
  const made = seatbeltProfile({
    plan: { ...plan, roots: [hostile] },
    grant,
    protect: [`${hostile}/.git`],
    tempFolder: "/private/tmp/cg",
  });
  expect(made.text).not.toContain("(allow default)");
  expect(() => parse(made.text)).not.toThrow();
  expect(decide(made.text, made.parameters, { operation: "file-write-data", path: `${hostile}/.git/config` })).toBe(
    "deny",
  );
  expect(decide(made.text, made.parameters, { operation: "file-write-data", path: "/etc/passwd" })).toBe("deny");
});

test("the pattern of a name matches it in any letter case and nothing else", () => {
  const pattern = new RegExp(`^${anyCase("/a.b/.Git")}$`);
  expect(pattern.test("/A.B/.gIT")).toBe(true);
  expect(pattern.test("/axb/.git")).toBe(false);
});

test("the command line is sandbox-exec by its fixed path, profile and parameters before the command", async () => {
  const folder = freshFolder();
  const machine = thisMachine({ platform: "darwin", env: {}, stateDir: folder });
  const session = createShared(machine);
  const command = createSeatbeltBackend(machine, session).confine({
    argv: ["ls", "-l"],
    cwd: folder,
    env: { PATH: "/bin" },
    grant: { ...grant, write: [folder] },
  });
  expect(command.argv.slice(0, 2)).toEqual(["/usr/bin/sandbox-exec", "-p"]);
  expect(command.argv).toContain(`WRITE_0=${folder}`);
  expect(command.argv.slice(-3)).toEqual(["--", "ls", "-l"]);
  expect(command.env["TMPDIR"]).toMatch(/callgate-/);
  await session.close();
});
