/** A review bot: reading a diff needs no question, posting a comment waits for a person. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine, defineTool } from "callgate";
import { createCallbackApprover } from "callgate/gate";
import { createSession } from "callgate/session";
import { createScriptedModel } from "callgate/testing";
import { toCommandResult } from "callgate/tools";

// A repository with one change in it, so that the example stands alone.
const workspace = mkdtempSync(join(tmpdir(), "review-bot-"));
const git = (...args: string[]) =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: workspace });
git("init", "-q");
writeFileSync(join(workspace, "price.js"), "export const total = (a, b) => a + b;\n");
git("add", ".");
git("commit", "-qm", "first");
writeFileSync(join(workspace, "price.js"), "export const total = (a, b) => a - b;\n");

const readDiff = defineTool({
  name: "read_diff",
  description: "The change under review.",
  input: { type: "object", properties: {} },
  access: { commands: [{ argv: ["git", "diff"] }] },
  run: async (_, ctx) => toCommandResult(await ctx.exec.run({ argv: ["git", "diff"] })),
});
const postComment = defineTool({
  name: "post_comment",
  description: "Post a review comment.",
  input: { type: "object", properties: { body: { type: "string" } }, required: ["body"] } as const,
  mutates: true, // and nothing in `access` says what changes, so the gate asks
  run: ({ body }) => {
    writeFileSync(join(workspace, "comments.txt"), `${body}\n`); // your forge's API goes here
    return "posted";
  },
});

// Who is asked: here a function that agrees to everything polite; in a service, a message to the team's channel.
const approver = createCallbackApprover(({ call, reason }) => {
  console.log(`asked: ${call.tool} (${reason})`);
  return JSON.stringify(call.input).includes("please") ? { answer: "once" } : { answer: "no", message: "Be polite." };
});
const engine = createEngine({ workspace, tools: [readDiff, postComment], approver });
// A script instead of a model; a real one is `await createProviderModel({ provider: "openai", model: "…" })`.
const model = createScriptedModel([
  { calls: [{ name: "read_diff" }] },
  { calls: [{ name: "post_comment", input: { body: "This is wrong." } }] },
  { calls: [{ name: "post_comment", input: { body: "total() subtracts now: please check." } }] },
  { text: "Reviewed." },
]);
const session = createSession({ id: "review", engine, model, instructions: "Review the change." });
for await (const event of session.send("Review this pull request."))
  if (event.type === "call.ended") console.log(event.call.tool, event.call.ok ? "ran" : event.call.code);
console.log(readFileSync(join(workspace, "comments.txt"), "utf8"));
await session.close();
await engine.close();
