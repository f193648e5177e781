"""A congestion control of `paceline pace` for the scripts that measure it."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def registered(program: str, name: str, *arguments: str) -> Iterator[str]:
    """Registers a control with `pace attach ARGUMENTS` under this name, which the kernel knows meanwhile."""
    command = [program, "pace", "attach", "--name", name, *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if "is registered" in line:
                break
        else:
            sys.exit(f"{' '.join(command)} failed:\n{''.join(said)}")
        try:
            yield name
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=10)
