/** The page in a real browser: a session from its first word to its end, with one question answered there. */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRequire } from "node:module";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { cli, ensureBuilt, run, tempFolder } from "../cli/run.ts";
import { has, programPath } from "../needs.ts";
import { canHold } from "../runtime/effects/held.ts";
import { openJournal, sessionPath } from "../../src/store/index.ts";
import { recordingPage } from "../../src/store/recording-page.ts";

const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

describe.skipIf(!has("Chromium"))("the page in a browser (needs Chromium)", { timeout: 90_000 }, () => {
  let browser: Browser;
  beforeAll(async () => {
    ensureBuilt();
    browser = await chromium.launch({ executablePath: programPath("chromium") ?? "chromium", args: flags });
  }, 120_000);
  afterAll(() => browser?.close());

  async function serve(workspace: string, home = tempFolder("state")): Promise<string> {
    const child = spawn(process.execPath, [cli, "serve", "--port", "0", "--json"], {
      cwd: workspace,
      env: { PATH: process.env["PATH"] ?? "", HOME: tempFolder("home"), CALLGATE_HOME: home },
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGTERM"));
    const line = await new Promise<string>((resolve) =>
      child.stdout.once("data", (text: Buffer) => resolve(String(text))),
    );
    return (JSON.parse(line.split("\n")[0] ?? "{}") as { link: string }).link;
  }

  /** Every message of the console that says that something was wrong. */
  function listen(page: Page): string[] {
    const wrong: string[] = [];
    page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
    page.on("pageerror", (error) => wrong.push(error.message));
    return wrong;
  }

  async function violations(page: Page): Promise<readonly string[]> {
    await page.evaluate(axe);
    return page.evaluate(async () => {
      const { axe: run } = window as unknown as {
        axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
      };
      return (await run.run()).violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 120)}`);
    });
  }

  test("a task is given, a question is answered in place, and the model goes on", async () => {
    const workspace = mkdtempSync(join(tmpdir(), "callgate-page-"));
    mkdirSync(join(workspace, "src"));
    mkdirSync(join(workspace, "old"));
    writeFileSync(join(workspace, "old", "notes.txt"), "nobody needs this\n");
    writeFileSync(join(workspace, "src", "add.js"), "export const add = (a, b) => a - b;\n");
    const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
    const wrong = listen(page);
    await page.goto(await serve(workspace));
    await page.getByLabel("The task").fill("replace 'a - b' with 'a + b' in src/add.js\nrun rm -rf old");
    await page.getByRole("button", { name: "Start a session" }).click();
    const yes = page.getByRole("group", { name: "approval" }).getByRole("button").first();
    await yes.waitFor({ timeout: 40_000 });
    // The question is in the list of sessions and in the inbox too.
    await page.getByRole("link", { name: "Inbox 1" }).waitFor({ timeout: 40_000 });
    if (process.env["CALLGATE_SCREENS"])
      await page.screenshot({ path: join(process.env["CALLGATE_SCREENS"], "page-approval.png") });
    expect(await violations(page)).toEqual([]);
    await yes.click();
    await expect.poll(() => page.locator(".head .state").textContent(), { timeout: 40_000 }).toBe("idle");
    expect(readFileSync(join(workspace, "src", "add.js"), "utf8")).toContain("a + b");
    expect(existsSync(join(workspace, "old"))).toBe(false);
    await page.getByText("Done.").first().waitFor();
    if (canHold) {
      // It fails because it is held; the question says why, and offers to run it directly.
      mkdirSync(join(workspace, "old"));
      await page.getByLabel("Message").fill("run rm -rf gone; perl -e 'rename(q(old), q(new)) or die $!'");
      await page.getByRole("button", { name: "Send" }).click();
      const direct = page.getByRole("group", { name: "approval" }).getByRole("button", { name: "directly" });
      await direct.waitFor({ timeout: 40_000 });
      expect(await direct.getAttribute("title")).toContain("renaming a folder that was there does not work while held");
      await direct.click();
      await expect.poll(() => existsSync(join(workspace, "new")), { timeout: 40_000 }).toBe(true);
    }
    if (process.env["CALLGATE_SCREENS"])
      await page.screenshot({ path: join(process.env["CALLGATE_SCREENS"], "page-session.png") });
    // What was used is told as it grows, not as it was when the page was opened.
    expect(await page.locator(".facts").textContent()).toMatch(/[1-9][\d.k]* tokens in, [1-9]\d* out/);
    await page.setViewportSize({ width: 390, height: 800 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    // On a phone one sees the list or what was chosen from it, and finds the way back.
    await page.getByRole("link", { name: "all sessions" }).click();
    await page.getByRole("link", { name: "New session" }).click();
    await page.getByLabel("The task").waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    expect(await violations(page)).toEqual([]);
    await page.getByRole("link", { name: "all sessions" }).click();
    // The service looks through all sessions, and says so where it finds none.
    await page.getByLabel("Search sessions").fill("no session is called like this");
    await page.getByText("No session was found.").waitFor();
    await page.getByLabel("Search sessions").fill("replace 'a");
    await page.getByRole("link", { name: /replace 'a/ }).waitFor();
    expect(await violations(page)).toEqual([]);
    expect(wrong).toEqual([]);
    await page.close();
  });

  test("a browser that comes without a link is told how to come in, also on a phone, and comes in by a token", async () => {
    const workspace = tempFolder("workspace");
    const home = tempFolder("state");
    const { origin } = new URL(await serve(workspace, home));
    const { stdout: token } = await run(["serve", "token", "add", "anna", "--roles", "watch,talk"], {
      env: { CALLGATE_HOME: home },
    });
    const page = await browser.newPage({ viewport: { width: 390, height: 800 } });
    await page.goto(`${origin}/?link=used`);
    await page.getByLabel("Token").fill("cgs_wrong");
    await page.getByRole("button", { name: "Enter" }).click();
    await page.getByText("does not know this token").waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByLabel("Token").fill(/cgs_\S+/.exec(token)?.[0] ?? "");
    await page.getByRole("button", { name: "Enter" }).click();
    await page.getByRole("link", { name: "New session" }).click();
    await page.getByLabel("The task").waitFor();
    await page.close();
  });

  test("hostile words in every field run nothing and hide nothing", async () => {
    const evil = `<img src=x onerror="window.evil=1"><script>window.evil=1</script>[click](javascript:window.evil=1) ![x](http://127.0.0.1:1/leak) \u202Etxt.exe \u001B[2Jgone </script><svg onload="window.evil=1">`;
    const call = {
      id: "c1",
      name: evil,
      tool: evil,
      ok: false,
      code: evil,
      durationMs: 1,
      content: [{ type: "text", text: `${evil}\n[exit code 1]` }],
      ruling: { decision: "deny", by: "rule", reason: evil, rule: evil },
    };
    const records = [
      { n: 0, at: 1, type: "session.started", model: evil },
      {
        n: 1,
        at: 2,
        type: "item.added",
        item: { type: "message", role: "user", content: [{ type: "text", text: evil }] },
      },
      {
        n: 2,
        at: 3,
        type: "item.added",
        item: { type: "message", role: "assistant", content: [{ type: "text", text: evil }] },
      },
      { n: 3, at: 4, type: "item.added", item: { type: "reasoning", text: evil } },
      { n: 4, at: 5, type: "call.started", id: "c1", tool: evil, input: { [evil]: evil, command: evil } },
      { n: 5, at: 6, type: "call.ended", call },
      { n: 6, at: 7, type: "diff.updated", diff: `--- a\n+++ b\n+${evil}`, files: [{ path: evil }] },
      { n: 7, at: 8, type: "warning", message: evil },
      { n: 8, at: 9, type: "plan.updated", plan: [{ step: evil, status: "pending" }] },
    ];
    const file = join(tempFolder("page"), "evil.html");
    writeFileSync(file, recordingPage(evil, records));
    const page = await browser.newPage();
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.goto(`file://${file}`);
    await page.locator(".entry").first().waitFor();
    for (const summary of await page.locator("summary").all()) await summary.click();
    expect(await page.evaluate(() => (window as unknown as { evil?: number }).evil)).toBeUndefined();
    expect(asked.filter((url) => !url.startsWith("file:") && !url.startsWith("data:"))).toEqual([]);
    expect(await page.locator("a[href^='javascript']").count()).toBe(0);
    expect(await page.locator("body").innerText()).toContain("U+202e");
    // A bracket at the beginning of a line is no order to a terminal.
    expect(await page.locator(".output").innerText()).toContain("\n[exit code 1]");
    await page.close();
  });

  test("a recorded session opens in the browser, alone and from the service: words, diff, effects; nothing is fetched", async () => {
    const [workspace, home] = [tempFolder("work"), tempFolder("state")];
    mkdirSync(join(workspace, "src"));
    writeFileSync(join(workspace, "src", "add.js"), "export const add = (a, b) => a - b;\n");
    const env = { CALLGATE_HOME: home };
    const task = "replace 'a - b' with 'a + b' in src/add.js\nread src/add.js";
    const played = await run(["exec", "--model", "offline", task], { cwd: workspace, env });
    expect(played.code, played.stderr).toBe(0);
    const shown = await run(["show", "last", "--web"], { cwd: workspace, env });
    const file = join(home, "export.html");
    expect((await run(["export", "last", "--format", "html", "--output", file], { cwd: workspace, env })).code).toBe(0);
    for (const [address, colorScheme] of [
      [shown.stdout.trim(), "light"],
      [`file://${file}`, "dark"],
    ] as const) {
      const page = await browser.newPage({ colorScheme, viewport: { width: 390, height: 800 } });
      const wrong = listen(page);
      const asked: string[] = [];
      page.on("request", (request) => asked.push(request.url()));
      await page.goto(address);
      await page.locator(".entry.call").first().waitFor();
      expect(await page.locator(".unified .added").first().innerText()).toContain("a + b");
      expect(await page.locator(".unified .removed").first().innerText()).toContain("a - b");
      expect(await page.locator("main").innerText()).toContain("read_file");
      expect(await violations(page)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
      expect(asked.filter((url) => url !== address)).toEqual([]);
      expect(wrong).toEqual([]);
      await page.close();
    }
  });

  test("ten thousand calls scroll like ten, and an output of fifty megabytes is cut, not hidden", async () => {
    const home = tempFolder("state");
    const id = "20261116-120000-abcdef";
    const journal = openJournal(sessionPath(home, id));
    journal.append({ type: "session.started", session_id: id, cwd: "", model: "m" });
    const ended = (n: number, text: string) => ({
      type: "call.ended",
      call: { id: `c${n}`, name: "look", tool: "look", ok: true, durationMs: 1, content: [{ type: "text", text }] },
    });
    for (let n = 0; n < 10_000; n++) {
      journal.append({ type: "call.started", id: `c${n}`, tool: "look", input: { path: `file-${n}` } });
      journal.append(ended(n, `result ${n}`));
    }
    journal.append({ type: "call.started", id: "c10000", tool: "look", input: { path: "huge" } });
    journal.append(ended(10_000, `${"x".repeat(50 * 1024 * 1024)} the end`));
    journal.close();
    const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
    const wrong = listen(page);
    const link = await serve(tempFolder("work"), home);
    await page.goto(link);
    await page.goto(`${new URL(link).origin}/#/s/${id}`);
    await page.getByText("the end").waitFor({ timeout: 60_000 });
    expect(await page.locator(".entry").count()).toBeLessThan(60);
    await page.getByRole("button", { name: "show the whole line" }).click();
    await page.getByText("characters are left out here").waitFor();
    const list = page.getByRole("log");
    await list.evaluate((box) => (box.scrollTop = 0));
    await page.getByText("file-0", { exact: true }).first().waitFor({ timeout: 30_000 });
    await list.evaluate((box) => (box.scrollTop = box.scrollHeight / 2));
    await expect.poll(() => page.locator(".entry").first().innerText()).toMatch(/file-[3-6]\d\d\d/);
    expect(await page.locator(".entry").count()).toBeLessThan(60);
    expect(wrong).toEqual([]);
    await page.close();
  });
});
