/**
 * Secrets must not appear in messages. One function handles the values that are known and the patterns
 * that keys have.
 */

/** Keys as providers issue them. The text before a key stays, so that a message remains readable. */
const shapes =
  /\b(?:sk-(?:ant-|proj-|or-)?[\w-]{16,}|AIza[\w-]{30,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|AKIA[A-Z0-9]{12,}|ya29\.[\w-]{20,}|hf_\w{20,}|npm_\w{20,}|gsk_\w{20,}|xai-\w{20,})|(?<=\b[Bb]earer\s{1,4})[\w.~+/=-]{16,}/g;

/** A shorter value would be found in ordinary text. */
const shortest = 8;

export type Redact = (text: string) => string;

/** Replaces each of these values, however a server may have quoted it, and everything that looks like a key. */
export function createRedactor(secrets: readonly (string | undefined)[] = []): Redact {
  const withoutKnown = createKnownRedactor(secrets);
  return (text) => withoutKnown(text).replace(shapes, "[key]");
}

/**
 * Replaces only the values, for text that may legitimately contain something that looks like a key,
 * such as a result.
 */
export function createKnownRedactor(secrets: readonly (string | undefined)[]): Redact {
  const values = secrets.flatMap((secret = "") => {
    const bare = secret.replace(/^(?:Bearer|Basic|Token|DPoP)\s+/i, "");
    return bare.length < shortest ? [] : [bare, encodeURIComponent(bare), JSON.stringify(bare).slice(1, -1)];
  });
  const longestFirst = [...new Set(values)].toSorted((a, b) => b.length - a.length);
  return (text) => longestFirst.reduce((left, value) => left.replaceAll(value, "[key]"), text);
}

/** The values of headers that carry a key. */
export function secretsInHeaders(headers: Iterable<readonly [string, string | undefined]>): readonly string[] {
  return [...headers].flatMap(([name, value]) =>
    value !== undefined && /auth|key|token|cookie|secret/i.test(name) ? [value] : [],
  );
}
