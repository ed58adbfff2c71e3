"""Values and error texts as geth's language, Go, reads and prints them.

`decoding` reads JSON objects with the error texts of Go's decoder, `fields` the fields of
structs, and `durations` prints durations.
"""
