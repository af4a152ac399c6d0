/** The page's files from the build, and a recorded session as one self-contained HTML file. */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliDecompressSync } from "node:zlib";
import type { StoredRecord } from "./journal.ts";

/**
 * The folder with `index.html` and `assets/`: beside the built files, or where the build puts it if we
 * run from source.
 */
export function findPage(): string | undefined {
  const places = ["./web", "../web", "../../dist/web"].map((path) => fileURLToPath(new URL(path, import.meta.url)));
  return places.find((folder) => existsSync(join(folder, "assets", "recording.js.br")));
}

/** It fetches nothing: script, style and records are inside, and the page's own policy forbids anything else. */
export function recordingPage(title: string, records: readonly StoredRecord[], folder = findPage()): string {
  if (folder === undefined) throw new Error("the page is not built here: run 'npm run build', or export as markdown");
  const script = readAsset(folder, "recording.js").replaceAll("</script", String.raw`<\/script`);
  const style = readAsset(folder, "page.css");
  const hash = createHash("sha256").update(script).digest("base64");
  const policy = `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; img-src data:`;
  // A closing tag inside the records would end the script element, so no `<` is left in them.
  const data = JSON.stringify(records).replaceAll("<", String.raw`\u003c`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>${escape(title)}</title>
<style>${style}</style>
</head>
<body>
<div id="app"></div>
<script type="application/json" id="records">${data}</script>
<script type="module">${script}</script>
</body>
</html>
`;
}

/** The build compresses them (scripts/build-web.mjs). */
function readAsset(folder: string, name: string): string {
  return brotliDecompressSync(readFileSync(join(folder, "assets", `${name}.br`))).toString();
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
