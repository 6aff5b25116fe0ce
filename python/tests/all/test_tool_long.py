"""Agreement with the command line tool (test_tool.py) on many more settings."""

import os

os.environ["FINETTI_EXAMPLES"] = "200"
from test_tool import *  # noqa: E402,F401,F403
