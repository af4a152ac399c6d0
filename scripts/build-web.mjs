// The page to dist/web: one script and one stylesheet for `callgate serve`, and one script for recordings that stand alone.
// All three compressed, as browsers take them: 0.1 MB of the package instead of 0.5.
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { brotliCompressSync } from "node:zlib";
import { rolldown } from "rolldown";

/** Answers with the modules that went into it. */
export async function buildWeb() {
  const modules = [];
  rmSync("dist/web", { recursive: true, force: true });
  mkdirSync("dist/web/assets", { recursive: true });
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
    const { output } = await bundle.generate({ format: "esm", minify: true, codeSplitting: false });
    await bundle.close();
    writeAsset(`${name}.js`, output[0].code);
    modules.push(...Object.keys(output[0].modules));
  }
  writeAsset("page.css", readFileSync("web/page.css"));
  copyFileSync("web/index.html", "dist/web/index.html");
  return modules;
}

function writeAsset(name, content) {
  writeFileSync(`dist/web/assets/${name}.br`, brotliCompressSync(content));
}

if (process.argv[1]?.endsWith("build-web.mjs")) await buildWeb();
