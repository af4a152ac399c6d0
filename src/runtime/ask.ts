import { CallError } from "../base/error.ts";
import { cannotAsk, type Answerer, type Ask, type QuestionRequest, type Questions } from "../spec/question.ts";

/** How a call asks questions. If nobody can answer, a question ends the call with the reason. */
export function createAsk(call: QuestionRequest["call"], answerer: Answerer | undefined, signal: AbortSignal): Ask {
  const ask = async (questions: Questions) => {
    if (answerer === undefined) throw cannotAsk(Object.values(questions).map(({ kind }) => kind));
    const answers = await answerer.answer({ call, questions }, signal);
    if (answers === undefined)
      throw new CallError("needs_approval", "The tool asked, and nobody answered.", {
        hint: "Ask the user whether they are there before you try again.",
      });
    return answers;
  };
  // An answerer gives each question an answer of its kind, which a map by name cannot express in types.
  return Object.assign(ask, { can: (kind) => answerer?.can(call.id, kind) ?? false } satisfies Pick<Ask, "can">) as Ask;
}
