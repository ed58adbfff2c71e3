"""Reads of what keys are used for.

A row of `keys_usagebucket` is a sum over a minute, an hour or a day (`rollup_usage`
makes long ones of short ones), and no two rows count the same call: whatever their
spans, rows are added up. `UsageTotal` has the same for all keys together, `DailyUse` a
row for each key and day.
"""
