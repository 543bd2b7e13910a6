"""Under emulation a program takes some ten times as long, and more where others use the machine too: every limit of time that a
test sets is so many times longer.  Python itself runs natively; it finds this file through PYTHONPATH."""
import os
import subprocess

FACTOR = float(os.environ.get("PATIENCE", "1"))


def with_patience(method):
    def patient(self, *args, timeout=None, **more):
        return method(self, *args, timeout=timeout and timeout * FACTOR, **more)
    return patient


subprocess.Popen.wait = with_patience(subprocess.Popen.wait)
subprocess.Popen.communicate = with_patience(subprocess.Popen.communicate)
