"""A JSON Schema as a table: one row a field. `schema` and the docs print it."""

from __future__ import annotations

from typing import Any


def schema_table(schema: dict[str, Any]) -> list[dict[str, str]]:
    """One row a field of a JSON Schema, nested ones by their path: its type, what it means."""
    out: list[dict[str, str]] = []

    def walk(node: dict[str, Any], path: str) -> None:
        for name, item in node.get("properties", {}).items():
            target, kind = _resolve(item, schema)
            out.append({"field": path + name, "type": kind, "description": item.get("description", "")
                        or target.get("description", "").split("\n")[0]})  # fmt: skip
            walk(target, f"{path}{name}.")

    walk(schema, "")
    return out


def _resolve(item: dict[str, Any], schema: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The object behind a property, and the property's type in words."""
    options = item.get("anyOf", [item])
    words, target = [], {}
    for option in options:
        inner = option.get("items", option)
        if "$ref" in inner:
            target = schema["$defs"][inner["$ref"].rpartition("/")[2]]
            words.append("list of objects" if option is not inner else "object")
        else:
            kind = option.get("type", "value")
            kind = " or ".join(kind) if isinstance(kind, list) else str(kind)
            words.append(f"list of {_many(inner)}" if kind == "array" else kind)
    return target, " or ".join(words)


def _many(item: dict[str, Any]) -> str:
    """``numbers``, ``lists of numbers``."""
    kind = str(item.get("type", "value"))
    return f"lists of {_many(item['items'])}" if kind == "array" and "items" in item else f"{kind}s"
