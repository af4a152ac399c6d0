/** Code of other languages on a command line: what a deny rule lets pass, and what it cannot trust. */
import { expect, test } from "vitest";
import { isPlainCode } from "../../src/gate/command/code.ts";

const plain: readonly (readonly [string, string])[] = [
  ["python3", "print(1)"],
  ["python3", "import json,sys; print(json.load(sys.stdin)['a'])"],
  ["python3", "import os; print(os.getcwd())"],
  ["python3", "import sys; print(sys.version)"],
  ["node", "console.log(1+1)"],
  ["node", "console.log(require('./package.json').version)"],
  ["node", "const p=require('fs').readFileSync('x','utf8'); console.log(JSON.parse(p).a)"],
  ["node", "for (const k in process.env) console.log(k, process.env[k])"],
  ["perl", "s/foo/bar/g"],
  ["perl", "print if /x/"],
  ["perl", 'if (/a/) { print "$_\\n" }'],
  ["ruby", "puts 1+1"],
  ["php", "echo 1;"],
];

const doubtful: readonly (readonly [string, string])[] = [
  ["python3", `import os as o;[v for k,v in o.__dict__.items()][0]("x")`],
  ["python3", `import importlib as i;vars(i.import_module("o"+"s"))`],
  ["python3", `import webbrowser as w;w.GenericBrowser(["x"]).open("f")`],
  ["python3", `import cProfile;cProfile.run("x")`],
  ["perl", `open(F,"r"."m f|")`],
  ["python3", `import os;vars(os)["sys"+"tem"]("r"+"m f")`],
  ["node", `process["mainMo"+"dule"].require("x")`],
  ["node", `k="con"+"structor";(()=>{})[k][k]("x")()`],
  ["node", `require("child_"+"process")`],
  ["perl", "print `rm f`"],
  ["perl", 'print "@{[system(q(x))]}"'],
  ["python3", "print(f'{__import__(1)}')"],
  ["python3", "map(getattr,[1],['x'])"],
  ["ruby", "exec 'x'"],
  ["lua", "os.execute('rm')"],
  ["perl", '1/ system("x") /1'],
  ["perl", "s/a/`x`/e"],
  ["python3", "from os import system; system('x')"],
  ["node", "import x from 'child_process'"],
];

test.each(plain)("%s: %s starts nothing", (interpreter, code) => expect(isPlainCode(interpreter, code)).toBe(true));
test.each(doubtful)("%s: %s may start anything", (interpreter, code) =>
  expect(isPlainCode(interpreter, code)).toBe(false),
);
