"""Rate limits of API keys: credits a second with a burst, and credits a day.

`gcra` is the arithmetic. `buckets` runs the same arithmetic in Redis, which all processes
share. `limiter` charges requests, from small leases of credits held in the process.
"""
