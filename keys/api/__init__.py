"""The management API, `/api/v1/`: what staff do in the admin, for their programs.

A request shows a token (`authentication`) whose scopes, and whose owner's permissions,
cover what it asks for (`access`). Every write goes through `keys.services` with the
owner as the actor and the token on record. Refusals are problem details (`problems`).
"""
