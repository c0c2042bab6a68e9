"""π: a distribution over the subsets, restricted to what a data point has.

Three forms, each a distribution over masks with closed-form normaliser and entropy for every set O of observed modalities:

    Table        log π_k = u_k                  2^M − 1 numbers, up to ten modalities (the paper's)
    BySize       log π_k = v_|k|                M numbers; all subsets of one size are alike
    ByModality   log π_k = Σ_{m∈k} a_m          M numbers; a modality is likely in, or likely out

π̃ is always a softmax over the subsets k ⊆ O, never π divided by its sum, which underflows.
"""

import torch
from torch import nn
from torch.nn.functional import softplus

from codevae import random, subsets
from codevae.axes import Bool, Float, Tensor


class SubsetWeights(nn.Module):
    """A distribution over subsets: log π̃ of masks, the entropy of π̃, and draws from it."""

    def __init__(self, parameters: int, learned: bool):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(parameters), requires_grad=learned)

    def log_prob(self, mask: Bool[Tensor, "K B M"], observed: Bool[Tensor, "B M"]) -> Float[Tensor, "K B"]:
        """log π̃ of each row, which must lie within `observed`; 0 (never looked at) for an empty row."""
        return torch.where(mask.any(-1), self.score(mask) - self.log_normaliser(observed), 0.0)

    def score(self, mask: Bool[Tensor, "K B M"]) -> Float[Tensor, "K B"]:
        """log π up to a constant."""
        raise NotImplementedError

    def log_normaliser(self, observed: Bool[Tensor, "B M"]) -> Float[Tensor, "B"]:
        """log Σ_{k⊆O} exp score(k); any number where nothing is observed."""
        raise NotImplementedError

    def entropy(self, observed: Bool[Tensor, "B M"]) -> Float[Tensor, "B"]:
        """H(π̃) = log Z − E[score]; 0 where nothing is observed."""
        raise NotImplementedError

    def draw(self, observed: Bool[Tensor, "B M"], rows: int) -> Bool[Tensor, "S B M"]:
        """Independent draws of subsets of O."""
        raise NotImplementedError


class Table(SubsetWeights):
    """One logit per subset, in the order of `subsets.powerset`."""

    table: Tensor

    def __init__(self, modalities: int, learned: bool = True):
        super().__init__(2**modalities - 1, learned)
        self.register_buffer("table", subsets.powerset(modalities), persistent=False)

    def score(self, mask):
        return self.logits[(subsets.pack(mask) - 1).clamp(min=0)]

    def _within(self, observed):
        """log π up to a constant of every subset, −inf where k ⊄ O: (B, K)."""
        within = (self.table <= observed.unsqueeze(1)).all(-1)
        within = within | ~observed.any(-1, keepdim=True)  # a point with nothing keeps finite numbers; no one looks at them
        return self.logits.masked_fill(~within, -torch.inf)

    def log_normaliser(self, observed):
        return torch.logsumexp(self._within(observed), -1)

    def entropy(self, observed):
        scores = self._within(observed)
        log_p = scores - torch.logsumexp(scores, -1, keepdim=True)
        finite = torch.where(scores > -torch.inf, log_p, 0.0)
        return torch.where(observed.any(-1), -(log_p.exp() * finite).sum(-1), 0.0)

    def draw(self, observed, rows):
        scores = self._within(observed)
        chosen = (scores + random.gumbel((rows, *scores.shape), scores, 1)).argmax(-1)
        return self.table[chosen] & observed


class BySize(SubsetWeights):
    """One logit per subset size: Z = Σ_c C(|O|, c) exp v_c."""

    log_ways: Tensor

    def __init__(self, modalities: int, learned: bool = True):
        super().__init__(modalities, learned)
        n, c = torch.arange(modalities + 1.0).unsqueeze(1), torch.arange(1.0, modalities + 1)
        ways = torch.lgamma(n + 1) - torch.lgamma(c + 1) - torch.lgamma((n - c).clamp(min=0) + 1)
        self.register_buffer("log_ways", ways.masked_fill(c > n, -torch.inf), persistent=False)  # log C(n, c): (M+1, M)

    def score(self, mask):
        return self.logits[(mask.sum(-1) - 1).clamp(min=0)]

    def _sizes(self, observed):
        """log of the mass of each size, (B, M), unnormalised."""
        return self.log_ways[observed.sum(-1).clamp(min=1)] + self.logits

    def log_normaliser(self, observed):
        return torch.logsumexp(self._sizes(observed), -1)

    def entropy(self, observed):
        log_z = self.log_normaliser(observed)
        mass = (self._sizes(observed) - log_z.unsqueeze(-1)).exp()
        # Σ mass = 1: the difference is formed first, so that a shift common to all logits costs no digits
        return torch.where(observed.any(-1), (mass * (log_z.unsqueeze(-1) - self.logits)).sum(-1), 0.0)

    def draw(self, observed, rows):
        sizes = self._sizes(observed)
        size = 1 + (sizes + random.gumbel((rows, *sizes.shape), sizes, 1)).argmax(-1, keepdim=True)
        keys = random.uniform((rows, *observed.shape), sizes, 1).masked_fill(~observed, 2.0)
        return (keys.argsort(-1).argsort(-1) < size) & observed


class ByModality(SubsetWeights):
    """One logit per modality: Z = Π_{m∈O} (1 + exp a_m) − 1, independent modalities given that not all are out."""

    def __init__(self, modalities: int, learned: bool = True):
        super().__init__(modalities, learned)

    def score(self, mask):
        return torch.where(mask, self.logits, 0.0).sum(-1)

    def log_normaliser(self, observed):
        # Π (1 + exp a_m) times the probability that not all are out, which "1 − all out" would round to 0 where all are unlikely
        some = torch.logsumexp(subsets.log_earliest(self.logits, observed), -1)
        return torch.where(observed, softplus(self.logits), 0.0).sum(-1) + some

    def entropy(self, observed):
        # that of the earliest modality that is in, and of a coin for each that comes after it: nothing is subtracted
        log_first = subsets.log_earliest(self.logits, observed).log_softmax(-1)
        first = log_first.exp()
        coin = torch.sigmoid(self.logits) * softplus(-self.logits) + torch.sigmoid(-self.logits) * softplus(self.logits)
        each = (first.cumsum(-1) - first) * coin - first * torch.where(observed, log_first, 0.0)
        return torch.where(observed, each, 0.0).sum(-1)

    def draw(self, observed, rows):
        return subsets.draw_conditioned(self.logits.detach(), observed, rows)


FORMS = {"table": Table, "by_size": BySize, "by_modality": ByModality}
