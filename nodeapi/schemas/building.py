"""Functions that build schemas, and the schemas that have names.

Objects that several methods share are in COMPONENTS, and are used by reference.
"""

from __future__ import annotations

from jsonrpc.params import Schema

COMPONENTS: dict[str, Schema] = {}
"""Schemas by name, `#/components/schemas/<name>` in the document."""


def named(name: str, schema: Schema) -> Schema:
    """Return an OpenRPC content descriptor: a schema with a name."""
    return {"name": name, "schema": schema}


def sized_data(size: int) -> Schema:
    """Return the schema of `0x…` with this number of bytes."""
    return {"type": "string", "pattern": f"^0x[0-9a-fA-F]{{{2 * size}}}$"}


def array_of(items: Schema) -> Schema:
    """Return the schema of an array of any length."""
    return {"type": "array", "items": items}


def or_null(schema: Schema) -> Schema:
    """Return the schema of a value that may be null."""
    return {"oneOf": [schema, {"type": "null"}]}


def object_with(properties: dict[str, Schema], optional: str = "") -> Schema:
    """Return an object's schema. optional: space-separated names of members."""
    required = [name for name in properties if name not in optional.split()]
    return {"type": "object", "required": required, "properties": properties}


def component(name: str, schema: Schema) -> Schema:
    """Add a schema to COMPONENTS, and return the reference to it."""
    COMPONENTS[name] = schema
    return {"$ref": f"#/components/schemas/{name}"}
