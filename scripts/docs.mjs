// npm run docs: the documentation as a site, in site/.vitepress/dist. The tools have a package.json of their own in site/,
// so that nobody who only builds or tests pays for them; they are installed the first time. Dead links fail the build.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

const site = "site";
const pages = join(site, "pages");
const run = (command, args, cwd = ".") => execFileSync(command, args, { cwd, stdio: "inherit" });
const { repository, exports } = JSON.parse(readFileSync("package.json", "utf8"));
const source = `${repository.url.replace(/^git\+|\.git$/g, "")}/blob/main/`;

if (!existsSync(join(site, "node_modules")))
  run(
    "npm",
    // Not `npm ci`: it refuses a lock file that lacks other platforms' optional binaries.
    ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"],
    site,
  );

rmSync(pages, { recursive: true, force: true });
mkdirSync(pages, { recursive: true });
cpSync("docs", pages, { recursive: true });
for (const name of ["CHANGELOG.md", "SECURITY.md"]) cpSync(name, join(pages, name.toLowerCase()));
// The README is the front page; bench/RESULTS.md its source of figures.
mkdirSync(join(pages, "bench"), { recursive: true });
cpSync("bench/RESULTS.md", join(pages, "bench", "results.md"));
writeFileSync(
  join(pages, "index.md"),
  readFileSync("README.md", "utf8").replaceAll("](docs/", "](").replaceAll('src="docs/', 'src="./'),
);

/** Links to files that are not pages lead to the source; names of pages are in small letters. */
function mend(file, text) {
  return text.replace(/(\]\()(?!https?:|#|mailto:)([^)\s]+)\)/g, (whole, open, target) => {
    const [path, anchor] = target.split("#");
    const here = normalize(join(dirname(file), path));
    const tail = anchor === undefined ? "" : `#${anchor}`;
    if (existsSync(join(pages, here))) return whole;
    const names = {
      "CHANGELOG.md": "/changelog.md",
      "SECURITY.md": "/security.md",
      "bench/RESULTS.md": "/bench/results.md",
    };
    const fromRoot = here.replace(/^(\.\.\/)+/, "");
    return Object.hasOwn(names, fromRoot) ? `${open}${names[fromRoot]}${tail})` : `${open}${source}${fromRoot}${tail})`;
  });
}
for (const name of readdirSync(pages, { recursive: true, encoding: "utf8" }).filter((one) => one.endsWith(".md"))) {
  const text = readFileSync(join(pages, name), "utf8");
  // Braces in prose are no templates of the site's.
  writeFileSync(join(pages, name), mend(name, text).replaceAll("{{", "&#123;&#123;"));
}

// The API, from the types of every public entry.
const entries = Object.entries(exports)
  .filter(([, value]) => typeof value === "object")
  .map(([name, { types }]) => ({ name, file: types.replace("./dist/types/", "src/").replace(/\.d\.ts$/, ".ts") }));
writeFileSync(
  join(site, "typedoc.json"),
  `${JSON.stringify({ entryPoints: entries.map(({ file }) => `../${file}`) }, undefined, 2)}\n`,
);
run(process.execPath, ["node_modules/typedoc/bin/typedoc", "--options", "typedoc.config.mjs"], site);
run(process.execPath, ["node_modules/vitepress/bin/vitepress.js", "build"], site);
