#!/usr/bin/env node
/**
 * The file that the shell starts: it loads the command itself, with the code that an earlier run compiled. It is built as
 * CommonJS, because Node's loader of ES modules alone costs more than half of what loading ours does.
 */
import { createKeptCode } from "./kept-code.ts";

const { join } = process.getBuiltinModule("node:path");
const main = join(import.meta.dirname, "chunks/main.js");
const [first = ""] = process.argv.slice(2);
const asksForHelp = process.argv.includes("--help") || process.argv.includes("-h");
const command = asksForHelp ? "help" : /^[a-z]+$/.test(first) ? first : "chat";
// Each command keeps its own: what one never calls would only make the other's bigger. Help runs next to nothing of any.
const place = `compiled/${process.version}-${process.arch}/${command}`;
// What src/cli/main.ts exports.
type Main = { readonly run: (argv: readonly string[]) => Promise<void> };

// `node --enable-source-maps`: Node reads maps only for what it loaded itself.
if (process.sourceMapsEnabled) {
  const { pathToFileURL } = process.getBuiltinModule("node:url");
  void import(pathToFileURL(main).href).then(({ run }: Main) => run(process.argv.slice(2)));
} else {
  const kept = createKeptCode({ main, folder: join(import.meta.dirname, place), outside: (name) => import(name) });
  process.on("exit", (code) => {
    if (code === 0) kept.keep();
  });
  const { run } = kept.load(main) as Main;
  void run(process.argv.slice(2));
}
