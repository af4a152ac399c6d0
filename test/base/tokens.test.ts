import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { estimateTokens, fittingEnd, fittingStart, mostTokensPerCharacter } from "../../src/base/tokens.ts";
import tokenCounts from "./token-counts.json" with { type: "json" };

/** Counted by o200k, the tokenizer of OpenAI's current models (gpt-tokenizer 3). */
const counted: readonly (readonly [string, number, string])[] = [
  [
    "English",
    31,
    "The gate has read the line as bash reads it, so that what runs is what was agreed to. Nothing else starts, and nobody is asked twice.",
  ],
  [
    "TypeScript",
    38,
    "export function createExec(options: ExecOptions): Exec {\n  const { processes, signal } = options;\n  return { run: (request) => twice(() => run(request)) };\n}\n",
  ],
  ["minified JavaScript", 34, "function(a,b){return a&&b?c[d]:{e:f(g),h:i}};var j=[1,2,3],k=!0;"],
  [
    "JSON",
    33,
    '{"id":"call_1","name":"shell_command","arguments":{"command":"ls -la /usr/share","timeout_ms":10000},"ok":true}',
  ],
  ["numbers in lines", 18, "100001\n100002\n100003\n100004\n100005\n100006\n"],
  [
    "a listing",
    48,
    "-rw-r--r-- 1 root root   4096 Nov 16 11:58 package-lock.json\ndrwxr-xr-x 2 root root 131072 Nov 16 12:03 node_modules\n",
  ],
  ["one letter a line", 16, "y\ny\ny\ny\ny\ny\ny\ny\n"],
  ["Chinese", 23, "我们在这个项目中使用了新的工具来处理大量的数据，并且保证每一次调用都经过检查。"],
  ["one Chinese character", 10, "汉汉汉汉汉汉汉汉汉汉"],
  ["Japanese", 21, "このプロジェクトでは、新しいツールを使って大量のデータを処理します。"],
  ["Korean", 16, "이 프로젝트에서는 새로운 도구를 사용하여 대량의 데이터를 처리합니다."],
  ["Russian", 18, "В этом проекте мы используем новые инструменты для обработки больших объёмов данных."],
  ["Greek", 27, "Σε αυτό το έργο χρησιμοποιούμε νέα εργαλεία για την επεξεργασία μεγάλου όγκου δεδομένων."],
  ["Arabic", 15, "في هذا المشروع نستخدم أدوات جديدة لمعالجة كميات كبيرة من البيانات."],
  ["Hebrew", 21, "בפרויקט זה אנו משתמשים בכלים חדשים לעיבוד כמויות גדולות של נתונים."],
  ["Hindi", 24, "इस परियोजना में हम बड़ी मात्रा में डेटा को संसाधित करने के लिए नए उपकरणों का उपयोग करते हैं।"],
  ["Thai", 18, "ในโครงการนี้เราใช้เครื่องมือใหม่ในการประมวลผลข้อมูลจำนวนมาก"],
  ["Tamil", 23, "இந்தத் திட்டத்தில் பெரிய அளவிலான தரவைச் செயலாக்க புதிய கருவிகளைப் பயன்படுத்துகிறோம்."],
  ["Amharic", 108, "በዚህ ፕሮጀክት ውስጥ ከፍተኛ መጠን ያለው መረጃን ለማስኬድ አዳዲስ መሣሪያዎችን እንጠቀማለን።"],
  ["Georgian", 24, "ამ პროექტში ჩვენ ვიყენებთ ახალ ინსტრუმენტებს დიდი მოცულობის მონაცემების დასამუშავებლად."],
  ["German", 16, "In diesem Projekt verwenden wir neue Werkzeuge für die Verarbeitung großer Datenmengen."],
  ["Vietnamese", 21, "Trong dự án này, chúng tôi sử dụng các công cụ mới để xử lý lượng lớn dữ liệu."],
  ["emoji", 20, "😀🎉👩‍👩‍👧‍👦🇩🇪✨🔥"],
  ["a box", 18, "┌──────┐\n│ test │\n└──────┘\n"],
];

describe("an estimate of tokens", () => {
  test.each(counted)("of %s is not below what a tokenizer counts, nor twice as much", (_name, tokens, text) => {
    expect(estimateTokens(text)).toBeGreaterThanOrEqual(tokens);
    expect(estimateTokens(text)).toBeLessThan(tokens * 2);
  });

  test.each(Object.entries(tokenCounts))("of lines of %s is not below it either", (_kind, counted) => {
    const low = counted.filter(([line, tokens]) => estimateTokens(`${line}\n`) < Number(tokens));
    expect(low).toEqual([]);
  });

  test("never takes more than four characters for a token", () => {
    const texts = fc.array(fc.nat(0xffff)).map((units) => String.fromCharCode(...units));
    fc.assert(
      fc.property(texts, (text) => {
        expect(estimateTokens(text)).toBeGreaterThanOrEqual(text.length / 4);
        expect(estimateTokens(text)).toBeLessThanOrEqual(Math.ceil(text.length * mostTokensPerCharacter));
      }),
    );
  });
});

describe("what fits into so many tokens", () => {
  const texts = fc.string({ unit: fc.constantFrom("a", "B", "7", " ", "\n", "中", "é", "😀", ";"), maxLength: 300 });

  test("is the longest beginning that does", () => {
    fc.assert(
      fc.property(texts, fc.nat(120), (text, tokens) => {
        const end = fittingStart(text, tokens);
        expect(estimateTokens(text.slice(0, end))).toBeLessThanOrEqual(tokens);
        if (end < text.length) expect(estimateTokens(text.slice(0, end + 2))).toBeGreaterThanOrEqual(tokens);
      }),
    );
  });

  test("is an ending that does, and not much shorter than it could be", () => {
    fc.assert(
      fc.property(texts, fc.nat(120), (text, tokens) => {
        const ending = text.slice(fittingEnd(text, tokens));
        expect(estimateTokens(ending)).toBeLessThanOrEqual(tokens);
        if (estimateTokens(text) <= tokens) expect(ending).toBe(text);
      }),
    );
  });
});
