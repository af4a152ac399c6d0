/** `callgate schema` as a program uses it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { checkSchema } from "../../src/schema/normalize/check-schema.ts";
import { schemaTargets } from "../../src/schema/normalize.ts";
import { ensureBuilt, lines, run, tempFolder } from "./run.ts";
import { recordedSchemas } from "../schema/corpus.ts";

beforeAll(ensureBuilt, 60_000);

test("one schema from stdin or a file, with the list of changes", async () => {
  const schema = JSON.stringify({ type: "object", properties: { n: { type: "integer" } } });
  const expected = {
    schema: { type: "object", properties: { n: { type: "number" } } },
    changes: [{ path: "/properties/n/type", what: "integer became number" }],
  };
  const piped = await run(["schema", "--target", "basic"], { input: schema });
  expect(JSON.parse(piped.stdout)).toEqual(expected);
  const file = join(tempFolder("schema"), "s.json");
  writeFileSync(file, schema);
  expect(JSON.parse((await run(["schema", "--target", "basic", file])).stdout)).toEqual(expected);
});

test("every recorded schema, for every target, in one process and in order", async () => {
  const schemas = recordedSchemas.map(({ inputSchema }) => inputSchema);
  const input = schemas
    .flatMap((schema, index) =>
      schemaTargets.map((target) => JSON.stringify({ id: `${index} ${target}`, target, schema })),
    )
    .join("\n");
  const { code, stdout } = await run(["schema", "--batch"], { input });
  expect(code).toBe(0);
  const answers = lines(stdout);
  expect(answers).toHaveLength(schemas.length * schemaTargets.length);
  for (const [index, answer] of answers.entries()) {
    const target = schemaTargets[index % schemaTargets.length]!;
    expect(answer["id"]).toBe(`${Math.floor(index / schemaTargets.length)} ${target}`);
    expect(checkSchema(answer["schema"], target)).toEqual([]);
  }
});

test("bad lines get an error line, bad usage one clear line and exit code 2", async () => {
  const batch = await run(["schema", "--batch"], {
    input: 'nonsense\n{"id":1,"target":"opnai","schema":{}}\n{"id":2}\n{"id":3,"target":"openai","schema":7}\n',
  });
  const answers = lines(batch.stdout);
  expect(answers[0]).toHaveProperty("error");
  expect(answers[1]).toMatchObject({ id: 1, error: expect.stringContaining("did you mean 'openai'?") });
  expect(answers[2]).toMatchObject({ id: 2, error: "the line has no 'schema'" });
  expect(answers[3]).toMatchObject({ id: 3, schema: { type: "object", properties: {} } });
  const wrong = await run(["schema", "--target", "nope"], { input: "{}" });
  expect(wrong).toMatchObject({ code: 2, stdout: "" });
  const broken = await run(["schema"], { input: "{" });
  expect(broken.code).toBe(2);
  expect(broken.stderr).toMatch(/^callgate: stdin is not JSON: /);
});

test("ten megabytes and ten thousand levels come back as a schema", async () => {
  const deep = `${'{"properties":{"a":'.repeat(10_000)}{}${"}}".repeat(10_000)}`;
  const wide = JSON.stringify({
    properties: Object.fromEntries(
      Array.from({ length: 30_000 }, (_, index) => [`p${index}`, { description: "x".repeat(300) }]),
    ),
  });
  for (const input of [deep, wide]) {
    const { code, stdout } = await run(["schema", "--target", "openai"], { input });
    expect(code).toBe(0);
    expect(checkSchema((JSON.parse(stdout) as { schema: unknown }).schema, "openai")).toEqual([]);
  }
});
