/**
 * What is decided about a call that says what it touches, what it is granted, and which rule is offered to the person
 * who is asked: over every mode, with and without a sandbox, and with the rules that people write. The pages show a
 * change as the rows it changes; `-u` writes them anew once somebody has looked at them.
 */
import { afterAll, expect, test } from "vitest";
import { readFileSync } from "node:fs";
import { toGrant } from "../../src/gate/grant.ts";
import type { PolicyOptions } from "../../src/gate/options.ts";
import { decideAccess, type CallToDecide } from "../../src/gate/policy.ts";
import type { Rule } from "../../src/gate/rules.ts";
import { describeRule, suggestRule } from "../../src/gate/suggest.ts";
import type { Access, Grant } from "../../src/spec/access.ts";
import { createWorkspace } from "./workspace.ts";

const workspace = createWorkspace();
workspace.run("ln -s {OUT}/secret.txt link-out; echo k > .env; mkdir -p notes; echo n > notes/private.md");
afterAll(() => workspace.remove());

const shell = (line: string): Access => ({ commands: [{ shell: line, cwd: workspace.ws }] });
const accesses: readonly (readonly [string, Access, boolean])[] = [
  ["nothing, and changes nothing", {}, false],
  ["nothing, and changes something", {}, true],
  ["reads a file", { read: ["README.md"] }, false],
  ["reads a file, and changes something it does not name", { read: ["README.md"] }, true],
  ["reads a file of secrets", { read: [".env"] }, false],
  ["reads a file outside", { read: [`${workspace.out}/secret.txt`] }, false],
  ["reads a link that leads outside", { read: ["link-out"] }, false],
  ["reads a masked file", { read: [`${workspace.home}/.ssh/id_rsa`] }, false],
  ["reads two files", { read: ["README.md", "src/a.txt"] }, false],
  ["writes a file", { write: ["new.txt"] }, true],
  ["writes below a folder that is not there", { write: ["deep/er/new.txt"] }, true],
  ["writes two files", { write: ["new.txt", "src/b.txt"] }, true],
  ["writes a file outside", { write: [`${workspace.out}/x`] }, true],
  ["writes through a link that leads outside", { write: ["link-out"] }, true],
  ["writes what is protected", { write: [".git/config"] }, true],
  ["writes what runs later", { write: [".vscode/tasks.json"] }, true],
  ["writes what is masked", { write: [`${workspace.home}/.ssh/id_rsa`] }, true],
  ["reads one file and writes another", { read: ["README.md"], write: ["new.txt"] }, true],
  ["contacts a host", { network: ["a.test"] }, true],
  ["contacts a host at a port", { network: ["b.a.test:8080"] }, true],
  ["contacts two hosts", { network: ["a.test", "b.a.test"] }, true],
  ["uses a server, which says it only looks", { servers: [{ server: "files", name: "look" }] }, false],
  ["uses a server", { servers: [{ server: "files", name: "change" }] }, true],
  [
    "uses two servers",
    {
      servers: [
        { server: "files", name: "a" },
        { server: "mail", name: "b" },
      ],
    },
    true,
  ],
  ["a harmless command", shell("cat README.md"), true],
  ["a command", shell("npm test"), true],
  ["two commands", { commands: [{ shell: "npm test" }, { shell: "make" }] }, true],
  ["a dangerous command", shell("rm -rf src"), true],
  ["a command nobody can understand", shell('eval "$X"'), true],
  ["a command that writes a file", shell("echo a > new.txt"), true],
  ["a command that writes outside", shell(`echo a > ${workspace.out}/x`), true],
  ["a command that writes what runs later", shell("echo a > .git/hooks/post-commit"), true],
  ["a command that says what it writes outside", { ...shell("make"), write: [`${workspace.out}/x`] }, true],
  ["a command that says it writes what is protected", { ...shell("make"), write: [".git/config"] }, true],
  ["a command that contacts a host", { ...shell("make"), network: ["a.test"] }, true],
  ["a command outside the sandbox", { ...shell("npm test"), escalation: {} }, true],
  ["PowerShell", { commands: [{ shell: "Remove-Item x", dialect: "powershell" }] }, true],
  ["a line typed into a shell", { commands: [{ shell: "npm test\n", typed: ["bash"], cwd: workspace.ws }] }, true],
  ["a line typed into a program", { commands: [{ shell: "1+1\n", typed: ["python3", "-q"] }] }, true],
];

const ruleSets: Readonly<Record<string, readonly Rule[]>> = {
  "no rules": [],
  "the tool is allowed": [{ tool: "t", decision: "allow" }],
  "the tool is asked about": [{ tool: "t", decision: "ask" }],
  "the tool is denied": [{ tool: "t*", decision: "deny" }],
  "places are allowed": [
    { path: "./src/**", access: "write", decision: "allow" },
    { path: `${workspace.out}/x`, access: "write", decision: "allow" },
    { path: `${workspace.out}/secret.txt`, access: "read", decision: "allow" },
    { path: ".env", decision: "allow" },
  ],
  "places are denied": [
    { path: "README.md", access: "read", decision: "deny" },
    { path: "new.txt", access: "write", decision: "deny" },
    { path: "*.md", access: "write", decision: "deny" },
    { path: "notes/**", access: "read", decision: "deny", reason: "notes are private" },
  ],
  "places are asked about": [
    { path: "link-out", decision: "ask" },
    { path: `${workspace.out}/secret.txt`, access: "write", decision: "ask" },
    { path: "README.md", decision: "ask" },
  ],
  "hosts and servers": [
    { host: "a.test", decision: "allow" },
    { host: "*.a.test", decision: "deny" },
    { mcp: "files", decision: "allow", except: ["files/change"] },
    { mcp: "mail/*", decision: "deny" },
  ],
  commands: [
    { command: "npm test", decision: "allow" },
    { command: "cat", decision: "ask" },
    { command: "rm", decision: "deny" },
    { command: "make", decision: "allow" },
  ],
};

const approvals = ["unless-trusted", "on-request", "on-failure", "never", "auto", "disabled"] as const;
const sandboxes = ["read-only", "workspace-write", "full-access"] as const;
/** In the pages: may write nothing, the workspace, everything; a minus where nothing confines commands. */
const shortly = { "read-only": "ro", "workspace-write": "ws", "full-access": "all" } as const;
const held = { name: "test", available: true };
const unheld = { name: "none", available: false };

const policyOf = (options: Partial<PolicyOptions>) =>
  workspace.policy({ mask: [`${workspace.home}/.ssh`], protect: [".git"], ...options });
const callOf = (access: Access, mutates: boolean): CallToDecide => ({ tool: "t", access, mutates });

/** Rows that say the same are one, with all their names in front. */
function grouped(rows: readonly (readonly [string, string])[]): readonly string[] {
  const groups = new Map<string, string[]>();
  for (const [name, said] of rows) groups.set(said, [...(groups.get(said) ?? []), name]);
  return [...groups].map(([said, names]) => `  ${said}\n    ${names.join(" | ")}`);
}

test("every access in every mode", async () => {
  const page = accesses.flatMap(([name, access, mutates]) => [
    name,
    ...grouped(
      approvals.flatMap((approval) =>
        sandboxes.flatMap((sandbox) =>
          [held, unheld].map((confinement) => {
            const verdict = decideAccess(
              callOf(access, mutates),
              policyOf({ settings: { approval, sandbox }, confinement }),
            );
            const { decision, reason, risk, sandboxed } = verdict;
            const mode = `${approval} ${shortly[sandbox]}${confinement.available ? "" : "-"}`;
            return [
              mode,
              workspace.plain(`${decision}, ${risk}, ${sandboxed ? "sandboxed" : "open"}: ${reason}`),
            ] as const;
          }),
        ),
      ),
    ),
  ]);
  await expect(`${page.join("\n")}\n`).toMatchFileSnapshot("./lines/told/access-modes.txt");
});

test("every access under the rules that people write", async () => {
  const page = accesses.flatMap(([name, access, mutates]) => [
    name,
    ...grouped(
      Object.entries(ruleSets).flatMap(([rulesName, rules]) =>
        (["on-request", "auto", "never"] as const).map((approval) => {
          const settings = { approval, sandbox: "workspace-write" } as const;
          const { decision, reason, rule, commands } = decideAccess(
            callOf(access, mutates),
            policyOf({ settings, rules }),
          );
          const found = commands.length === 0 ? "" : ` [${commands.map((argv) => argv.join(" ")).join(" ¦ ")}]`;
          return [
            `${rulesName} (${approval})`,
            workspace.plain(`${decision} by ${rule ?? "the mode"}: ${reason}${found}`),
          ] as const;
        }),
      ),
    ),
  ]);
  await expect(`${page.join("\n")}\n`).toMatchFileSnapshot("./lines/told/access-rules.txt");
});

function grantLine(grant: Grant): string {
  const { policy, confined, write, protect, mask, network, denied } = grant;
  const parts = [
    `${policy}, ${confined ? "confined" : "open"}`,
    `writes ${write.join(" ") || "nothing"}`,
    `keeps ${protect.join(" ") || "nothing"}`,
    `hides ${mask.join(" ") || "nothing"}`,
    `network ${typeof network === "string" ? network : network.join(" ")}`,
    ...(denied === undefined ? [] : [`never starts ${denied.map(({ rule }) => rule).join(", ")}`]),
  ];
  return workspace.plain(parts.join("; "));
}

test("what a call is granted, agreed to or not", async () => {
  const page = accesses.flatMap(([name, access]) => [
    name,
    ...grouped(
      Object.entries({
        "no rules": ruleSets["no rules"],
        "places are allowed": ruleSets["places are allowed"],
        "places are denied": ruleSets["places are denied"],
        commands: ruleSets["commands"],
      }).flatMap(([rulesName, rules = []]) =>
        sandboxes.flatMap((sandbox) =>
          [true, false].map((agreed) => {
            const settings = { approval: "on-request", sandbox } as const;
            const policy = policyOf({ settings, rules, network: ["always.test"] });
            return [
              `${rulesName} ${shortly[sandbox]}${agreed ? " agreed" : ""}`,
              grantLine(toGrant(access, policy, agreed)),
            ] as const;
          }),
        ),
      ),
    ),
  ]);
  await expect(`${page.join("\n")}\n`).toMatchFileSnapshot("./lines/told/grants.txt");
});

test("which rule is offered for a line, and what else it would allow", async () => {
  const lines = ["ordinary", "covered", "escapes", "denied"].flatMap((name) =>
    readFileSync(new URL(`./lines/${name}.txt`, import.meta.url), "utf8").split("\n"),
  );
  const policy = policyOf({});
  const rows = [...new Set(lines.map((line) => line.split("\t").at(-1) ?? ""))]
    .filter((line) => line !== "" && !/[/~]/.test(line.replace(/^\.\//, "")))
    .map((line) => {
      const offered = suggestRule(callOf(shell(workspace.fill(line.replaceAll("⏎", "\n"))), true), policy);
      const said = offered === undefined ? "none" : `${describeRule(offered.rule)}; ${offered.alsoAllows}`;
      return [line, workspace.plain(said)] as const;
    });
  const others = accesses.map(([name, access, mutates]) => {
    const offered = suggestRule(callOf(access, mutates), policy);
    return [
      `(${name})`,
      workspace.plain(offered === undefined ? "none" : `${describeRule(offered.rule)}; ${offered.alsoAllows}`),
    ] as const;
  });
  const groups = new Map<string, string[]>();
  for (const [line, said] of [...others, ...rows]) groups.set(said, [...(groups.get(said) ?? []), `  ${line}`]);
  const page = [...groups].flatMap(([said, members]) => [said, ...members]);
  await expect(`${page.join("\n")}\n`).toMatchFileSnapshot("./lines/told/offered.txt");
});

test("that a command is held by the sandbox is said where something holds it, and only there", () => {
  for (const command of [
    { shell: "npm test", cwd: workspace.ws },
    { shell: "npm test\n", cwd: workspace.ws, typed: ["bash"] },
  ])
    for (const sandbox of sandboxes)
      for (const confinement of [held, unheld]) {
        const { sandboxed } = workspace.decide(command, { settings: { approval: "on-request", sandbox }, confinement });
        expect(sandboxed).toBe(confinement.available && sandbox !== "full-access");
      }
});
