/** Replacing a text that must occur exactly once, and saying where it is if it does not. */
import { CallError } from "../../index.ts";
import { nearestPlace } from "../patch/nearest.ts";

/** Replaces the one occurrence of `wanted`. If there is none, or several, the error says where they are. */
export function replaceOnce(
  text: string,
  wanted: string,
  by: string,
  path: string,
): { readonly text: string; readonly line: number } {
  const exact = replaceExact(text, wanted, by, path);
  if (exact) return exact;
  // The file has CRLF line ends and the model wrote LF, so it is the same text.
  if (text.includes("\r\n") && wanted.includes("\n")) {
    const crlf = replaceExact(text, toCrlf(wanted), toCrlf(by), path);
    if (crlf) return crlf;
  }
  throw new CallError("failed", `old_str is not in ${path}.`, {
    hint:
      nearestPlace(text.split(/\r?\n/), wanted.split(/\r?\n/)) ??
      "Read the file and copy the text exactly as it is there.",
  });
}

function replaceExact(
  text: string,
  wanted: string,
  by: string,
  path: string,
): { readonly text: string; readonly line: number } | undefined {
  const at = text.indexOf(wanted);
  if (at < 0) return undefined;
  const second = text.indexOf(wanted, at + 1);
  if (second >= 0) {
    throw new CallError(
      "failed",
      `old_str occurs more than once in ${path}: at lines ${lineOf(text, at)} and ${lineOf(text, second)}${text.includes(wanted, second + 1) ? " and further on" : ""}.`,
      {
        hint: "Give more of the text around the place that is meant.",
      },
    );
  }
  // An added line in a CRLF file gets CRLF too.
  const fitting = text.includes("\r\n") && !/[^\r]\n/.test(text) ? toCrlf(by) : by;
  return { text: text.slice(0, at) + fitting + text.slice(at + wanted.length), line: lineOf(text, at) };
}

function toCrlf(text: string): string {
  return text.replace(/\r?\n/g, "\r\n");
}

function lineOf(text: string, at: number): number {
  return text.slice(0, at).split("\n").length;
}
