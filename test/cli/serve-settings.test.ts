/** A client of the service may ask for less than the service's own settings give, never for more. */
import { expect, test } from "vitest";
import { approvalNames, byMode, isStricter, toSettings, type ApprovalName } from "../../src/gate/modes.ts";
import type { Config } from "../../src/cli/config/config.ts";
import { narrowLimits } from "../../src/cli/serve/narrow.ts";
import { createSettingsCheck } from "../../src/cli/serve/open-session.ts";
import { tempFolder } from "./run.ts";

const check = (config: Config, wanted: Record<string, string>) =>
  createSettingsCheck({
    config,
    cwd: tempFolder("work"),
    env: {},
    workspaces: tempFolder("spaces"),
    operator: "main",
    isShared: false,
    baseHosts: [],
  })("tenant", wanted).then(
    () => "taken",
    (error: Error) => error.message,
  );

test.each([
  ["unless-trusted", "never"],
  ["unless-trusted", "on-request"],
  ["unless-trusted", "interactive"],
  ["never", "on-request"], // its own people could say yes to what is refused otherwise
  ["disabled", "unless-trusted"],
  ["on-request", "auto"],
] as const)("where the settings say %s, a session cannot have %s", async (approval, wanted) => {
  expect(await check({ approval }, { approval: wanted })).toContain("would let more pass");
  expect(await check({ tools: { approval_policy: approval } }, { approval: wanted })).toContain("would let more pass");
});

test.each([
  ["on-request", "never"],
  ["on-request", "unless-trusted"],
  ["auto", "disabled"],
  ["never", "never"],
] as const)("where they say %s, it can have %s", async (approval, wanted) => {
  expect(await check({ approval, sandbox: "workspace-write" }, { approval: wanted })).toBe("taken");
});

test("of all modes, none that is taken lets more pass than the service's own", async () => {
  for (const own of approvalNames)
    for (const asked of approvalNames) {
      if ((await check({ approval: own, sandbox: "workspace-write" }, { approval: asked })) !== "taken") continue;
      const decide = (approval: ApprovalName, risk: "harmless" | "other" | "dangerous" | "escalation") =>
        byMode(risk, toSettings(approval, "workspace-write"), true);
      for (const risk of ["harmless", "other", "dangerous", "escalation"] as const)
        expect(isStricter(decide(own, risk), decide(asked, risk)), `${own} ${asked} ${risk}`).toBe(false);
    }
});

test("a sandbox may be narrower, under any of its names", async () => {
  expect(await check({ sandbox: "read-only" }, { sandbox: "workspace-write" })).toContain("wider");
  expect(await check({ sandbox: "restricted" }, { sandbox: "read-only" })).toBe("taken");
  expect(await check({ sandbox: "restricted" }, { sandbox: "none" })).toContain("wider");
});

test("a limit of the settings holds, whatever the client asks for", () => {
  const config: Config = { max_cost_usd: 1, max_seconds: 60, max_requests: 10 };
  expect(narrowLimits({ maxCostUsd: 1000, maxMs: 5_000, maxTokens: 7 }, config)).toEqual({
    maxCostUsd: 1,
    maxMs: 5_000,
    maxRequests: 10,
    maxTokens: 7,
  });
  expect(narrowLimits({}, {})).toEqual({});
});
