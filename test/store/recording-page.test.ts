/** A recorded session as one file: it holds what it shows, fetches nothing, and nothing recorded runs in it. */
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { StoredRecord } from "../../src/store/journal.ts";
import { recordingPage } from "../../src/store/recording-page.ts";

const folder = mkdtempSync(join(tmpdir(), "callgate-page-"));
mkdirSync(join(folder, "assets"));
for (const [name, text] of [
  ["recording.js", 'const text = "</script><b>";\nconsole.log(text);'],
  ["page.css", "body { color: red }"],
] as const)
  writeFileSync(join(folder, "assets", `${name}.br`), brotliCompressSync(text));

/** The elements as a browser cuts them: a script ends at the first closing tag, whatever is in it. */
function readPage(page: string) {
  const scripts = [...page.matchAll(/<script\b([^>]*)>([\s\S]*?)<\/script/g)].map(([, given, body]) => [given, body]);
  const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(page)?.[1] ?? "";
  const title = /<title>([^<]*)<\/title>/.exec(page)?.[1];
  return { scripts, policy, title };
}

test("any title and records are shown as they were, and stay what they are", () => {
  const hostile = fc.constantFrom(
    "</script><script>alert(1)</script>",
    "<!--",
    "]]>",
    '"><img src=x onerror=y>',
    "&amp;",
  );
  const words = fc.oneof(hostile, fc.string({ unit: "binary" }));
  fc.assert(
    fc.property(words, fc.array(fc.record({ type: words, value: fc.jsonValue() })), (title, given) => {
      const records = given.map((record, n) => ({ ...record, n, at: 1 })) as StoredRecord[];
      const page = readPage(recordingPage(title, records, folder));
      expect(page.scripts).toHaveLength(2);
      expect(page.scripts[0]![0]).toContain('type="application/json"');
      expect(JSON.parse(page.scripts[0]![1]!)).toEqual(JSON.parse(JSON.stringify(records)));
      const unescaped = page.title
        ?.replaceAll("&quot;", '"')
        .replaceAll("&gt;", ">")
        .replaceAll("&lt;", "<")
        .replaceAll("&amp;", "&");
      expect(unescaped).toBe(title);
    }),
  );
});

test("its policy lets only its own script run, and nothing be fetched", () => {
  const { scripts, policy } = readPage(recordingPage("x", [], folder));
  const hash = createHash("sha256").update(scripts[1]![1]!).digest("base64");
  expect(policy.split("; ").toSorted()).toEqual([
    "default-src 'none'",
    "img-src data:",
    `script-src 'sha256-${hash}'`,
    "style-src 'unsafe-inline'",
  ]);
});
