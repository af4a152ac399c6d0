/** From a schema to the type that its handler receives, for every kind of schema that a tool may have. */
import type { JsonObject } from "../base/json.ts";
import type { Freeform } from "./freeform.ts";
import type { StandardValidator, StandardWritten } from "./standard.ts";

/** A library's schema that has both halves of the standard: it validates, and it can be written as JSON Schema. */
export type StandardInput = {
  readonly "~standard": StandardValidator & StandardWritten;
};

/** For libraries without the JSON half: the validator and the JSON Schema, side by side. */
export interface SchemaPair {
  readonly validate: { readonly "~standard": StandardValidator };
  readonly json: JsonObject;
}

/** What `defineTool` takes as `input`. */
export type InputSchema = StandardInput | SchemaPair | Freeform | JsonSchemaLiteral;

/** A JSON Schema written in place. It is loose on purpose: any draft, any keyword. */
export interface JsonSchemaLiteral {
  readonly type?: string | readonly string[];
  readonly properties?: { readonly [name: string]: JsonSchemaLiteral | boolean };
  readonly required?: readonly string[];
  readonly items?: JsonSchemaLiteral | boolean | readonly JsonSchemaLiteral[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly [keyword: string]: unknown;
}

/** The type a handler receives for a schema. */
export type Infer<S> = S extends { readonly kind: "freeform" }
  ? string
  : S extends { readonly "~standard": { readonly types?: infer T } }
    ? NonNullable<T> extends { readonly output: infer Output }
      ? Output
      : unknown
    : S extends { readonly validate: infer V; readonly json: unknown }
      ? Infer<V>
      : FromJsonSchema<S>;

type FromJsonSchema<S> = S extends { readonly const: infer Value }
  ? Value
  : S extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : S extends { readonly type: readonly (infer Name)[] }
      ? Name extends string
        ? FromType<Name, S>
        : unknown
      : S extends { readonly type: infer Name extends string }
        ? FromType<Name, S>
        : S extends { readonly properties: unknown }
          ? FromObject<S>
          : unknown;

type FromType<Name extends string, S> = Name extends "string"
  ? string
  : Name extends "number" | "integer"
    ? number
    : Name extends "boolean"
      ? boolean
      : Name extends "null"
        ? null
        : Name extends "array"
          ? S extends { readonly items: infer Items }
            ? FromJsonSchema<Items>[]
            : unknown[]
          : Name extends "object"
            ? FromObject<S>
            : unknown;

type FromObject<S> = S extends { readonly properties: infer P }
  ? Flat<
      { -readonly [K in keyof P as K extends RequiredOf<S> ? K : never]: FromJsonSchema<P[K]> } & {
        -readonly [K in keyof P as K extends RequiredOf<S> ? never : K]?: FromJsonSchema<P[K]>;
      }
    >
  : Record<string, unknown>;

type RequiredOf<S> = S extends { readonly required: readonly (infer Name)[] } ? Name : never;
type Flat<T> = { [K in keyof T]: T[K] };
