/** Every slip that is understood, by the name it has on a call, with what the model wrote. Nothing else is repaired. */
export const repairs = {
  "bad-escape": "a backslash before a character that needs none",
  "bare-name": "the tool's name without its tag or marker, elements of its parameters below",
  cdata: "a value inside `<![CDATA[…]]>` where values are plain text",
  comment: "a comment in JSON",
  "control-character": "a raw line end or tab inside a JSON string",
  "double-encoded": "a list or object as a JSON string of itself",
  "duplicate-argument":
    "a parameter or a key given again where the schema wants no list: the last one counts, and a person is asked",
  "escaped-newline": "the two characters `\\n` between tags instead of a line end",
  "glued-attribute": "no space before the first attribute of a tag",
  "implicit-close": "a closing tag or marker left out where only one thing could follow",
  "implicit-open": "the opening tag of a value left out",
  "json-body": "the arguments as JSON where elements belong",
  "loose-number": "a number as Python or JavaScript would take it: `+1`, `.5`, `1_000`",
  "missing-block": "a call without the block around it",
  "missing-comma": "no comma between two values",
  "missing-prefix": "a call without the word before its name",
  "mixed-forms": "a call in another form than the answer's first one: a person is asked",
  "name-from-arguments": "a counter instead of a name; only one tool takes these arguments",
  "name-in-text": "`<function>NAME</function>` instead of `<function=NAME>`",
  "nameless-parameter": "`<parameter>NAME</parameter>VALUE`",
  "other-form": "the form of a neighbouring dialect",
  "property-tags": "elements named after the parameters instead of the dialect's own",
  "python-literal": "`True`, `False`, `None` in JSON",
  "single-quotes": "a JSON string in single quotes",
  "stray-quote": "a quoting token too many",
  "text-input": "plain text for the tool's only parameter",
  "trailing-comma": "a comma before a closing bracket",
  "unbracketed-list": "numbers with commas or line ends between them, without the brackets",
  "unclosed-tag": "an opening tag without its `>`",
  "unopened-tag": "an opening tag without its `<`",
  "unquoted-key": "a key without quotes in JSON",
  "unquoted-string": "a word without quotes as a value",
  "unquoted-text": "text over several lines as a YAML value, without quotes or `|`",
  "value-wrapper": "`<value>` around a value that is no text",
  "wrapped-arguments": "all arguments inside one parameter called `arguments`, `input` or `properties`",
} as const;

export type Repair = keyof typeof repairs;

/** Where a reader notes what it repaired. */
export interface Notes {
  add(repair: Repair): unknown;
}
