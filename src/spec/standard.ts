/**
 * The two halves of the Standard Schema interface that we use. The types are copied here, so that our
 * users need no further package.
 */
interface StandardTyped<Output> {
  readonly version: 1;
  readonly vendor: string;
  readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
}

/** Checks a value. */
export interface StandardValidator<Output = unknown> extends StandardTyped<Output> {
  readonly validate: (
    value: unknown,
    options?: { readonly libraryOptions?: Record<string, unknown> | undefined },
  ) => StandardResult<Output> | Promise<StandardResult<Output>>;
}

/** What a Standard Schema validator gives back. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** Why a value does not fit, in Standard Schema's form. */
export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Can be written as JSON Schema. */
export interface StandardWritten<Output = unknown> extends StandardTyped<Output> {
  readonly jsonSchema: {
    readonly input: (options: StandardTarget) => Record<string, unknown>;
    readonly output: (options: StandardTarget) => Record<string, unknown>;
  };
}

interface StandardTarget {
  readonly target: "draft-2020-12" | "draft-07" | "openapi-3.0" | (string & {});
  readonly libraryOptions?: Record<string, unknown> | undefined;
}
