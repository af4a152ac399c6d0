/**
 * Many conversations at once through the built command: none is mixed up with another, and memory stays flat.
 * CALLGATE_CONVERSATIONS=1000 for the long run, 50 at once; by default a few, so that `npm test` stays quick.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import type { Json } from "../../src/base/json.ts";
import { text } from "../../src/base/content.ts";
import type { Item, Model } from "../../src/spec/model.ts";
import { serveModel } from "../../src/testing/index.ts";
import { answerToEvents } from "../../src/wire/index.ts";
import { cli, ensureBuilt, tempFolder } from "../cli/run.ts";
import { ask, goOn, question, wires } from "./gateways.ts";

beforeAll(ensureBuilt, 60_000);

const count = Number(process.env["CALLGATE_CONVERSATIONS"] ?? 20);
const atOnce = Math.min(50, Math.ceil(count / 2));
const upstreamWires = [...wires, "text:hermes"] as const;
const wordIn = (items: unknown) => new Set(JSON.stringify(items).match(/word-\d+-/g) ?? []);

/** Says the conversation's own word in everything it does: thinks, calls a tool twice, ends. */
const echo: Model = {
  name: "echo",
  async *ask(request) {
    const said = wordIn(request.input);
    const word = [...said].join("+");
    const results = request.input.filter(({ type }) => type === "result").length;
    const isOver = results >= 2 || /rain.*rain/.test(JSON.stringify(request.input));
    const call: Item = {
      type: "call",
      kind: "function",
      id: `call_${results}`,
      name: "weather",
      arguments: JSON.stringify({ city: word }),
      complete: true,
    };
    const items: Item[] = [
      { type: "reasoning", text: `I think of ${word}.` },
      { type: "message", role: "assistant", content: [text(`This is ${word}.`)] },
      ...(isOver ? [] : [call]),
    ];
    const usage = { input: 10, output: 10 };
    yield* answerToEvents({
      id: "a",
      model: "echo",
      items,
      outcome: "ok",
      finish: isOver ? "stop" : "tool_calls",
      usage,
    });
  },
};

async function start(): Promise<{ readonly url: string; memoryMb(): number }> {
  const servers = await Promise.all([serveModel(echo), serveModel(echo, { dialect: "hermes" })]);
  const home = tempFolder("state");
  const routes = upstreamWires.map((wire) => {
    const base = (wire.startsWith("text:") ? servers[1] : servers[0])!.baseUrl;
    const baseUrl = wire === "gemini" ? base.replace("/v1", "/v1beta") : base;
    return `[[gateway.routes]]\nmatch = "to-${wire}"\ntargets = [{ base_url = "${baseUrl}", model = "echo", wire = "${wire}" }]\n`;
  });
  writeFileSync(join(home, "callgate.toml"), routes.join("\n"));
  const child = spawn(process.execPath, [cli, "gateway", "--port", "0", "--json", "--no-key"], {
    cwd: tempFolder("work"),
    env: { PATH: process.env["PATH"] ?? "", HOME: home, CALLGATE_HOME: home },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await Promise.all(servers.map((server) => server.close()));
  });
  const first = await new Promise<string>((resolve) => child.stdout.setEncoding("utf8").once("data", resolve));
  child.stdout.resume();
  return {
    url: (JSON.parse(first.split("\n")[0] ?? "{}") as { url: string }).url,
    memoryMb: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1024,
  };
}

test(
  "conversations of every client on every model at once hold their own words only",
  { timeout: 30_000 + count * 300 },
  async () => {
    const { url, memoryMb } = await start();
    const wrong: string[] = [];
    const memory: number[] = [];

    const converse = async (at: number): Promise<void> => {
      const client = wires[at % wires.length]!;
      const word = `word-${at}-`;
      const model = `to-${upstreamWires[at % upstreamWires.length]}`;
      let body: Record<string, Json> = { ...question(client, false, word), stream: false, model };
      for (let turn = 0; turn < 3; turn++) {
        const { status, text: replied, answer } = await ask(url, client, body);
        const said = [...wordIn(answer.items)].join();
        const calls = answer.items.filter(({ type }) => type === "call").length;
        if (status !== 200 || said !== word || calls !== (turn < 2 ? 1 : 0))
          wrong.push(`${client} ${model} turn ${turn}: ${status} ${said || replied.slice(0, 200)}, ${calls} calls`);
        if (turn < 2) body = goOn(client, body, JSON.parse(replied) as Json, "rain");
      }
    };
    const waiting = Array.from({ length: count }, (_, at) => at);
    const work = async () => {
      for (let at = waiting.shift(); at !== undefined; at = waiting.shift()) {
        await converse(at).catch((error: unknown) => wrong.push(`${at}: ${String(error)}`));
        if (at % Math.ceil(count / 20) === 0) memory.push(memoryMb());
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));

    expect(wrong).toEqual([]);
    if (count < 500) return;
    const mean = (list: readonly number[]) => list.reduce((sum, value) => sum + value, 0) / list.length;
    const [half, end] = [mean(memory.slice(8, 12)), mean(memory.slice(-4))];
    console.log(
      `${count} conversations, ${atOnce} at once: ${half.toFixed(0)} MB half way, ${end.toFixed(0)} MB at the end`,
    );
    expect(end).toBeLessThan(half * 1.2);
  },
);
