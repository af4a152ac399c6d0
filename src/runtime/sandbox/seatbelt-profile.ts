/**
 * A plan as a Seatbelt profile (macOS, sandbox-exec). Paths travel as parameters, never pasted into
 * the text; only protected names become a pattern, because they must hold in any letter case on a
 * file system that does not tell cases apart. The last rule that matches decides.
 */
import { sep } from "node:path";
import type { Grant } from "../../spec/access.ts";
import type { Plan } from "./plan.ts";

export interface SeatbeltOptions {
  readonly plan: Plan;
  readonly grant: Grant;
  /** Absolute protected paths, existing or not. */
  readonly protect: readonly string[];
  readonly tempFolder: string;
  readonly proxyPort?: number;
}

export interface SeatbeltProfile {
  readonly text: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/** What every program needs to start: none of it reaches a file's content or another program. */
const base = `(version 1)
(deny default)
(allow process-exec process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow user-preference-read)
(allow ipc-posix-sem ipc-posix-shm-read-data ipc-posix-shm-write-create ipc-posix-shm-write-data ipc-posix-shm-write-unlink)
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center"))
(allow pseudo-tty)
(allow file-read* file-write* file-ioctl (regex #"^/dev/(ptmx|tty|ttys[0-9]+|null|zero|random|urandom|dtracehelper)$"))
(allow file-read* file-write-data (subpath "/dev/fd"))
(allow file-read-metadata)
(allow file-read*)`;

export function seatbeltProfile({ plan, grant, protect, tempFolder, proxyPort }: SeatbeltOptions): SeatbeltProfile {
  const parameters: Record<string, string> = {};
  const name = (kind: string, path: string) => {
    const key = `${kind}_${Object.keys(parameters).length}`;
    parameters[key] = path;
    return `(param "${key}")`;
  };
  const roots = plan.everything ? [sep] : [...plan.roots, tempFolder];
  const hidden = plan.entries.filter(({ use, path }) => use === "hide" && path !== "/run");
  const text = [
    base,
    ...roots.map((path) => `(allow file-write* (subpath ${name("WRITE", path)}))`),
    ...roots.map(
      (path) => `(allow network-bind network-inbound (local unix-socket (subpath ${name("SOCKET", path)})))`,
    ),
    ...roots.map((path) => `(allow network-outbound (remote unix-socket (subpath ${name("SOCKET", path)})))`),
    ...protect.flatMap((path) => [
      `(deny file-write* (subpath ${name("PROTECT", path)}))`,
      `(deny file-write* (regex #"^${anyCase(path)}(/.*)?$"))`,
      ...folders(path, plan).map((folder) => `(deny file-write-unlink (literal ${name("HOLD", folder)}))`),
    ]),
    ...hidden.flatMap(({ path }) => {
      const parameter = name("HIDE", path);
      return [
        `(deny file-read* file-write* (subpath ${parameter}))`,
        `(deny network-outbound (remote unix-socket (subpath ${parameter})))`,
      ];
    }),
    ...network(grant, proxyPort),
  ].join("\n");
  return { text: `${text}\n`, parameters };
}

/** If a folder above a protected name could be renamed, the rule would no longer match the name. */
function folders(path: string, plan: Plan): readonly string[] {
  const root = plan.roots.find((one) => path.startsWith(one + sep));
  if (root === undefined) return [];
  const between = path
    .slice(root.length + 1)
    .split(sep)
    .slice(0, -1);
  return between.map((_part, index) => [root, ...between.slice(0, index + 1)].join(sep));
}

/** The network is shared with the host, so 'off' means loopback is off too; the proxy is reached by its port alone. */
function network(grant: Grant, proxyPort: number | undefined): readonly string[] {
  if (grant.network === "on")
    return [
      "(allow network*)",
      `(allow mach-lookup (global-name "com.apple.trustd.agent") (global-name "com.apple.SystemConfiguration.configd"))`,
    ];
  return proxyPort === undefined ? [] : [`(allow network-outbound (remote ip "localhost:${proxyPort}"))`];
}

/**
 * A path as a pattern that matches it in any letter case. A character that could end the pattern is replaced
 * by one that matches anything, which only forbids more.
 */
export function anyCase(path: string): string {
  return Array.from(path, (character) => {
    const [lower, upper] = [character.toLowerCase(), character.toUpperCase()];
    if (/[a-z]/i.test(character)) return `[${lower}${upper}]`;
    if (/[0-9/_-]/.test(character)) return character;
    return /[.+*?^$()[\]{}|]/.test(character) ? `\\${character}` : ".";
  }).join("");
}
