/** One session: its timeline, its state, and the place to say something. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApprovalReply } from "../src/client/index.ts";
import { EntryView } from "./entries.tsx";
import { VirtualList } from "./list.tsx";
import { answer, attempt, can, client, open, openSession, type OpenSession, revisionOf } from "./state.ts";
import { describeCount, visible } from "./text.ts";
import type { CallEntry, Entry, Totals } from "./timeline.ts";

export function SessionView({ id }: { readonly id: string }) {
  useEffect(() => {
    if (open.value?.id !== id) openSession(id);
  }, [id]);
  const opened = open.value;
  if (opened === undefined || opened.id !== id) return <p class="soft padded">Loading …</p>;
  return <Opened opened={opened} />;
}

function Opened({ opened }: { readonly opened: OpenSession }) {
  const [wanted, setWanted] = useState("");
  // Read, so that this is drawn again when entries come or go.
  void opened.revision.value;
  const { timeline } = opened;
  const words = wanted.toLowerCase();
  const shown = words === "" ? timeline.entries : timeline.entries.filter((entry) => searchText(entry).includes(words));
  const onAnswer = can("approve")
    ? (entry: CallEntry, reply: ApprovalReply) => answer(opened.id, entry.id, reply)
    : undefined;
  return (
    <div class="session">
      <Head opened={opened} wanted={wanted} onWanted={setWanted} />
      <Plan steps={timeline.plan} />
      <VirtualList
        count={shown.length}
        keyOf={(index) => shown[index]?.key ?? String(index)}
        draw={(index) => {
          const entry = shown[index];
          return entry === undefined ? null : <Drawn opened={opened} entry={entry} onAnswer={onAnswer} />;
        }}
        follow={words === ""}
        label="what happened"
      />
      {shown.length > 0 ? null : (
        <p class="nothing">
          {words !== "" ? "Nothing in this session has these words." : "Nothing has happened here yet."}
        </p>
      )}
      {can("talk") && opened.row.value?.kind !== "recorded" && opened.row.value?.kind !== "gateway" ? (
        <Composer opened={opened} />
      ) : null}
    </div>
  );
}

/** Drawn again only when this entry has changed. */
function Drawn(props: {
  readonly opened: OpenSession;
  readonly entry: Entry;
  readonly onAnswer: ((entry: CallEntry, reply: ApprovalReply) => Promise<boolean>) | undefined;
}) {
  void revisionOf(props.opened, props.entry.key).value;
  return <EntryView entry={props.entry} onAnswer={props.onAnswer} />;
}

function searchText(entry: Entry): string {
  if (entry.kind === "call") return `${entry.tool} ${JSON.stringify(entry.input)} ${entry.output}`.toLowerCase();
  return entry.kind === "diff" ? entry.diff.toLowerCase() : entry.text.toLowerCase();
}

const exports = [
  ["html", "a page that stands alone"],
  ["md", "Markdown"],
  ["jsonl", "its records"],
] as const;

/** What was taken back is in the timeline; what could not be is said where the person looks. */
async function undo(id: string): Promise<void> {
  await attempt(async () => {
    const { conflicts } = await client.undo(id);
    if (conflicts.length > 0) throw new Error(`Not taken back: ${conflicts.join("; ")}`);
  });
}

function Head({
  opened,
  wanted,
  onWanted,
}: {
  readonly opened: OpenSession;
  readonly wanted: string;
  readonly onWanted: (text: string) => void;
}) {
  const row = opened.row.value;
  void opened.revision.value; // the totals are the timeline's, which is no signal
  const { totals, model } = opened.timeline;
  const isBusy = row?.status === "running" || row?.status === "waiting";
  return (
    <header class="head">
      <div class="title">
        <a class="back" href="#/" aria-label="all sessions">
          ‹
        </a>
        <div>
          <h2>{visible(row?.title ?? "") || opened.id}</h2>
          <p class="facts">
            <span class={`state ${row?.status ?? "idle"}`}>{row?.status ?? "…"}</span>
            <span>{visible(row?.model ?? model)}</span>
            <span>{`${describeCount(totals.input)} tokens in, ${describeCount(totals.output)} out`}</span>
            {totals.costUsd === undefined ? null : <span>{`$${totals.costUsd.toFixed(4)}`}</span>}
            {totals.contextTokens === undefined ? null : <span>{describeContext(totals)}</span>}
            {row?.cwd ? <span class="folder">{visible(row.cwd)}</span> : null}
          </p>
        </div>
      </div>
      <div class="tools">
        <input
          type="search"
          placeholder="Search in this session"
          aria-label="Search in this session"
          value={wanted}
          onInput={(event) => onWanted(event.currentTarget.value)}
        />
        {isBusy && can("talk") ? (
          <button type="button" onClick={() => void attempt(() => client.cancel(opened.id))}>
            Interrupt
          </button>
        ) : null}
        {can("approve") && !isBusy && row?.kind === "session" ? (
          <button type="button" onClick={() => void undo(opened.id)} title="the newest file changes or kept command">
            Undo
          </button>
        ) : null}
        <details class="export">
          <summary class="button">Export</summary>
          <ul>
            {exports.map(([format, name]) => (
              <li key={format}>
                <a href={`/v1/sessions/${encodeURIComponent(opened.id)}/export?format=${format}`} download>
                  {name}
                </a>
              </li>
            ))}
          </ul>
        </details>
      </div>
    </header>
  );
}

function describeContext({ contextTokens = 0, contextWindow }: Totals): string {
  if (contextWindow === undefined) return `${describeCount(contextTokens)} tokens in context`;
  const left = Math.max(0, 1 - contextTokens / contextWindow);
  return `${Math.round(left * 100)} % of ${describeCount(contextWindow)} context left`;
}

function Plan({ steps }: { readonly steps: readonly { readonly step: string; readonly status: string }[] }) {
  if (steps.length === 0) return null;
  const done = steps.filter(({ status }) => status === "completed").length;
  return (
    <details class="plan" open>
      <summary>
        Plan <span class="soft">{`${done} of ${steps.length} done`}</span>
      </summary>
      <ol>
        {steps.map(({ step, status }) => (
          <li key={step} class={status}>
            {step} <span class="soft">{status.replaceAll("_", " ")}</span>
          </li>
        ))}
      </ol>
    </details>
  );
}

function Composer({ opened }: { readonly opened: OpenSession }) {
  const [text, setText] = useState("");
  const key = useRef<string | undefined>(undefined);
  const isRunning = opened.row.value?.status === "running";
  const send = async (mode: "queue" | "steer") => {
    const said = text.trim();
    if (said === "") return;
    // The same key if the person presses again because nothing seemed to happen.
    key.current ??= crypto.randomUUID();
    if (!(await attempt(() => client.send(opened.id, { text: said, mode }, key.current)))) return;
    key.current = undefined;
    setText("");
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void send("queue");
      }}
    >
      <label class="hidden" for="say">
        Message
      </label>
      <textarea
        id="say"
        rows={2}
        value={text}
        placeholder={
          isRunning ? "Queue a message, or say it now" : "Message: Enter sends, Shift+Enter makes a new line"
        }
        onInput={(event) => {
          key.current = undefined; // other words are another message
          setText(event.currentTarget.value);
        }}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          void send("queue");
        }}
      />
      <div>
        <button type="submit" class="yes">
          {isRunning ? "Queue" : "Send"}
        </button>
        {isRunning ? (
          <button type="button" onClick={() => void send("steer")}>
            Say it now
          </button>
        ) : null}
      </div>
    </form>
  );
}
