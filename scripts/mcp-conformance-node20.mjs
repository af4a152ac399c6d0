// The conformance suite imports `globSync` of node:fs, which Node 20 lacks, for a command we do not use.
import * as fs from "node:fs";
import { register } from "node:module";

const asModule = (source) => `data:text/javascript,${encodeURIComponent(source)}`;
const ours = asModule(
  `export * from "node:fs"; export { default } from "node:fs"; export const globSync = () => { throw new Error("not on this Node"); };`,
);
if (!("globSync" in fs))
  register(
    asModule(`export async function resolve(specifier, context, next) {
      if (specifier !== "fs" || !context.parentURL?.includes("/@modelcontextprotocol/conformance/")) return next(specifier, context);
      return { url: ${JSON.stringify(ours)}, shortCircuit: true };
    }`),
  );
