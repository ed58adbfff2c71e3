"""Values and error texts as geth's language, Go, reads and prints them.

`decoding` reads JSON objects with the error texts of Go's decoder, and `fields` the fields
of structs; it also prints durations.
"""
