/**
 * JSON Schema (2020-12 and draft-07) to a validator. The work is typebox's; it is loaded when the
 * first value is checked, and a schema is compiled only once it has proved busy, because most tools
 * of a session are called a few times or never.
 */
import type * as typebox from "typebox/schema";
import type { JsonObject } from "../base/json.ts";
import { explain, type Issue } from "./explain.ts";
import { findFaults, withoutFaults } from "./fault.ts";

export type Validation =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly issues: readonly Issue[] };

export type Validate = (value: unknown) => Validation | Promise<Validation>;

export interface ValidateOptions {
  /** May the schema become code? Left out for schemas from elsewhere: they are interpreted, always. */
  readonly compile?: boolean;
}

/** Checks before a schema is worth compiling: below that, interpreting it is cheaper. */
const busyAfter = 40;

type Typebox = typeof typebox;
let loading: Promise<Typebox> | undefined;
let loaded: Typebox | undefined;

export function createValidator(schema: JsonObject, options: ValidateOptions = {}): Validate {
  // `true`, `{}` and the like accept everything: nothing to load.
  if (Object.keys(schema).length === 0) return (value) => ({ ok: true, value });
  let sound: JsonObject | undefined;
  let uses = 0;
  let accepts: ((value: unknown) => boolean) | undefined;

  function check(typebox: Typebox, value: unknown): Validation {
    sound ??= withoutFaults(schema, findFaults(schema, { foreign: options.compile !== true }));
    uses++;
    if (uses === busyAfter && options.compile === true) accepts = compile(typebox, sound);
    try {
      const ok = accepts ? accepts(value) : typebox.Check(sound, value);
      return ok ? { ok, value } : { ok, issues: explain(sound, value, typebox.Errors(sound, value)[1]) };
    } catch (error) {
      // Only a hostile schema gets here (too deep, too large for the fault finder): what cannot be checked is not run.
      return {
        ok: false,
        issues: [
          {
            path: "",
            message: `cannot be checked against this tool's schema (${error instanceof Error ? error.message : String(error)})`,
          },
        ],
      };
    }
  }

  return (value) => (loaded ? check(loaded, value) : load().then((typebox) => check(typebox, value)));
}

function compile(typebox: Typebox, schema: JsonObject): (value: unknown) => boolean {
  const validator = typebox.Compile(schema);
  return (value) => validator.Check(value);
}

async function load(): Promise<Typebox> {
  loading ??= import("typebox/schema");
  return (loaded = await loading);
}
