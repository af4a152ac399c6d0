/** A recorded session in one file that stands alone: the same view, its records inside the page, no request to anybody. */
import { render } from "preact";
import type { SessionRecord } from "../src/client/index.ts";
import { EntryView } from "./entries.tsx";
import { createTimeline } from "./timeline.ts";
import { describeCount } from "./text.ts";

const data = document.querySelector("#records")?.textContent ?? "[]";
// Written by our own export.
const records = JSON.parse(data) as readonly SessionRecord[];
const timeline = createTimeline();
for (const record of records) timeline.add(record);
const { totals } = timeline;

const place = document.querySelector("#app");
if (place !== null)
  render(
    <main class="recording">
      <header class="head">
        <h1>{document.title}</h1>
        <h2 class="hidden">What happened</h2>
        <p class="soft">
          {timeline.model} · {describeCount(totals.input)} in, {describeCount(totals.output)} out · recorded by Callgate
        </p>
      </header>
      {timeline.entries.map((entry) => (
        <EntryView key={entry.key} entry={entry} />
      ))}
    </main>,
    place,
  );
