/** Asking a chat template how its model speaks; the baseline renders one conversation through the same template. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { inferFromTemplate, parseTemplate, renderTemplate } from "../src/template/index.ts";
import { median, type BenchRow } from "./measure.ts";

/** Benchmarks run from the project's root. */
function read(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder).filter((file) => file.endsWith(".jinja"));
  return files.map((file) => readFileSync(join(folder, file), "utf8"));
}

export async function run(): Promise<readonly BenchRow[]> {
  const shared = read("../shared/data/templates");
  const templates = shared.length > 0 ? shared : read("test/template/fixtures");
  const time = (body: () => unknown) => {
    const start = performance.now();
    body();
    return performance.now() - start;
  };
  const infer = templates.map((source) => median([0, 1, 2].map(() => time(() => inferFromTemplate(source)))));
  const plain = readFileSync("test/template/fixtures/hermes-macro.jinja", "utf8");
  const messages = [{ role: "user", content: "hi" }];
  const render = median(Array.from({ length: 30 }, () => time(() => renderTemplate(plain, { messages }))));
  const parse = median(Array.from({ length: 30 }, () => time(() => parseTemplate(plain))));
  const row = (name: string, value: number): BenchRow => ({
    name,
    value,
    unit: "ms",
    ratio: value / render,
    baseline: "parse and render once",
  });
  return [
    { name: "parse and render one template once", value: render, unit: "ms" },
    row("parse alone", parse),
    row(`infer, median of ${templates.length} templates`, median(infer)),
    row("infer, the slowest of them", Math.max(...infer)),
  ];
}
