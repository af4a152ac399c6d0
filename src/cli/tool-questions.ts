/** What tools ask on their own, put to the person in front of the session. */
import { toVisible } from "../gate/show.ts";
import { cannotAsk, type AnyAnswer, type Question } from "../spec/question.ts";
import { openBrowser } from "./open-browser.ts";
import type { Person } from "./chat/person.ts";

/** The same person, who answers tools' questions as well: forms field by field, pages opened only after a yes. */
export function answersTools(person: Person, openPage: (url: URL) => void = openBrowser): Person {
  return {
    ...person,
    answerer: {
      can: (_callId, kind) => isForPeople(kind),
      async answer({ call, questions }, signal) {
        const answers = new Map<string, AnyAnswer>();
        for (const [name, question] of Object.entries(questions)) {
          if (question.kind !== "form" && question.kind !== "page") throw cannotAsk([question.kind]);
          const { askPerson } = await import("./mcp/ask.ts");
          const asked = { server: call.tool, message: toVisible(question.message), ...modeOf(question) };
          const how = { openPage, who: `The tool '${call.tool}'` };
          const answer = await person.converse((asking) => askPerson(asked, asking, how), signal);
          if (answer === undefined) return undefined;
          answers.set(name, { action: answer.action, content: answer.content ?? {} });
        }
        return Object.fromEntries(answers);
      },
    },
  };
}

function isForPeople(kind: Question["kind"]): boolean {
  return kind === "form" || kind === "page";
}

function modeOf(question: Extract<Question, { kind: "form" | "page" }>) {
  return question.kind === "form"
    ? ({ mode: "form", schema: question.fields } as const)
    : ({ mode: "url", url: question.url } as const);
}
