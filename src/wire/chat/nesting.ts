/** Where a growing JSON text ends: each character is looked at once, whatever pieces it comes in. */
export interface Nesting {
  /** The first bracket was closed again. */
  readonly isOver: boolean;
  /** How far the text goes until then. */
  readonly end: number;
  read(text: string): void;
}

export function createNesting(): Nesting {
  let depth = 0;
  let isOver = false;
  let end = 0;
  let inString = false;
  let isEscaped = false;

  function read(char: string): void {
    if (isEscaped) isEscaped = false;
    else if (inString) {
      if (char === "\\") isEscaped = true;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === "{" || char === "[") depth++;
    else if ((char === "}" || char === "]") && --depth <= 0) isOver = true;
  }

  return {
    get isOver() {
      return isOver;
    },
    get end() {
      return end;
    },
    read(text) {
      for (let at = 0; at < text.length && !isOver; at++, end++) read(text[at]!);
    },
  };
}
