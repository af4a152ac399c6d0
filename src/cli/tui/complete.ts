/** Completion in the editor: slash commands and their arguments, paths after Tab, files after `@`. */
import { CombinedAutocompleteProvider, fuzzyFilter, type AutocompleteProvider } from "@earendil-works/pi-tui";
import { readdirSync, type Dirent } from "node:fs";
import { join } from "node:path";
import type { Slash } from "./slash.ts";

/** How many entries are looked at for one `@`. A tree may be endless, and typing must not wait. */
const maxEntries = 4_000;
const maxShown = 20;
const skipped = new Set([".git", "node_modules", ".venv", "__pycache__"]);

export function createCompletion(commands: readonly Slash[], cwd: string): AutocompleteProvider {
  const paths = new CombinedAutocompleteProvider([...commands], cwd);
  return {
    triggerCharacters: ["@"],
    async getSuggestions(lines, cursorLine, cursorCol, options) {
      const prefix = /(?:^|\s)(@\S*)$/.exec(lines[cursorLine]?.slice(0, cursorCol) ?? "")?.[1];
      if (prefix === undefined) return paths.getSuggestions(lines, cursorLine, cursorCol, options);
      const typed = prefix.slice(1);
      const found = fuzzyFilter(listFiles(cwd, folderOf(typed)), typed, (name) => name).slice(0, maxShown);
      return found.length === 0 ? null : { prefix, items: found.map((name) => ({ value: `@${name}`, label: name })) };
    },
    applyCompletion(lines, cursorLine, cursorCol, item, prefix) {
      // Keys that come all at once are read before the proposals follow: these were made for another text.
      const isStale = lines[cursorLine]?.slice(0, cursorCol).endsWith(prefix) !== true;
      return isStale
        ? { lines, cursorLine, cursorCol }
        : paths.applyCompletion(lines, cursorLine, cursorCol, item, prefix);
    },
    shouldTriggerFileCompletion: (...args) => paths.shouldTriggerFileCompletion(...args),
  };
}

/**
 * The folder that was typed already. Only files below it are listed, so the rest of a large tree does not
 * crowd them out.
 */
function folderOf(typed: string): string {
  return typed.slice(0, Math.max(0, typed.lastIndexOf("/")));
}

/** Files below a folder, the nearest first. If there is no such folder, files below the root. */
export function listFiles(root: string, below = ""): string[] {
  const files: string[] = [];
  const folders = [below !== "" && entriesOf(join(root, below)).length > 0 ? below : ""];
  let seen = 0;
  for (let folder = folders.shift(); folder !== undefined && seen < maxEntries; folder = folders.shift()) {
    for (const entry of entriesOf(join(root, folder))) {
      seen++;
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) {
        if (!skipped.has(entry.name)) folders.push(path);
      } else files.push(path);
    }
  }
  return files;
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // the folder cannot be read, or it is gone by now
  }
}
