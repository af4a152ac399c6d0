import { defineConfig } from "vitepress";

const page = (text, link) => ({ text, link });

export default defineConfig({
  title: "Callgate",
  description: "Let any model call your tools, and decide what each call may do.",
  srcDir: "pages",
  srcExclude: ["decisions/**"],
  // Code of the API pages mentions types as tags; nothing in our pages is a component.
  markdown: { html: true },
  // On a phone a wide drawing is pushed sideways instead of being too small to read.
  head: [["style", {}, ".vp-doc p:has(> picture) { overflow-x: auto } .vp-doc picture img { min-width: 620px }"]],
  themeConfig: {
    search: { provider: "local" },
    nav: [page("Guides", "/how-it-works"), page("API", "/api/index"), page("Changes", "/changelog")],
    sidebar: [
      {
        text: "Start",
        items: [page("Overview", "/index"), page("How it works", "/how-it-works"), page("Move from other SDKs", "/migrate")],
      },
      {
        text: "Tools",
        items: [
          page("Define a tool", "/define-a-tool"),
          page("Built-in tools", "/built-in-tools"),
          page("Commands", "/running-commands"),
          page("Files and patches", "/files-and-patches"),
          page("Schemas", "/schemas"),
          page("MCP", "/mcp"),
          page("Many tools", "/many-tools"),
          page("Code mode", "/code-mode"),
        ],
      },
      {
        text: "Models",
        items: [
          page("Any model", "/any-model"),
          page("APIs", "/wires"),
          page("Add a dialect", "/add-a-dialect"),
          page("Gateway", "/gateway"),
          page("Generate", "/generate"),
        ],
      },
      {
        text: "Governance",
        items: [
          page("Policy", "/policy"),
          page("Approvals", "/approvals"),
          page("Sandbox", "/sandbox"),
          page("Effects", "/effects"),
          page("Add a sandbox", "/add-a-sandbox"),
          page("Threat model", "/threat-model"),
          page("Security", "/security"),
        ],
      },
      {
        text: "Run it",
        items: [
          page("Terminal", "/interactive"),
          page("Sessions", "/sessions"),
          page("Service and page", "/serve"),
          page("Chat service", "/chat-service"),
          page("Many users", "/many-users"),
          page("In your program", "/embedding"),
          page("In your editor", "/editors"),
          page("Telemetry", "/telemetry"),
          page("Test your agent", "/testing-your-agent"),
        ],
      },
      {
        text: "Reference",
        items: [
          page("Configuration", "/configuration"),
          page("Events", "/events"),
          page("Errors", "/errors"),
          page("Every name", "/names"),
          page("API", "/api/index"),
          page("Questions", "/faq"),
          page("Glossary", "/glossary"),
          page("Figures", "/bench/results"),
          page("What was asked for", "/seeds"),
        ],
      },
    ],
  },
});
