import { open, stat } from "node:fs/promises";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { ResourceFolder } from "../../mcp/index.ts";
import { listSessions } from "../../store/index.ts";

/** What an MCP client of this workspace may read: its sessions' journals, and outputs that were too long for an answer. */
export function resourceFolders(stateDir: string, workspace: string, spillDir: string): readonly ResourceFolder[] {
  return [
    {
      kind: "sessions",
      title: "session journal",
      mediaType: "application/x-ndjson",
      root: join(stateDir, "sessions"),
      files: () =>
        listSessions(stateDir)
          .filter(({ cwd }) => cwd === workspace)
          .map(({ id, path, title }) => ({ name: id, path, ...(title === "" ? {} : { title }) })),
    },
    {
      kind: "outputs",
      title: "whole output of a call",
      mediaType: "text/plain",
      root: spillDir,
      files: () =>
        existsSync(spillDir)
          ? readdirSync(spillDir).map((name) => {
              const path = join(spillDir, name);
              return { name, path, size: statSync(path).size };
            })
          : [],
    },
  ];
}

/** The beginning of a file, whole where it is short enough. */
export async function readText(path: string, maxBytes: number): Promise<{ text: string; cut: boolean }> {
  const { size } = await stat(path);
  const file = await open(path, "r");
  try {
    const buffer = Buffer.alloc(Math.min(size, maxBytes));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
    return { text: buffer.toString("utf8", 0, bytesRead), cut: size > maxBytes };
  } finally {
    await file.close();
  }
}
