import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { lowerDecorators } from "./scripts/decorators.mjs";

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  plugins: [lowerDecorators()],
  resolve: {
    alias: [
      { find: /^callgate$/, replacement: at("./src/index.ts") },
      { find: /^callgate\/sandbox$/, replacement: at("./src/runtime/sandbox/sandbox.ts") },
      { find: /^callgate\/(ai-sdk|ui)$/, replacement: at("./src/adapters/$1/index.ts") },
      { find: /^callgate\/(agents|langchain|from)$/, replacement: at("./src/adapters/$1.ts") },
      { find: /^callgate\/([a-z]+)$/, replacement: at("./src/$1/index.ts") },
    ],
  },
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: [at("./scripts/build-launcher.mjs"), at("./scripts/test-folder.mjs")],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores: more workers only wait for each other.
    maxWorkers: 2,
    // Where nobody looks on, one slow moment of the machine is no verdict; the last lines name what needed a second try.
    retry: process.env["CALLGATE_TEST_ALL"] === "1" ? 1 : 0,
    reporters: ["default", at("./scripts/count-reporter.ts")],
    typecheck: { enabled: false },
  },
});
