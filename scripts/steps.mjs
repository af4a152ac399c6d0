// One line per step, with its time; the output of a step is shown only when it fails.
import { spawn } from "node:child_process";

/** `beside`: other steps run at the same time, so its line is written when it is over. */
export async function step(title, command, args, { env, show = false, beside = false } = {}) {
  const started = Date.now();
  if (!beside) process.stderr.write(`  ${title} …`);
  const { code, output } = await run(command, args, env, show);
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  const named = show ? `  ${title}` : beside ? `  ${title} …` : "";
  process.stderr.write(`${named} ${code === 0 ? "ok" : "FAILED"} (${seconds} s)\n`);
  if (code !== 0) {
    if (!show) process.stderr.write(output);
    process.exit(1);
  }
}

function run(command, args, env, show) {
  return new Promise((resolve) => {
    if (show) process.stderr.write("\n");
    const child = spawn(command, args, {
      env: { ...process.env, ...env },
      stdio: ["ignore", show ? "inherit" : "pipe", show ? "inherit" : "pipe"],
    });
    let output = "";
    child.stdout?.on("data", (chunk) => (output += chunk));
    child.stderr?.on("data", (chunk) => (output += chunk));
    child.on("error", (error) => resolve({ code: 1, output: `${command}: ${error.message}\n` }));
    child.on("close", (code) => resolve({ code: code ?? 1, output }));
  });
}
