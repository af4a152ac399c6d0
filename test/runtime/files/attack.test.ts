import { expect, test } from "vitest";
import { runAttack } from "./attacker.ts";

/** A few hundred each time; `CALLGATE_ATTACK_WRITES=20000` for the long run. */
const writes = Number(process.env["CALLGATE_ATTACK_WRITES"] ?? 400);

test("nothing is written or read outside while another process swaps folders and links", async () => {
  const result = await runAttack(writes);
  expect(result.outside).toBe(0);
  expect(result.leaked).toBe(0);
  // The attacker must have been in the way, and must not have stopped everything.
  expect(result.succeeded).toBeGreaterThan(0);
  expect(result.refused).toBeGreaterThan(0);
}, 300_000);
