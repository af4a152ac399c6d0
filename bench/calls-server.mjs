/**
 * Plays the model for bench/calls.ts, as a process of its own: it answers with one call after another, and tells how
 * long each took, from the end of its answer to the next request. `node calls-server.mjs read|edit|shell N FOLDER MS`: it
 * answers after so many milliseconds.
 */
import { createServer } from "node:http";
import { join } from "node:path";

const [kind, count, folder, delayMs] = process.argv.slice(2);
const now = () => Number(process.hrtime.bigint()) / 1e6;
const patch = (n) =>
  `*** Begin Patch\n*** Update File: edit.txt\n@@\n-counter = ${n}\n+counter = ${n + 1}\n*** End Patch\n`;
/** The tools of the bare loops, and ours. */
const calls = {
  read: (n) => [
    ["read", { path: join(folder, `file${n % 20}.txt`) }],
    ["read_file", { file_path: join(folder, `file${n % 20}.txt`) }],
  ],
  edit: (n) => [
    ["edit", { path: join(folder, "edit.txt"), old: `counter = ${n}`, new: `counter = ${n + 1}` }],
    ["apply_patch", { input: patch(n) }],
  ],
  shell: (n) => [
    ["shell", { command: `true ${n}` }],
    ["shell_command", { command: `true ${n}` }],
  ],
};

let answered = 0;
let endedAt = 0;
const gaps = [];

const frame = (delta, finish = null) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

function answerTo(body) {
  if (answered === Number(count) + (kind === "edit" ? 1 : 0)) return frame({ content: "Done." }) + frame({}, "stop");
  // A file must have been read before it is edited, so the first of the edits is a read.
  const isFirstRead = kind === "edit" && answered === 0;
  const n = kind === "edit" ? answered - 1 : answered;
  const [bare, ours] = isFirstRead
    ? [
        ["read", { path: join(folder, "edit.txt") }],
        ["read_file", { file_path: join(folder, "edit.txt") }],
      ]
    : calls[kind](n);
  const [name, args] = body.includes('"shell_command"') ? ours : bare;
  answered++;
  const call = {
    index: 0,
    id: `call_${answered}`,
    type: "function",
    function: { name, arguments: JSON.stringify(args) },
  };
  return frame({ role: "assistant", tool_calls: [call] }) + frame({}, "tool_calls");
}

const server = createServer((request, response) => {
  if (endedAt > 0) gaps.push(now() - endedAt);
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const answer = `${answerTo(Buffer.concat(chunks).toString())}data: [DONE]\n\n`;
    const send = () => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(answer);
      endedAt = now();
    };
    if (delayMs === "0") send();
    else setTimeout(send, Number(delayMs));
  });
});
server.listen(0, "127.0.0.1", () => process.send(server.address().port));
process.on("message", () => process.send(gaps, () => process.exit()));
