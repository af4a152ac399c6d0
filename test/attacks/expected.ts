/** What the probes of probe.c should come to; every probe not named here must fail. */

/** What must stay possible. */
const allowed: readonly string[] = [
  "write_workspace",
  "mkdir_workspace",
  "write_temp",
  "write_dev_null",
  "write_shm",
  "read_passwd",
  "read_git",
  "fork_exec",
  "serve_loopback",
  "serve_unix",
  "list_interfaces",
  "chmod_workspace",
  "chmod_by_descriptor",
  "chmod_by_detour",
  "touch_workspace",
  "touch_link",
  "chown_to_self",
  "connect_absolute",
];

/**
 * What a backend is known not to stop, as its explanation says. Landlock has no mounts: it cannot tell
 * names inside a writable folder apart (those are put back afterwards).
 */
export const leaks: Readonly<Record<string, readonly string[]>> = {
  bwrap: [],
  "bwrap-bound-proc": ["see_host_process"],
  landlock: [
    "see_host_process",
    "write_git_config",
    "create_git_hook",
    "rename_git",
    "exchange_git",
    "unlink_git_config",
    "hardlink_git_config",
  ],
};

/** Before ABI 6 Landlock leaves signals and abstract sockets alone. */
export const olderLandlockLeaks: readonly string[] = ["signal_host", "connect_abstract"];

/** What a backend cannot offer: without a network namespace there is no loopback of one's own, and temp files live where TMPDIR says. */
const missing: Readonly<Record<string, readonly string[]>> = {
  landlock: ["write_temp", "serve_loopback", "list_interfaces"],
};

export function parseOutcomes(output: string): ReadonlyMap<string, string> {
  const lines = output.trim().split(/\r?\n/);
  return new Map(lines.map((line) => [line.split(" ")[0] ?? "", line.slice(line.indexOf(" ") + 1)]));
}

/** Successes that must not be. */
export function escapes(outcomes: ReadonlyMap<string, string>, known: readonly string[]): readonly string[] {
  const succeeded = [...outcomes].filter(([, outcome]) => outcome === "ok").map(([name]) => name);
  return succeeded.filter((name) => !allowed.includes(name) && !known.includes(name));
}

/** Things that must work and did not. */
export function losses(outcomes: ReadonlyMap<string, string>, id: string): readonly string[] {
  const needed = allowed.filter((name) => missing[id]?.includes(name) !== true);
  return needed.filter((name) => outcomes.get(name) !== "ok").map((name) => `${name} ${outcomes.get(name)}`);
}
