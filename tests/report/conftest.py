"""Small runs to report on."""

import numpy as np
import pytest
import torch

from codevae import Batch, Modality, MultimodalVAE, data, fit, random
from codevae.likelihoods import Bernoulli, Categorical, Columns, NegativeBinomial, Normal

AWKWARD = 'images <b>&"quoted"'


def mixed(count: int = 90) -> Batch:
    """Images, tokens, a mixed and a wide table, and counts, of three classes; some entries are missing."""
    draw = torch.Generator().manual_seed(0)
    kinds = torch.arange(count) % 3
    z = torch.randn(count, 2, generator=draw) + 3 * torch.nn.functional.one_hot(kinds, 3)[:, :2]
    images = (40 * torch.rand(count, 3, 8, 8, generator=draw)).to(torch.uint8)
    for place, kind in enumerate(kinds.tolist()):
        images[place, kind, 2:6, 2:6] = 250
    table = torch.stack([z[:, 0], (kinds == 1).float(), kinds.float(), z[:, 1]], 1)
    table[::7] = float("nan")
    table[::5, 0] = float("nan")
    tokens = torch.randint(0, 9, (count, 14), generator=draw)
    tokens[:, :4] = kinds[:, None]
    wide = z @ torch.randn(2, 20, generator=draw) + 0.3 * torch.randn(count, 20, generator=draw)
    counts = torch.poisson(z[:, :1].exp().expand(count, 13), generator=draw)
    classes = np.array(["<i>a</i>", "b & c", "d"])[kinds.numpy()]
    batch = Batch(
        {AWKWARD: images, "tokens+": tokens, "table": table, "wide": wide, "counts": counts}, labels={"age": z[:, 0], "class": classes}
    )
    return data.remove(batch, 0.2)


def parts() -> list[Modality]:
    return [
        Modality(AWKWARD, (3, 8, 8)),
        Modality("tokens+", (14,), Categorical(9)),
        Modality("table", (4,), Columns([(Normal(), [0, 3]), (Bernoulli(), [1]), (Categorical(3), [2])]), sees_gaps=True),
        Modality("wide", (20,), picture=(4, 5)),
        Modality("counts", (13,), NegativeBinomial(), private_dim=2),
    ]


@pytest.fixture(scope="session")
def mixed_run(tmp_path_factory):
    """(folder, training data, test data) of a model with every kind of modality."""
    train, test = data.split(mixed(), 0.4)
    folder = tmp_path_factory.mktemp("runs") / "mixed <run>"
    with random.seeded(0):
        fit(MultimodalVAE(parts(), 4, seed=0), train, steps=6, interval=2, batch_size=32, out=folder, progress=False)
    return folder, train, test


@pytest.fixture(scope="session")
def tables_run(tmp_path_factory):
    """(folder, data) of a model of two tables without labels."""
    draw = torch.Generator().manual_seed(0)
    z = torch.randn(60, 2, generator=draw)
    batch = Batch({"rna": z @ torch.randn(2, 6, generator=draw), "protein": z + 0.1})
    folder = tmp_path_factory.mktemp("runs") / "tables"
    with random.seeded(0):
        model = MultimodalVAE(data.modalities(batch), 2, seed=0)
        fit(model, batch, steps=4, batch_size=32, validation=0.0, out=folder, progress=False)
    return folder, batch
