"""Many models in one process: `python worker.py SCRIPT`, with a line of JSON with the script's arguments for each model.

The result of each is a line: `""`, or the error. The script's output goes to stderr.
"""

import json
import os
import runpy
import sys

script = sys.argv[1]
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for line in sys.stdin:
    sys.argv = [script, *json.loads(line)]
    try:
        runpy.run_path(script, run_name="__main__")
        answer = ""
    except BaseException as error:  # any exception of a consumer is its answer
        answer = f"{type(error).__name__}: {error}"[-600:] or "error"
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
