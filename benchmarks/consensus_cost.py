"""What the consensus of dependent experts costs over the product of experts: step times on PolyMNIST's shapes.

Five images of 28×28×3, 512 latent dimensions, all 31 subsets decoded. One model takes steps with ρ = 0.4, with ρ = 0 (the same code),
and with PoE, in turn, so that the weights, and whatever else the machine does, are the same for all three; printed are the ratios of
their medians.

    python benchmarks/consensus_cost.py [--batch 4] [--rounds 15]
"""

import argparse
import statistics
import time

import torch

from codevae import Batch, CoDE, CoDEVAE, Modality, MultimodalVAE, PoE
from codevae.likelihoods import Laplace


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()
    batch = Batch({f"m{m}": torch.rand(asked.batch, 3, 28, 28) for m in range(5)})
    modalities = [Modality(f"m{m}", (3, 28, 28), Laplace(0.75, standardise=False)) for m in range(5)]
    model = MultimodalVAE(modalities, latent_dim=512, method=CoDEVAE(rho=0.0, subsets="all"), seed=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    consensus = {"CoDE, rho 0.4": CoDE(rho=0.4), "CoDE, rho 0": CoDE(rho=0.0), "PoE": PoE()}
    times: dict[str, list[float]] = {name: [] for name in consensus}
    for turn in range(asked.rounds + 2):
        for name in list(consensus)[turn % 3 :] + list(consensus)[: turn % 3]:
            model.method.consensus = consensus[name].build(5, 512)
            start = time.perf_counter()
            optimizer.zero_grad()
            model(batch).loss().backward()
            optimizer.step()
            if turn >= 2:
                times[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(each) for name, each in times.items()}
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, B = {asked.batch}, median of {asked.rounds} steps each")
    for name, median in medians.items():
        print(f"  {name:<14} {1e3 * median:8.1f} ms a step   {median / medians['CoDE, rho 0']:.3f} of CoDE at rho 0")


if __name__ == "__main__":
    main()
