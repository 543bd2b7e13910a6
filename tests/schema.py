"""A validator for as much of JSON Schema (2020-12) as share/schema/ uses; an unknown keyword is an error."""
import json
import os

from e2e import SOURCE, check

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
SILENT = {"$schema", "$id", "$defs", "title", "description"}
KNOWN = SILENT | {"$ref", "type", "enum", "const", "minimum", "maximum", "properties", "required", "additionalProperties",
                  "propertyNames", "items", "oneOf"}


def is_type(value, name):
    if name == "null":
        return value is None
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, TYPES[name])


def check_object(value, schema, root, at):
    properties = schema.get("properties", {})
    for name in schema.get("required", []):
        if name not in value:
            yield f"{at}: {name} is missing"
    for name, item in value.items():
        if name in properties:
            yield from faults(item, properties[name], root, f"{at}/{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{at}: {name} is not described"
        if "propertyNames" in schema:
            yield from faults(name, schema["propertyNames"], root, f"{at}: the name {name}")


def faults(value, schema, root, at=""):
    """Yields the violations of the schema, one sentence each."""
    assert set(schema) <= KNOWN, f"{at}: the schema says {set(schema) - KNOWN}"
    if "$ref" in schema:
        part = root
        for name in schema["$ref"].removeprefix("#/").split("/"):
            part = part[name]
        yield from faults(value, part, root, at)
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_type(value, name) for name in types):
        yield f"{at}: {value!r} is not of type {types}"
        return
    if "enum" in schema and value not in schema["enum"] or "const" in schema and value != schema["const"]:
        yield f"{at}: {value!r} is not one of {schema.get('enum', schema.get('const'))}"
    if isinstance(value, (int, float)) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{at}: {value!r} is out of range"
    if isinstance(value, dict):
        yield from check_object(value, schema, root, at)
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            yield from faults(item, schema["items"], root, f"{at}/{i}")
    if "oneOf" in schema:
        fits = [next(faults(value, one, root, at), None) is None for one in schema["oneOf"]]  # the first fault is enough
        if sum(fits) != 1:
            nearest = min((list(faults(value, one, root, at)) for one in schema["oneOf"]), key=len)
            yield f"{at}: fits {sum(fits)} of {len(fits)}: {nearest}"


def load():
    with open(os.path.join(SOURCE, "share", "schema", "answers.json"), encoding="utf-8") as f:
        return json.load(f)


def check_answer(text):
    """Checks an answer of a command that only one test can run.  Returns its rows."""
    document, answers = json.loads(text), load()
    wrong = list(faults(document, answers, answers))[:3]
    check(not wrong, f"{document['answer']}: as the schema says {wrong}")
    return document["rows"]
