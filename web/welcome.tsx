/** What stands where no session is open: how a browser comes in, and then the task for a new session. */
import { useState } from "preact/hooks";
import { attempt, can, client, enter, me } from "./state.ts";
import { firstLine, visible } from "./text.ts";

/** For a browser that came without the link, or with one that was used already. */
export function Entrance() {
  const [token, setToken] = useState("");
  return (
    <form
      class="welcome"
      onSubmit={(event) => {
        event.preventDefault();
        if (token.trim() !== "") void attempt(() => enter(token.trim()));
      }}
    >
      <h2>This browser has to be let in</h2>
      <p>
        Open the link that <code>callgate serve</code> printed: it works once, and for 15 minutes. Or enter a token: the
        one that it printed, or one of your own that <code>callgate serve token add NAME</code> made.
      </p>
      <p>
        <label for="token">Token</label>{" "}
        <input
          id="token"
          type="password"
          autocomplete="current-password"
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
      </p>
      <button type="submit" class="yes">
        Enter
      </button>
    </form>
  );
}

/** A task for a new session. */
export function Welcome() {
  const [text, setText] = useState("");
  const begin = async () => {
    const said = text.trim();
    if (said === "") return;
    await attempt(async () => {
      const session = await client.create({ title: firstLine(said, 80) }, crypto.randomUUID());
      await client.send(session.id, { text: said }, crypto.randomUUID());
      setText("");
      location.hash = `/s/${encodeURIComponent(session.id)}`;
    });
  };
  if (me.value === undefined) return <p class="padded soft">Connecting …</p>;
  return (
    <div class="welcome">
      <h2>
        <a class="back" href="#/" aria-label="all sessions">
          ‹
        </a>
        {can("talk") ? "What should be done?" : "Choose a session to watch"}
      </h2>
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
            placeholder={
              me.value.model === "offline"
                ? "run npm test\nread src/index.ts\nreplace 'a' with 'b' in file.txt"
                : "Describe the task: Enter starts it, Shift+Enter makes a new line"
            }
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
            {me.value.model === "offline"
              ? "No model is set up: this is the built-in planner, which follows plain requests, one a line. "
              : `The model is ${visible(me.value.model)}. `}
            Every call passes the gate. What needs a person waits in the inbox.
          </p>
        </form>
      ) : null}
    </div>
  );
}
