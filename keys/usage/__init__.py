"""Reads of what keys are used for.

A row of `keys_usagebucket` is a sum over a minute, an hour or a day. Each call is in a
row of each (see `tiers`), so that a chart of a month adds days up, and one of an hour
minutes. `UsageTotal` has the same for all keys together, `DailyUse` a row for each key
and day.
"""
