#!/usr/bin/env node
/** The file that the shell starts: it loads the command itself, with the code that an earlier run compiled. */
import { createKeptCode } from "./kept-code.ts";

const { fileURLToPath } = process.getBuiltinModule("node:url");
const main = fileURLToPath(new URL("chunks/main.js", import.meta.url));
const [first = ""] = process.argv.slice(2);
const command = /^[a-z]+$/.test(first) ? first : "chat";
// Each command keeps its own: what one never calls would only make the other's bigger.
const place = `compiled/${process.version}-${process.arch}/${command}`;
const kept = createKeptCode({
  main,
  folder: fileURLToPath(new URL(place, import.meta.url)),
  outside: (name) => import(name),
});
process.on("exit", (code) => {
  if (code === 0) kept.keep();
});
// What src/cli/main.ts exports.
const { run } = kept.load(main) as { readonly run: (argv: readonly string[]) => Promise<void> };
void run(process.argv.slice(2));
