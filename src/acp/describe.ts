/** A call as an editor shows it: a title that a person understands, its kind, and where it acts. */
import { isAbsolute, resolve } from "node:path";
import type { ToolCallContent, ToolCallLocation, ToolKind } from "@agentclientprotocol/sdk";
import { applyPatch, parsePatch } from "diff";
import { readFileSync } from "node:fs";
import { partsToText, type Part } from "../base/content.ts";
import { isObject, parseJson } from "../base/json.ts";
import { cutStart } from "../base/text.ts";

const kinds: ReadonlyMap<string, ToolKind> = new Map([
  ["read_file", "read"],
  ["view_image", "read"],
  ["list_dir", "search"],
  ["grep_files", "search"],
  ["apply_patch", "edit"],
  ["str_replace_editor", "edit"],
  ["exec_command", "execute"],
  ["write_stdin", "execute"],
  ["shell", "execute"],
  ["shell_command", "execute"],
  ["local_shell", "execute"],
  ["update_plan", "think"],
  ["web_search", "fetch"],
]);

export interface Described {
  readonly title: string;
  readonly kind: ToolKind;
  readonly locations: ToolCallLocation[];
  readonly rawInput: unknown;
}

/** Made from the arguments as the model wrote them. The title is the command or the file, if there is one. */
export function describeCall(name: string, given: string, cwd: string): Described {
  const parsed = parseJson(given);
  const input: unknown = parsed.ok ? parsed.value : given;
  const kind = kinds.get(name) ?? "other";
  const command = commandOf(input);
  const paths = pathsOf(input).map((path) => (isAbsolute(path) ? path : resolve(cwd, path)));
  const shown = paths.map((path) => (path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path));
  const verb = kind === "edit" ? "Edit " : kind === "read" ? "Read " : kind === "search" ? "Search " : `${name} `;
  const title = command ?? (shown.length > 0 ? `${verb}${shown.join(", ")}` : name);
  return { title: cutStart(title, 300), kind, locations: paths.map((path) => ({ path })), rawInput: input };
}

function commandOf(input: unknown): string | undefined {
  if (!isObject(input)) return undefined;
  const command = input["cmd"] ?? input["command"];
  if (typeof command === "string") return command;
  return Array.isArray(command) && command.every((word) => typeof word === "string") ? command.join(" ") : undefined;
}

function pathsOf(input: unknown): readonly string[] {
  if (isObject(input)) {
    const named = [input["path"], input["file_path"], input["dir_path"]].filter((path) => typeof path === "string");
    if (named.length > 0) return named;
    const patch = input["input"] ?? input["patch"];
    return typeof patch === "string" ? pathsOf(patch) : [];
  }
  if (typeof input !== "string") return [];
  return [...input.matchAll(/^\*\*\* (?:Add|Update|Delete) File: (.+)$/gm)].map((match) => match[1]!.trim());
}

export function textContent(text: string): ToolCallContent {
  return { type: "content", content: { type: "text", text } };
}

export function toContent(parts: readonly Part[]): ToolCallContent[] {
  return parts.map((part) =>
    part.type === "image" && part.data !== undefined
      ? { type: "content", content: { type: "image", data: part.data, mimeType: part.mediaType ?? "image/png" } }
      : textContent(partsToText([part])),
  );
}

/**
 * A unified diff as editors accept it: the whole text of each file before and after. What cannot be
 * expressed that way is shown as it is.
 */
export function diffContent(diff: string, cwd: string): ToolCallContent[] {
  const plain = [textContent(`\`\`\`diff\n${diff}\n\`\`\``)];
  try {
    const files = parsePatch(diff).map((patch): ToolCallContent => {
      const name = (patch.newFileName === "/dev/null" ? patch.oldFileName : patch.newFileName) ?? "";
      const path = resolve(cwd, name.replace(/^[ab]\//, ""));
      const isNew = patch.oldFileName === "/dev/null";
      const oldText = isNew ? "" : readFileSync(path, "utf8");
      const newText = applyPatch(oldText, patch);
      if (newText === false) throw new Error("the file is another by now");
      return { type: "diff", path, newText, ...(isNew ? {} : { oldText }) };
    });
    return files.length === 0 ? plain : files;
  } catch {
    return plain; // a removed file, a binary one or a diff in another form is shown as it is
  }
}
