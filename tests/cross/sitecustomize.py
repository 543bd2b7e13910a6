"""Multiplies all timeouts of tests by PATIENCE: emulated programs take some ten times as long, and more on a busy machine.
Python itself runs natively and finds this file through PYTHONPATH."""
import os
import subprocess

FACTOR = float(os.environ.get("PATIENCE", "1"))


def with_patience(method):
    def patient(self, *args, timeout=None, **more):
        return method(self, *args, timeout=timeout and timeout * FACTOR, **more)
    return patient


subprocess.Popen.wait = with_patience(subprocess.Popen.wait)
subprocess.Popen.communicate = with_patience(subprocess.Popen.communicate)
