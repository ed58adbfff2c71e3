"""Tracers written in JavaScript by callers, with geth's object model.

`engine` is QuickJS with limits. `runtime/` is the JavaScript environment of a tracer.
`host` provides it with the EVM's data. `tracer` combines them. `bundled/` contains our
own tracers.
"""

from evm.tracers.javascript.bundled import BUNDLED_TRACERS, tracer_source
from evm.tracers.javascript.tracer import JavaScriptTracer

__all__ = ["BUNDLED_TRACERS", "JavaScriptTracer", "tracer_source"]
