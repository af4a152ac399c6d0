/** The small broken project that `npm start` repairs. */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const files: Readonly<Record<string, string>> = {
  "package.json": `{ "name": "sums", "type": "module" }\n`,
  "README.md": "# sums\n\nAdds numbers, or should.\n",
  "src/add.js": "/** The sum of two numbers. */\nexport function add(a, b) {\n  return a - b;\n}\n",
  "test/add.test.js": [
    `import assert from "node:assert/strict";`,
    `import { test } from "node:test";`,
    `import { add } from "../src/add.js";`,
    "",
    `test("two and two make four", () => assert.equal(add(2, 2), 4));`,
    "",
  ].join("\n"),
};

/** A small project with one fault and a test that finds it. */
export function createDemoWorkspace(parent: string): string {
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  const folder = mkdtempSync(join(parent, "demo-"));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(folder, name, ".."), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}

/** The repair job, in words that the offline model follows one by one. */
export const repairJob = `plan: find the fault; mend it; see the test pass
list .
find 'a - b' in src
run node --test
replace 'a - b' with 'a + b' in src/add.js
run node --test
run touch /etc/callgate-demo
run rm -rf ~
call self/read_file {"file_path": "README.md"}`;
