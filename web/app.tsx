/** The frame of the page: where you are, which sessions there are, and what is open. */
import { useState } from "preact/hooks";
import { Approval } from "./approval.tsx";
import { Policy } from "./policy.tsx";
import { SessionView } from "./session.tsx";
import {
  answer,
  approvals,
  can,
  found,
  hasMore,
  isOutside,
  loadOlder,
  me,
  problem,
  route,
  search,
  sessions,
  switchTheme,
  theme,
} from "./state.ts";
import { visible } from "./text.ts";
import { Entrance, Welcome } from "./welcome.tsx";

export function App() {
  document.documentElement.dataset["theme"] = theme.value;
  const id = sessionIn(route.value);
  const isOpen = route.value !== "/" || isOutside.value;
  return (
    <div class={`app ${isOpen ? "reading" : "choosing"}`}>
      <a class="skip" href="#main" onClick={(event) => jump(event)}>
        Skip to the content
      </a>
      <header class="hidden">
        <h1>Callgate</h1>
      </header>
      <Sidebar current={id} />
      <main id="main" tabIndex={-1}>
        {problem.value === undefined ? null : (
          <p class="problem" role="alert">
            {visible(problem.value)}{" "}
            <button type="button" class="link" onClick={() => (problem.value = undefined)}>
              close
            </button>
          </p>
        )}
        {isOutside.value ? (
          <Entrance />
        ) : id !== undefined ? (
          <SessionView id={id} />
        ) : route.value === "/inbox" ? (
          <Inbox />
        ) : route.value === "/policy" ? (
          <Policy />
        ) : (
          <Welcome />
        )}
      </main>
    </div>
  );
}

/** The session that an address names. One that is not encoded properly names none. */
function sessionIn(address: string): string | undefined {
  try {
    const id = /^\/s\/(.+)$/.exec(address)?.[1];
    return id === undefined ? undefined : decodeURIComponent(id);
  } catch {
    return undefined;
  }
}

/** The address after the hash is our own route: the focus is moved by hand. */
function jump(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("#main")?.focus();
}

const filters = ["all", "running", "waiting", "idle", "faulty"] as const;

function Sidebar({ current }: { readonly current: string | undefined }) {
  const [wanted, setWanted] = useState("");
  const [status, setStatus] = useState<(typeof filters)[number]>("all");
  const isSearch = wanted.trim() !== "";
  const all = (isSearch ? found.value : undefined) ?? sessions.value;
  const shown = all.filter((session) => status === "all" || session.status === status);
  const waiting = approvals.value.length;
  const to = theme.value === "dark" ? "light" : "dark";
  return (
    <nav class="sidebar" aria-label="Sessions">
      <header>
        <p class="brand">
          <a href="#/">Callgate</a>
        </p>
        <button type="button" class="quiet" onClick={switchTheme} aria-label={`switch to ${to} colours`}>
          {to}
        </button>
      </header>
      <ul class="links">
        {can("talk") ? (
          <li>
            <a href="#/new" aria-current={route.value === "/new" ? "page" : undefined}>
              New session
            </a>
          </li>
        ) : null}
        <li>
          <a href="#/inbox" aria-current={route.value === "/inbox" ? "page" : undefined}>
            Inbox <span class={waiting > 0 ? "count" : "none"}>{waiting}</span>
          </a>
        </li>
        <li>
          <a href="#/policy" aria-current={route.value === "/policy" ? "page" : undefined}>
            Tools and rules
          </a>
        </li>
      </ul>
      <input
        type="search"
        placeholder="Search sessions"
        aria-label="Search sessions"
        value={wanted}
        onInput={(event) => {
          setWanted(event.currentTarget.value);
          search(event.currentTarget.value);
        }}
      />
      <div class="filters" role="group" aria-label="Filter by state">
        {filters.map((name) => (
          <button key={name} type="button" aria-pressed={status === name} onClick={() => setStatus(name)}>
            {name}
          </button>
        ))}
      </div>
      {shown.length === 0 ? <p class="nothing">{nothingShown(isSearch, status)}</p> : null}
      <ul class="sessions">
        {shown.map((session) => (
          <li key={session.id}>
            <a
              href={`#/s/${encodeURIComponent(session.id)}`}
              aria-current={current === session.id ? "page" : undefined}
              title={visible(session.title) || session.id}
            >
              <span class={`state ${session.status}`} aria-hidden="true" />
              <span class="title">{visible(session.title) || session.id}</span>
              <span class="soft">
                {session.status === "waiting" && session.waitingFor !== undefined
                  ? `waits: ${visible(session.waitingFor.tool)}`
                  : session.kind === "session"
                    ? session.status
                    : session.kind}{" "}
                · {ago(session.updatedAt)}
              </span>
            </a>
          </li>
        ))}
        {hasMore.value && !isSearch ? (
          <li>
            <button type="button" class="quiet" onClick={() => void loadOlder()}>
              Older sessions
            </button>
          </li>
        ) : null}
      </ul>
      <footer>
        {me.value === undefined ? "" : `tenant ${me.value.tenant} · token ${me.value.name} · ${me.value.version}`}
      </footer>
    </nav>
  );
}

function nothingShown(isSearch: boolean, status: string): string {
  if (isSearch) return "No session was found.";
  return status === "all" ? "No session yet." : `No session is ${status}.`;
}

function ago(time: string): string {
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h ago` : time.slice(0, 10);
}

/** Every question of every session in one place. */
function Inbox() {
  return (
    <div class="inbox">
      <h2>
        <a class="back" href="#/" aria-label="all sessions">
          ‹
        </a>
        Inbox
      </h2>
      {approvals.value.length === 0 ? (
        <p class="nothing">Nothing is waiting for an answer. Questions from all sessions appear here.</p>
      ) : null}
      {approvals.value.map(({ session, request, askedAt }) => (
        <section key={`${session.id} ${request.call.id}`} class="entry call waiting">
          <header>
            <span class="dot" aria-hidden="true" />
            <strong>{visible(request.call.tool)}</strong>
            <a class="what" href={`#/s/${encodeURIComponent(session.id)}`}>
              {visible(session.title) || session.id}
            </a>
            <span class="end">{ago(new Date(askedAt).toISOString())}</span>
          </header>
          <Approval
            key={request.hash}
            request={request}
            onAnswer={can("approve") ? (reply) => answer(session.id, request.call.id, reply) : undefined}
          />
        </section>
      ))}
    </div>
  );
}
