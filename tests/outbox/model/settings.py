"""The project's settings for the outbox alone, with a layer that disturbs messages."""

import os

from config.settings import *  # noqa: F403
from config.settings import REDIS_URL

# Further apps would add a second to each start of a process.
INSTALLED_APPS = ["outbox"]

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "tests.outbox.model.layer.DisturbedLayer",
        "CONFIG": {
            "hosts": [REDIS_URL],
            "rate": float(os.environ.get("MODEL_MESSAGE_FAULTS", "0")),
            "seed": os.environ.get("MODEL_SEED", ""),
        },
    },
}
