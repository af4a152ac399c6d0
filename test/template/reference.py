"""Renders templates as Hugging Face's transformers do: JSON lines {source, contexts} in, a list of texts out, null where it fails."""
import json
import sys
from datetime import datetime

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


# Not optimized: constants would be folded by other rules than those that hold for values of a conversation.
environment = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, optimized=False, extensions=[loopcontrols]
)
environment.filters["tojson"] = tojson
# Not Jinja's own, but llama.cpp's engine has it, and templates that were written for that one use it.
environment.filters["fromjson"] = environment.filters["from_json"] = json.loads
environment.globals["raise_exception"] = raise_exception
environment.globals["strftime_now"] = lambda form: datetime(2026, 2, 3, 4, 5, 6).strftime(form)


def render(template, context):
    try:
        return template.render(**context)
    except Exception:  # refused by the template itself, or a mistake in it
        return None


for line in sys.stdin:
    row = json.loads(line)
    try:
        template = environment.from_string(row["source"])
        print(json.dumps([render(template, context) for context in row["contexts"]]))
    except jinja2.exceptions.TemplateError:
        print(json.dumps([None for _ in row["contexts"]]))
