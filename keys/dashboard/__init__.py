"""What customers see of their keys, and what they may change.

Views decide nothing: they look everything up among what is the customer's own and call
`keys.services`. Every page works without scripts, which only copy texts; every change
is a POST that is answered with a redirect, but for the two that show a secret.
"""
