"""PostgreSQL for the hot path: a few long-lived connections and merged look-ups.

Knows neither Django nor what is stored. Everything here belongs to one event loop
and is not thread-safe.
"""
