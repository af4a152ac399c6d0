import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine } from "callgate";
import { execCommand, shellCommand, writeStdin } from "callgate/tools";

const workspace = mkdtempSync(join(tmpdir(), "callgate-example-"));
const engine = createEngine({ workspace, tools: [shellCommand, execCommand, writeStdin], approval: "never" });

// One command, in a fresh sandbox: the workspace can be changed, nothing else.
const once = await engine.call("shell_command", {
  command: "echo made > file.txt && cat file.txt; touch /etc/not-here",
});
console.log(once.content, once.exitCode);

// A process that outlives its call, on a terminal.
const started = await engine.call("exec_command", {
  cmd: 'read -p "name? " n; echo "hello $n"',
  tty: true,
  yield_time_ms: 300,
});
const session = Number(/session (\d+)/.exec(JSON.stringify(started.content))?.[1]);
const answered = await engine.call("write_stdin", { session_id: session, chars: "Ada\n" });
console.log(answered.content, answered.exitCode);

await engine.close();
