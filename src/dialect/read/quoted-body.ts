/** `call:name{key:value}` with strings between quoting tokens: Gemma. */
import { cutWhy } from "../calls.ts";
import type { QuotedBody } from "../dialect.ts";
import { codeAt, skipMarker, skipSpace, wordUntil, type Reading } from "../input.ts";
import { readLiteral } from "../literal.ts";
import type { Context, Result } from "./context.ts";

export function* readQuotedBody(context: Context, body: QuotedBody): Reading<Result> {
  const { input } = context;
  const prefix = yield* skipMarker(input, [body.prefix]);
  const name = (yield* wordUntil(input, "{<\n"))?.trim();
  if (name === undefined || name === "" || (yield* codeAt(input)) !== 0x7b) return "none";
  const writer = context.call({ name, repairs: prefix === undefined ? ["missing-prefix"] : [] });
  context.opened.push(writer);
  const outcome = yield* readLiteral(input, writer.write, { quote: body.quote }, writer.repairs);
  if (outcome === "ok") {
    writer.close();
    yield* skipSpace(input);
    return "ok";
  }
  writer.fail(outcome === "cut" ? cutWhy : "the arguments cannot be read");
  return "broken";
}
