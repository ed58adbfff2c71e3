"""The documentation at `/docs/`.

Its facts come from the code and the database: error classes, the method registry,
settings, networks. The wallet's page is `wallets/guide.py`. The console is a form that a
script builds from `openrpc.json`; it calls `/v3` from the browser, and only its page
is allowed to make requests.
"""
