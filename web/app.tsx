/** The frame of the page: where you are, which sessions there are, and what is open. */
import { useState } from "preact/hooks";
import { Approval } from "./approval.tsx";
import { Policy } from "./policy.tsx";
import { SessionView } from "./session.tsx";
import { answer, approvals, attempt, can, client, me, problem, route, sessions, switchTheme, theme } from "./state.ts";
import { visible } from "./text.ts";

export function App() {
  document.documentElement.dataset["theme"] = theme.value;
  const id = /^\/s\/(.+)$/.exec(route.value)?.[1];
  const isOpen = route.value !== "/";
  return (
    <div class={`app ${isOpen ? "reading" : "choosing"}`}>
      <a class="skip" href="#main" onClick={(event) => jump(event)}>
        Skip to the content
      </a>
      <Sidebar current={id === undefined ? undefined : decodeURIComponent(id)} />
      <main id="main" tabIndex={-1}>
        {problem.value === undefined ? null : (
          <p class="problem" role="alert">
            {visible(problem.value)}{" "}
            <button type="button" class="link" onClick={() => (problem.value = undefined)}>
              close
            </button>
          </p>
        )}
        {id !== undefined ? (
          <SessionView id={decodeURIComponent(id)} />
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

/** The address after the hash is our own route: the focus is moved by hand. */
function jump(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("#main")?.focus();
}

const filters = ["all", "running", "waiting", "idle"] as const;

function Sidebar({ current }: { readonly current: string | undefined }) {
  const [wanted, setWanted] = useState("");
  const [status, setStatus] = useState<(typeof filters)[number]>("all");
  const words = wanted.toLowerCase();
  const shown = sessions.value.filter(
    (session) =>
      (status === "all" || session.status === status) &&
      `${session.title} ${session.id} ${session.model}`.toLowerCase().includes(words),
  );
  return (
    <nav class="sidebar" aria-label="Sessions">
      <header>
        <h1>
          <a href="#/">Callgate</a>
        </h1>
        <button
          type="button"
          class="link"
          onClick={switchTheme}
          aria-label={`switch to ${theme.value === "dark" ? "light" : "dark"} colours`}
        >
          {theme.value === "dark" ? "light" : "dark"}
        </button>
      </header>
      <p class="links">
        <a href="#/inbox" aria-current={route.value === "/inbox" ? "page" : undefined}>
          Inbox <span class={approvals.value.length > 0 ? "count" : "soft"}>{approvals.value.length}</span>
        </a>
        <a href="#/policy" aria-current={route.value === "/policy" ? "page" : undefined}>
          Tools and rules
        </a>
      </p>
      <input
        type="search"
        placeholder="Search sessions"
        aria-label="Search sessions"
        value={wanted}
        onInput={(event) => setWanted(event.currentTarget.value)}
      />
      <div class="filters" role="group" aria-label="Filter by state">
        {filters.map((name) => (
          <button key={name} type="button" aria-pressed={status === name} onClick={() => setStatus(name)}>
            {name}
          </button>
        ))}
      </div>
      <ul>
        {shown.map((session) => (
          <li key={session.id}>
            <a
              href={`#/s/${encodeURIComponent(session.id)}`}
              aria-current={current === session.id ? "page" : undefined}
            >
              <span class={`state ${session.status}`} aria-hidden="true" />
              <span class="title">{visible(session.title) || session.id}</span>
              <span class="soft">
                {session.status === "waiting" && session.waitingFor !== undefined
                  ? `waits: ${visible(session.waitingFor.tool)}`
                  : session.status}{" "}
                · {ago(session.updatedAt)}
              </span>
            </a>
          </li>
        ))}
      </ul>
      {shown.length === 0 ? <p class="soft padded">No session{words === "" ? " yet" : " is called so"}.</p> : null}
      <footer class="soft">{me.value === undefined ? "" : `${me.value.name} · ${me.value.version}`}</footer>
    </nav>
  );
}

function ago(time: string): string {
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h ago` : time.slice(0, 10);
}

function Welcome() {
  const [text, setText] = useState("");
  const begin = async () => {
    const said = text.trim();
    if (said === "") return;
    await attempt(async () => {
      const session = await client.create({ title: said.slice(0, 80) }, crypto.randomUUID());
      await client.send(session.id, { text: said }, crypto.randomUUID());
      setText("");
      location.hash = `/s/${encodeURIComponent(session.id)}`;
    });
  };
  if (me.value === undefined) return <p class="padded soft">Connecting …</p>;
  return (
    <div class="welcome">
      <h2>{can("talk") ? "What shall be done?" : "Choose a session to watch"}</h2>
      {can("talk") ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void begin();
          }}
        >
          <label class="hidden" for="begin">
            The task
          </label>
          <textarea
            id="begin"
            rows={5}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
              event.preventDefault();
              void begin();
            }}
          />
          <button type="submit" class="yes">
            Start a session
          </button>
          <p class="soft">
            The model is {me.value.model}. Every call it makes passes the gate; what needs a person waits in the inbox.
          </p>
        </form>
      ) : null}
    </div>
  );
}

/** Every question of every session in one place. */
function Inbox() {
  return (
    <div class="inbox">
      <h2>Inbox</h2>
      {approvals.value.length === 0 ? <p class="soft">Nobody waits for you.</p> : null}
      {approvals.value.map(({ session, request }) => (
        <section key={`${session.id} ${request.call.id}`} class="entry call waiting">
          <header>
            <span class="dot" aria-hidden="true" />
            <strong>{visible(request.call.tool)}</strong>
            <a href={`#/s/${encodeURIComponent(session.id)}`}>{visible(session.title) || session.id}</a>
          </header>
          <Approval request={request} onAnswer={(reply) => void answer(session.id, request.call.id, reply)} />
        </section>
      ))}
    </div>
  );
}
