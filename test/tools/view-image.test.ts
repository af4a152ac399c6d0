import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { engineIn, newWorkspace } from "./workspace.ts";

/** One pixel each. */
const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
const gif = Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64");

let ws: string;
let call: ReturnType<typeof engineIn>["call"];
beforeEach(() => {
  ws = newWorkspace();
  ({ call } = engineIn(ws));
});

test("an image is known by its bytes, whatever it is called", async () => {
  writeFileSync(join(ws, "a.txt"), png);
  writeFileSync(join(ws, "b.png"), gif);
  expect(await call("view_image", { path: "a.txt" })).toMatchObject({
    ok: true,
    content: [{ type: "image", mediaType: "image/png", data: png.toString("base64") }],
  });
  expect(await call("view_image", { path: "b.png" })).toMatchObject({
    ok: true,
    content: [{ type: "image", mediaType: "image/gif" }],
  });
});

test("what is not an image is refused and named", async () => {
  writeFileSync(join(ws, "fake.png"), "just text");
  writeFileSync(join(ws, "broken.png"), png.subarray(0, 12));
  expect(await call("view_image", { path: "fake.png" })).toMatchObject({
    ok: false,
    code: "failed",
    content: [{ text: expect.stringContaining("it is text") }],
  });
  expect(await call("view_image", { path: "broken.png" })).toMatchObject({
    ok: false,
    content: [{ text: expect.stringContaining("broken") }],
  });
  expect(await call("view_image", { path: "none.png" })).toMatchObject({ ok: false });
});

test("a large image goes out as it is where it cannot be made smaller, unless it is too large for anybody", async () => {
  const wide = Buffer.from(png);
  wide.writeUInt32BE(5_000, 16);
  writeFileSync(join(ws, "wide.png"), wide);
  expect(await call("view_image", { path: "wide.png" })).toMatchObject({ ok: true });
  writeFileSync(join(ws, "huge.png"), Buffer.concat([wide, Buffer.alloc(21 * 1024 * 1024)]));
  expect(await call("view_image", { path: "huge.png" })).toMatchObject({
    ok: false,
    content: [{ text: expect.stringContaining("too large") }],
  });
});
