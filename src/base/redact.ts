/** Secrets never leave in words: one function for the values that are known and the shapes that keys have. */

/** Keys as providers give them out. What stands before one stays, so that a message remains readable. */
const shapes =
  /\b(?:sk-(?:ant-|proj-|or-)?[\w-]{16,}|AIza[\w-]{30,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|AKIA[A-Z0-9]{12,}|ya29\.[\w-]{20,}|hf_\w{20,}|npm_\w{20,}|gsk_\w{20,}|xai-\w{20,})|(?<=\b[Bb]earer\s{1,4})[\w.~+/=-]{16,}/g;

/** A shorter value would be found in ordinary words. */
const shortest = 8;

export type Redact = (text: string) => string;

/** Replaces each of these values, however a server may have quoted it, and everything that has a key's shape. */
export function createRedactor(secrets: readonly (string | undefined)[] = []): Redact {
  const withoutKnown = createKnownRedactor(secrets);
  return (text) => withoutKnown(text).replace(shapes, "[key]");
}

/** Only the values: for what may rightly hold something that looks like a key, as a result may. */
export function createKnownRedactor(secrets: readonly (string | undefined)[]): Redact {
  const values = secrets.flatMap((secret = "") => {
    const bare = secret.replace(/^(?:Bearer|Basic|Token|DPoP)\s+/i, "");
    return bare.length < shortest ? [] : [bare, encodeURIComponent(bare), JSON.stringify(bare).slice(1, -1)];
  });
  const longestFirst = [...new Set(values)].toSorted((a, b) => b.length - a.length);
  return (text) => longestFirst.reduce((left, value) => left.replaceAll(value, "[key]"), text);
}

/** The values of those headers that carry a key. */
export function secretsInHeaders(headers: Iterable<readonly [string, string | undefined]>): readonly string[] {
  return [...headers].flatMap(([name, value]) =>
    value !== undefined && /auth|key|token|cookie|secret/i.test(name) ? [value] : [],
  );
}
