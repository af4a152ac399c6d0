// The Next.js application of examples/recipes/next, built and started, with the AI SDK's own client before it: a call
// that asks, the server started anew, and the answer given then.
import { spawn, spawnSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { DefaultChatTransport, readUIMessageStream } from "ai";
import { createScriptedModel, serveModel } from "callgate/testing";

const folder = join(dirname(fileURLToPath(import.meta.url)), "next-app");
rmSync(folder, { recursive: true, force: true });
cpSync(process.env.RECIPE_FOLDER, folder, { recursive: true });
const server = await serveModel(
  createScriptedModel([{ calls: [{ name: "deploy", input: { version: "1.2" } }] }, { text: "It is online." }]),
);
const env = { ...process.env, MODEL_URL: server.baseUrl, OPENAI_API_KEY: "none", NEXT_TELEMETRY_DISABLED: "1" };
const next = join(dirname(fileURLToPath(import.meta.url)), "node_modules/next/dist/bin/next");
const built = spawnSync(process.execPath, [next, "build"], { cwd: folder, env, encoding: "utf8" });
if (built.status !== 0) throw new Error(built.stdout + built.stderr);
const port = await freePort();
const transport = new DefaultChatTransport({ api: `http://127.0.0.1:${port}/api/chat` });

let app = await startApp();
const asked = await send([{ id: "1", role: "user", parts: [{ type: "text", text: "Put 1.2 online." }] }]);
const part = asked.parts.find(({ state }) => state === "approval-requested");
if (part === undefined) throw new Error(`nothing was asked: ${JSON.stringify(asked)}`);
app.kill();
app = await startApp();
part.state = "approval-responded";
part.approval = { ...part.approval, approved: true };
const answer = await send([{ id: "1", role: "user", parts: [{ type: "text", text: "Put 1.2 online." }] }, asked]);
console.log(answer.parts.findLast(({ type }) => type === "text")?.text ?? JSON.stringify(answer));
app.kill();
await server.close();

async function startApp() {
  const child = spawn(process.execPath, [next, "start", "-p", String(port), "-H", "127.0.0.1"], { cwd: folder, env });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (said += text));
  for (let tries = 0; tries < 300; tries++) {
    const page = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined);
    if (page?.ok) return child;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error(`it did not start: ${said}`);
}

async function send(messages) {
  const stream = await transport.sendMessages({ chatId: "chat-1", messages, trigger: "submit-message" });
  const own = messages.at(-1).role === "assistant" ? { message: messages.at(-1) } : {};
  let last;
  for await (const message of readUIMessageStream({ stream, ...own })) last = message;
  return last;
}

function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port: free } = probe.address();
      probe.close(() => resolve(free));
    });
  });
}
