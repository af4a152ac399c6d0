// The page to dist/web: one script and one stylesheet for `callgate serve`, and one script for recordings that stand alone.
import { copyFileSync, mkdirSync } from "node:fs";
import { rolldown } from "rolldown";

export async function buildWeb() {
  for (const [name, input] of [
    ["page", "web/main.tsx"],
    ["recording", "web/recording.tsx"],
  ]) {
    const bundle = await rolldown({
      input,
      platform: "browser",
      tsconfig: "web/tsconfig.json",
      transform: { define: { "process.env.NODE_ENV": '"production"' } },
    });
    await bundle.write({ file: `dist/web/assets/${name}.js`, format: "esm", minify: true, codeSplitting: false });
    await bundle.close();
  }
  mkdirSync("dist/web/assets", { recursive: true });
  copyFileSync("web/page.css", "dist/web/assets/page.css");
  copyFileSync("web/index.html", "dist/web/index.html");
}

if (process.argv[1]?.endsWith("build-web.mjs")) await buildWeb();
