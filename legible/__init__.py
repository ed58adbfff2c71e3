"""Text for people: texts without misleading characters, and formatted values.

`text` and `fields` validate, store and show texts by users; `words` formats amounts, times
and data for pages.
"""
