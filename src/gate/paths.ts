/** Where a path really leads, and whether it stays where it may. Decisions use resolved paths only. */
import { lstatSync, readlinkSync, realpathSync, statSync, type Stats } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { foldName } from "../base/names.ts";
import { isPlainPath } from "../base/paths.ts";

const maxPathLength = 4_096;
const maxLinks = 40;

/** The absolute path with every link followed, even if part of it does not exist yet. Undefined if nobody can say. */
export function resolveReal(path: string, base: string, seen: Map<string, string> = new Map()): string | undefined {
  if (path.length > maxPathLength || path.includes("\0")) return undefined;
  return follow(joinRaw(base, path), 0, seen);
}

/** Joins without shortening, as `path.join` would: for `link/..` the kernel follows the link first. */
function joinRaw(base: string, path: string): string {
  return isAbsolute(path) ? path : `${base}/${path}`;
}

/** The absolute path as it is written. */
export function writtenPath(path: string, cwd: string): string {
  return isPlainPath(path) ? path : resolve(cwd, path);
}

function follow(path: string, links: number, seen: Map<string, string>): string | undefined {
  if (links > maxLinks || path.length > 2 * maxPathLength) return undefined;
  try {
    // Asked first, because an error is expensive and most masked places do not exist.
    const stats = lstatSync(path, { throwIfNoEntry: false });
    const slash = path.lastIndexOf("/");
    const name = path.slice(slash + 1);
    const isName = name !== "" && name !== "." && name !== "..";
    if (stats !== undefined) {
      // On Linux, a name that is not a link lies in the real place of its folder, and many files of one call share
      // that folder. On other systems the file system decides whether two spellings of a name are the same, so it is
      // asked.
      if (!isName || stats.isSymbolicLink() || process.platform !== "linux") return realpathSync.native(path);
      const real = join(realFolder(path.slice(0, slash) || "/", seen), name);
      seen.set(real, real);
      return real;
    }
    if (isName) {
      const above = slash === 0 ? "/" : path.slice(0, slash);
      const folder = seen.get(above) ?? follow(above, links, seen);
      if (folder === undefined) return undefined;
      const next = join(folder, name);
      // What does not exist is no link, but `missing/../link` is one as soon as somebody makes `missing`.
      return next === path || readLink(next) === undefined ? next : follow(next, links + 1, seen);
    }
  } catch {
    // Not all of it exists, so the part that exists is followed below.
  }
  let at = "/";
  const components = path.split("/").filter((component) => component !== "" && component !== ".");
  for (const [index, component] of components.entries()) {
    if (component === "..") {
      at = dirname(at);
      continue;
    }
    const next = join(at, component);
    const link = readLink(next);
    if (link === undefined) at = next;
    else return follow([joinRaw(at, link), ...components.slice(index + 1)].join("/"), links + 1, seen);
  }
  return at;
}

function realFolder(path: string, seen: Map<string, string>): string {
  let real = seen.get(path);
  if (real === undefined) {
    real = realpathSync.native(path);
    seen.set(path, real);
  }
  return real;
}

function readLink(path: string): string | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch {
    // We may not look there, so no link can be followed.
    return undefined;
  }
}

/** Undefined for a path that does not exist, is too long, or may not be looked at. */
export function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Compares whole components: `/a/bc` is not inside `/a/b`. */
export function isInside(path: string, root: string): boolean {
  return path.startsWith(root) && (path.length === root.length || path[root.length] === "/" || root.endsWith("/"));
}

export function isInsideAny(path: string, roots: readonly string[]): boolean {
  for (const root of roots) if (isInside(path, root)) return true;
  return false;
}

/** The protected name that a path meets below one of the roots (`.git`, `.callgate`, `a/b`, a whole path), if any. */
export function findProtected(path: string, roots: readonly string[], names: readonly string[]): string | undefined {
  const root = roots.find((candidate) => isInside(path, candidate));
  const whole = names.find((name) => name.startsWith("/") && isInside(path, name));
  if (whole !== undefined && root !== undefined && root !== whole && isInside(whole, root)) return whole;
  const below = root === undefined ? path : path.slice(root.length);
  const steps = below.split("/").map(foldName).filter(Boolean);
  const { plain, deep } = placesOf(names);
  const found = steps.map((step) => plain.get(step) ?? Infinity);
  if (deep.length > 0) {
    const folded = `/${steps.join("/")}/`;
    found.push(...deep.filter(({ within }) => folded.includes(within)).map(({ place }) => place));
  }
  // If several match, the first one in the list is returned.
  return names[Math.min(...found)];
}

interface Places {
  /** Names that are a single component, each with its position in the list. */
  readonly plain: ReadonlyMap<string, number>;
  readonly deep: readonly { readonly within: string; readonly place: number }[];
}

/** A list is read once, because it has a hundred names and every file of every patch is compared with it. */
const read = new WeakMap<readonly string[], Places>();

function placesOf(names: readonly string[]): Places {
  let places = read.get(names);
  if (places === undefined) {
    const rows = names.flatMap((name, place) => {
      // Some file systems also accept a shortened name: GIT~1 is .git there.
      const spellings = name === ".git" ? [name, "git~1"] : [name.toLowerCase()];
      return spellings.map((spelling) => ({ spelling, place }));
    });
    places = {
      // The rows are reversed, so that of two equal spellings the first one in the list is kept.
      plain: new Map(rows.toReversed().map(({ spelling, place }) => [spelling, place])),
      deep: rows.flatMap(({ spelling, place }) => (spelling.includes("/") ? [{ within: `/${spelling}/`, place }] : [])),
    };
    read.set(names, places);
  }
  return places;
}

/**
 * A folder that holds `HEAD` may be a repository without a work tree. From inside it, git would run what its settings
 * and hooks say. The result is the name of such a file: `HEAD` itself, or one of the others if there is a `HEAD`
 * beside it.
 */
export function bareRepositoryFile(path: string): string | undefined {
  const [folder, name] = [dirname(path), foldName(basename(path))];
  if (name === "head") return "HEAD";
  const repository = ["config", "config.worktree", "commondir"].includes(name)
    ? folder
    : foldName(basename(folder)) === "hooks"
      ? dirname(folder)
      : undefined;
  return repository !== undefined && statOf(join(repository, "HEAD")) !== undefined ? `${name} beside HEAD` : undefined;
}

/** Places that every command may read: programs and their data, but nothing personal. */
export const systemRoots: readonly string[] = ["/usr", "/bin", "/lib", "/lib64", "/sbin"];

const devices = new Set(["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/zero", "/dev/urandom"]);

export function isHarmlessDevice(path: string): boolean {
  return devices.has(path);
}

/** Credentials and host sockets in the usual places. */
export function defaultMask(home: string): readonly string[] {
  const inHome = [
    ".ssh .aws .azure .gnupg .kube .docker .netrc .git-credentials .npmrc .pypirc .pgpass .vault-token",
    ".config/gcloud .config/gh .config/git/credentials .config/op .cargo/credentials .cargo/credentials.toml",
    ".local/share/keyrings .password-store .mozilla .config/google-chrome .bash_history .zsh_history",
  ].flatMap((line) => line.split(" "));
  const system = [
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/ssl/private",
    "/var/run/docker.sock",
    "/run/docker.sock",
  ];
  const folder = join(home, "/");
  return [...inHome.map((name) => folder + name), ...system];
}

/**
 * Files that usually hold secrets, wherever they are. A command that merely reads never reads them
 * without a question.
 */
export function isSecretName(path: string): boolean {
  const name = foldName(basename(path));
  if (/(example|sample|template|dist|defaults|schema)$/.test(name)) return false;
  return /^\.env(\.|$)|^(id_(rsa|dsa|ecdsa|ed25519)|credentials(\.json)?|secrets?\.(ya?ml|json|toml)|\.netrc|\.npmrc|\.pypirc|\.pgpass|\.htpasswd|\.git-credentials|service-account.*\.json)$|\.(pem|p12|pfx|jks|keystore|kdbx|ppk)$/.test(
    name,
  );
}

/** The existing folder that would hold the path, which a person can be asked to open. */
export function nearestFolder(path: string): string {
  for (let at = path; ; at = dirname(at)) {
    try {
      if (lstatSync(at).isDirectory()) return at;
    } catch {
      // It does not exist, so try the folder above.
    }
    if (dirname(at) === at) return at;
  }
}

/** The program's name from what was typed: `/bin/rm` is rm, but `./rm` is a program of the folder. */
export function programName(typed: string): { readonly name: string; readonly system: boolean } {
  if (!typed.includes("/")) return { name: typed, system: true };
  const folder = resolve("/", dirname(typed));
  return {
    name: basename(typed),
    system: isAbsolute(typed) && ["/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"].includes(folder),
  };
}
