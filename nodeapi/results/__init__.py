"""Results as the store, the trace workers and the methods pass them on.

`answers` has their types, `entries` parts of trace results, and `spool` the files of long
results.
"""
