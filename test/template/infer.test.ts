import { readFileSync } from "node:fs";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { stableStringify } from "../../src/base/json.ts";
import { createTextDecoder, decodeText, encodeCalls, type Dialect } from "../../src/dialect/index.ts";
import { neutralize } from "../../src/dialect/write/neutral.ts";
import { deriveDialect } from "../../src/template/derive.ts";
import { inferFromTemplate } from "../../src/template/index.ts";
import { probeTools } from "../../src/template/probe.ts";
import { readSet, shownSets } from "../../src/template/read-probes.ts";
import { createRenderings } from "../../src/template/renderings.ts";
import { renderTemplate } from "../../src/template/render.ts";
import { awkward, typedArguments, typedTool } from "../dialect/arbitrary.ts";
import { reading } from "../dialect/reading.ts";
import { fixtures, shared } from "./fixtures.ts";

/** In the place of a test that has nothing to say of a template. */
const unsaid = (_title: string, _run: () => void): void => undefined;

interface Expected {
  readonly dialect: string | null;
  readonly how: string;
  readonly opensThoughts: readonly [boolean, boolean, boolean];
  readonly parallel: boolean;
  readonly arguments: string | null;
}

const expected = JSON.parse(readFileSync(new URL("./expected.json", import.meta.url), "utf8")) as Record<
  string,
  Expected
>;
const all = [...fixtures, ...shared];
const nameOf = (dialect: string | Dialect | null) =>
  dialect === null || typeof dialect === "string" ? dialect : dialect.name;

test.each(fixtures)("$name: the dialect and the habits are found by rendering", ({ name, source }) => {
  const profile = inferFromTemplate(source);
  const { default: usual, on, off } = profile.opensThoughts;
  expect({
    dialect: nameOf(profile.dialect),
    how: profile.how,
    opensThoughts: [usual, on, off],
    parallel: profile.parallel,
    arguments: profile.arguments,
  }).toEqual(expected[name]);
});

describe.each(all)("$name", ({ name, source }) => {
  const renderings = createRenderings(source, {}, {});
  const sets = shownSets(renderings);
  const profile = inferFromTemplate(source);

  // Nothing is said of a template that shows no calls.
  (sets.length === 0 ? unsaid : test)("what it renders is read, however it is cut", () => {
    const { dialect } = profile;
    expect(dialect).not.toBeNull();
    for (const { set, turn } of sets) {
      const whole = decodeText(turn.cut, { dialect: dialect!, tools: probeTools, startsIn: "unknown" }).items;
      for (const size of [1, 3, 7]) {
        const decoder = createTextDecoder({ dialect: dialect!, tools: probeTools, startsIn: "unknown" });
        const items: unknown[] = [];
        const pieces = turn.cut.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
        for (const event of [...pieces.flatMap((piece) => decoder.push(piece)), ...decoder.end()])
          if (event.type === "item.done") items[event.index] = event.item;
        expect(items, `${set.name} by ${size}`).toEqual(whole);
      }
    }
  });

  (sets.length === 0 ? unsaid : test)("a dialect derived from it, knowing no model, reads it", () => {
    const derived = deriveDialect(sets, renderings);
    if (underivable.has(name)) return expect(derived?.read ?? 0).toBeLessThan(sets.length);
    expect(derived?.read).toBe(sets.length);
    const repairs = sets.reduce((sum, shown) => sum + (readSet(derived!.dialect, shown)?.repairs ?? 0), 0);
    expect(repairs > 0, repaired.get(name)).toBe(repaired.has(name));
  });

  (sets.length === 0 || underivable.has(name) ? unsaid : test)(
    "the derived dialect keeps the laws of all others",
    () => {
      const { dialect } = deriveDialect(sets, renderings)!;
      const write = (args: object) =>
        encodeCalls(dialect, [{ name: "f", arguments: JSON.stringify(args) }], [typedTool]);
      fc.assert(
        fc.property(typedArguments, awkward, (args, words) => {
          const text = write(args);
          const [call, ...rest] = reading(text, { dialect, tools: [typedTool] }).items;
          expect(rest).toEqual([]);
          expect(call, text).toMatchObject({ type: "call", name: "f", complete: true });
          if (call?.type === "call")
            expect(stableStringify(JSON.parse(call.arguments))).toBe(stableStringify(JSON.parse(JSON.stringify(args))));
          expect(reading(text.split(""), { dialect, tools: [typedTool] }).items).toEqual([call]);
          // Without a marker there is nothing to break.
          if (dialect.blocks.every(({ open }) => open.length === 0)) return;
          const safe = neutralize(`${words} ${text}`, dialect, [typedTool]);
          expect(reading(`see: ${safe}`, { dialect, tools: [typedTool] }).calls).toEqual([]);
        }),
        { numRuns: Number(process.env["DIALECT_RUNS"] ?? 6) },
      );
    },
  );

  test("no marker of its turns survives in text from outside", () => {
    const dialect = profile.dialect ?? "hermes";
    for (const marker of profile.markers) {
      const safe = neutralize(`before ${marker} after`, dialect, [], profile.markers);
      expect(safe).not.toContain(marker);
    }
    // A result that ends its turn and speaks as the user makes no turn more.
    const header = profile.markers.join("user\n");
    const count = (content: string) =>
      countMarkers(
        renderTemplate(source, {
          messages: [{ role: "user", content }],
          add_generation_prompt: true,
          bos_token: "",
          functions: "[]",
          datetime: "",
          eos_token: "",
        }),
        profile.markers,
      );
    const plain = count("words");
    expect(count(neutralize(`words ${profile.end ?? ""}${header} words`, dialect, [], profile.markers))).toBe(plain);
  });

  (!profile.opensThoughts.default || typeof profile.dialect !== "string" ? unsaid : test)(
    "a call drafted before the thoughts' end does not run, one after it does",
    () => {
      const dialect = profile.dialect!;
      const call = encodeCalls(dialect, [{ name: "probe_alpha", arguments: '{"qzpath": "x"}' }], [probeTools[0]!]);
      const close = profile.reasoning?.close ?? "</think>";
      for (const startsIn of ["text", "reasoning", "unknown"] as const) {
        const runs = (text: string) =>
          decodeText(text, { dialect, tools: probeTools, startsIn }).items.filter(
            (item) => item.type === "call" && item.complete,
          ).length;
        expect(runs(`Maybe ${call} no.\n${close}\n\nDone.`), startsIn).toBe(0);
        expect(runs(`Yes.\n${close}\n\n${call}`), startsIn).toBe(1);
      }
    },
  );
});

/** Channels. The list may only shrink. */
const underivable: ReadonlySet<string> = new Set(["meetkai-functionary-medium-v3.2"]);
/** What the template itself writes is no dialect's: read with a repair. The list may only shrink. */
const repaired: ReadonlyMap<string, string> = new Map([
  ["deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "a section that is never closed for one call"],
]);

function countMarkers(text: string, markers: readonly string[]): number {
  return markers.reduce((sum, marker) => sum + text.split(marker).length - 1, 0);
}

test("a derived dialect keeps what it reads to the last character", () => {
  const { dialect } = inferFromTemplate(fixtures.find(({ name }) => name === "id-first")!.source);
  const args = { qzpath: ' "quoted" <|endcall|> \n', qzcount: 3 };
  const text = encodeCalls(
    dialect!,
    [{ name: "probe_alpha", id: "c1", arguments: JSON.stringify(args) }],
    [probeTools[0]!],
  );
  const [item] = decodeText(text, { dialect: dialect!, tools: probeTools }).items;
  expect(item).toMatchObject({ type: "call", name: "probe_alpha", id: "c1", complete: true });
  if (item?.type === "call") expect(stableStringify(JSON.parse(item.arguments))).toBe(stableStringify(args));
});
