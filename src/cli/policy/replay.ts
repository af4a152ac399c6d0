/** `policy replay`: what today's rules would have said about the calls of recorded sessions. */
import { buildCommand } from "@stricli/core";
import { isObject } from "../../base/json.ts";
import { trackedPaths } from "../../gate/git-repository.ts";
import { checkEffects } from "../../gate/held.ts";
import { decideAccess, type Policy } from "../../gate/policy.ts";
import { toVisibleLine } from "../../gate/show.ts";
import type { Effect } from "../../spec/effects.ts";
import type { Access } from "../../spec/access.ts";
import { toggle } from "../config/flags.ts";
import { exitCodes, print, printJson, runCommand } from "../io.ts";
import { findConfinement, loadRuleFiles, subject, toPolicy, type CheckFlags } from "./subject.ts";

interface ReplayFlags extends Pick<CheckFlags, "rules" | "approval" | "sandbox" | "json"> {
  readonly all?: boolean;
}

interface Replayed {
  readonly session: string;
  readonly call: string;
  readonly tool: string;
  readonly before: string;
  readonly after: string;
  readonly reason: string;
}

export const replay = buildCommand<ReplayFlags, string[]>({
  docs: { brief: "run rules over recorded sessions and show what would change" },
  parameters: {
    flags: {
      rules: subject.rules,
      approval: subject.approval,
      sandbox: subject.sandbox,
      json: subject.json,
      all: toggle("show unchanged decisions too"),
    },
    positional: {
      kind: "array",
      parameter: { parse: String, placeholder: "SESSION", brief: "sessions by id; left out: all" },
    },
  },
  func: (flags: ReplayFlags, ...ids: string[]) =>
    runCommand(async () => {
      const [rules, confinement] = await Promise.all([loadRuleFiles(flags), findConfinement()]);
      const rows = (await openSessions(ids)).flatMap(({ id, cwd, records }) =>
        records.flatMap((record) =>
          replayRecord(record, id, toPolicy({ ...flags, workspace: cwd }, rules, confinement)),
        ),
      );
      const shown = flags.all ? rows : rows.filter((row) => row.before !== row.after);
      if (flags.json)
        printJson({ calls: rows.length, changed: rows.filter((row) => row.before !== row.after).length, rows: shown });
      else {
        for (const row of shown)
          print(
            `${row.session} ${row.call} ${toVisibleLine(row.tool)}: ${row.before} → ${row.after} (${toVisibleLine(row.reason)})`,
          );
        print(
          `${rows.length} calls, ${rows.filter((row) => row.before !== row.after).length} would be decided differently`,
        );
      }
      return exitCodes.done;
    }),
});

async function openSessions(ids: readonly string[]) {
  const [{ listSessions, readJournal }, { openSession }, { stateDir }] = await Promise.all([
    import("../../store/index.ts"),
    import("../find-session.ts"),
    import("../../base/paths.ts"),
  ]);
  const opened =
    ids.length > 0
      ? ids.map((id) => openSession(id))
      : listSessions(stateDir(process.env)).map((summary) => ({ summary, journal: readJournal(summary.path) }));
  return opened.map(({ summary, journal }) => ({ id: summary.id, cwd: summary.cwd, records: journal.records }));
}

/** What a held command did was recorded with it, so today's rules judge that list. */
function replayEffects(
  call: Readonly<Record<string, unknown>>,
  policy: Policy,
): { readonly after: string; readonly reason: string } | undefined {
  const { effects } = call;
  if (!isObject(effects) || !Array.isArray(effects["list"])) return undefined;
  // The journal's checksum vouches that we wrote it, so its effects are such.
  const list = effects["list"] as unknown as readonly Effect[];
  const { workspace, protect, rules } = policy;
  const scene = { workspace, protect, isTracked: trackedPaths(workspace) };
  // Without a rule or a person, only runs that are kept at once to be undoable are kept.
  const isUndoable = isObject(call["ruling"]) && call["ruling"]["by"] === "policy" && effects["kept"] !== "none";
  const writes = isUndoable ? "undoable" : "held";
  const { decision, reason } = checkEffects(list, rules.effects, scene, writes);
  return { after: decision, reason };
}

/** A recorded ending holds what the call touched, which is all that a decision needs. */
function replayRecord(record: Readonly<Record<string, unknown>>, session: string, policy: Policy): readonly Replayed[] {
  const call = record["call"];
  if (
    record["type"] !== "call.ended" ||
    !isObject(call) ||
    typeof call["tool"] !== "string" ||
    !isObject(call["access"])
  )
    return [];
  // The journal's checksum vouches that we wrote it, so its access is one.
  const access = withServer(call["access"], call["tool"]);
  const ruling = isObject(call["ruling"]) ? call["ruling"] : {};
  const asked =
    call["code"] === "rejected" ||
    call["code"] === "needs_approval" ||
    ruling["by"] === "person" ||
    ruling["by"] === "memory";
  const before = asked ? "ask" : call["code"] === "denied" ? "deny" : "allow";
  const mutates =
    (access.write ?? []).length > 0 || (access.commands ?? []).length > 0 || (access.network ?? []).length > 0;
  const { decision, reason } = decideAccess({ tool: call["tool"], access, mutates }, policy);
  const held = replayEffects(call, policy);
  if (held !== undefined) return [{ session, call: String(call["id"]), tool: call["tool"], before, ...held }];
  return [{ session, call: String(call["id"]), tool: call["tool"], before, after: decision, reason }];
}

/** Journals of version 0.1 identify a server's tool only by its name, `server/tool`. */
function withServer(access: Access, tool: string): Access {
  const slash = tool.indexOf("/");
  if (access.servers !== undefined || slash < 1) return access;
  return { ...access, servers: [{ server: tool.slice(0, slash), name: tool.slice(slash + 1) }] };
}
