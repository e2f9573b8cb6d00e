"""The library in the order of a notebook's cells: `python examples/notebook.py`."""

import pandas as pd

import pfprofile as pf

# %% A profile is a DataFrame of trials.
profile = pf.load_profile("a100-sxm4/resnet50")
print(profile)
print(profile.df.groupby("n_gpus")["step_time_s"].median())

# %% A model says time, throughput, power and energy with intervals.
model = pf.fit(profile)
points = pd.DataFrame({"n_gpus": [1, 2, 4, 8], "local_batch": 64, "sm_clock_mhz": 1200})
print(model.predict(points)[["n_gpus", "throughput_per_s", "power_w", "energy_per_step_j"]])

# %% The same models as scikit-learn estimators.
one = profile.df[profile.df["n_gpus"] == 1]
throughput = pf.ThroughputModel(device_name="NVIDIA A100-SXM4").fit(one)
print(throughput.predict(one)[:3], one["step_time_s"].to_numpy()[:3])

# %% A plan takes files, DataFrames or lists of dicts.
jobs = pd.DataFrame(
    [
        {"name": "nightly", "model": "resnet50", "epochs": 2, "max_gpus": 16},
        {"name": "paper", "model": "bert", "steps": 20_000, "global_batch": 256, "submit": 600},
    ]
)
cluster = [{"name": "n", "gpu": "a100-sxm4", "count": 2, "gpus_per_node": 8, "node_power_w": 550}]
fastest = pf.plan(jobs, cluster)
frugal = pf.plan(jobs, cluster, budget=0.9 * fastest.totals["energy_j"])
print(fastest, frugal, sep="\n")
print(frugal.jobs[["name", "jct_s", "energy_j"]])

# %% Policies on the same trace, at equal energy.
study = pf.compare("examples/trace.csv", "tiresias,pfprofile", first=12)
print(study.runs[["policy", "avg_jct_s", "energy_j"]])
