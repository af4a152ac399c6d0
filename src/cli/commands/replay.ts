import { buildCommand } from "@stricli/core";
import type { Json } from "../../base/json.ts";
import { createEngine } from "../../router/engine.ts";
import { createSession, type SessionEvent } from "../../session/index.ts";
import { createRecordedModel, readTurns } from "../../session/replay.ts";
import type { Item } from "../../spec/model.ts";
import type { StoredRecord } from "../../store/index.ts";
import { engineOptions } from "../engine-options.ts";
import { openSession } from "../find-session.ts";
import { sessionFlags, type SessionFlags, toggle } from "../config/flags.ts";
import { print, printJson, runCommand, say } from "../io.ts";
import { chooseProfile } from "../offered-tools.ts";
import { prepare } from "../prepare.ts";
import { createTimeline } from "../chat/timeline.ts";
import { visible } from "../chat/visible.ts";

interface ReplayFlags extends SessionFlags {
  readonly run?: boolean;
  readonly speed: number;
  readonly json?: boolean;
}

export const command = buildCommand({
  docs: {
    brief: "play a recorded session again with its timing, or run it against today's rules without a model",
    fullDescription:
      "Without --run nothing happens but showing. With --run the model's recorded answers drive the real tools again, under today's settings and rules, in the folder given by --cwd (or the recorded one).",
  },
  parameters: {
    flags: {
      ...sessionFlags,
      run: toggle("run the calls again"),
      speed: {
        kind: "parsed",
        parse: readSpeed,
        default: "8",
        brief: "times as fast as it was; 0 = at once",
        placeholder: "N",
      },
      json: toggle("events as JSON lines"),
    },
    positional: {
      kind: "tuple",
      parameters: [{ brief: "an id, its beginning, or 'last'", parse: String, placeholder: "ID" }],
    },
  },
  func: (flags: ReplayFlags, id: string) =>
    runCommand(async () => {
      const { summary, journal } = openSession(id);
      if (flags.run) await runAgain(flags, summary.cwd, journal.records);
      else await showAgain(flags, journal.records);
    }),
});

function readSpeed(given: string): number {
  const speed = Number(given);
  if (given.trim() === "" || !(speed >= 0)) throw new Error(`'${given}' is not a number from 0 on`);
  return speed;
}

const maxPauseMs = 2_000;

async function showAgain(flags: ReplayFlags, records: readonly StoredRecord[]): Promise<void> {
  const show = createTimeline({ words: (text) => process.stdout.write(text), line: print });
  let before = records[0]?.at ?? 0;
  const inputs = new Map<unknown, unknown>();
  const whole = wholeAnswers(records);
  for (const record of records) {
    const pause = flags.speed > 0 ? Math.min(maxPauseMs, (record.at - before) / flags.speed) : 0;
    before = record.at;
    if (pause > 5) await new Promise((resolve) => setTimeout(resolve, pause));
    if (flags.json) printJson(record, false);
    else if (record.type === "turn.started") print(`› ${visible(String(record["prompt"]))}`);
    else if (!whole.has(record)) show(asHeard(record, inputs));
  }
}

/**
 * Pieces of an answer that is recorded as a whole further down. Only of an answer that broke off are
 * the pieces all there is.
 */
function wholeAnswers(records: readonly StoredRecord[]): ReadonlySet<StoredRecord> {
  const whole = new Set<StoredRecord>();
  let pieces: StoredRecord[] = [];
  for (const record of records) {
    if (record.type === "item.delta") pieces.push(record);
    else if (isAnswer(record)) for (const piece of pieces.splice(0)) whole.add(piece);
    else if (record.type === "request.sent" || record.type === "turn.ended") pieces = [];
  }
  return whole;
}

function isAnswer({ type, ...record }: StoredRecord): boolean {
  // Trusted: a record that matched its checksum is an event we wrote.
  const item = record["item"] as Item | undefined;
  return type === "item.added" && item?.type === "message" && item.role === "assistant";
}

/** A record as the event that a listener would have received: an answer that joined the history was given. */
function asHeard(record: StoredRecord, inputs: Map<unknown, unknown>): SessionEvent {
  if (isAnswer(record)) return { type: "item.done", index: -1, item: record["item"] as Item };
  return withInput(record, inputs);
}

/** An ending is recorded without its input, which is in the record of its start. */
function withInput(record: StoredRecord, inputs: Map<unknown, unknown>): SessionEvent {
  if (record.type === "call.started") inputs.set(record["id"], record["input"]);
  // Trusted: a record that matched its checksum is an event we wrote.
  const event = record as unknown as SessionEvent;
  if (event.type !== "call.ended") return event;
  return { ...event, call: { ...event.call, input: inputs.get(event.call.id) as Json } };
}

async function runAgain(flags: ReplayFlags, recordedCwd: string, records: readonly StoredRecord[]): Promise<void> {
  const { cwd, config } = await prepare({ ...flags, cwd: flags.cwd ?? recordedCwd });
  const engine = createEngine(
    await engineOptions(config, cwd, process.env, { profile: await chooseProfile(config, config.model) }),
  );
  const show = createTimeline({ words: (text) => process.stdout.write(text), line: print });
  const earlier = new Map(records.flatMap((record) => (record.type === "call.ended" ? [endingOf(record)] : [])));
  let changed = 0;
  for (const [index, turn] of readTurns(records).entries()) {
    const session = createSession({
      id: `replay-${index}`,
      engine,
      model: createRecordedModel(turn, "recorded"),
      tools: () => [],
    });
    print(`› ${visible(turn.prompt)}`);
    for await (const event of session.send(turn.prompt)) {
      if (flags.json) printJson(event, false);
      else show(event);
      if (event.type !== "call.ended") continue;
      const now = event.call.ok ? "ok" : (event.call.code ?? "failed");
      const was = earlier.get(event.call.id);
      if (was !== undefined && was !== now) {
        changed++;
        say(`  ≠ ${event.call.tool ?? event.call.name}: was ${was}, now ${now}`);
      }
    }
    await session.close();
  }
  say(changed === 0 ? "Every call ended as it did before." : `${changed} calls ended differently.`);
  await engine.close();
}

function endingOf(record: StoredRecord): readonly [string, string] {
  const call = record["call"] as { readonly id: string; readonly ok: boolean; readonly code?: string };
  return [call.id, call.ok ? "ok" : (call.code ?? "failed")];
}
