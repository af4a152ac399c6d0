/** One decision for the proxy and for `fetch`: whether this host and port may be reached, and at which address. */
import { lookup as systemLookup } from "node:dns/promises";
import { isIP } from "node:net";
import { CallError } from "../../base/error.ts";
import type { NetworkGrant } from "../../spec/access.ts";
import { canonicalHost, isPrivateAddress, matchesRule, namesPrivatePlace, parseHostRule } from "./hosts.ts";
import type { HostRule } from "./hosts.ts";

export interface Address {
  readonly address: string;
  readonly family: number;
}

export interface DoorOptions {
  readonly network: NetworkGrant;
  /** Names may lead to private addresses. A rule that is itself an address or `localhost` does not need this. */
  readonly allowPrivate?: boolean;
  /** Looks up every address of a name. Left out: the system's resolver. */
  readonly lookup?: (host: string) => Promise<readonly Address[]>;
}

export interface Door {
  /**
   * The addresses that may be connected to. Throws a CallError `network` if there are none. They are
   * used as they are, because a second look-up could answer differently.
   */
  open(host: string, port: number): Promise<readonly Address[]>;
}

export function createDoor({ network, allowPrivate = false, lookup = lookupAll }: DoorOptions): Door {
  const rules = typeof network === "string" ? [] : network.map((text) => parsedRule(text));

  return {
    async open(text, port) {
      const host = canonicalHost(text);
      if (host === undefined) throw refuse(`${JSON.stringify(text)} is not a host name`, text, port);
      const rule = rules.find((one) => matchesRule(one, host, port));
      if (network !== "on" && rule === undefined)
        throw refuse(`${host}:${port} is not among the allowed hosts`, host, port);
      const addresses = isIP(host) === 0 ? await found(lookup, host, port) : [{ address: host, family: isIP(host) }];
      const mayBePrivate = allowPrivate || (rule !== undefined && namesPrivatePlace(rule));
      const usable = mayBePrivate ? addresses : addresses.filter(({ address }) => !isPrivateAddress(address));
      if (usable.length === 0) throw refuse(`${host} is at a private address`, host, port);
      return usable;
    },
  };
}

function parsedRule(text: string): HostRule {
  const rule = parseHostRule(text);
  if (rule === undefined)
    throw new CallError("invalid_input", `not a host rule: ${JSON.stringify(text)}`, {
      hint: "host, host:port, host:* or *.host",
    });
  return rule;
}

async function found(
  lookup: NonNullable<DoorOptions["lookup"]>,
  host: string,
  port: number,
): Promise<readonly Address[]> {
  try {
    return await lookup(host);
  } catch (cause) {
    throw new CallError("network", `${host} has no address`, { cause, data: { host, port, refused: false } });
  }
}

function lookupAll(host: string): Promise<readonly Address[]> {
  return systemLookup(host, { all: true });
}

function refuse(reason: string, host: string, port: number): CallError {
  return new CallError("network", reason, {
    hint: "ask the user to allow the host, or do without it",
    data: { host, port, refused: true },
  });
}

/** Tells a refusal apart from a name without an address or a host that does not answer. */
export function isRefusal(error: unknown): boolean {
  return (
    CallError.is(error) &&
    typeof error.data === "object" &&
    error.data !== null &&
    "refused" in error.data &&
    error.data.refused === true
  );
}
