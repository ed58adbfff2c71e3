"""The imports of the tests' fork server: those of the service, and the setup of KZG.

Trace workers load the setup when they are idle, which takes up to 2 s of each server.
"""

from __future__ import annotations

from config import preload
from evm import kzg

after_fork = preload.after_fork
kzg.prepare()
