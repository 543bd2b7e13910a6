"""`stealscope record` is killed at random moments while a hostile guest and an honest one are recorded: the next cleanup leaves
nothing, and the next recording of the honest guest is complete.  KILLS: number of kills; SEED: of the moments."""
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from e2e import PROGRAM, check, is_sanitized, processes_with, run, scratch, seeds, skip
from fake_guest import FAULTS, HARMLESS
from test_record_hostile import attempt, check_whole, environment, make_machine, through

KILLS = int(os.environ.get("KILLS", "4"))


def check_kill(tmp, instances, evil, delay):
    root, folder = os.path.join(tmp, "root"), os.path.join(tmp, "killed")
    p = subprocess.Popen([PROGRAM, "record", "--root", root, "--clock", "mono", "-t", "600ms", "--no-index", "-o", folder,
                          f"web={through(evil)}", f"db={through('honest')}"], env={**os.environ, **environment(instances)},
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(delay)
    p.kill()
    killed = p.wait() == -signal.SIGKILL
    if os.path.exists(os.path.join(folder, "session.yaml")):
        check_whole(folder, "killed afterwards" if killed else "not killed")
    run("record", "--cleanup", "--root", root, env=environment(instances))
    end = time.monotonic() + 20
    of_tmp = f"INSTANCES={tmp}/"
    while processes_with(of_tmp) and time.monotonic() < end:
        time.sleep(0.05)
    check(not processes_with(of_tmp), f"no process is left: {processes_with(of_tmp)}")
    check(os.listdir(instances) == [".made"] and not os.listdir(os.path.join(root, "run/stealscope")),
          "no instance and no journal are left")
    odd = [name for _, names, files in os.walk(folder) for name in names + files if name.startswith(".") or "tmp" in name]
    check(not odd, f"no temporary files: {odd}")
    shutil.rmtree(folder, ignore_errors=True)
    return killed


def main():
    if is_sanitized():
        skip("sanitizers must be preloaded first, before instances.so")
    if "cannot record" in run("record", "--check", status=None).stderr:
        skip("this build cannot record")
    rng = random.Random(seeds(1, 1)[0])
    evils = [*FAULTS, *HARMLESS]
    killed = 0
    print(f"KILLS={KILLS}")
    with scratch() as tmp:
        _, instances = make_machine(tmp)
        for i in range(KILLS):
            evil = rng.choice(evils)
            delay = rng.random() * (1.4 if i else 0.2)  # the first one is killed in any case
            print(f"     {i}: beside {evil}, after {delay:.2f} s")
            killed += check_kill(tmp, instances, evil, delay)
            if i % 4 == 3 or i == KILLS - 1:
                attempt(tmp, "next", "-t", "300ms", "--no-index", f"web={through('end-at-start')}", f"db={through('honest')}",
                        status=5)
                check_whole(os.path.join(tmp, "next"), "the next recording")
                shutil.rmtree(os.path.join(tmp, "next"))
        check(killed > 0, f"{killed} of {KILLS} recordings were killed before their end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
