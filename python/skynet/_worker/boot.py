# The text that the sidecar passes to `python -c`. It has to parse under any Python, even 2.7.
import sys

if sys.version_info < (3, 9):
    sys.stderr.write(
        "skynet-scorer needs Python 3.9 or newer, and %s is Python %s; choose another with --python\n"
        % (sys.executable, sys.version.split()[0])
    )
    sys.exit(97)

# `-c` puts the working directory first; what the user put on PYTHONPATH stays.
if sys.path and sys.path[0] == "":
    del sys.path[0]
sys.path.insert(0, sys.argv[1])

from skynet._worker.main import main

main()
