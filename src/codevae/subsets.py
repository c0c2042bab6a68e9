"""Subsets of the modalities: the powerset, its names, and Plan: which subsets a step trains, and with what share.

A subset is a row of a bool mask over the modalities. The row of code c (1 … 2^M − 1) holds modality m where bit m of c is set, so
that a mask finds its row in the table without a search.

Missing modalities, all subsets and drawn subsets are one mechanism. Let O be what a data point has, K_O = 2^|O| − 1, and π̃ the
weights restricted to the subsets of O. A plan gives every row k of a data point a *share*, with which its π̃_k counts:

    all subsets           1 where k ⊆ O, else 0
    S drawn, uniformly    K_O / S_O for the drawn (S_O = min(S, K_O), without replacement), 0 in an empty slot
    S drawn by weight     1 / (S · probability drawn)

so that Σ_k share_k π̃_k L_k has the expectation Σ_{k⊆O} π̃_k L_k whichever plan is used.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from codevae import random
from codevae.axes import Bool, Float, Int, Tensor
from codevae.errors import InputError, listed

MOST = 10
"""Above this many modalities the powerset (1,023 subsets) is never enumerated."""


def powerset(modalities: int, device: Any = None) -> Bool[Tensor, "K M"]:
    """Every non-empty subset, in the order of its code: row c − 1 holds modality m where bit m of c is set."""
    if modalities > MOST:
        raise InputError(
            f"the powerset of {modalities} modalities is not enumerated (at most {MOST}): draw subsets instead (subsets=2), with "
            "weights by size or by modality (subset_weights='by_modality')."
        )
    return unpack(torch.arange(1, 2**modalities, device=device), modalities)


def pack(mask: Bool[Tensor, "*batch M"]) -> Int[Tensor, "*batch"]:
    """The code of each mask."""
    return (mask.long() << torch.arange(mask.shape[-1], device=mask.device)).sum(-1)


def unpack(codes: Int[Tensor, "*batch"], modalities: int) -> Bool[Tensor, "*batch M"]:
    """The mask of each code."""
    return (codes.unsqueeze(-1) >> torch.arange(modalities, device=codes.device)) & 1 == 1


def count(observed: Bool[Tensor, "B M"]) -> Float[Tensor, "B"]:
    """K_O = 2^|O| − 1 for each data point, as a number one can divide by."""
    return torch.exp2(observed.sum(-1).to(torch.get_default_dtype())) - 1


def name_of(names: Sequence[str]) -> str:
    """The name of a subset: "rna+protein"; a plus or backslash inside a modality's own name is escaped."""
    return "+".join(name.replace("\\", "\\\\").replace("+", "\\+") for name in names)


def names_of(mask: Bool[Tensor, "K M"], names: Sequence[str]) -> list[str]:
    """The names of several subsets."""
    return [name_of([name for name, held in zip(names, row, strict=True) if held]) for row in mask.tolist()]


def parse(text: str, names: Sequence[str]) -> list[str]:
    """The modalities of a subset's name: the inverse of `name_of`, in the order of `names`.

    A plus inside a modality's own name needs no escape where it can be told: of the names that fit, the longest is taken.
    """
    parts = _unescaped(text)
    if any(part not in names for part in parts):
        parts = _longest(text.split("+"), names)
    unknown = [part for part in parts if part not in names]
    if unknown:
        raise InputError(f"subset {text!r}: {listed(unknown)} not among the modalities, {listed(names)}; join those you mean by '+'.")
    return [name for name in names if name in parts]


def _unescaped(text: str) -> list[str]:
    """The parts between the pluses that no backslash escapes."""
    parts: list[str] = []
    part, escaped = "", False
    for letter in text:
        if escaped or letter not in "\\+":
            part, escaped = part + letter, False
        elif letter == "\\":
            escaped = True
        else:
            parts, part = [*parts, part], ""
    return [*parts, part]


def _longest(pieces: list[str], names: Sequence[str]) -> list[str]:
    """Pieces joined again where together they are a name."""
    parts, start = [], 0
    while start < len(pieces):
        end = next((end for end in range(len(pieces), start, -1) if "+".join(pieces[start:end]) in names), start + 1)
        parts.append("+".join(pieces[start:end]))
        start = end
    return parts


class Plan(NamedTuple):
    """Which subsets are trained for each data point: K rows fixed by settings, never by the data.

    Arguments:
        mask: (K, B, M) the modalities of each row, within what is observed.
        share: (K, B) the factor of π̃_k; 0 where a row does not apply to a data point.
        observed: (B, M) what each data point has.
    """

    mask: Bool[Tensor, "K B M"]
    share: Float[Tensor, "K B"]
    observed: Bool[Tensor, "B M"]

    @property
    def points(self) -> Bool[Tensor, "B"]:
        """The data points that have anything at all."""
        return self.observed.any(-1)

    def weights(self, subset_weights: Any) -> Float[Tensor, "K B"]:
        """share_k π̃_k."""
        return self.share * subset_weights.log_prob(self.mask, self.observed).exp()

    def sum(self, subset_weights: Any, per_subset: Float[Tensor, "K B"], baseline: Any = 0.0) -> Float[Tensor, "B"]:
        """c + Σ_k share_k π̃_k (L_k − c): the same expectation for every baseline c, since Σ_k π̃_k = 1; 0 for an empty point."""
        applies = self.share > 0
        weighted = self.weights(subset_weights) * torch.where(applies, per_subset - baseline, 0.0)
        return torch.where(self.points, weighted.sum(0) + baseline, 0.0)

    def entropy(self, subset_weights: Any) -> Float[Tensor, ""]:
        """H(π̃) − log K_O, exact, averaged over the data points that have anything."""
        gain = subset_weights.entropy(self.observed) - count(self.observed).clamp(min=1.0).log()
        return torch.where(self.points, gain, 0.0).sum() / self.points.sum().clamp(min=1)


def all_subsets(observed: Bool[Tensor, "B M"]) -> Plan:
    """Every subset of what each data point has."""
    mask = powerset(observed.shape[-1], observed.device).unsqueeze(1) & observed
    within = (powerset(observed.shape[-1], observed.device).unsqueeze(1) <= observed).all(-1)
    return Plan(mask, within.to(torch.get_default_dtype()), observed)


def drawn_subsets(observed: Bool[Tensor, "B M"], rows: int) -> Plan:
    """S subsets per data point, uniformly without replacement, balanced over the batch.

    One fresh random permutation of the powerset a step orders the subsets of every pattern O; the i-th point with the pattern O
    takes its positions i·S_O … i·S_O + S_O − 1, modulo K_O. Counts differ by at most one, and each subset's inclusion
    probability is exactly S_O / K_O.
    """
    table = powerset(observed.shape[-1], observed.device)
    rows = min(rows, len(table))
    shuffled = table[random.uniform((len(table),), count(observed)).argsort()]
    within = (shuffled.unsqueeze(1) <= observed).all(-1)  # (K, B)
    available = within.sum(0)
    taken = available.clamp(max=rows)  # S_O
    turn = earlier(pack(observed))  # i
    position = (within.cumsum(0) - 1 - turn * taken).remainder(available.clamp(min=1))
    slot = torch.where(within & (position < taken), position, len(table))
    chosen = slot.argsort(dim=0, stable=True)[:rows]  # (S, B) rows of the shuffled table
    filled = torch.arange(rows, device=observed.device).unsqueeze(1) < taken
    share = torch.where(filled, available / taken.clamp(min=1), 0.0)
    return Plan(shuffled[chosen] & filled.unsqueeze(-1), share.to(torch.get_default_dtype()), observed)


def earlier(patterns: Int[Tensor, "B"]) -> Int[Tensor, "B"]:
    """How many earlier data points have the same pattern: by sorting, since comparing all pairs grows with the square of B."""
    grouped, order = patterns.sort(stable=True)
    place = torch.arange(len(patterns), device=patterns.device) - torch.searchsorted(grouped, grouped)
    return torch.empty_like(order).scatter(0, order, place)


def weighted_subsets(observed: Bool[Tensor, "B M"], rows: int, subset_weights: Any, uniform: float = 0.5) -> Plan:
    """S subsets per data point, drawn independently from a mixture of π̃ (detached) and the uniform distribution over k ⊆ O.

    For any number of modalities: nothing is enumerated beyond what the weights themselves hold.
    """
    by_weight = subset_weights.draw(observed, rows)
    by_chance = draw_uniform(observed, rows)
    coin = random.uniform((rows, len(observed)), count(observed), 1) < uniform
    mask = torch.where(coin.unsqueeze(-1), by_chance, by_weight)
    chance = uniform / count(observed).clamp(min=1.0)
    probability = chance + (1 - uniform) * subset_weights.log_prob(mask, observed).detach().exp()
    share = torch.where(observed.any(-1), 1 / (rows * probability), 0.0)
    return Plan(mask, share, observed)


def draw_uniform(observed: Bool[Tensor, "B M"], rows: int) -> Bool[Tensor, "S B M"]:
    """Subsets of O, each with probability 1 / K_O."""
    return draw_conditioned(torch.zeros(observed.shape[-1], dtype=torch.get_default_dtype(), device=observed.device), observed, rows)


def draw_conditioned(logits: Float[Tensor, "M"], observed: Bool[Tensor, "B M"], rows: int) -> Bool[Tensor, "S B M"]:
    """Every observed modality is in with probability σ(a_m), given that not all are out.

    Drawn exactly and without rejection: first the earliest modality that is in, then the later ones independently.
    """
    first = log_earliest(logits, observed)
    leader = (first + random.gumbel((rows, *observed.shape), first, 1)).argmax(-1, keepdim=True)
    coins = random.uniform((rows, *observed.shape), first, 1) < torch.sigmoid(logits)
    place = torch.arange(observed.shape[-1], device=observed.device)
    return ((place == leader) | (coins & (place > leader))) & observed


def log_earliest(logits: Float[Tensor, "M"], observed: Bool[Tensor, "B M"]) -> Float[Tensor, "B M"]:
    """log of σ(a_j) Π_{i<j} (1 − σ(a_i)) over what is observed: modality j is in, and none before it.

    They sum to the probability that not all are out, without cancellation. 0 for a data point that has nothing.
    """
    outside = torch.where(observed, torch.nn.functional.logsigmoid(-logits), 0.0)
    earlier = outside.cumsum(-1) - outside
    first = torch.where(observed, torch.nn.functional.logsigmoid(logits) + earlier, -torch.inf)
    return torch.where(observed.any(-1, keepdim=True), first, 0.0)


def singletons(observed: Bool[Tensor, "B M"]) -> Bool[Tensor, "M B M"]:
    """Row m holds modality m alone, where it is observed."""
    return torch.eye(observed.shape[-1], dtype=torch.bool, device=observed.device).unsqueeze(1) & observed
