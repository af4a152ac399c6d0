import { defineTool } from "callgate";

const deploy = defineTool({
  name: "deploy",
  description: "Puts a version online.",
  input: { type: "object", properties: { version: { type: "string" } }, required: ["version"] },
  mutates: true,
  run: ({ version }) => `version ${version} is online`,
});

export const tools = [deploy];
