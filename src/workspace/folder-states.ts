/**
 * States of a session's folder, by content, so that another process on another machine can continue
 * with it. They are kept in a git repository beside the folder. The folder's own files cannot
 * influence it: no filter, no hook, no conversion.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface FolderStates {
  /** The state that was last kept or restored here. */
  readonly last: Promise<string | undefined>;
  /**
   * Stores every file that no ignore file names: its bytes, whether it is executable, and links as
   * links. Returns the name of the state. `store` is given what the state has beyond the one before it;
   * until that is stored, the state does not count as kept.
   */
  keep(store: (pack: Uint8Array) => Promise<void>): Promise<string>;
  /** Restores the folder to a state. `packs`, oldest first, are read if the state is not known here yet. */
  restore(state: string, packs: () => AsyncIterable<Uint8Array>): Promise<void>;
}

const ref = "refs/heads/kept";
/** The attributes with the highest precedence: files are taken as they are, whatever the folder's own files say. */
const attributes = "* -text -eol -ident -filter -working-tree-encoding -diff -merge\n";
const fixed = { name: "callgate", email: "callgate@localhost", date: "1970-01-01T00:00:00Z" };

export function createFolderStates(folder: string, repository: string): FolderStates {
  const git = (args: readonly string[], input?: string | Uint8Array) => runGit(folder, repository, args, input);
  let prepared: Promise<void> | undefined;
  const prepare = () =>
    (prepared ??= (async () => {
      if (existsSync(join(repository, "HEAD"))) return;
      mkdirSync(repository, { recursive: true, mode: 0o700 });
      await git(["init", "--quiet", "--bare"]);
      await git(["config", "gc.auto", "0"]);
      await git(["config", "core.autocrlf", "false"]);
      await git(["config", "core.bare", "false"]);
      mkdirSync(join(repository, "info"), { recursive: true });
      writeFileSync(join(repository, "info", "attributes"), attributes);
    })());
  const find = async (name: string) => {
    const found = await git(["rev-parse", "--verify", "--quiet", name]).catch(() => undefined);
    return found === undefined ? undefined : text(found);
  };
  /**
   * Repositories inside the folder are left out. Of one that is in the index git asks how it is doing, and
   * that runs what its own settings say, outside every sandbox. True if there was one.
   */
  const leaveOutRepositories = async (): Promise<boolean> => {
    const listed = Buffer.from(await git(["ls-files", "--stage", "-z"])).toString("utf8");
    const found = [...listed.matchAll(/(?:^|\0)160000 \w+ \d\t([^\0]+)/g)].map(([, path = ""]) => path);
    if (found.length === 0) return false;
    const patterns = found.map((path) => `/${path.replaceAll(/[\\*?[\]!# ]/g, "\\$&")}/\n`);
    writeFileSync(join(repository, "info", "exclude"), patterns.join(""), { flag: "a" });
    await git(["update-index", "--force-remove", "-z", "--stdin"], `${found.join("\0")}\0`);
    return true;
  };
  /** The last tree that was looked at and holds no repository. */
  let looked: string | undefined;
  const addAll = async () => {
    await prepare();
    if (looked === undefined) await leaveOutRepositories();
    const tree = await addFiles();
    if (tree === looked) return tree;
    looked = (await leaveOutRepositories()) ? text(await git(["write-tree"])) : tree;
    return looked;
  };
  const addFiles = async () => {
    for (let tries = 0; ; tries++) {
      try {
        await git(["add", "--all", "--ignore-errors", "."]);
        return text(await git(["write-tree"]));
      } catch (error) {
        const nested =
          error instanceof Error ? /'(.+)\/' does not have a commit checked out/.exec(error.message) : null;
        // A repository without a commit inside the folder: git does not look into it, so it is left out.
        if (nested === null || tries > 100) return text(await git(["write-tree"]));
        writeFileSync(join(repository, "info", "exclude"), `/${nested[1]!}/\n`, { flag: "a" });
      }
    }
  };

  /** The last state with its tree, so that git need not be asked again after every call. */
  let known: { readonly state: string; readonly tree: string } | undefined;
  const remember = (state: string, tree: string) => {
    writeFileSync(join(repository, ref), `${state}\n`);
    known = { state, tree };
  };
  const findLast = async () => {
    if (known !== undefined) return known;
    const state = await find(ref);
    const tree = state === undefined ? undefined : await find(`${state}^{tree}`);
    if (state !== undefined && tree !== undefined) known = { state, tree };
    return known;
  };

  return {
    get last() {
      return prepare().then(async () => (await findLast())?.state);
    },
    async keep(store) {
      const tree = await addAll();
      const last = await findLast();
      if (last?.tree === tree) return last.state;
      const before = last?.state;
      const parent = before === undefined ? [] : ["-p", before];
      const state = text(await git(["commit-tree", ...parent, "-m", "kept", tree]));
      const wanted = before === undefined ? `${state}\n` : `${state}\n^${before}\n`;
      await store(await git(["pack-objects", "--quiet", "--revs", "--thin", "--threads=1", "--stdout"], wanted));
      remember(state, tree);
      return state;
    },
    async restore(state, packs) {
      await prepare();
      if ((await find(`${state}^{tree}`)) === undefined)
        for await (const pack of packs()) await git(["index-pack", "--fix-thin", "--stdin"], pack);
      const wanted = await find(`${state}^{tree}`);
      if (wanted === undefined) throw new Error(`the state ${state} of the session's folder is not kept anywhere`);
      // What is there now is recorded first, so that files which the state does not have are removed.
      if ((await addAll()) !== wanted) {
        await git(["read-tree", "--reset", "-u", wanted]);
        looked = undefined;
      }
      remember(state, wanted);
    },
  };
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("utf8").trim();
}

/** Reads no configuration of the machine or the user, and asks nobody. */
function runGit(
  folder: string,
  repository: string,
  args: readonly string[],
  input?: string | Uint8Array,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const child = spawn("git", [...args], {
      cwd: folder,
      env: {
        PATH: process.env["PATH"] ?? "/usr/bin:/bin",
        LC_ALL: "C",
        GIT_DIR: repository,
        // A repository is created without a working folder.
        ...(args[0] === "init" ? {} : { GIT_WORK_TREE: folder }),
        GIT_CONFIG_GLOBAL: "/dev/null",
        GIT_CONFIG_NOSYSTEM: "1",
        GIT_TERMINAL_PROMPT: "0",
        GIT_AUTHOR_NAME: fixed.name,
        GIT_AUTHOR_EMAIL: fixed.email,
        GIT_AUTHOR_DATE: fixed.date,
        GIT_COMMITTER_NAME: fixed.name,
        GIT_COMMITTER_EMAIL: fixed.email,
        GIT_COMMITTER_DATE: fixed.date,
      },
      stdio: ["pipe", "pipe", "pipe"],
    });
    const [out, err]: Buffer[][] = [[], []];
    child.stdout.on("data", (part: Buffer) => out!.push(part));
    child.stderr.on("data", (part: Buffer) => err!.push(part));
    child.on("error", reject);
    child.on("close", (code) => {
      if (code === 0) resolve(Buffer.concat(out!));
      else reject(new Error(`git ${args[0] ?? ""}: ${Buffer.concat(err!).toString("utf8").slice(0, 2_000)}`));
    });
    child.stdin.on("error", () => undefined); // it has ended, and says why
    child.stdin.end(input);
  });
}
