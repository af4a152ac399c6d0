/**
 * What a handler may ask while it runs: a person, or the model and the folders of the side that made
 * the call. These are types, and the one error for a question that nobody here can answer.
 */
import { CallError } from "../base/error.ts";
import type { JsonObject } from "../base/json.ts";

/** Fields for a person to fill in. */
export interface FormQuestion {
  readonly kind: "form";
  readonly message: string;
  /** A JSON Schema object with flat fields: text, numbers, yes or no, choices, with defaults. */
  readonly fields: JsonObject;
}

/** Something that must not pass through us, such as a password. The person opens the address. */
export interface PageQuestion {
  readonly kind: "page";
  readonly message: string;
  readonly url: string;
}

/** A question to the model on the other side. */
export interface ModelQuestion {
  readonly kind: "model";
  readonly prompt: string;
  readonly system?: string;
  readonly maxTokens: number;
}

/** Asks for the folders in which the other side works. */
export interface FoldersQuestion {
  readonly kind: "folders";
}

/** Something that a tool asks while it runs. */
export type Question = FormQuestion | PageQuestion | ModelQuestion | FoldersQuestion;

/** The kinds of questions. */
export type QuestionKind = Question["kind"];

/** Several questions asked together, each under a name that the handler chose. */
export type Questions = Readonly<Record<string, Question>>;

/** Whether the person opened the page. */
export interface PageAnswer {
  /** Declined: a person said no. Cancelled: the person closed the question. */
  readonly action: "accept" | "decline" | "cancel";
}

/** What the person filled in. */
export interface FormAnswer extends PageAnswer {
  /** The values, which fit the fields. Empty unless the answer is yes. */
  readonly content: Readonly<Record<string, string | number | boolean | readonly string[]>>;
}

/** What the model said. */
export interface ModelAnswer {
  readonly text: string;
  readonly model: string;
  readonly stopReason?: string;
}

/** The folders that the tool may know of. */
export interface FoldersAnswer {
  readonly folders: readonly { readonly uri: string; readonly name?: string }[];
}

/** The answer that belongs to a question. */
export type AnswerTo<Q extends Question> = Q extends FormQuestion
  ? FormAnswer
  : Q extends PageQuestion
    ? PageAnswer
    : Q extends ModelQuestion
      ? ModelAnswer
      : FoldersAnswer;

/** An answer to any kind of question. */
export type AnyAnswer = FormAnswer | PageAnswer | ModelAnswer | FoldersAnswer;

/** Answers by the names of their questions. */
export type Answers = Readonly<Record<string, AnyAnswer>>;

/** `await ctx.ask({ who: { kind: "form", … } })`: all questions at once, with answers under the same names. */
export interface Ask {
  /** Throws a CallError if nobody can answer, or nobody did. */
  <const Qs extends Questions>(questions: Qs): Promise<{ readonly [Name in keyof Qs]: AnswerTo<Qs[Name]> }>;
  /** Whether this kind of question can be asked in this call. */
  can(kind: QuestionKind): boolean;
}

/** Who answers what calls ask. */
export interface Answerer {
  can(callId: string, kind: QuestionKind): boolean;
  /** Answers every question, or returns `undefined` if nobody did. Throws `cannotAsk` if one cannot be asked. */
  answer(asked: QuestionRequest, signal: AbortSignal): Promise<Answers | undefined>;
}

/** Questions of one call, for whoever answers them. */
export interface QuestionRequest {
  readonly call: { readonly id: string; readonly tool: string };
  readonly questions: Questions;
}

const names: Readonly<Record<QuestionKind, string>> = {
  form: "fill in a form",
  page: "open a page",
  model: "answer as a model",
  folders: "say which folders they work in",
};

export function cannotAsk(kinds: readonly QuestionKind[]): CallError {
  const wanted = [...new Set(kinds)].map((kind) => names[kind]).join(", or to ");
  return new CallError("needs_approval", `The tool has to ask, and nobody is here to ${wanted}.`, {
    hint: "Run it where somebody can be asked, or do it another way.",
  });
}
