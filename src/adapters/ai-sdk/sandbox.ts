import { CallError } from "../../base/error.ts";
import { createQueue } from "../../base/queue.ts";
import { anySignal } from "../../base/signal.ts";
import { failureOf, type ToolHost } from "../calls.ts";
import { sandboxToolNames, sandboxTools, type Job, type Looked } from "./sandbox-tools.ts";

interface AbortOption {
  readonly abortSignal?: AbortSignal;
}
interface PathOptions extends AbortOption {
  readonly path: string;
}
interface CommandOptions extends AbortOption {
  readonly command: string;
  readonly workingDirectory?: string;
  readonly env?: Readonly<Record<string, string>>;
}
interface WriteOptions<Content> extends PathOptions {
  readonly content: Content;
}

/** A running command, with its output as it arrives. */
export interface AiSdkSandboxProcess {
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  wait(): Promise<{ exitCode: number }>;
  kill(): Promise<void>;
}

/** `Experimental_SandboxSession` of AI SDK 7, on this machine and confined. */
export interface AiSdkSandbox {
  readonly description: string;
  run(options: CommandOptions): Promise<{ exitCode: number; stdout: string; stderr: string }>;
  /** Standard input cannot be kept open, so `stdin: true` is refused. */
  spawn(options: CommandOptions & { readonly stdin?: false }): Promise<AiSdkSandboxProcess>;
  spawn(options: CommandOptions & { readonly stdin: true }): Promise<never>;
  spawn(options: CommandOptions & { readonly stdin?: boolean }): Promise<never>;
  readFile(options: PathOptions): Promise<ReadableStream<Uint8Array> | null>;
  readBinaryFile(options: PathOptions): Promise<Uint8Array | null>;
  readTextFile(
    options: PathOptions & { readonly encoding?: string; readonly startLine?: number; readonly endLine?: number },
  ): Promise<string | null>;
  writeFile(options: WriteOptions<ReadableStream<Uint8Array>>): Promise<void>;
  writeBinaryFile(options: WriteOptions<Uint8Array>): Promise<void>;
  writeTextFile(options: WriteOptions<string> & { readonly encoding?: string }): Promise<void>;
  stat(options: PathOptions): Promise<{ type: "file" | "directory" | "other"; size: number } | null>;
  listDirectory(
    options: PathOptions,
  ): Promise<{ name: string; type: "file" | "directory" | "symlink" | "other" }[] | null>;
  deleteFile(options: PathOptions): Promise<boolean>;
}

/**
 * An engine as the sandbox of AI SDK 7 (`experimental_sandbox`). The host's own tools, and the shell and
 * file tools of providers, run here and are judged and recorded like every call. What policy refuses, or
 * would ask about when nobody is there, is rejected.
 */
export function toAiSdkSandbox(engine: ToolHost): AiSdkSandbox {
  const jobs = new Map<string, Job>();
  for (const tool of sandboxTools(jobs)) if (engine.registry.find(tool.name) === undefined) engine.registry.add(tool);

  const perform: Perform = async (name, input, { abortSignal }, job = {}) => {
    const id = `sandbox_${crypto.randomUUID()}`;
    jobs.set(id, job);
    try {
      const asked = { id, name, kind: "function", arguments: JSON.stringify(input), askedAt: Date.now() } as const;
      const ended = await engine.run(asked, abortSignal ?? new AbortController().signal);
      const failure = failureOf(ended);
      if (failure !== undefined) throw failure;
      return job.result;
    } finally {
      jobs.delete(id);
      job.stdout?.end();
      job.stderr?.end();
    }
  };
  const runCommand = (options: CommandOptions, job: Job) => {
    const { command, workingDirectory, env = {} } = options;
    const exports = Object.entries(env).map(([name, value]) => {
      if (!/^[A-Za-z_]\w*$/.test(name)) throw new TypeError(`toAiSdkSandbox: '${name}' is no name of a variable`);
      return `export ${name}=${quote(value)}; `;
    });
    const cwd = workingDirectory === undefined ? {} : { cwd: workingDirectory };
    // This is the result that the tool of that name makes.
    return perform(
      sandboxToolNames.run,
      { command: `${exports.join("")}${command}`, ...cwd },
      options,
      job,
    ) as Promise<{
      exitCode: number;
      stdout: string;
      stderr: string;
    }>;
  };
  return {
    get description() {
      const { cwd, sandbox, network } = engine.situation();
      return `Commands run on this machine, confined (${sandbox}, network ${network}). Files are below ${cwd}.`;
    },
    run: (options) => runCommand(options, {}),
    async spawn(options) {
      if (options.stdin === true)
        throw new TypeError("toAiSdkSandbox: a command's standard input cannot be kept open; leave out 'stdin'");
      const stop = new AbortController();
      const job = { stdout: createQueue<string>(), stderr: createQueue<string>() };
      const abortSignal = anySignal([stop.signal, ...(options.abortSignal ? [options.abortSignal] : [])]);
      const end = runCommand({ ...options, abortSignal }, job);
      end.catch(() => undefined); // `wait` reports the error
      const process: AiSdkSandboxProcess = {
        stdout: toBytes(job.stdout),
        stderr: toBytes(job.stderr),
        wait: async () => ({ exitCode: (await end).exitCode }),
        async kill() {
          stop.abort();
          await end.catch(() => undefined);
        },
      };
      // Their type has an overload with an open stdin, which was refused above.
      return process as never;
    },
    ...sandboxFiles(perform),
  };
}

type Perform = (name: string, input: object, how: AbortOption, job?: Job) => Promise<unknown>;

function sandboxFiles(perform: Perform): Omit<AiSdkSandbox, "description" | "run" | "spawn"> {
  const readBytes = async ({ path, ...how }: PathOptions) =>
    ((await perform(sandboxToolNames.read, { path }, how)) ?? null) as Uint8Array | null; // as the tool below made it
  const writeBytes = async ({ path, ...how }: PathOptions, data: Uint8Array) =>
    void (await perform(sandboxToolNames.write, { path }, how, { data }));
  const look = async ({ path, ...how }: PathOptions) =>
    (await perform(sandboxToolNames.look, { path }, how)) as Looked | undefined; // as the tool below made it

  return {
    async readFile(options) {
      const bytes = await readBytes(options);
      return bytes && new Blob([bytes as Uint8Array<ArrayBuffer>]).stream();
    },
    readBinaryFile: readBytes,
    async readTextFile({ encoding = "utf-8", startLine, endLine, ...options }) {
      const bytes = await readBytes(options);
      if (bytes === null) return null;
      const text = new TextDecoder(encoding).decode(bytes);
      if (startLine === undefined && endLine === undefined) return text;
      return text
        .split("\n")
        .slice((startLine ?? 1) - 1, endLine)
        .join("\n");
    },
    async writeFile(options) {
      await writeBytes(options, new Uint8Array(await new Response(options.content).arrayBuffer()));
    },
    writeBinaryFile: (options) => writeBytes(options, options.content),
    writeTextFile: ({ content, encoding = "utf-8", ...options }) => {
      if (!Buffer.isEncoding(encoding)) throw new TypeError(`toAiSdkSandbox: there is no encoding '${encoding}'`);
      return writeBytes(options, Buffer.from(content, encoding));
    },
    async stat(options) {
      const found = await look(options);
      return found === undefined ? null : { type: found.type, size: found.size };
    },
    async listDirectory(options) {
      const found = await look(options);
      if (found !== undefined && found.entries === undefined)
        throw new CallError("failed", `${options.path} is not a folder.`);
      return found?.entries ?? null;
    },
    deleteFile: async ({ path, ...how }) => (await perform(sandboxToolNames.remove, { path }, how)) === true,
  };
}

function toBytes(text: AsyncIterable<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const pieces = text[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done === true) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
  });
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
