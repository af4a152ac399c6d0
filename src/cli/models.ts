/**
 * Models that the user told us about: one record per name, made from the model's chat template and
 * kept with our state.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isObject } from "../base/json.ts";
import { stateDir } from "../base/paths.ts";
import type { Dialect } from "../dialect/index.ts";
import type { SpecialTokens, TemplateProfile } from "../template/index.ts";
import { UsageError } from "./io.ts";

export interface ModelRecord {
  readonly name: string;
  readonly baseUrl: string;
  /** How requests go out: native messages with a text answer, taught in the prompt, or rendered by us. */
  readonly request: "chat+text" | "text" | "completions";
  readonly dialect: string | Dialect;
  /** The dialect in which this template writes calls and results, if requests carry them as text. */
  readonly writes?: Dialect;
  readonly profile: Omit<TemplateProfile, "dialect">;
  readonly template: {
    readonly from: string;
    readonly sha256: string;
    readonly tokens: SpecialTokens;
    /** Kept only if we render it ourselves. */
    readonly source?: string;
  };
  readonly added: string;
}

function modelsDir(env: NodeJS.ProcessEnv): string {
  return join(stateDir(env), "models");
}

function fileOf(name: string, env: NodeJS.ProcessEnv): string {
  return join(modelsDir(env), `${encodeURIComponent(name)}.json`);
}

export function hashOf(template: string): string {
  return createHash("sha256").update(template).digest("hex");
}

export function saveModel(record: ModelRecord, env: NodeJS.ProcessEnv): string {
  mkdirSync(modelsDir(env), { recursive: true, mode: 0o700 });
  const file = fileOf(record.name, env);
  writeFileSync(file, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 });
  return file;
}

/** Undefined if nobody added a model of that name. */
export function findModel(name: string, env: NodeJS.ProcessEnv): ModelRecord | undefined {
  const file = fileOf(name, env);
  if (!existsSync(file)) return undefined;
  try {
    const record: unknown = JSON.parse(readFileSync(file, "utf8"));
    // Written by `saveModel`; a file that a person edited into something else is refused.
    if (isObject(record) && typeof record["baseUrl"] === "string" && isObject(record["profile"]))
      return record as unknown as ModelRecord;
  } catch {
    // The error below says what to do.
  }
  throw new UsageError(`the record of '${name}' cannot be read: run 'callgate model add ${name} …' again`);
}

export function listModels(env: NodeJS.ProcessEnv): readonly ModelRecord[] {
  if (!existsSync(modelsDir(env))) return [];
  return readdirSync(modelsDir(env))
    .filter((file) => file.endsWith(".json"))
    .flatMap((file) => findModel(decodeURIComponent(file.slice(0, -".json".length)), env) ?? []);
}

export function removeModel(name: string, env: NodeJS.ProcessEnv): boolean {
  const file = fileOf(name, env);
  if (!existsSync(file)) return false;
  rmSync(file);
  return true;
}

export function wireOf({ request, dialect }: Pick<ModelRecord, "request" | "dialect">): string {
  const name = typeof dialect === "string" ? dialect : dialect.name;
  return request === "completions" ? "completions" : `${request}:${name}`;
}
