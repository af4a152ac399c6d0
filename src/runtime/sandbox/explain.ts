/** A grant in plain sentences, for `--explain` and for descriptions of tools. */
import type { Grant } from "../../spec/access.ts";
import { resolved } from "./existing.ts";
import type { Machine } from "./machine.ts";

/** For backends with mounts and namespaces, which enforce all of it. */
export function explainPlan(grant: Grant, machine: Pick<Machine, "tempDir">): readonly string[] {
  return [...explainFiles(grant, `a private ${machine.tempDir}`), explainNetwork(grant), explainRest(grant)];
}

/** `temp` is what the temporary folder is called there. */
export function explainFiles(grant: Grant, temp: string): readonly string[] {
  return [explainWrites(grant, temp), ...explainProtected(grant), ...explainMask(grant)];
}

function explainWrites(grant: Grant, temp: string): string {
  if (grant.policy === "full-access") return "Every file may be changed.";
  if (grant.write.length === 0) return `No file of the host may be changed; ${temp} may.`;
  const roots = grant.write.map((path) => (resolved(path) === undefined ? `${path} (not there)` : path));
  return `Files may be changed below ${[...roots, temp].join(", ")}; everywhere else they are read-only.`;
}

function explainProtected(grant: Grant): readonly string[] {
  if (grant.protect.length === 0 || grant.write.length === 0 || grant.policy === "full-access") return [];
  return [
    `Read-only even there: ${shortList(grant.protect)}; one that does not exist yet is moved aside if a command makes it.`,
  ];
}

/** The first of many. `callgate policy check` prints the whole list. */
function shortList(names: readonly string[]): string {
  const shown = names.slice(0, 12).join(", ");
  return names.length > 12 ? `${shown} and ${names.length - 12} more names of files that run by themselves` : shown;
}

function explainMask(grant: Grant): readonly string[] {
  const there = grant.mask.filter((path) => resolved(path) !== undefined);
  return there.length === 0 ? [] : [`Hidden: ${there.join(", ")}.`];
}

/** If the host's network is shared, "off" means that loopback is off too. */
export function explainSharedNetwork({ network }: Grant): string {
  return network === "off" || network.length === 0 ? "The network is off, loopback too." : explainNetwork({ network });
}

function explainNetwork({ network }: Pick<Grant, "network">): string {
  if (network === "on") return "The network is on.";
  if (network === "off" || network.length === 0) return "The network is off; loopback inside the sandbox works.";
  return `The network reaches only ${network.join(", ")}, by HTTP proxy.`;
}

function explainRest(grant: Grant): string {
  return grant.policy === "full-access"
    ? "Other processes cannot be seen; no new namespaces, mounts or kernel calls that reach around the sandbox."
    : "Other processes and the host's sockets (containers, agents, buses) cannot be seen; no new namespaces, mounts or kernel calls that reach around the sandbox.";
}
