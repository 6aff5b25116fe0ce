"""The laws of test_properties.py on many more inputs."""

import os

os.environ["FINETTI_EXAMPLES"] = "300"
from test_properties import *  # noqa: E402,F401,F403
