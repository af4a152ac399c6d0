import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { visible } from "../../src/cli/chat/visible.ts";
import { createTerminalApprover, describeRequest, readChoice } from "../../src/cli/policy/approve.ts";
import { createCallbackApprover, createJsonLinesApprover } from "../../src/gate/index.ts";
import { toVisible, toVisibleCommand } from "../../src/gate/show.ts";
import type { Access } from "../../src/spec/access.ts";
import type { ApprovalRequest } from "../../src/spec/stages.ts";
import { prepare, rowsOf, toText, type Text } from "../attacks/rows.ts";
import { has } from "../needs.ts";
import { cli, ensureBuilt } from "./run.ts";

const signal = new AbortController().signal;

function request(access: Access, more: Partial<ApprovalRequest> = {}): ApprovalRequest {
  return {
    call: { id: "1", tool: "shell", input: { command: "x" } },
    reason: "it is not known",
    access,
    grant: { policy: "workspace-write", confined: true, write: ["/w"], protect: [], mask: [], network: "off" },
    commands: [],
    hash: "abc",
    ...more,
  };
}

function terminal() {
  const input = new PassThrough();
  const output = new PassThrough();
  let shown = "";
  output.on("data", (chunk: Buffer) => (shown += chunk.toString("utf8")));
  return {
    approver: createTerminalApprover({ input, output }),
    type: (line: string) => input.write(`${line}\n`),
    end: () => input.end(),
    shown: () => shown,
  };
}

const attacks = rowsOf("terminal").map(([id, { input }]) => [id, toText((input as { text: Text }).text)] as const);

// oxlint-disable-next-line no-control-regex -- what must not come through
const active = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/;

describe("nothing in a request acts on the terminal", () => {
  test.each(attacks)("%s", (_id, text) => {
    expect(visible(text)).not.toMatch(
      new RegExp(active.source.replace(String.raw`\u0000-\u0009`, String.raw`\u0000-\u0008`)),
    );
    for (const access of [
      { commands: [{ shell: text, cwd: text }] },
      { commands: [{ argv: [text, text] }] },
      { write: [text], read: [text], network: [text] },
      { escalation: { justification: text } },
    ]) {
      const shown = describeRequest(
        request(access, {
          reason: text,
          diff: text,
          commands: [[text], [text, text]],
          call: { id: "1", tool: text, input: { text } },
        }),
      );
      expect(shown).not.toMatch(active);
    }
  });

  test("a name of letters that only look like ASCII is told", () => {
    expect(toVisibleCommand(["сat", "README.md"])).toContain("U+0441");
  });
  test("a shell line with look-alike letters says so", () => {
    expect(describeRequest(request({ commands: [{ shell: "сat README.md" }] }))).toContain(
      "not ASCII, though it may look so: с U+0441",
    );
    expect(describeRequest(request({ commands: [{ shell: "echo 'größe 日本'" }] }))).not.toContain("not ASCII");
  });
  test("runs of tabs, blanks and line breaks cannot push anything out of sight", () => {
    expect(toVisible(`ls${"\t".repeat(500)}; rm x`)).toBe("ls ⟨500 tabs⟩ ; rm x");
    expect(toVisible(`ls${" ".repeat(500)}; rm x`)).toBe("ls ⟨500 blanks⟩ ; rm x");
    expect(toVisible(`ls${"\n".repeat(500)}rm x`)).toBe("ls\n⟨500 line breaks⟩\nrm x");
  });
  test("bidi and tag characters are written out", () => {
    expect(toVisible("a\u202eb\u{e0041}c")).toBe("a\\u{202e}b\\u{e0041}c");
  });
  test("shown text is marked line by line, so it cannot imitate the question", () => {
    const shown = describeRequest(request({ commands: [{ shell: "done\n\nAllow this command? (y/n) y" }] }));
    expect(shown.split("\n").filter((line) => line.includes("Allow this"))).toEqual([
      "  │ Allow this command? (y/n) y",
    ]);
  });
});

describe("the terminal approver", () => {
  const always = { rule: 'command = ["npm", "test"]', alsoAllows: "more", file: "/rules.toml" };
  test.each([
    ["y", { answer: "once" }],
    ["yes", { answer: "once" }],
    ["s", { answer: "session" }],
    ["a", { answer: "always" }],
    ["n", { answer: "no" }],
    ["n use pnpm please", { answer: "no", message: "use pnpm please" }],
    ["q", { answer: "stop" }],
  ])("%j means %j", async (typed, answer) => {
    const { approver, type } = terminal();
    const asked = approver.ask(request({ commands: [{ shell: "npm test" }] }, { always }), signal);
    type(typed);
    expect(await asked).toEqual(answer);
  });

  test("an empty line or another word is no answer: it asks again", async () => {
    const { approver, type, shown } = terminal();
    const asked = approver.ask(request({ commands: [{ shell: "npm test" }] }), signal);
    for (const line of ["", "maybe", "a", "y"]) {
      type(line);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(await asked).toEqual({ answer: "once" });
    expect(shown().match(/one of the letters/g)).toHaveLength(3);
  });

  test("always is offered with the rule, what else it allows, and the file", async () => {
    const { approver, type, shown } = terminal();
    const asked = approver.ask(request({ commands: [{ shell: "npm test" }] }, { always }), signal);
    type("y");
    await asked;
    for (const text of Object.values(always)) expect(shown()).toContain(text);
    expect(readChoice("a", request({}))).toBeUndefined();
  });

  test("a long command is shown whole before anybody can say yes", async () => {
    const { approver, type, shown } = terminal();
    const asked = approver.ask(
      request({ commands: [{ shell: Array.from({ length: 100 }, (_, n) => `echo line-${n}`).join("\n") }] }),
      signal,
    );
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(shown()).not.toContain("  y  once");
    for (let n = 0; n < 10; n++) {
      type("");
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(shown()).toContain("line-99");
    type("y");
    expect(await asked).toEqual({ answer: "once" });
  });

  test("the end of the input is nobody there", async () => {
    const { approver, end } = terminal();
    const asked = approver.ask(request({}), signal);
    end();
    expect(await asked).toBeUndefined();
  });

  test("a stopped turn ends the question", async () => {
    const { approver } = terminal();
    const stop = new AbortController();
    const asked = approver.ask(request({}), stop.signal);
    setTimeout(() => stop.abort(), 10);
    expect(await asked).toBeUndefined();
  });

  test("without a terminal nobody can answer, at once", async () => {
    expect(await createTerminalApprover().ask(request({}), signal)).toBeUndefined();
  });
});

describe("approvers for programs", () => {
  test("a function answers", async () => {
    expect(await createCallbackApprover(() => ({ answer: "no", message: "x" })).ask(request({}), signal)).toEqual({
      answer: "no",
      message: "x",
    });
  });

  test("JSON lines: an answer counts only for the hash it names", async () => {
    const input = new PassThrough();
    const output = new PassThrough();
    const approver = createJsonLinesApprover(input, output);
    const first = approver.ask(request({}, { hash: "one" }), signal);
    const second = approver.ask(request({}, { hash: "two" }), signal);
    expect(JSON.parse(String(output.read()).split("\n")[0]!)).toMatchObject({ type: "approval.asked", hash: "one" });
    input.write(
      'nonsense\n{"hash":"other","answer":"always"}\n{"hash":"two","answer":"yes!"}\n{"hash":"two","answer":"session"}\n{"hash":"one","answer":"no","message":"m"}\n',
    );
    expect(await second).toEqual({ answer: "session" });
    expect(await first).toEqual({ answer: "no", message: "m" });
  });

  test("JSON lines: the end of the input ends every question", async () => {
    const input = new PassThrough();
    const approver = createJsonLinesApprover(input, new PassThrough());
    const asked = approver.ask(request({}), signal);
    input.end();
    expect(await asked).toBeUndefined();
    expect(await approver.ask(request({}), signal)).toBeUndefined();
  });
});

describe.skipIf(!has("script"))("at a real terminal (needs script)", () => {
  test("an answer typed before the question is shown approves nothing", async () => {
    ensureBuilt();
    const { ws, env } = prepare({});
    const line = `${process.execPath} ${cli} call shell_command '{"command":"touch typed-ahead"}' --approval unless-trusted`;
    const child = spawn("script", ["-qec", line, "/dev/null"], { cwd: ws, env: { ...process.env, ...env } });
    let shown = "";
    child.stdout.on("data", (data: Buffer) => {
      shown += data.toString();
      // Only now the input ends: the question was there, and nobody has answered it.
      if (shown.includes("is not an answer")) child.stdin.end();
    });
    child.stdin.write("y\n");
    await new Promise((resolve) => child.once("close", resolve));
    expect(shown).toContain("Approval needed");
    expect(existsSync(join(ws, "typed-ahead"))).toBe(false);
  });
});
