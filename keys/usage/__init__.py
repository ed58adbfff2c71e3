"""Queries of the keys' usage.

A row of `keys_usagebucket` is a total of a minute, an hour or a day. Each call is
counted in one row of each (see `tiers`). A chart of a month adds up days, a chart of an
hour adds up minutes. `UsageTotal` has the totals of all keys. `DailyUse` has one row
for each key and day.
"""
