import { dirname } from "node:path";
import { CallError } from "../../../index.ts";
import type { Files } from "../../text-file.ts";

/** The source must exist and the destination must not. The destination's folder is created. */
export async function prepareDestination(files: Files, source: string, destination: string): Promise<void> {
  if ((await files.stat(source)) === undefined) throw new CallError("failed", `${source} does not exist.`);
  if (await files.stat(destination)) {
    throw new CallError("failed", `${destination} exists already.`, {
      hint: "Delete it first, or choose another name.",
    });
  }
  if ((await files.stat(dirname(destination))) === undefined)
    await files.mkdir(dirname(destination), { recursive: true });
}
