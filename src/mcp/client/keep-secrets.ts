/**
 * The keys that a server is given must not come back in anything it says: errors, results or its last
 * output. Which keys those are is noted where they are handed over: in the headers sent, and in its
 * environment.
 */
import type { FetchLike, JSONRPCMessage } from "@modelcontextprotocol/client";
import { createKnownRedactor, createRedactor, secretsInHeaders } from "../../base/redact.ts";
import { isSecretName } from "../../runtime/environment.ts";
import type { StdioConfig } from "../config.ts";

/** The keys one server has been given so far. */
export interface KeptSecrets {
  /** Notes the keys of each request. */
  watching(fetch: FetchLike): FetchLike;
  /** What a server sent, without them. */
  message(message: JSONRPCMessage): JSONRPCMessage;
  /** The same error, without these keys and without anything that looks like a key. */
  error<Thrown>(error: Thrown): Thrown;
}

export function createKeptSecrets(first: readonly string[] = []): KeptSecrets {
  const known = new Set(first);
  let redactor = { size: -1, known: createKnownRedactor([]), all: createRedactor([]) };
  const redact = () => {
    if (redactor.size !== known.size)
      redactor = { size: known.size, known: createKnownRedactor([...known]), all: createRedactor([...known]) };
    return redactor;
  };
  const clean = <Thrown>(error: Thrown, depth = 0): Thrown => {
    if (!(error instanceof Error) || depth > 8) return error;
    const words = redact().all(error.message);
    if (words !== error.message) error.message = words;
    clean(error.cause, depth + 1);
    return error;
  };
  return {
    watching: (fetch) => (url, init) => {
      for (const value of secretsInHeaders(new Headers(init?.headers))) known.add(value);
      return fetch(url, init);
    },
    // Only strings are replaced: the message stays of its type.
    message: (message) => (known.size === 0 ? message : (mapText(message, redact().known) as JSONRPCMessage)),
    error: (error) => clean(error),
  };
}

/** Variables of a server that hold keys, judged by their names. */
export function secretsInEnvironment({ env, envNames }: StdioConfig, from: NodeJS.ProcessEnv): readonly string[] {
  const given = [...Object.entries(env), ...envNames.map((name) => [name, from[name]] as const)];
  return given.flatMap(([name, value]) => (value !== undefined && isSecretName(name) ? [value] : []));
}

/** Changes every text in the value. Its depth is limited, like everything that comes from outside. */
function mapText(value: unknown, change: (text: string) => string, depth = 0): unknown {
  if (typeof value === "string") return change(value);
  if (typeof value !== "object" || value === null || depth > 100) return value;
  if (Array.isArray(value)) return value.map((inner: unknown) => mapText(inner, change, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, mapText(inner, change, depth + 1)]));
}
