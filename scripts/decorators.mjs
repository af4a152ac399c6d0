// Standard decorators for tools that cannot lower them: oxc (and so vitest and rolldown) passes the
// syntax through, and no released Node runs it. A plugin for both; files without decorators are left alone.
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const tsc = fileURLToPath(new URL("../node_modules/typescript/bin/tsc", import.meta.url));
const flags = ["--ignoreConfig", "--noCheck", "--target", "es2022", "--module", "preserve", "--noResolve"];

export function lowerDecorators() {
  return {
    name: "lower-decorators",
    enforce: "pre",
    async transform(code, id) {
      const file = id.split("?", 1)[0];
      if (!file.endsWith(".ts") || !/^\s*@\w+\(/m.test(code) || file.includes("node_modules")) return undefined;
      const out = await mkdtemp(join(tmpdir(), "callgate-decorators-"));
      try {
        await run(process.execPath, [tsc, ...flags, "--rootDir", dirname(file), "--outDir", out, file]);
        return { code: await readFile(join(out, `${basename(file, ".ts")}.js`), "utf8"), map: null };
      } finally {
        await rm(out, { recursive: true, force: true });
      }
    },
  };
}
