"""The Django project: settings, addresses, the ASGI application, embedded services.

`variables` declares the environment variables and `settings` assigns them; `asgi` is the
application that worker processes run, and `urls` has the addresses of the pages.
"""
