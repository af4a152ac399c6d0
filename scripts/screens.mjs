// Fills the screens of README and docs with what the built command really prints. A page has
// `<!-- screen: NAME -->` … `<!-- /screen -->`; the commands of each name stand below. --check says whether they are true.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const screens = {
  exec: [`callgate exec "list . then run echo hello"`],
  effects: [
    `callgate sandbox --held ask -- sh -c 'rm rules.toml; echo more >> README.md; mkdir dist; seq 99 > dist/a.js; seq 99 > dist/b.js'`,
  ],
  policy: [`callgate policy check --shell 'git status && rm -rf build'`],
  arguments: [`callgate call read_file '{"file_pat":"README.md"}'`],
  denied: [
    `callgate policy check --rules rules.toml --shell 'xargs -n1 git push < branches' | head -4`,
    `callgate policy check --rules rules.toml --shell 'bash -c "git -C . push"' | head -4`,
  ],
};

const command = resolve("dist/cli.cjs");
const root = mkdtempSync(join(tmpdir(), "callgate-screens-"));
const workspace = join(root, "project");
mkdirSync(workspace);
writeFileSync(join(workspace, "README.md"), "# A project\n");
writeFileSync(
  join(workspace, "rules.toml"),
  '[[rule]]\ncommand = "git push"\ndecision = "deny"\nreason = "releases are pushed by CI"\n',
);
spawnSync("git", ["init", "-q"], { cwd: workspace });

/** What a terminal would show, without what differs from run to run: paths and times. */
function show(line) {
  const { stdout } = spawnSync(
    "bash",
    ["-c", `callgate() { "${process.execPath}" "${command}" "$@" 2>&1; }; ${line}`],
    {
      cwd: workspace,
      encoding: "utf8",
      env: { ...process.env, CALLGATE_HOME: join(root, "home"), NO_COLOR: "1" },
    },
  );
  const plain = stdout.replaceAll(workspace, "/home/you/project").replace(/  \d+(\.\d+)? s$/gm, "");
  return `$ ${line}\n${plain.trimEnd()}\n`;
}

const pages = [
  "README.md",
  ...readdirSync("docs", { encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];
const stale = [];
try {
  for (const page of pages) {
    const before = readFileSync(page, "utf8");
    const after = before.replace(/<!-- screen: (\S+) -->\n[\s\S]*?<!-- \/screen -->/g, (_, name) => {
      if (!Object.hasOwn(screens, name)) throw new Error(`${page}: there is no screen '${name}'`);
      return `<!-- screen: ${name} -->\n\`\`\`console\n${screens[name].map(show).join("")}\`\`\`\n<!-- /screen -->`;
    });
    if (after === before) continue;
    stale.push(page);
    if (!process.argv.includes("--check")) writeFileSync(page, after);
  }
} finally {
  rmSync(root, { recursive: true, force: true });
}
if (process.argv.includes("--check") && stale.length > 0) {
  console.error(`the screens of ${stale.join(", ")} are not what the command prints: run node scripts/screens.mjs`);
  process.exit(1);
}
