"""What values are, guessed from the values: a likelihood for every modality of a batch."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from codevae import likelihoods as families
from codevae.axes import Bool, Shaped, Tensor
from codevae.batch import Batch
from codevae.errors import InputError, listed
from codevae.likelihoods import Bernoulli, Likelihood, NegativeBinomial, Normal, Poisson
from codevae.modality import Modality


def modalities(
    batch: Batch,
    likelihoods: Mapping[str, Any] | None = None,
    private_dim: int | Mapping[str, int] = 0,
    pictures: Mapping[str, Sequence[int]] | None = None,
) -> list[Modality]:
    """A `Modality` for everything in a batch, with the likelihood that its values suggest.

    Nothing but 0 and 1 is `Bernoulli`; a table of whole numbers, in an integer type and not below 0, is `NegativeBinomial`, or `Poisson`
    where the columns' variances are about their means; everything else, images in bytes too, is `Normal`. An encoder is told
    which entries are there if some cells of a present modality are missing.

    Arguments:
        batch: the training data; codes of categories and tokens look like counts, so name their likelihood.
        likelihoods: by modality, an instance of a likelihood, or its class or name, where the guess is not wanted.
        private_dim: P, the width of the modalities' own latents; one for all, or by modality.
        pictures: by modality, (height, width) or (height, width, colours), to draw a table's row as a picture in reports.

    Example:
        >>> batch = Batch({"rna": torch.tensor([[0, 7], [3, 40]]), "sick": torch.tensor([[1.0], [0.0]])})
        >>> [(part.name, type(part.likelihood).__name__) for part in modalities(batch)]
        [('rna', 'NegativeBinomial'), ('sick', 'Bernoulli')]
    """
    shapes = {name: tuple(value.shape[1:]) for name, value in batch.values.items()}
    gaps = {name: has_gaps(batch.entries[name]) for name in batch.names}
    chosen = named("likelihoods", likelihoods, batch.names)
    found = {name: likelihood(chosen[name], name) if name in chosen else _guess(name, batch) for name in batch.names}
    return make(shapes, found, gaps, private_dim, pictures)


def make(
    shapes: Mapping[str, Sequence[int]],
    found: Mapping[str, Likelihood],
    gaps: Mapping[str, bool],
    private_dim: int | Mapping[str, int] = 0,
    pictures: Mapping[str, Sequence[int]] | None = None,
) -> list[Modality]:
    """The modalities of these shapes and likelihoods, with what else was said of them by name."""
    private = named("private_dim", private_dim if isinstance(private_dim, Mapping) else dict.fromkeys(shapes, private_dim), shapes)
    pictures = named("pictures", pictures, shapes)
    return [
        Modality(name, shape, found[name], private_dim=private.get(name, 0), sees_gaps=gaps[name], picture=pictures.get(name))
        for name, shape in shapes.items()
    ]


def named(argument: str, given: Mapping[str, Any] | None, names: Any) -> dict[str, Any]:
    """What was given by modality; an error if one of the names is no modality."""
    unknown = [name for name in given or {} if name not in names]
    if unknown:
        raise InputError(f"{argument}: {listed(unknown)} is not a modality here; the modalities are {listed(names)}.")
    return dict(given or {})


def likelihood(asked: Any, name: str) -> Likelihood:
    """A likelihood from an instance, a class, or the name of a class in `codevae.likelihoods`."""
    if isinstance(asked, Likelihood):
        return asked
    known = {key: cls for key, cls in vars(families).items() if inspect.isclass(cls) and issubclass(cls, Likelihood) and key[0] != "_"}
    cls = known.get(asked) if isinstance(asked, str) else asked
    try:
        if inspect.isclass(cls) and issubclass(cls, Likelihood) and cls is not Likelihood:
            return cls()
    except TypeError as error:
        raise InputError(f"likelihoods[{name!r}]: {asked} needs arguments; give an instance of it, with them.") from error
    ready = [key for key in sorted(known) if key not in ("Likelihood", "Columns", "Categorical")]
    raise InputError(f"likelihoods[{name!r}]: expected an instance of a likelihood or one of the names {listed(ready)}, got {asked!r}.")


def has_gaps(entries: Bool[Tensor, "B ..."]) -> bool:
    """Whether some entries are missing where others of the same data point are there."""
    flat = entries.flatten(1)
    return bool((flat.any(1) & ~flat.all(1)).any())


def _guess(name: str, batch: Batch) -> Likelihood:
    values, entries = batch.values[name], batch.entries[name]
    if not bool(batch.observed[:, batch.names.index(name)].any()):
        raise InputError(f"modalities(batch): {name!r} has no entry to guess from; leave it out, or make its Modality yourself.")
    if is_binary(values, entries):
        return Bernoulli()
    whole = not values.is_floating_point() and not bool((torch.where(entries, values, 0) < 0).any())
    if values.ndim == 2 and whole:
        return NegativeBinomial() if _overdispersed(values, entries) else Poisson()
    return Normal()


def is_binary(values: Shaped[Tensor, "B ..."], entries: Bool[Tensor, "B ..."]) -> bool:
    """Whether there is nothing but 0 and 1."""
    return bool(((values == 0) | (values == 1) | ~entries).all())


def _overdispersed(values: Shaped[Tensor, "B ..."], entries: Bool[Tensor, "B ..."]) -> bool:
    """Whether the variance is well above the mean in at least half of the columns that vary."""
    there = entries.expand(values.shape)
    x = torch.where(there, values, 0).double()
    number = there.sum(0).clamp(min=1)
    mean = x.sum(0) / number
    variance = torch.where(there, x - mean, 0.0).square().sum(0) / number
    ratios = (variance / mean)[variance > 0]
    return not len(ratios) or ratios.median().item() > 1.2
