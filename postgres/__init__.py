"""PostgreSQL for the hot path: a few long-lived connections and merged look-ups.

Independent of Django and of the stored data. All objects belong to one event loop and
are not thread-safe.
"""
