import { readFileSync } from "node:fs";

/** The entries are written by scripts/docs.mjs, from the exports of the package. */
const { entryPoints } = JSON.parse(readFileSync(new URL("typedoc.json", import.meta.url), "utf8"));

export default {
  entryPoints,
  tsconfig: "tsconfig.json",
  plugin: ["typedoc-plugin-markdown"],
  out: "pages/api",
  router: "module",
  readme: "none",
  entryFileName: "index.md",
  skipErrorChecking: true,
  excludeExternals: true,
  excludePrivate: true,
  disableSources: true,
  hideBreadcrumbs: true,
  hidePageHeader: true,
  sanitizeComments: true,
  logLevel: "Error",
};
