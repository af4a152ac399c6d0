/** What must hold for every call, not for the ones we thought of. */
import * as fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { isWithin, toBaseGrant, toGrant, widenGrant } from "../../src/gate/grant.ts";
import { isStricter } from "../../src/gate/modes.ts";
import { decideAccess } from "../../src/gate/policy.ts";
import { compileRules, type Rule } from "../../src/gate/rules.ts";
import type { Access } from "../../src/spec/access.ts";
import { createWorkspace } from "./workspace.ts";

const workspace = createWorkspace();
afterAll(() => workspace.remove());

const programs = ["ls", "cat", "git", "rm", "npm", "curl", "make", "echo", "find"] as const;
const argument = fc.constantFrom(
  "-la",
  "README.md",
  "src",
  "status",
  "push",
  "test",
  "../out/secret.txt",
  "/etc/passwd",
  "-rf",
  "x",
  "--force",
  "$X",
  "'a b'",
);
const simple = fc
  .tuple(fc.constantFrom(...programs), fc.array(argument, { maxLength: 3 }))
  .map(([program, args]) => [program, ...args].join(" "));
const line = fc
  .array(simple, { minLength: 1, maxLength: 4 })
  .chain((parts) => fc.constantFrom(" && ", "; ", " | ", " || ", "\n", " & ").map((joint) => parts.join(joint)));

const decision = fc.constantFrom("allow", "ask", "deny");
const rule: fc.Arbitrary<Rule> = fc.oneof(
  fc.record({
    command: fc.oneof(fc.constantFrom(...programs), fc.constantFrom("git push", "git status", "rm -rf", "npm test")),
    decision,
  }),
  fc.record({
    path: fc.constantFrom("src", "README.md", "./src/**", "../out", "*.md"),
    access: fc.constantFrom("read", "write"),
    decision,
  }),
  fc.record({ tool: fc.constantFrom("shell", "*", "read_file"), decision }),
  fc.record({ host: fc.constantFrom("a.org", "*.a.org"), decision }),
);
const rules = fc.array(rule, { maxLength: 6 });

const access: fc.Arbitrary<Access> = fc.record(
  {
    commands: fc.array(
      line.map((shell) => ({ shell, cwd: workspace.ws })),
      { maxLength: 2 },
    ),
    read: fc.array(fc.constantFrom("README.md", "src/a.txt", "../out/secret.txt", "/etc/passwd"), { maxLength: 2 }),
    write: fc.array(fc.constantFrom("new.txt", ".git/config", "../out/x", "src/deep/er/x"), { maxLength: 2 }),
    network: fc.array(fc.constantFrom("a.org", "b.a.org:80", "evil.invalid"), { maxLength: 2 }),
    escalation: fc.constant({}),
  },
  { requiredKeys: [] },
);
const settings = fc.record({
  approval: fc.constantFrom("never", "on-request", "on-failure", "unless-trusted", "disabled"),
  sandbox: fc.constantFrom("read-only", "workspace-write", "full-access"),
});

// Masks are looked up on disk for every policy; these laws are not about them.
const base = (options: Parameters<typeof workspace.policy>[0]) => workspace.policy({ mask: [], ...options });

test("adding a deny or ask rule never allows more", () => {
  fc.assert(
    fc.property(access, settings, rules, rule, (touched, chosen, given, extra) => {
      fc.pre(extra.decision !== "allow");
      const policy = base({ settings: chosen, rules: given });
      const call = { tool: "shell", access: touched, mutates: true };
      const before = decideAccess(call, policy).decision;
      const after = decideAccess(call, { ...policy, rules: compileRules([...given, extra]) }).decision;
      expect(isStricter(before, after), `${before} became ${after}`).toBe(false);
    }),
    { numRuns: 250 },
  );
});

test("the order of rules does not matter", () => {
  fc.assert(
    fc.property(access, settings, rules, (touched, chosen, given) => {
      const policy = base({ settings: chosen, rules: given });
      const call = { tool: "shell", access: touched, mutates: true };
      const turned = { ...policy, rules: compileRules(given.toReversed()) };
      expect(decideAccess(call, turned).decision).toBe(decideAccess(call, policy).decision);
    }),
    { numRuns: 200 },
  );
});

test("a denied command stays denied, wrapped in anything any number of times", () => {
  const wrap = fc.constantFrom(
    (text: string) => `env ${text}`,
    (text: string) => `sudo -n ${text}`,
    (text: string) => `nice -n 5 ${text}`,
    (text: string) => `timeout 5 ${text}`,
    (text: string) => `command ${text}`,
    (text: string) => `nohup ${text}`,
    (text: string) => `xargs -n1 ${text}`,
    (text: string) => `setsid ${text}`,
    (text: string) => `busybox ${text}`,
  );
  const shellWrap = fc.constantFrom(
    (text: string) => `bash -lc ${quote(text)}`,
    (text: string) => `sh -c ${quote(text)}`,
    (text: string) => `eval ${quote(text)}`,
    (text: string) => `(${text}\n)`,
    (text: string) => `true && ${text}`,
    (text: string) => `echo $(${text}\n)`,
    (text: string) => `if true; then ${text}\nfi`,
    (text: string) => `true | ${text}`,
    (text: string) => `su -c ${quote(text)}`,
  );
  fc.assert(
    fc.property(fc.array(wrap, { maxLength: 30 }), fc.array(shellWrap, { maxLength: 6 }), (around, shells) => {
      const inner = around.reduce((text, by) => by(text), "forbidden --now x");
      const text = shells.reduce((line, by) => by(line), inner);
      expect(workspace.decide(text, { rules: [{ command: "forbidden", decision: "deny" }] }).decision, text).toBe(
        "deny",
      );
    }),
    { numRuns: 200 },
  );
});

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

test("a line is never decided more freely than any of its commands", () => {
  fc.assert(
    fc.property(fc.array(simple, { minLength: 1, maxLength: 4 }), settings, rules, (parts, chosen, given) => {
      const policy = { settings: chosen, rules: given };
      const whole = workspace.decide(parts.join("; "), policy).decision;
      for (const part of parts) expect(isStricter(workspace.decide(part, policy).decision, whole), part).toBe(false);
    }),
    { numRuns: 200 },
  );
});

test("without anybody's yes a grant is within the base grant", () => {
  fc.assert(
    fc.property(access, settings, (touched, chosen) => {
      const policy = base({ settings: chosen });
      if (decideAccess({ tool: "shell", access: touched, mutates: true }, policy).decision !== "allow") return;
      expect(isWithin(toGrant(touched, policy, false), toBaseGrant(policy))).toBe(true);
    }),
    { numRuns: 250 },
  );
});

test("a yes opens only what the access names", () => {
  fc.assert(
    fc.property(access, settings, (touched, chosen) => {
      fc.pre(touched.escalation === undefined);
      const policy = base({ settings: chosen });
      const plain = toBaseGrant(policy);
      const agreed = toGrant(touched, policy, true);
      const opened = agreed.write.filter((path) => !plain.write.includes(path) && !plain.write.includes("/"));
      const named = (touched.write ?? []).map((path) => workspace.fill(path));
      expect(opened.length).toBeLessThanOrEqual(named.length);
      if (named.length === 0) expect(opened).toEqual([]);
      const hosts = typeof agreed.network === "string" ? [] : agreed.network;
      if (plain.network === "off") expect(hosts.every((host) => touched.network?.includes(host))).toBe(true);
      if (plain.confined) expect(agreed.confined).toBe(true);
    }),
    { numRuns: 200 },
  );
});

test("widening for a target opens that target and nothing else", () => {
  fc.assert(
    fc.property(
      fc.constantFrom("write", "network"),
      fc.constantFrom("/data/x", "/var/y", "a.org:443"),
      (what, target) => {
        const policy = base({});
        const grant = toBaseGrant(policy);
        const wider = widenGrant(grant, { what, target, reason: "r" });
        if (what === "network") expect(wider).toEqual({ ...grant, network: [target] });
        else if (target.startsWith("/")) expect(wider).toEqual({ ...grant, write: [...grant.write, target] });
        // What names no path can only be opened as a whole; what is hidden stays hidden.
        else expect(wider).toMatchObject({ policy: "full-access", confined: false, mask: grant.mask });
      },
    ),
  );
});

test("any text at all is decided without a crash", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ maxLength: 200 }),
        fc.string({
          unit: fc.constantFrom(
            "$",
            "(",
            ")",
            "{",
            "}",
            "`",
            "'",
            '"',
            "\\",
            "|",
            "&",
            ";",
            "<",
            ">",
            "\n",
            " ",
            "a",
            "rm",
            "=",
            "[",
            "]",
            "!",
            "#",
            "*",
            "?",
            "~",
          ),
          maxLength: 60,
        }),
      ),
      (text) => {
        const { decision } = workspace.decide(text);
        expect(["allow", "ask", "deny"]).toContain(decision);
      },
    ),
    { numRuns: 500 },
  );
});
