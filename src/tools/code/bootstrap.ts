/**
 * What runs in the fresh Node before the script. It reads the script from standard input and talks to
 * us in JSON lines on standard output, each after a mark that was made for this run. It is plain
 * JavaScript for every Node from 20 on. It protects nothing: the sandbox confines the process, and the
 * gate judges every call. A script that breaks it can do no more than a script that uses it.
 */
export const bootstrap = String.raw`
"use strict";
const { writeSync } = require("node:fs");
const { createRequire, stripTypeScriptTypes } = require("node:module");
const { Console } = require("node:console");
const vm = require("node:vm");
const waiting = new Map();
let asked = 0;
let mark;

function say(message) {
  const bytes = Buffer.from("\n" + mark + JSON.stringify(message) + "\n");
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(1, bytes, at);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}

class ToolError extends Error {
  constructor({ message, code, tool }) {
    super(message);
    this.name = "ToolError";
    this.code = code;
    this.tool = tool;
  }
}

function ask(message) {
  return new Promise((resolve, reject) => {
    const id = ++asked;
    say({ ...message, id });
    waiting.set(id, { resolve, reject });
  });
}

function answered({ id, value, error }) {
  const one = waiting.get(id);
  waiting.delete(id);
  if (error) one?.reject(new ToolError(error));
  else one?.resolve(value);
}

function member(path) {
  return new Proxy(() => {}, {
    get: (_, name) => (typeof name === "symbol" || name === "then" ? undefined : member([...path, name])),
    apply: (_, self, [input = {}]) => ask({ call: path.join("/"), input }),
  });
}

function end(message) {
  try {
    say(message);
  } catch (error) {
    say({ failed: "the returned value cannot be written as JSON: " + error.message });
  }
  process.exit(0);
}

function fail(error) {
  const words = error instanceof Error ? (error.stack ?? error.message) : String(error);
  end({ failed: words.split("\n").filter((line) => !/^\s+at (?!.*script\.js)/.test(line)).join("\n") });
}

async function start(code) {
  Object.defineProperty(process, "stdout", { get: () => process.stderr });
  globalThis.console = new Console(process.stderr, process.stderr);
  process.on("uncaughtException", fail);
  process.on("unhandledRejection", fail);
  let source = "(async (tools, findTools, require) => {\n" + code + "\n})";
  try {
    source = stripTypeScriptTypes?.(source) ?? source;
  } catch {} // the engine reports the mistake better
  try {
    const script = new vm.Script(source, {
      filename: "script.js",
      lineOffset: -1,
      importModuleDynamically: vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    });
    say({ started: true });
    const findTools = (query) => ask({ find: String(query) });
    const value = await script.runInThisContext()(member([]), findTools, createRequire(process.cwd() + "/"));
    end(value === undefined ? { ended: true } : { ended: true, value });
  } catch (error) {
    fail(error);
  }
}

let text = "";
process.stdin.setEncoding("utf8");
process.stdin.on("end", () => process.exit(1));
process.stdin.on("data", (piece) => {
  const from = text.length;
  text += piece;
  let begin = 0;
  for (let at = text.indexOf("\n", from); at >= 0; at = text.indexOf("\n", begin)) {
    const message = JSON.parse(text.slice(begin, at));
    begin = at + 1;
    if (mark !== undefined) answered(message);
    else {
      mark = message.mark;
      void start(message.code);
    }
  }
  text = text.slice(begin);
});
`;
