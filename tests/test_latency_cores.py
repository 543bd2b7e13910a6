"""Requests on a simulated host in which a busy CPU of the same core slows the server down: the inputs of cores and counters
improve the prediction."""
import os
import statistics
import subprocess

from e2e import BUILD, check, run, scratch, table

BASIC = "out_own, out_flight, vmm, wait, blocked, switches, exits, wakeups"


def simulate(folder, hogs, seed, *more):
    where = f"{folder}/h{hogs}s{seed}{''.join(more)}"
    subprocess.run([os.path.join(BUILD, "stealscope-sim"), "requests", "--hogs", str(hogs), "--seed", str(seed), "--burst", "1",
                    "--siblings", "2", "--slowdown", "40", "--perfect-clocks", "--duration", "2s", *more, "-o", where],
                   check=True, capture_output=True)
    run("index", where, "-o", f"{where}.steal")
    return f"{where}.steal"


def quantile(values, p):
    at = p * len(values) - 0.5
    low = max(0, min(len(values) - 1, int(at)))
    high = min(len(values) - 1, low + 1)
    return values[low] + (values[high] - values[low]) * max(0, min(1, at - low))


def mean_error(model, baseline, label):
    """Returns the mean difference between the predicted and the measured shift against the baseline, ns."""
    rows = table("latency", "requests", label, "-m", model)
    before = sorted(int(r["latency_ns"]) for r in table("latency", "requests", baseline))
    latency = sorted(int(r["latency_ns"]) for r in rows)
    errors = []
    for row in rows:
        own = int(row["latency_ns"])
        shift = own - quantile(before, (latency.index(own) + 0.5) / len(latency))
        errors.append(abs(int(row["predicted_ns"]) - max(0, min(own, shift))))
    return statistics.mean(errors)


def main(tmp):
    runs = {(h, s): simulate(tmp, h, s, "--counters") for h, s in ((0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (1, 4))}
    train = (runs[1, 1], runs[1, 2], runs[0, 2])
    error = {}
    for option, inputs in (("--no-cores", BASIC), (None, BASIC + ", shared, slow, moves, ipc")):
        model = f"{tmp}/model{option}"
        said = run("latency", "train", "-b", runs[0, 1], "-o", model, "--rows", "80",
                   *([option] if option else []), *train).stderr
        check(said.rstrip().endswith(f"inputs: {inputs}"), f"inputs: {said.split('inputs: ')[-1].strip()}")
        with open(model, encoding="utf-8") as f:
            names = [line.split()[1] for line in f if line.startswith("input ")]
        check(", ".join(names) == inputs, "the model file has these inputs")
        report = run("latency", "report", "-m", model, runs[1, 3]).stdout
        check(inputs in " ".join(report.split()) and max(map(len, report.splitlines())) <= 80, "latency report lists them")
        error[option] = sum(mean_error(model, runs[0, 1], runs[key]) for key in ((1, 3), (1, 4), (0, 3))) / 3
    check(error[None] < 0.9 * error["--no-cores"],
          f"mean error {error[None] / 1e6:.3f} ms with, {error['--no-cores'] / 1e6:.3f} ms without cores and counters")
    shared = [int(r["shared_ns"]) / int(r["latency_ns"]) for h in (0, 1)
              for r in table("latency", "requests", runs[h, 3], "--features")]
    check(max(shared) > 0.5 and min(shared) == 0, "some requests shared their core, others did not")
    plain = simulate(tmp, 1, 5)  # without counters
    refused = run("latency", "requests", plain, "-m", f"{tmp}/modelNone", status=2).stderr
    check("no input ipc" in refused and "--no-cores" in refused, "a model with counters needs counters")
    run("latency", "requests", plain, "-m", f"{tmp}/model--no-cores")
    without = run("latency", "train", "-b", runs[0, 1], "-o", f"{tmp}/m3", "--rows", "20", plain, *train).stderr
    check(without.rstrip().endswith(BASIC + ", shared, slow, moves"), "inputs that one run lacks are left out")


with scratch() as folder:
    main(folder)
