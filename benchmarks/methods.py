"""Every method on UCI Multiple Features with 40 % of the modality entries missing: probe, imputation error, log-likelihood, seconds.

70 % of the digits train, 30 % test; the same networks, latent dimensions, steps and gaps for all; β = 1, w = 1, other settings by default
(MMVAE with 10 importance samples). Methods with private latents have 8 of them a modality, and 8 shared ones fewer
for it. The VAE sees `pix` alone. Each result is written as soon as it is there, and not made again.

    python benchmarks/methods.py [--out results.json] [--seeds 0 1 2] [--steps 1000] [--methods MVAE MoPoE …]
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import torch

import codevae
from codevae import MultimodalVAE, data, fit, metrics

PRIVATE = {"MMVAEPlus", "CMVAE"}
METHODS = {
    "CoDEVAE": lambda: codevae.CoDEVAE(),
    "MVAE": lambda: codevae.MVAE(),
    "MMVAE": lambda: codevae.MMVAE(samples=10),
    "MMJSD": lambda: codevae.MMJSD(),
    "MoPoE": lambda: codevae.MoPoE(),
    "MVTCAE": lambda: codevae.MVTCAE(beta=1.0),
    "MMVAEPlus": lambda: codevae.MMVAEPlus(),
    "CMVAE": lambda: codevae.CMVAE(),
    "VAE": lambda: codevae.VAE(),
}


def run(name: str, seed: int, steps: int) -> dict[str, float]:
    """All numbers of one method and seed."""
    whole = data.multiple_features()
    gaps = data.remove(whole, 0.4, seed)
    if name == "VAE":
        whole, gaps = whole.select(["pix"]), gaps.select(["pix"])
    (train, test), (whole_train, whole_test) = data.split(gaps, 0.3, seed), data.split(whole, 0.3, seed)
    private = 8 if name in PRIVATE else 0
    model = MultimodalVAE(data.modalities(train, private_dim=private), 64 - private, METHODS[name](), seed=seed)
    start = time.perf_counter()
    fit(model, train, steps=steps, seed=seed, progress=False)
    seconds = time.perf_counter() - start
    labels, layout = (whole_train.labels["digit"], whole_test.labels["digit"]), metrics.Layout.learn(train, model.modalities)
    codes = model.embed(whole_train)
    return {
        "probe, all given": metrics.linear_probe(codes, labels[0], model.embed(whole_test), labels[1], seed=seed),
        "probe, gaps at test": metrics.linear_probe(codes, labels[0], model.embed(test), labels[1], seed=seed),
        "imputation error": metrics.imputation_error(whole_test, model.impute(test), test, layout).overall_rmse,
        "log-likelihood": float(metrics.log_likelihood(model, whole_test, samples=100, seed=seed).joint.mean()),
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("methods.json"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    asked = parser.parse_args()
    results = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    for seed in asked.seeds:
        for name in asked.methods:
            key = f"{name} {seed} {asked.steps}"
            if key not in results:
                results[key] = run(name, seed, asked.steps)
                asked.out.write_text(json.dumps(results, indent=1))
                print(key, {column: round(value, 3) for column, value in results[key].items()}, flush=True)
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} threads, {asked.steps} steps, seeds {asked.seeds}: mean ± standard deviation"
    )
    for name in asked.methods:
        rows = [results[f"{name} {seed} {asked.steps}"] for seed in asked.seeds]
        cells = [f"{statistics.mean(r[c] for r in rows):9.3f} ± {statistics.pstdev([r[c] for r in rows]):.3f}" for c in rows[0]]
        print(f"  {name:<10}", *cells)


if __name__ == "__main__":
    main()
