"""Tracers written in JavaScript by whoever asks, in geth's object model.

`engine` is QuickJS with limits, `runtime/` what a tracer sees, `host` what that sees of
the EVM, `tracer` puts them together, and `bundled/` holds tracers of our own.
"""

from nodeapi.tracers.javascript.bundled import BUNDLED_TRACERS, tracer_source
from nodeapi.tracers.javascript.tracer import JavaScriptTracer

__all__ = ["BUNDLED_TRACERS", "JavaScriptTracer", "tracer_source"]
