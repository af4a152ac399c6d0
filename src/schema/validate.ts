/**
 * From JSON Schema (2020-12 and draft-07) to a validator. Typebox does the work. It is loaded when the
 * first value has to be checked that is not plainly right (plain.ts), and a schema is compiled only after
 * it has been used often, because most tools of a session are called a few times or never.
 */
import type * as typebox from "typebox/schema";
import type { JsonObject } from "../base/json.ts";
import { explain, type Issue } from "./explain.ts";
import { surveySchema, withoutFaults } from "./fault.ts";
import { createMeter, type Metered } from "./meter.ts";
import { createPlainCheck, type SurelyAccepts } from "./plain.ts";
import { withPlainReferences } from "./references.ts";

export type Validation =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly issues: readonly Issue[] };

export type Validate = (value: unknown) => Validation | Promise<Validation>;

export interface ValidateOptions {
  /** Whether the schema may be compiled to code. Schemas from outside are always interpreted. */
  readonly compile?: boolean;
}

/** How many checks make a schema worth compiling. Below that, interpreting it is cheaper. */
const busyAfter = 40;

type Typebox = typeof typebox;
let loading: Promise<Typebox> | undefined;
let loaded: Typebox | undefined;

export function createValidator(schema: JsonObject, options: ValidateOptions = {}): Validate {
  // `true`, `{}` and similar schemas accept everything, so nothing needs to be loaded.
  if (Object.keys(schema).length === 0) return (value) => ({ ok: true, value });
  let plain: SurelyAccepts | "unknown" | undefined;
  let prepared: Prepared | undefined;
  let uses = 0;
  let accepts: ((value: unknown) => boolean) | undefined;

  function check(typebox: Typebox, value: unknown): Validation {
    prepared ??= prepare(schema, options);
    const { sound, meter } = prepared;
    uses++;
    if (uses === busyAfter && options.compile === true) accepts = compile(typebox, sound);
    try {
      meter?.begin(value);
      const shown = meter?.schema ?? sound;
      const ok = accepts ? accepts(value) : typebox.Check(shown, value);
      if (ok) return { ok, value };
      meter?.begin(value);
      return { ok, issues: explain(sound, value, typebox.Errors(shown, value)[1]) };
    } catch (error) {
      // Only a hostile schema gets here (too deep, too large, endless). What cannot be checked is not run.
      const reason = error instanceof Error ? error.message : String(error);
      return { ok: false, issues: [{ path: "", message: `cannot be checked against this tool's schema (${reason})` }] };
    }
  }

  return (value) => {
    plain ??= createPlainCheck(schema) ?? "unknown";
    if (plain !== "unknown" && plain(value)) return { ok: true, value };
    return loaded ? check(loaded, value) : loadValidator().then((typebox) => check(typebox, value));
  };
}

interface Prepared {
  /** The schema without its own faults. */
  readonly sound: JsonObject;
  readonly meter: Metered | undefined;
}

function prepare(given: JsonObject, { compile: isOwn = false }: ValidateOptions): Prepared {
  const schema = withPlainReferences(given);
  const { faults, nodes } = surveySchema(schema, { foreign: !isOwn });
  const sound = withoutFaults(schema, faults);
  return { sound, meter: isOwn ? undefined : createMeter(sound, nodes) };
}

function compile(typebox: Typebox, schema: JsonObject): (value: unknown) => boolean {
  const validator = typebox.Compile(schema);
  return (value) => validator.Check(value);
}

/** Done with the first check, or earlier if a host has time. */
export async function loadValidator(): Promise<Typebox> {
  loading ??= import("typebox/schema");
  return (loaded = await loading);
}
