/** Where the held runs of a workspace lie: on its own disk, closed to others, and nowhere a command can reach. */
import { existsSync, mkdirSync, mkdtempSync, realpathSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { existingPlaces, findPlace } from "../../../src/runtime/effects/place.ts";

// Asked of the system, not of the code that is tested: what looked for a place in vain would only be skipped.
const overlayType = 0x794c7630;
const isFit = process.platform === "linux" && statfsSync(tmpdir()).type !== overlayType;
const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
function newPlaces() {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "callgate-place-")));
  const [workspace, stateDir] = [join(root, "ws"), join(root, "state")];
  mkdirSync(workspace);
  return { root, workspace, options: { stateDir, uid, gid } };
}

test("nothing is held where no folder, or the whole disk, may be written", () => {
  const { options } = newPlaces();
  for (const roots of [[], ["/"]])
    expect(findPlace(roots, options)).toEqual({ reason: "no folder was granted for writing" });
});

test("a file alone, and what lies in /dev, cannot be held, and it is said which", () => {
  const { workspace, options } = newPlaces();
  const file = join(workspace, "a");
  writeFileSync(file, "");
  expect(findPlace([workspace, file], options)).toEqual({
    reason: `${file} is one file, and only folders can be held`,
  });
  expect(findPlace(["/dev"], options)).toMatchObject({ reason: expect.stringContaining("/dev") });
});

test("what belongs to somebody else cannot be held", () => {
  const { workspace, options } = newPlaces();
  expect(findPlace([workspace], { ...options, uid: uid + 1 })).toEqual({
    reason: `${workspace} belongs to another user or group`,
  });
  expect(findPlace([workspace], { ...options, gid: gid + 1 })).toMatchObject({
    reason: expect.stringContaining("group"),
  });
});

test.runIf(isFit)("runs lie in our state folder, which is made for its owner alone", () => {
  const { workspace, options } = newPlaces();
  expect(existingPlaces(workspace, options)).toEqual([]);
  const place = findPlace([workspace], options);
  if (!("folder" in place)) throw new Error(place.reason);
  expect(dirname(place.folder)).toBe(join(options.stateDir, "held"));
  for (const folder of [place.folder, dirname(place.folder), options.stateDir])
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(existingPlaces(workspace, options)).toEqual([place.folder]);
  expect(findPlace([workspace], options)).toEqual(place);
  const other = join(dirname(workspace), "other");
  mkdirSync(other);
  expect(findPlace([other], options)).not.toEqual(place);
});

test.runIf(isFit)("where the state folder cannot be used, they lie beside the workspace", () => {
  const { root, workspace, options } = newPlaces();
  writeFileSync(options.stateDir, "a file in its place");
  const place = findPlace([workspace], options);
  if (!("folder" in place)) throw new Error(place.reason);
  expect(dirname(place.folder)).toBe(join(root, `.callgate-held-${uid}`));
  expect(existsSync(join(workspace, ".callgate"))).toBe(false);
});
