/**
 * Which hosts a grant names, and which addresses do not belong to the internet. Hosts are compared
 * label by label after parsing, and never as text prefixes. An empty list allows nothing.
 */
import { isIP, isIPv4 } from "node:net";

export interface HostRule {
  /** Lower case, without a trailing dot; for `*.host` the part after the star. */
  readonly host: string;
  readonly subdomains: boolean;
  /** Undefined means the web's two ports. */
  readonly port: number | "any" | undefined;
}

/** Accepts `host`, `host:port`, `host:*`, `*.host`, an address, or `[v6]:port`. Undefined for anything else. */
export function parseHostRule(text: string): HostRule | undefined {
  const match = /^(\*\.)?(\[[0-9a-f:.]+\]|[^:[\]/\s]+|[0-9a-f:]+)(?::(\d{1,5}|\*))?$/i.exec(text.trim());
  const host = match?.[2] === undefined ? undefined : canonicalHost(match[2]);
  if (match === null || host === undefined) return undefined;
  const port = match[3] === undefined ? undefined : match[3] === "*" ? "any" : Number(match[3]);
  if (typeof port === "number" && (port < 1 || port > 65535)) return undefined;
  return { host, subdomains: match[1] !== undefined, port };
}

/** One spelling per host: lower case, no brackets, no trailing dot. Undefined if it cannot be a host. */
export function canonicalHost(text: string): string | undefined {
  const host = text
    .toLowerCase()
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
  if (isIP(host) !== 0) return host;
  // An address in another notation (decimal, octal, hex, short) is refused, because resolvers disagree on its
  // meaning.
  if (/^(?:0x[0-9a-f]+|\d+)(?:\.(?:0x[0-9a-f]+|\d+))*$/.test(host)) return undefined;
  return host.length <= 253 && /^(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/.test(host) ? host : undefined;
}

export function matchesRule(rule: HostRule, host: string, port: number): boolean {
  const named = rule.subdomains ? host.endsWith(`.${rule.host}`) : host === rule.host;
  if (!named) return false;
  return rule.port === "any" || (rule.port === undefined ? port === 80 || port === 443 : rule.port === port);
}

/** A rule that names an address or this machine's own name clearly means it. */
export function namesPrivatePlace(rule: HostRule): boolean {
  return !rule.subdomains && (isIP(rule.host) !== 0 || rule.host === "localhost" || rule.host.endsWith(".localhost"));
}

/**
 * Not reachable from the internet, or not meant to be: loopback, private, link-local (cloud metadata),
 * multicast, reserved.
 */
export function isPrivateAddress(address: string): boolean {
  if (isIPv4(address)) return isPrivateV4(address.split(".").map(Number));
  const words = expandV6(address);
  const v4 = embeddedV4(words);
  if (v4 !== undefined) return isPrivateV4(v4);
  const [first = 0] = words;
  if (words.slice(0, 7).every((word) => word === 0)) return true; // :: and ::1
  return (
    (first & 0xfe00) === 0xfc00 ||
    (first & 0xff00) === 0xff00 ||
    (first & 0xffc0) === 0xfe80 ||
    (first & 0xffc0) === 0xfec0 ||
    (first === 0x2001 && words[1] === 0xdb8)
  );
}

function isPrivateV4([a = 0, b = 0, c = 0]: readonly number[]): boolean {
  if (a === 0 || a === 10 || a === 127 || a >= 224) return true;
  if (a === 100) return b >= 64 && b < 128;
  if (a === 169) return b === 254;
  if (a === 172) return b >= 16 && b < 32;
  if (a === 192) return b === 168 || (b === 0 && (c === 0 || c === 2));
  if (a === 198) return b === 18 || b === 19 || (b === 51 && c === 100);
  return a === 203 && b === 0 && c === 113;
}

/** IPv4 inside IPv6: mapped, compatible, NAT64 and 6to4 addresses lead to the IPv4 host that they contain. */
function embeddedV4(words: readonly number[]): readonly number[] | undefined {
  const bytes = (high: number, low: number) => [high >> 8, high & 255, low >> 8, low & 255];
  const [w0 = 0, w1 = 0, w2 = 0, , , w5 = 0, w6 = 0, w7 = 0] = words;
  const zeros = words.slice(0, 5).every((word) => word === 0);
  if (zeros && (w5 === 0xffff || (w5 === 0 && w6 !== 0))) return bytes(w6, w7);
  if (w0 === 0x64 && w1 === 0xff9b) return bytes(w6, w7);
  return w0 === 0x2002 ? bytes(w1, w2) : undefined;
}

function expandV6(address: string): readonly number[] {
  const plain = (address.split("%")[0] ?? "").replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_all, ...parts: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = parts.slice(0, 4).map(Number);
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  });
  const [left = "", right] = plain.split("::");
  const words = (text: string) => (text === "" ? [] : text.split(":").map((word) => Number.parseInt(word, 16)));
  if (right === undefined) return words(left);
  const [head, tail] = [words(left), words(right)];
  return [...head, ...Array<number>(Math.max(0, 8 - head.length - tail.length)).fill(0), ...tail];
}
