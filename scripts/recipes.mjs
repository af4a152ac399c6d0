// Runs the recipes for frameworks that are too big to be installed here: each with its real package, in a folder of
// its own outside the repository, against a model that we serve.   npm run recipes [-- mastra]
//   RECIPES=DIR: packages that are installed in DIR already.
import { spawnSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createScriptedModel, serveModel } from "../dist/testing.js";

const folder = process.env.RECIPES ?? join(tmpdir(), "callgate-recipes");
const root = resolve(".");
const bins = join(folder, "bin");

/** What each needs, and what it must have printed. */
const recipes = {
  mastra: { packages: ["@mastra/core", "zod"], shown: /It is a cat\./, model: () => [] },
  next: {
    packages: ["next", "react", "react-dom", "@types/react", "@types/node", "typescript", "ai", "@ai-sdk/react", "zod"],
    shown: /^It is online\.$/m,
    model: () => [],
  },
  "claude-agent-sdk": {
    packages: ["@anthropic-ai/claude-agent-sdk", "zod"],
    shown: /It says: remember the milk/,
    model: () => [
      (request) => {
        const tool = request.tools.find(({ name }) => name.endsWith("callgate__read_file"));
        if (tool === undefined)
          return { text: `no such tool among ${request.tools.map(({ name }) => name).join(" ")}` };
        const results = JSON.stringify(request.input.filter(({ type }) => type === "result"));
        if (results.includes("remember the milk")) return { text: "It says: remember the milk" };
        return { calls: [{ name: tool.name, input: { file_path: "note.txt" } }] };
      },
    ],
  },
};

const wanted = process.argv.slice(2);
// Next.js checks the types of what it builds.
if (!existsSync("dist/types")) spawnSync(process.execPath, ["scripts/build.mjs"], { stdio: "ignore" });
mkdirSync(join(folder, "node_modules"), { recursive: true });
mkdirSync(bins, { recursive: true });
if (!existsSync(join(folder, "package.json"))) writeFileSync(join(folder, "package.json"), '{"type":"module"}\n');
writeFileSync(join(bins, "callgate"), `#!/bin/sh\nexec ${process.execPath} ${join(root, "dist/cli.cjs")} "$@"\n`, {
  mode: 0o755,
});
let failed = 0;
for (const [name, { packages, shown, model }] of Object.entries(recipes)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const missing = packages.filter((one) => !existsSync(join(folder, "node_modules", one, "package.json")));
  if (missing.length > 0)
    spawnSync("npm", ["install", "--no-audit", "--no-fund", ...missing], { cwd: folder, stdio: "inherit" });
  // After npm, which removes what it does not know.
  install();
  const work = mkdtempSync(join(tmpdir(), "callgate-recipe-"));
  writeFileSync(join(work, "note.txt"), "remember the milk\n");
  const file = join(folder, `${name}.mjs`);
  cpSync(join("examples/recipes", `${name}.mjs`), file);
  const [step] = model();
  const server = await serveModel(
    createScriptedModel(step === undefined ? [] : Array.from({ length: 20 }, () => step)),
  );
  const output = await run(process.execPath, [file], {
    cwd: work,
    env: {
      ...process.env,
      PATH: `${bins}:${process.env.PATH}`,
      HOME: work,
      RECIPE_FOLDER: resolve("examples/recipes", name),
      CALLGATE_HOME: join(work, "state"),
      ANTHROPIC_BASE_URL: server.baseUrl.replace(/\/v1$/, ""),
      ANTHROPIC_API_KEY: "none",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      ENABLE_TOOL_SEARCH: "false", // its own search would have to be played, too
      MASTRA_TELEMETRY_DISABLED: "1",
    },
  });
  await server.close();
  const ok = shown.test(output);
  if (!ok) failed++;
  console.log(`${ok ? "ok     " : "failed "} ${name}${ok ? "" : `\n${output}`}`);
}
process.exitCode = failed === 0 ? 0 : 1;

/** A copy, as npm would make it: bundlers follow no link out of their folder. */
function install() {
  const place = join(folder, "node_modules", "callgate");
  rmSync(place, { recursive: true, force: true });
  for (const part of ["package.json", "dist", "native/build"])
    if (existsSync(part)) cpSync(part, join(place, part), { recursive: true });
}

function run(program, args, options) {
  return new Promise((done) => {
    let text = "";
    const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    const timer = setTimeout(() => child.kill(), 180_000);
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (piece) => (text += piece));
    child.once("close", () => {
      clearTimeout(timer);
      done(text);
    });
  });
}
