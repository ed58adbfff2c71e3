"""Unusual and invalid input that users and programs may send."""

from __future__ import annotations

from typing import Any

TEXTS: dict[str, str] = {
    "nothing": "",
    "a blank": " ",
    "NUL": "\x00",
    "NUL inside": "0x\x00a.example",
    "long": "x" * 100_000,
    "negative": "-1",
    "huge number": "9" * 40,
    "number that int() refuses": "9" * 5_000,
    "no finite number": "1e999",
    "digit that is none": "²",
    "digits of another script": "١٢٣",
    "turned around": "\u202ekcab",
    "beyond the basic plane": "🔑" * 60,
    "lines": "a\r\nb\u2028c\u2029d",
    "markup": "<script>alert(1)</script>",
    "template": "{{ user.password }}{% debug %}",
    "path": "../../etc/passwd",
    "statement": "'; DROP TABLE keys_apikey; --",
}
"""Unusual values of a form or a query."""

VALUES: dict[str, Any] = {
    **TEXTS,
    "null": None,
    "no": False,
    "number": -1,
    "huge whole number": 10**40,
    "fraction": 1e308,
    "list": [],
    "list of texts": ["\x00"],
    "list of lists": [[["x"]]],
    "long list": ["callTracer"] * 5000,
    "object": {"a": {"b": 1}},
    "half a character": "\ud800",
    "list of halves": ["\udfff"],
}
"""Unusual values of a JSON document."""
