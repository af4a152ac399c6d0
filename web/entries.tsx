/** One thing that happened in a session, each kind as a person wants to see it. */
import { useMemo, useState } from "preact/hooks";
import type { ApprovalReply } from "../src/client/index.ts";
import { Approval, effectsOf } from "./approval.tsx";
import { Diff } from "./diff.tsx";
import { describeInput, describeMs, firstLine, isToldBy, toSafeHtml, visible } from "./text.ts";
import type { CallEntry, Entry, MessageEntry, Picture, ThoughtEntry } from "./timeline.ts";

export interface EntryProps {
  readonly entry: Entry;
  /** Left out where nobody can answer: a recorded session, an exported file. */
  readonly onAnswer?: ((entry: CallEntry, reply: ApprovalReply) => Promise<boolean>) | undefined;
}

/** Longer words are shown in part. */
const maxShown = 100_000;

export function EntryView({ entry, onAnswer }: EntryProps) {
  switch (entry.kind) {
    case "message":
      return <Message entry={entry} />;
    case "thought":
      return <Thought entry={entry} />;
    case "call":
      return <Call entry={entry} onAnswer={onAnswer} />;
    case "diff":
      return (
        <details class="entry diff" open={entry.diff.length < 4000}>
          <summary>
            <span class="label">changed</span> {entry.files.length === 1 ? "1 file" : `${entry.files.length} files`}
            <span class="soft">
              {" "}
              {entry.files
                .slice(0, 4)
                .map(({ path }) => visible(path))
                .join(", ")}
            </span>
          </summary>
          <Diff text={entry.diff} />
        </details>
      );
    case "note":
      return (
        <p class={`entry note ${entry.level}`} role={entry.level === "error" ? "alert" : undefined}>
          {visible(entry.text)}
        </p>
      );
  }
}

const who = { user: "You", assistant: "Model", system: "Instructions" } as const;

function Message({ entry }: { readonly entry: MessageEntry }) {
  const { text, role } = entry;
  const html = useMemo(() => toSafeHtml(text.slice(0, maxShown), { breaks: role === "user" }), [text, role]);
  const body = (
    <>
      <div class="markdown" dangerouslySetInnerHTML={{ __html: html }} />
      {text.length > maxShown ? (
        <p class="soft">{text.length - maxShown} more characters are left out here; the export as Markdown has them.</p>
      ) : null}
    </>
  );
  if (entry.role === "system")
    return (
      <details class="entry message system">
        <summary>
          <span class="label">{who.system}</span> <span class="soft">{firstLine(entry.text, 80)}</span>
        </summary>
        {body}
      </details>
    );
  return (
    <article class={`entry message ${entry.role}`} aria-busy={entry.live}>
      <h3 class="label">{who[entry.role]}</h3>
      {body}
      <Pictures pictures={entry.pictures} />
    </article>
  );
}

function Thought({ entry }: { readonly entry: ThoughtEntry }) {
  return (
    <details class="entry thought">
      <summary>
        <span class="label">{entry.live ? "thinking …" : "thought"}</span>{" "}
        <span class="soft">{firstLine(entry.text, 100)}</span>
      </summary>
      <div class="markdown" dangerouslySetInnerHTML={{ __html: toSafeHtml(entry.text.slice(0, maxShown)) }} />
    </details>
  );
}

const stateWords = {
  asked: "asked",
  waiting: "waits for you",
  running: "running",
  ok: "done",
  failed: "failed",
} as const;
const foldedLines = 12;

function Call({ entry, onAnswer }: { readonly entry: CallEntry; readonly onAnswer: EntryProps["onAnswer"] }) {
  const { tool, input, state, ruling, durationMs, output, pictures, approval } = entry;
  const isWaiting = state === "waiting" && approval !== undefined;
  const line = describeInput(input);
  return (
    <article class={`entry call ${state}`} aria-label={`${tool} ${stateWords[state]}`}>
      <header>
        <span class="dot" aria-hidden="true" />
        <strong>{visible(tool)}</strong>
        <code class="what">{line}</code>
        <span class="end">
          {stateWords[state]}
          {state === "failed" ? whyFailed(entry) : ""}
          {durationMs === undefined ? "" : ` · ${describeMs(durationMs)}`}
        </span>
      </header>
      {ruling === undefined || isWaiting ? null : (
        <p class="ruling soft">
          {ruling.decision === "allow" ? "Allowed" : ruling.decision === "deny" ? "Refused" : "Asked"} by{" "}
          {ruling.by === "person" ? "a person" : ruling.by}: {visible(ruling.reason)}
          {ruling.rule === undefined ? null : <code> {visible(ruling.rule)}</code>}
          {ruling.ruleFile === undefined ? "" : ` in ${visible(ruling.ruleFile)}`}
          {entry.confined === false ? " (outside the sandbox)" : ""}
        </p>
      )}
      {isToldBy(line, input) ? null : <Arguments input={input} />}
      {isWaiting && approval !== undefined ? (
        <Approval
          key={approval.hash}
          request={approval}
          onAnswer={onAnswer === undefined ? undefined : (reply) => onAnswer(entry, reply)}
        />
      ) : null}
      {entry.answer === undefined ? null : <p class="soft">Answer: {visible(entry.answer)}</p>}
      <Did effects={entry.effects} />
      {output === "" ? null : <Output text={output} />}
      {entry.denied === undefined ? null : (
        <p class="bad">
          {entry.denied.inferred ? "Probably refused" : "Refused"} by the sandbox: {visible(entry.denied.reason)}
        </p>
      )}
      <Pictures pictures={pictures} />
    </article>
  );
}

function whyFailed({ code, exitCode }: CallEntry): string {
  if (exitCode !== undefined) return `, exit ${exitCode}`;
  return code === undefined || code === "failed" ? "" : `, ${code.replaceAll("_", " ")}`;
}

/** What a command did to files, where it ran with its writes held back. */
function Did({ effects }: { readonly effects: unknown }) {
  const list = effectsOf(effects);
  if (list.length === 0) return null;
  const kept = (effects as { readonly kept?: unknown }).kept;
  return (
    <details class="arguments did">
      <summary class="soft">
        {list.length === 1 ? "1 file" : `${list.length} files`} touched
        {kept === "none" ? ", nothing kept" : kept === "part" ? ", kept in part" : ""}
      </summary>
      <ul class="plain">
        {list.map(({ path, kind }) => (
          <li key={path}>
            <span class="kind">{kind}</span> {visible(path)}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** Fields as words: one a line, long ones folded. */
function Arguments({ input }: { readonly input: unknown }) {
  if (typeof input !== "object" || input === null) return null;
  const fields = Object.entries(input as Readonly<Record<string, unknown>>);
  if (fields.length === 0) return null;
  return (
    <details class="arguments">
      <summary class="soft">{fields.length === 1 ? "1 argument" : `${fields.length} arguments`}</summary>
      <dl>
        {fields.map(([name, value]) => (
          <div key={name}>
            <dt>{visible(name)}</dt>
            <dd>
              <pre>{visible(typeof value === "string" ? value : JSON.stringify(value, null, 2))}</pre>
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

/** The end of it: what is not shown is not worked on either, since an output may have fifty megabytes. */
function Output({ text }: { readonly text: string }) {
  const [isWhole, setWhole] = useState(false);
  const count = useMemo(() => countLines(text), [text]);
  const isLong = count > foldedLines || text.length > 2000;
  const end = visible(text.slice(isLong && !isWhole ? -2000 : -maxShown));
  const cut = isLong && !isWhole ? end.split("\n").slice(-foldedLines).join("\n") : end;
  const isDiff = /^(?:diff --git|--- )/m.test(cut) && /^\+\+\+ /m.test(cut);
  return (
    <div class="output">
      {isLong ? (
        <button type="button" class="link" onClick={() => setWhole(!isWhole)} aria-expanded={isWhole}>
          {isWhole ? "show less" : count === 1 ? "show the whole line" : `show all ${count} lines`}
        </button>
      ) : null}
      {isDiff ? <Diff text={cut} /> : <pre>{cut}</pre>}
      {isWhole && text.length > maxShown ? (
        <p class="soft">The first {text.length - maxShown} characters are left out here; the export has them.</p>
      ) : null}
    </div>
  );
}

function countLines(text: string): number {
  let lines = 1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}

function Pictures({ pictures }: { readonly pictures: readonly Picture[] }) {
  return pictures.length === 0 ? null : (
    <div class="pictures">
      {pictures.map(({ mediaType, data }, index) => (
        <img key={index} alt={`picture ${index + 1} of this result`} src={`data:${mediaType};base64,${data}`} />
      ))}
    </div>
  );
}
