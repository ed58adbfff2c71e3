"""JSON schemas of arguments and results, for the OpenRPC document.

`building` has the functions that build schemas and name components, and `values` the
schemas of numbers, bytes and blocks' names. The other modules have those of objects, by
what they describe.
"""
