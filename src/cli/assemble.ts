/**
 * Turns settings into a session: engine, model, tools and journal, put together once for `exec`,
 * `chat` and `resume`.
 */
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { defined, type JsonObject } from "../base/json.ts";
import { ownFolders, stateDir } from "../base/paths.ts";
import type { Telemetry } from "../result/telemetry.ts";
import { createEngine, type Engine } from "../router/engine.ts";
import type { SessionEvent, SessionStarted } from "../session/events.ts";
import { findPrice, type PriceTable } from "../session/price.ts";
import { createSession, type Session } from "../session/session.ts";
import type { SessionOptions } from "../session/session-options.ts";
import { createChangeTracker } from "../workspace/changes.ts";
import { undoFile } from "../workspace/undo.ts";
import { takeTold } from "./effects/tell-session.ts";
import type { McpClients } from "../mcp/index.ts";
import type { Approver } from "../spec/stages.ts";
import { gatherRecords, openJournal, readJournal, type GatheringJournal, type StoredRecord } from "../store/journal.ts";
import { createSessionId, sessionPath } from "../store/sessions.ts";
import type { Config } from "./config/config.ts";
import type { ToolFlags } from "./config/flags.ts";
import { engineOptions } from "./engine-options.ts";
import { runLaterTable } from "./policy/run-later.ts";
import { readGuidance, writeInstructions, type Guidance } from "./guidance/instructions.ts";
import { readPrompts, type OwnPrompts } from "./guidance/prompts.ts";
import { findToResume } from "./find-session.ts";
import { say, UsageError } from "./io.ts";
import { addToolSearch } from "../registry/search.ts";
import { chooseProfile, deferForModel, offerToModel } from "./offered-tools.ts";
import type { ConnectOptions } from "./mcp/clients.ts";
import { loadOwnTools } from "./own-tools.ts";
import { selectModel, type SelectedModel } from "./select-model.ts";
import { version } from "./version.ts";

export interface AssembleOptions {
  readonly config: Config;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly approver?: Approver;
  /** How MCP servers are connected. */
  readonly servers?: Partial<ConnectOptions>;
  /** The session to continue: its id, the beginning of it, or `last`. */
  readonly resume?: string;
  /** What was named on the command line. It takes precedence over the model that the resumed session had. */
  readonly flags?: ToolFlags;
  /** Continue a copy of that session under a new id. */
  readonly fork?: boolean;
  /** No journal, so nothing of this session is kept. */
  readonly ephemeral?: boolean;
  /** The schema that the answer has to fit. */
  readonly outputSchema?: JsonObject;
  readonly onEvent?: (event: SessionEvent) => void;
  /** A session that is stored elsewhere: its id, what it has recorded, and where it continues to record. */
  readonly kept?: Pick<SessionOptions, "id" | "records" | "journal" | "keepDiffs" | "keepFolder">;
  /** Receives spans and metrics of the session's calls. */
  readonly telemetry?: Telemetry;
  /** What a turn may use, beyond the settings. */
  readonly limits?: SessionOptions["limits"];
  /** False: 'always' lasts as long as the session, and no rule is written. */
  readonly writesRules?: boolean;
}

/** Everything a session needs, put together from the settings. */
export interface Assembled {
  readonly engine: Engine;
  readonly model: SelectedModel;
  readonly session: Session;
  readonly journalPath: string | undefined;
  /** The settings for this session, with the model it had if it was resumed. */
  readonly config: Config;
  readonly guidance: Guidance;
  readonly prompts: OwnPrompts;
  readonly mcp: McpClients | undefined;
  close(): Promise<void>;
}

export async function assemble(options: AssembleOptions): Promise<Assembled> {
  const opened: (() => Promise<void>)[] = [];
  const close = async () => {
    for (const closeOne of opened.toReversed()) await closeOne();
  };
  try {
    return { ...(await putTogether(options, opened)), close };
  } catch (error) {
    await close(); // anything left open would keep the process from ending
    throw error;
  }
}

async function putTogether(
  options: AssembleOptions,
  opened: (() => Promise<void>)[],
): Promise<Omit<Assembled, "close">> {
  const { cwd, env } = options;
  const state = stateDir(env);
  const earlier = options.resume === undefined ? undefined : openEarlier(state, options.resume, cwd);
  const id = options.kept?.id ?? (earlier && !options.fork ? earlier.id : createSessionId(new Date()));
  const journalPath =
    options.ephemeral || options.kept ? undefined : earlier && !options.fork ? earlier.path : sessionPath(state, id);

  const config = earlier ? keepModel(options.config, earlier.records, options.flags ?? {}) : options.config;
  const profile = await chooseProfile(config, config.model);
  const model = await selectModel(config, env, profile.form);
  opened.push(model.close);
  const changes = createChangeTracker(cwd, () => undoFile(cwd, env), {
    undo: config.undo === "all" ? "all" : "files",
    except: ownFolders(env),
    ...defined({ runLater: runLaterTable(config) }),
  });
  const { gate, ...machine } = await engineOptions(config, cwd, env, {
    spillDir: join(state, "outputs", id),
    profile,
    only: true,
    ...defined({ warn: options.servers?.warn }),
  });
  const { always, ...judging } = gate ?? {};
  const engine = createEngine({
    ...machine,
    gate: { ...judging, ...(options.writesRules === false ? {} : defined({ always })) },
    onFileChange: changes.note,
    ...defined({ telemetry: options.telemetry }),
    ...(options.approver ? { approver: options.approver } : {}),
  });
  opened.push(engine.close);
  const own = await loadOwnTools(engine, config, cwd, {
    ...(options.approver ? { approver: options.approver } : {}),
    model: async () => model.model,
    ...options.servers,
  });
  opened.push(own.close);
  if (own.mcp !== undefined) addToolSearch(engine.registry); // offered only if the servers bring too many tools
  if (config.code_mode === true) (await import("../tools/run-code.ts")).addCodeMode(engine.registry);
  const warn = options.servers?.warn ?? ((message: string) => say(`callgate: ${message}`));
  const guidance = readGuidance(config, cwd, env);
  for (const path of guidance.untrusted)
    warn(`${path} is not trusted yet and was not read ('callgate trust' shows and trusts it)`);
  const prompts = readPrompts(cwd, env);
  for (const problem of prompts.problems) warn(problem);
  const price = findPrice((config.prices ?? {}) as PriceTable, model.model.name);
  const session = createSession({
    id,
    engine,
    model: model.model,
    instructions: writeInstructions(engine.situation(), config.instructions, guidance, prompts.skills),
    tools: deferForModel(offerToModel(engine, profile, config, model.provider), config, {
      provider: model.provider,
      wire: model.wire,
      model: model.model.name,
    }),
    changes,
    started: { version, wire: model.wire, ...model.named, ...(options.fork && earlier ? { parent: earlier.id } : {}) },
    limits: { ...readLimits(config), ...options.limits },
    // Only OpenAI itself is known to support it. Others on this wire ignore or refuse the trigger.
    compaction: model.wire === "responses" && model.provider === "openai" ? "provider" : "model",
    request: readRequest(config, options.outputSchema),
    ...(options.onEvent ? { onEvent: options.onEvent } : {}),
    ...(journalPath === undefined ? {} : { journal: openForWriting(journalPath) }),
    ...(earlier ? { records: earlier.records } : {}),
    ...options.kept,
    ...defined({ price, contextWindow: config.context_window }),
  });
  opened.push(session.close);
  if (journalPath !== undefined) tellWhatWasTakenBack(session, journalPath);
  warmUpWhileAsking(session, async () => {
    process.getBuiltinModule("node:crypto").createHash("sha256").digest(); // decisions and the audit log are hashed
    await Promise.allSettled([engine.warmUp(), changes.warmUp()]);
  });
  return { engine, config, model, session, journalPath, guidance, prompts, mcp: own.mcp };
}

/**
 * `callgate undo` in another process cannot write to a journal that is open here. What it left is
 * reported with the next turn.
 */
function tellWhatWasTakenBack(session: Session, journalPath: string): void {
  session.on((event) => {
    if (event.type !== "turn.started") return;
    for (const told of takeTold(journalPath)) session.noteTakenBack(told);
  });
}

/**
 * A model takes seconds to answer, and the first command's sandbox can be ready by then. An answer
 * that comes at once does not need it.
 */
const warmUpAfterMs = 20;

function warmUpWhileAsking(session: Session, warmUp: () => Promise<unknown>): void {
  const stop = session.on((event) => {
    if (event.type !== "request.sent") return;
    stop();
    setTimeout(() => void warmUp(), warmUpAfterMs).unref();
  });
}

/** A session continues with the model it had, whatever the settings say now, unless another one is named. */
function keepModel(config: Config, records: readonly StoredRecord[], flags: ToolFlags): Config {
  if (flags.model !== undefined || flags.provider !== undefined || flags.baseUrl !== undefined) return config;
  // Trusted: each record matched its checksum, so this is the shape we wrote.
  const started = records.findLast(({ type }) => type === "session.started") as SessionStarted | undefined;
  if (started === undefined) return config;
  const { model, provider, base_url, wire } = started;
  // Sessions of earlier versions do not say who ran the model, so only the built-in one can be found again.
  if (provider === undefined && base_url === undefined && model !== "offline") return config;
  const { provider: _provider, base_url: _address, wire: _wire, api_key_env: keyName, ...rest } = config;
  const isSame = provider === config.provider && base_url === config.base_url;
  return {
    ...rest,
    model,
    ...(provider === "offline" ? {} : defined({ provider, base_url })),
    ...defined({ wire: flags.wire ?? wire }),
    // The name of a key belongs to the provider for which it was set.
    ...(isSame ? defined({ api_key_env: keyName }) : {}),
  };
}

function openEarlier(state: string, wanted: string, cwd: string) {
  const folder = realpathSync(cwd);
  const found = findToResume(state, wanted, folder);
  if (found.cwd !== folder)
    say(`callgate: this session began in ${found.cwd} and goes on in ${folder} (--cwd ${found.cwd} goes on there)`);
  const { records, problems } = readJournal(found.path);
  const edited = problems.find(({ what }) => what === "edited");
  if (edited)
    throw new UsageError(`${found.path}, line ${edited.line}: ${edited.detail}; the session cannot be continued`);
  return { ...found, records };
}

/** If another process has the session open, or the folder cannot be written, the user has to deal with it. */
function openForWriting(path: string): GatheringJournal {
  try {
    return gatherRecords(openJournal(path));
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function readLimits(config: Config) {
  return {
    ...defined({ maxRequests: config.max_requests, maxCalls: config.max_calls, maxCostUsd: config.max_cost_usd }),
    ...(config.max_seconds === undefined ? {} : { maxMs: config.max_seconds * 1000 }),
  };
}

function readRequest(config: Config, schema: JsonObject | undefined) {
  return {
    ...defined({ maxOutputTokens: config.max_output_tokens, parallel: config.parallel_tool_calls }),
    ...(config.reasoning_effort === undefined ? {} : { reasoning: { effort: config.reasoning_effort } }),
    ...(schema === undefined ? {} : { outputSchema: { name: "answer", schema, strict: true } }),
  };
}
