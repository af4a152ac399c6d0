// Governed tools in Claude's Agent SDK: its tools need Zod shapes, so it is given our MCP server instead.
import { query } from "@anthropic-ai/claude-agent-sdk";

const answer = query({
  prompt: "What does note.txt say?",
  options: {
    mcpServers: { callgate: { type: "stdio", command: "callgate", args: ["mcp", "serve"] } },
    allowedTools: ["mcp__callgate"], // Callgate's own rules and questions decide about its tools
    disallowedTools: ["Bash", "Read", "Write", "Edit"], // nothing goes past them
  },
});
for await (const message of answer) if (message.type === "result") console.log(message.result);
