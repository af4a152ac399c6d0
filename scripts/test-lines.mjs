// `npm run test-lines`: how many lines of tests there are for each line of code, folder by folder. A line counts if it
// holds more than a comment. Of `test/NAME` every .ts file counts, helpers included; lists of cases in other files
// (command lines, recorded streams) are a column of their own and not part of the ratio, and neither are tests that
// lie elsewhere and import the folder.
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");

function filesBelow(folder) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(root.length + 1));
}

const contentOf = (file) => readFileSync(join(root, file), "utf8");

function countLines(text) {
  let isInComment = false;
  return text.split("\n").filter((line) => {
    const words = line.trim();
    if (isInComment || words.startsWith("/*")) {
      isInComment = !words.includes("*/");
      return false;
    }
    return words !== "" && !words.startsWith("//");
  }).length;
}

const sum = (files, count) => files.reduce((total, file) => total + count(contentOf(file)), 0);
const isCode = (file) => file.endsWith(".ts");
const tests = filesBelow("test");
const folders = readdirSync(join(root, "src"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
const rows = folders.map(({ name }) => {
  const own = tests.filter((file) => file.startsWith(`test/${name}/`));
  const far = tests.filter((file) => isCode(file) && !own.includes(file) && contentOf(file).includes(`src/${name}/`));
  const code = sum(filesBelow(`src/${name}`).filter(isCode), countLines);
  const test = sum(own.filter(isCode), countLines);
  return {
    folder: name,
    code,
    tests: test,
    ratio: Number((test / code).toFixed(2)),
    "lists of cases": sum(
      own.filter((file) => !isCode(file)),
      (text) => text.split("\n").length - 1,
    ),
    elsewhere: sum(far, countLines),
  };
});
console.table(rows);
