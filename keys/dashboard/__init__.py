"""Pages on which customers view and manage their keys.

Views contain no business rules. They look up only the customer's own objects and call
`keys.services`. Every page works without JavaScript, which only copies texts to the
clipboard. Every change is a POST answered with a redirect, except for the two that show
a secret.
"""
