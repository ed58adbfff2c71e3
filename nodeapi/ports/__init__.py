"""Interfaces of the parts that the endpoint and the methods use.

`store` is composed of `blocks`, `transactions`, `logs`, `states`, `traces`, `appearances`,
`fees`, `networks` and the outcomes in `tasks`, which also has the execution on demand.
`access` has keys, networks and limits, `relay` submitted and pending transactions,
`events` subscriptions and filters. `service` names the parts, and `answers` the types
of their results.
"""
