// The declarations: one file for each entry of the package and a few that they share. Written file by file, as the
// compiler does, they were 256, two thirds of them about the inside, and a disk gives each file a block of its own.
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { rolldown } from "rolldown";

const made = "dist/declarations";

export async function buildTypes() {
  // Only the types need it, so the code is built also where it is not installed yet.
  const { dts } = await import("rolldown-plugin-dts");
  execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"], {
    stdio: "inherit",
  });
  const { exports } = JSON.parse(readFileSync("package.json", "utf8"));
  const entries = Object.values(exports)
    .flatMap(({ types }) => types ?? [])
    .map((path) => path.replace("./dist/types/", "").replace(/\.d\.ts$/, ""));
  const bundle = await rolldown({
    input: Object.fromEntries(entries.map((name) => [name, `${made}/${name}.d.ts`])),
    external: (id) => !/^[./]/.test(id),
    plugins: [dts({ dtsInput: true, sourcemap: false })],
  });
  await bundle.write({
    dir: "dist/types",
    chunkFileNames: "[name].d.ts",
    codeSplitting: { groups: [{ name: "shared", minShareCount: 2 }] },
  });
  await bundle.close();
  rmSync(made, { recursive: true });
}
