"""UCI Multiple Features with 40 % of the modality entries missing: probes and imputation against simple methods, defaults alone.

2,000 handwritten digits, six modalities, 70 % to train and 30 % to test, the same gaps for every method, three seeds. Each seed is
written to the results file as soon as it is done, and not run again if it is there.

    python benchmarks/multiple_features.py [--out results.json] [--seeds 0 1 2] [--slow]

`--slow` adds scikit-learn's IterativeImputer (BayesianRidge, each column from the 30 that correlate best; from all 649 it takes hours).
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
import torch

from codevae import MultimodalVAE, data, fit, metrics


def run(seed: int, slow: bool) -> dict[str, float]:
    """All numbers of one seed."""
    whole = data.multiple_features()
    gaps = data.remove(whole, 0.4, seed)
    (train, test), (whole_train, whole_test) = data.split(gaps, 0.3, seed), data.split(whole, 0.3, seed)
    model = MultimodalVAE(data.modalities(train), seed=seed)
    start = time.perf_counter()
    fit(model, train, seed=seed, progress=False)
    numbers: dict[str, float] = {"seconds": time.perf_counter() - start}

    def probe(train_codes, test_codes) -> float:
        return metrics.linear_probe(train_codes, whole_train.labels["digit"], test_codes, whole_test.labels["digit"], seed=seed)

    def columns(batch, names) -> np.ndarray:
        return torch.cat([batch.values[name] for name in names], 1).numpy()

    def scaled(names) -> tuple[np.ndarray, np.ndarray]:
        raw, other = columns(whole_train, names), columns(whole_test, names)
        spread = raw.std(0)
        spread[spread == 0] = 1
        return (raw - raw.mean(0)) / spread, (other - raw.mean(0)) / spread

    codes = model.embed(whole_train)
    numbers["probe, all given"] = probe(codes, model.embed(whole_test))
    numbers["probe, all given: raw columns"] = probe(*scaled(whole.names))
    numbers["probe, gaps at test"] = probe(codes, model.embed(test))
    for name in whole.names:
        numbers[f"probe, {name} given"] = probe(model.embed(whole_train, [name]), model.embed(whole_test, [name]))
        numbers[f"probe, {name} given: raw columns"] = probe(*scaled([name]))
    numbers |= {f"imputed, {name}": value for name, value in imputed(model, train, test, whole_test, slow).items()}
    return numbers


def imputed(model, train, test, whole, slow: bool) -> dict[str, float]:
    """Root mean squared errors of the hidden entries, in standard deviations of the training columns."""
    layout = metrics.Layout.learn(train, model.modalities)
    imputers = {"column means": metrics.column_means, "KNNImputer": metrics.nearest_rows, "Gaussian by EM": metrics.gaussian}
    if slow:
        imputers["IterativeImputer"] = metrics.chained_regressions
    result = {"codevae": metrics.imputation_error(whole, model.impute(test), test, layout).overall_rmse}
    for name, imputer in imputers.items():
        start = time.perf_counter()
        result[name] = metrics.imputation_error(whole, metrics.fill_by(imputer, train, test, layout), test, layout).overall_rmse
        print(f"  {name}: {result[name]:.3f} ({time.perf_counter() - start:.0f} s)", flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("multiple_features.json"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--slow", action="store_true")
    asked = parser.parse_args()
    results = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    for seed in asked.seeds:
        if str(seed) not in results:
            print(f"seed {seed}", flush=True)
            results[str(seed)] = run(seed, asked.slow)
            asked.out.write_text(json.dumps(results, indent=1))
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, seeds {', '.join(results)}: mean ± standard deviation")
    for name in next(iter(results.values())):
        values = [numbers[name] for numbers in results.values() if name in numbers]
        print(f"  {name:<34} {statistics.mean(values):8.3f} ± {statistics.pstdev(values):.3f}")


if __name__ == "__main__":
    main()
