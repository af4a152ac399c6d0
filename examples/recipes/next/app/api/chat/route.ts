import { createEngine } from "callgate";
import { createProviderModel } from "callgate/model";
import { createSession, type Session } from "callgate/session";
import { openJournal, readJournal } from "callgate/store";
import { answerLater, toUiResponse } from "callgate/ui";
import { existsSync } from "node:fs";
import { tools } from "@/lib/tools";

export const runtime = "nodejs"; // not "edge": tools run here

const engine = createEngine({ tools, workspace: process.env.WORKSPACE ?? "." });
const model = createProviderModel({ provider: "openai", model: "gpt-5", baseUrl: process.env.MODEL_URL });
const open = new Map<string, Promise<Session>>();

/** A chat goes on after a restart: what was said, and what waits for an answer, is in its journal. */
async function openSession(id: string): Promise<Session> {
  const path = `.callgate/chats/${id}.jsonl`;
  const records = existsSync(path) ? readJournal(path).records : [];
  const journal = openJournal(path);
  return createSession({ id, engine, model: await model, approver: answerLater, journal, records });
}

export async function POST(request: Request) {
  const { id, messages } = await request.json();
  if (!/^[\w-]{1,64}$/.test(id)) return new Response("no such chat", { status: 400 });
  const session = open.get(id) ?? openSession(id);
  open.set(id, session);
  session.catch(() => open.delete(id)); // what failed is tried again by the next request
  return toUiResponse(await session, messages);
}
