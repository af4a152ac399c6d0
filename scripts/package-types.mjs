// Whoever installs the package has nothing of ours beside it: its types must be whole by themselves. Packs it, puts the
// tarball into an empty folder as an install would, and type-checks every entry with nothing skipped.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const { exports } = JSON.parse(readFileSync("package.json", "utf8"));
// The types of these name a framework's own: whoever imports them has it, and not every framework's compile like this.
const withPeers = new Set(["./ai-sdk", "./agents", "./langchain", "./ui"]);
const entries = Object.keys(exports).filter((path) => !path.endsWith(".json") && !withPeers.has(path));
const folder = mkdtempSync(join(tmpdir(), "callgate-types-"));
const modules = join(folder, "node_modules");
const installed = join(modules, "callgate");
mkdirSync(join(modules, "@types"), { recursive: true });
mkdirSync(installed);

const packed = execFileSync("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", folder], {
  encoding: "utf8",
  stdio: ["ignore", "pipe", "ignore"],
});
const [{ filename }] = JSON.parse(packed);
execFileSync("tar", ["-xzf", join(folder, filename), "-C", installed, "--strip-components=1"]);
// What a TypeScript program for Node has anyway.
symlinkSync(resolve("node_modules/@types/node"), join(modules, "@types/node"), "dir");
const undici = resolve("node_modules/undici-types");
symlinkSync(undici, join(modules, "undici-types"), "dir");

const names = entries.map((path, index) => `import * as e${index} from "callgate${path.slice(1)}";`);
writeFileSync(
  join(folder, "index.ts"),
  `${names.join("\n")}\nexport const all = [${entries.map((_, index) => `e${index}`).join(", ")}];\n`,
);
// A CommonJS program gets the same types, as docs/faq.md promises.
writeFileSync(
  join(folder, "required.cts"),
  `import { createEngine } from "callgate";\nexport const text: Promise<string> = createEngine({ tools: [] }).call("a", {}).then((ended) => ended.text);\n`,
);
writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
const compilerOptions = {
  strict: true,
  noEmit: true,
  skipLibCheck: false,
  module: "nodenext",
  target: "es2023",
  types: ["node"],
};
writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["index.ts", "required.cts"] }));
try {
  execFileSync(process.execPath, [resolve("node_modules/typescript/bin/tsc"), "-p", folder], { stdio: "inherit" });
  process.stdout.write(`the types of ${entries.length} entries are whole\n`);
} catch {
  process.exitCode = 1;
}
rmSync(folder, { recursive: true, force: true });
