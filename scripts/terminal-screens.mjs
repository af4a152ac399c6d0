// The screens in docs/interactive.md, taken from the built command in a real terminal (tmux): each `<!-- terminal NAME -->`
// is followed by the block that its scene below gives. `node scripts/terminal-screens.mjs` writes them, `--check` only drives them.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const page = "docs/interactive.md";
const cli = resolve("dist/cli.cjs");
const counting = "run for i in 1 2 3 4 5 6 7 8 9; do echo line $i; sleep 0.2; done; sleep 20";

/** Steps are what is typed (a string: sent with Enter; an array: keys) and what has to be seen before the next (a RegExp). */
const scenes = {
  start: { size: [86, 30], steps: ["run node --version then read src/add.js", /Done\./] },
  working: { size: [86, 24], steps: [counting, /line 8/, "and hurry up", /queued/] },
  interrupted: { size: [86, 24], steps: [counting, /line 8/, "and hurry up", /queued/, ["Escape"], /interrupted/] },
  asks: { size: [86, 30], args: ["--approval", "unless-trusted"], steps: ["run rm -rf build", /Yes, once/] },
  plan: { size: [86, 24], steps: ["/plan", /plan mode/, "/status", /journal/] },
  resume: { size: [86, 24], steps: ["run ls", /Done\./, "/new", /model offline over/, "/resume", /Which session/] },
  narrow: { size: [40, 15], steps: ["run ls", /Done\./] },
};

function drive(name, { size, args = [], steps }) {
  const home = mkdtempSync(join(tmpdir(), "callgate-screen-"));
  const cwd = join(home, "demo");
  mkdirSync(join(cwd, "src"), { recursive: true });
  mkdirSync(join(cwd, ".git"));
  mkdirSync(join(cwd, "build"));
  writeFileSync(join(cwd, ".git/HEAD"), "ref: refs/heads/main\n");
  writeFileSync(join(cwd, "src/add.js"), "export function add(a, b) {\n  return a - b;\n}\n");
  mkdirSync(join(home, "state"));
  writeFileSync(join(home, "state/callgate.toml"), 'held = "off"\n');
  const server = `callgate-screens-${process.pid}`;
  const tmux = (...words) => execFileSync("tmux", ["-L", server, "-f", "/dev/null", ...words], { encoding: "utf8" });
  const command = ["env", `HOME=${home}`, `CALLGATE_HOME=${join(home, "state")}`, process.execPath, cli, ...args];
  tmux(
    "new-session",
    "-d",
    "-s",
    "s",
    "-x",
    String(size[0]),
    "-y",
    String(size[1]),
    "-c",
    cwd,
    `${command.join(" ")}; sleep 60`,
  );
  const screen = () => tmux("capture-pane", "-p", "-t", "s").trimEnd();
  const pause = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  const sees = (words) => {
    for (const until = Date.now() + 60_000; !words.test(screen()); pause(100))
      if (Date.now() > until) throw new Error(`${name}: never saw ${words}:\n${screen()}`);
  };
  try {
    sees(/on-request|unless-trusted/);
    for (const step of steps) {
      if (step instanceof RegExp) sees(step);
      else if (Array.isArray(step)) tmux("send-keys", "-t", "s", ...step);
      else {
        tmux("send-keys", "-t", "s", "-l", step);
        pause(600);
        tmux("send-keys", "-t", "s", "Enter");
      }
    }
    pause(600);
    return screen()
      .replaceAll(cwd, "~/demo")
      .replaceAll(home, "~")
      .replaceAll(/^\n+|\s+$/g, "");
  } finally {
    spawnSync("tmux", ["-L", server, "kill-server"]);
    rmSync(home, { recursive: true, force: true });
  }
}

let text = readFileSync(page, "utf8");
for (const [name, scene] of Object.entries(scenes)) {
  const place = new RegExp(`(<!-- terminal ${name} -->\n\n\`\`\`text\n)[\\s\\S]*?(\n\`\`\`)`);
  if (!place.test(text)) throw new Error(`${page} has no place for the screen '${name}'`);
  const shown = drive(name, scene);
  text = text.replace(place, (_whole, before, after) => `${before}${shown}${after}`);
}
if (!process.argv.includes("--check")) writeFileSync(page, text);
