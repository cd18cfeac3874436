"""Many models by one process: `python worker.py SCRIPT`, and on its input a line of JSON for each, the script's arguments.

Each is answered by a line: `""`, or the error. What the script prints goes to stderr.
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
    except BaseException as error:  # whatever a consumer raises is its answer
        answer = f"{type(error).__name__}: {error}"[-600:] or "error"
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
