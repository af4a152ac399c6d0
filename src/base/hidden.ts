/** Characters that hide themselves, or turn the direction of what stands beside them. */
const joined = String.raw`(?:[\p{Extended_Pictographic}\uFE0F\u{1F3FB}-\u{1F3FF}]|(?![\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}])[\p{L}\p{M}])`;

/**
 * Control characters except tab and newline; zero-width, bidi and tag characters; lone surrogates. Joiners
 * are left out where a script or a picture needs them: in Persian, in Hindi, in families of emoji. The
 * pattern takes a while to build, so whoever may not need it builds it late.
 */
export function createHiddenPattern(): RegExp {
  return new RegExp(
    String.raw`[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u034F\u061C\u115F\u1160\u180B-\u180E\u200B\u200E\u200F\u2028-\u202E\u2060-\u206F\u3164\uFEFF\uFFA0\uFFF9-\uFFFB\u{E0000}-\u{E0FFF}]|(?<!${joined})[\u200C\u200D]|[\u200C\u200D](?!${joined})|[\uD800-\uDFFF]`,
    "gu",
  );
}
