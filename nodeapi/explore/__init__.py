"""Pages that show blocks and traces to people.

`words` puts values into words, `calls`, `flame` and `changes` lay out what was
recorded, `rows` reads it, `access` says who may look, `views` are the pages. Nothing is
executed, and whatever a transaction did, a page shows a bounded part of it.
"""
