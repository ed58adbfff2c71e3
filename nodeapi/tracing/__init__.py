"""Traces that are executed when they are asked for, in processes of their own.

A `TraceJob` goes to `TracePool.trace`, which has a worker process execute the block
again and write the answer into a file without a name; only when all of it is there
does the answer begin. So an error is still an error, a slow reader holds no worker, and
killing a worker hurts nobody else. What stands behind `nodeapi.ports.Tracing` may be a
task queue instead.
"""
