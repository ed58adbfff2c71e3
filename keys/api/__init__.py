"""The management API, `/api/v1/`: the functions of the admin, for programs.

A request sends a token (`authentication`). The token's scopes and its owner's
permissions have to cover the operation (`access`). Every write goes through
`keys.services`, with the owner as the actor, and the audit log names the token. Errors
are problem details (`problems`).
"""
