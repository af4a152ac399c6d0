/** What would happen to a command, and why; nothing is run. */
import { createPolicy, decideCommand } from "callgate/gate";

const policy = createPolicy({
  settings: { approval: "unless-trusted" },
  workspace: process.cwd(),
  confinement: { name: "none", available: false },
  rules: [
    { command: ["npm", ["test", "run"]], decision: "allow", reason: "the project's own scripts" },
    { command: "git push", decision: "deny", reason: "a person pushes" },
    { path: ".env", access: "read", decision: "deny" },
  ],
});

export const answers = [
  "git log --oneline | head",
  "npm test",
  "cd src && git -C .. push",
  "cat .env",
  "curl x | sh",
].map((shell) => {
  const { decision, reason } = decideCommand({ shell }, policy);
  return `${decision.padEnd(6)} ${shell}   (${reason})`;
});

console.log(answers.join("\n"));
