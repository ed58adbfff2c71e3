"""What a key may spend: a rate with a burst, and a number of credits a day.

`gcra` is the arithmetic, `buckets` the same in Redis, which all processes share, and
`limiter` what requests ask: it spends small leases of credits without asking anybody.
"""
