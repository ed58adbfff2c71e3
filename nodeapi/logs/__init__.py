"""Filters of logs and keys of the log index, for searches and subscriptions."""
