// The eight bodies a dialect can have, each with the fields it needs: copy the one that is nearest to your model's form.
import { decodeText, encodeCalls, type Dialect } from "callgate/dialect";

const blocks: Record<string, Dialect["blocks"][number]> = {
  json: { open: ["<call>"], close: ["</call>"], bodies: [{ kind: "json" }] },
  named: { open: ["<<"], close: [">>"], bodies: [{ kind: "named", separator: [": "] }] },
  tagged: {
    open: ["<calls>"],
    close: ["</calls>"],
    bodies: [
      {
        kind: "tagged",
        call: [{ open: "<invoke", close: "</invoke>" }],
        parameter: [{ open: "<parameter", close: "</parameter>" }],
        tags: { call: '<invoke name="{name}">', parameter: '<parameter name="{name}">' },
        trim: "none",
      },
    ],
  },
  pairs: {
    open: ["<call>"],
    close: ["</call>"],
    bodies: [
      {
        kind: "pairs",
        key: { open: "<key>", close: "</key>" },
        value: { open: "<value>", close: "</value>" },
        trim: "none",
      },
    ],
  },
  python: { open: ["<py>"], close: ["</py>"], bodies: [{ kind: "python", list: "brackets" }] },
  quoted: { open: ["<call>"], close: ["</call>"], bodies: [{ kind: "quoted", prefix: "call:", quote: "<q>" }] },
  action: {
    open: ["Action:"],
    close: [],
    bodies: [{ kind: "action", input: ["Action Input:"], until: ["Observation:"] }],
    lineStart: true,
  },
  codeblock: { open: ["```tool\n"], close: ["```"], bodies: [{ kind: "codeblock" }], lineStart: true },
};

const tools = [{ name: "double", parameters: { type: "object", properties: { a: { type: "number" } } } }];
for (const [name, block] of Object.entries(blocks)) {
  const result = { role: "user", each: "The result of {name}:\n{text}" } as const;
  const dialect: Dialect = { name, title: name, models: ["mine"], trust: "taught", blocks: [block], result };
  const text = encodeCalls(dialect, [{ name: "double", arguments: '{"a":21}' }], tools);
  const call = decodeText(text, { dialect, tools }).items.find((item) => item.type === "call");
  console.log(`${name} reads ${call?.name} ${call?.arguments} from\n${text}\n`);
}
