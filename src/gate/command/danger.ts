/** Commands that need a second look in every mode, recognised however they are spelled. */

/** This danger does not apply to a program that only mentions the name of a network program (`apk add curl`). */
export const talksToNetwork = "it talks to the network";

const always = new Map<string, string>(
  Object.entries({
    "sudo doas su pkexec runuser": "it takes on another user's rights",
    "curl wget nc ncat netcat socat telnet ftp tftp aria2c": talksToNetwork,
    "dd shred wipefs fdisk sfdisk gdisk parted mkswap blkdiscard": "it can overwrite whole disks",
    "shutdown reboot halt poweroff": "it stops the machine",
  }).flatMap(([names, reason]) => names.split(" ").map((name) => [name, reason] as const)),
);

/**
 * Why a command is dangerous, or undefined. A word that cannot be known counts as the worst it could
 * be only if it is the program itself.
 */
export function dangerOf(name: string, args: readonly string[]): string | undefined {
  if (/^mkfs(\.|$)/.test(name)) return "it makes a new file system";
  const known = always.get(name);
  if (known !== undefined)
    return known === talksToNetwork && args.length === 1 && args[0] === "--version" ? undefined : known;
  const check = checks.get(name);
  return check?.(args);
}

const checks: ReadonlyMap<string, (args: readonly string[]) => string | undefined> = new Map([
  [
    "rm",
    (args: readonly string[]) =>
      hasFlag(args, "rRf", ["recursive", "force"]) ? "it removes without asking" : undefined,
  ],
  ["chmod", (args: readonly string[]) => (args.some(opensToAll) ? "it lets everybody write" : undefined)],
  [
    "chown",
    (args: readonly string[]) =>
      args.some((arg) => /^(root|0)([:.]|$)|^[:.](root|0)$/.test(arg)) || args.some((arg) => /^\+?0+([:.]|$)/.test(arg))
        ? "it gives files to root"
        : undefined,
  ],
  ["find", (args: readonly string[]) => (args.includes("-delete") ? "it removes what it finds" : undefined)],
  ["kill", (args: readonly string[]) => (args.includes("-1") && args.length > 1 ? "it ends every process" : undefined)],
  ["git", destructiveGit],
]);

function opensToAll(arg: string): boolean {
  if (arg.startsWith("-") && !/^-[rwx]/.test(arg)) return false;
  if (/^[0-7]{3,5}$/.test(arg)) return (Number(arg.at(-1)) & 2) !== 0;
  return arg
    .split(",")
    .some(
      (part) =>
        /^[ugo]*[ao]?[ugoa]*[+=][rwxXst]*w/.test(part) && (/[ao]/.test(part.split(/[+=]/)[0]!) || /^[+=]/.test(part)),
    );
}

/** True for git commands that lose work which is stored nowhere else. */
function destructiveGit(args: readonly string[]): string | undefined {
  const has = (word: string) => args.includes(word);
  if (has("reset") && args.some((arg) => "--hard".startsWith(arg) && arg.length > 3))
    return "git reset --hard throws changes away";
  if (has("clean") && hasFlag(args, "f", ["force"])) return "git clean removes files git does not know";
  if (
    has("push") &&
    (hasFlag(args, "fd", ["force", "delete", "mirror", "prune"]) || args.some((arg) => arg.startsWith("+")))
  )
    return "git push --force rewrites what others have";
  if ((has("checkout") || has("restore")) && (has(".") || has("--") || hasFlag(args, "f", ["force"])))
    return "it throws changes away";
  if (has("branch") && hasFlag(args, "D", [])) return "it deletes a branch that may not be merged";
  if (has("stash") && (has("drop") || has("clear"))) return "it throws stashed changes away";
  return undefined;
}

/** First words with which a program talks to another machine. `*` stands for any word. */
const networkWords: ReadonlyMap<string, string> = new Map(
  Object.entries({
    git: "push pull fetch clone ls-remote",
    "npm pnpm": "install i ci add update publish view outdated",
    yarn: "add install up upgrade publish",
    "pip pip3 uv gem": "install download",
    cargo: "install fetch publish update search",
    go: "get install",
    "apt apt-get dnf yum apk brew": "install update upgrade add",
    composer: "install require update",
    "docker podman": "pull push login",
    "curl wget nc ncat netcat socat telnet ftp tftp aria2c ssh scp sftp ping dig nslookup whois npx": "*",
  }).flatMap(([names, words]) => names.split(" ").map((name) => [name, words] as const)),
);

/** Whether a command is useless without a network, judged by its first words. */
export function needsNetwork([program = "", ...args]: readonly string[]): boolean {
  const words = networkWords.get(program.slice(program.lastIndexOf("/") + 1));
  if (words === undefined || args.includes("--version") || args.includes("--help")) return false;
  const first = args.find((arg) => !arg.startsWith("-"));
  return words === "*" || (first !== undefined && words.split(" ").includes(first));
}

/** Finds a letter in any cluster of short options, or any abbreviation of a long option, before `--`. */
export function hasFlag(args: readonly string[], letters: string, names: readonly string[]): boolean {
  const end = args.indexOf("--");
  return (end < 0 ? args : args.slice(0, end)).some((arg) => {
    if (arg.startsWith("--"))
      return arg.length > 2 && names.some((name) => name.startsWith(arg.slice(2).replace(/=.*/s, "")));
    return arg.startsWith("-") && [...letters].some((letter) => arg.includes(letter));
  });
}
