"""The endpoint `/v3`: from a request's bytes to the bytes of its response.

`endpoint` handles requests, `access` authorizes them, `calls` answers the calls of a body,
and `responses` writes the response. Sockets share `access` and `calls`.
"""
