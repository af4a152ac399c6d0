import { describe, expect, test } from "vitest";
import { renderTemplate, TemplateError } from "../../src/template/index.ts";
import { fixture } from "./fixtures.ts";

describe("values print as Python prints them", () => {
  test.each([
    ["{{ x }}", { x: true }, "True"],
    ["{{ x }}", { x: null }, "None"],
    ["{{ x }}|{{ y }}", { y: 1 }, "|1"],
    ["{{ x }}", { x: { a: [1, "it's", false] } }, `{'a': [1, "it's", False]}`],
    ["{{ x | tojson }}", { x: { a: [1, "é<"], b: null } }, '{"a": [1, "é<"], "b": null}'],
    ["{{ x | tojson(indent=2) }}", { x: { a: [], b: [1] } }, '{\n  "a": [],\n  "b": [\n    1\n  ]\n}'],
    ["{{ 7 / 2 }} {{ 6 / 2 }} {{ 7 // 2 }} {{ -7 % 3 }}", {}, "3.5 3.0 3 2"],
    ["{{ 'a' * 3 ~ 1 }}", {}, "aaa1"],
    ["{% for k, v in d | dictsort %}{{ k }}={{ v }};{% endfor %}", { d: { b: 1, a: 2 } }, "a=2;b=1;"],
    ["{{ d.items() | list | length }}", { d: { items: 1, b: 2 } }, "2"],
    ["{{ y is divisibleby 3 }}{{ y is not eq 4 }}{{ y is sameas true or y is gt 2 }}", { y: 4 }, "FalseFalseTrue"],
    ["{{ 'x' if y is divisibleby(2) else 'z' }}{{ 1 is in [1] }}{{ 2 is not in [1] }}", { y: 4 }, "xTrueTrue"],
    ["{% for x in l if x > 1 %}{{ loop.index }}{{ x }}{% else %}none{% endfor %}", { l: [1, 2, 3] }, "1223"],
    [
      "{% set ns = namespace(n=0) %}{% for x in [1,2,3] %}{% if x == 2 %}{% continue %}{% endif %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}",
      {},
      "4",
    ],
    ["{{ '%s-%d' | format('a', 3) }} {{ 'a{}b{x}'.format(1, x=2) }}", {}, "a-3 a1b2"],
    ["{% macro m(a, b='x') %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, b=2) }}", {}, "1x12"],
    [
      "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join(',') }}",
      {
        messages: [
          { role: "user", content: "a" },
          { role: "tool", content: "b" },
        ],
      },
      "a",
    ],
    ["{{ strftime_now('%Y-%m-%d %A') }}", { now: new Date(2026, 0, 2) }, "2026-01-02 Friday"],
    ["{{ l[::-1] }}{{ 'abc'[1:] }}{{ l[-1] }}", { l: [1, 2] }, "[2, 1]bc2"],
  ])("%s", (source, context, text) => {
    expect(renderTemplate(source, context)).toBe(text);
  });
});

test("a template that refuses does so in its own words", () => {
  expect(() => renderTemplate("{{ raise_exception('roles must alternate') }}", {})).toThrow(
    expect.objectContaining({ code: "refused", message: "roles must alternate" }),
  );
  expect(() => renderTemplate("{{ raise_exception('roles must alternate') }}", {})).toThrow("roles must alternate");
});

test("words of a message never become template source", () => {
  const content = "{{ 7 * 7 }}{% raise %}${process}";
  expect(renderTemplate("{{ messages[0].content }}", { messages: [{ content }] })).toBe(content);
});

describe("hostile templates end with a clear error", () => {
  const hostile: readonly (readonly [string, string])[] = [
    ["a range without end", "{% for i in range(1000000000) %}x{% endfor %}"],
    ["loops in loops", "{% for a in range(3000) %}{% for b in range(3000) %}x{% endfor %}{% endfor %}"],
    [
      "a string doubled",
      "{% set ns = namespace(s='x') %}{% for i in range(40) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s | length }}",
    ],
    [
      "a list doubled",
      "{% set ns = namespace(s=[1]) %}{% for i in range(40) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s | length }}",
    ],
    ["an endless macro", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"],
    ["nested parentheses", `{{ ${"(".repeat(20_000)}1${")".repeat(20_000)} }}`],
    ["nested ifs", `${"{% if true %}".repeat(20_000)}${"{% endif %}".repeat(20_000)}`],
    ["a huge indent", "{{ 'a\\nb' | indent(100000000) }}"],
    ["a huge repeat", "{{ 'x' * 1000000000 }}"],
    ["a replace that explodes", "{% set a = 'x' * 100000 %}{{ a | replace('x', a) }}"],
    ["a join that explodes", "{{ range(90000) | join('x' * 100000) }}"],
    ["JSON that explodes", "{% set a = 'x' * 1000000 %}{{ [a, a, a, a, a, a, a, a] | tojson }}"],
    ["a list of itself", "{% set l = [] %}{% set _ = l.append(l) %}{{ l }}{{ l | tojson }}"],
    ["appending for ever", "{% set l = [] %}{% for i in range(90000) %}{% set _ = l.extend(l + [1]) %}{% endfor %}"],
    ["spaces without end", " ".repeat(400_000)],
    ["a padding of a billion", "{{ 'x'.ljust(1000000000) }}"],
  ];
  test.each(hostile)("%s", (_name, source) => {
    const before = process.memoryUsage().rss;
    let error: unknown;
    try {
      renderTemplate(source, {});
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(TemplateError);
    expect((error as TemplateError).code).toMatch(/^(?:limit|runtime|syntax)$/);
    expect(process.memoryUsage().rss - before).toBeLessThan(200 << 20);
    expect(
      renderTemplate(fixture("llama-bare"), { messages: [{ role: "user", content: "hi" }], bos_token: "" }),
    ).toContain("hi");
  });

  test.each(["constructor", "__proto__", "prototype", "toString"])(
    "nothing of JavaScript is reachable by %s",
    (name) => {
      expect(
        renderTemplate(`{{ ''.${name} is defined }}{{ messages.${name} is defined }}{{ {}['${name}'] is defined }}`, {
          messages: [],
        }),
      ).toBe("FalseFalseFalse");
    },
  );

  test.each(["{% include 'x' %}", "{% import 'x' as y %}", "{% extends 'x' %}"])(
    "%s is no template of ours",
    (source) => {
      expect(() => renderTemplate(source, {})).toThrow(TemplateError);
    },
  );
});
