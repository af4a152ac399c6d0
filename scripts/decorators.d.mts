/** See decorators.mjs. */
export function lowerDecorators(): {
  readonly name: string;
  readonly enforce: "pre";
  transform(code: string, id: string): Promise<{ code: string; map: null } | undefined>;
};
