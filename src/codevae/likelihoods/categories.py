"""Yes or no, and one of several."""

import torch
from torch.nn.functional import logsigmoid, one_hot

from codevae.errors import InputError
from codevae.likelihoods.base import Likelihood


class Bernoulli(Likelihood):
    """Yes or no, stored as 1 or 0: the decoder gives logits."""

    support = "0 or 1"

    def _fits(self, x):
        return (x == 0) | (x == 1)

    def view(self, x):
        return 2 * x.to(torch.get_default_dtype()) - 1

    def log_prob(self, raw, x):
        return logsigmoid(torch.where(x == 1, raw, -raw))

    def mean(self, raw):
        return torch.sigmoid(raw)

    def pool(self, raw):
        return (self.mean(raw).mean(0) > 0.5).to(raw.dtype)

    def draw(self, raw):
        return (torch.rand_like(raw) < torch.sigmoid(raw)).to(raw.dtype)


class Categorical(Likelihood):
    """One of several categories, stored as codes 0 … categories − 1: a table's column, or the tokens of a sequence.

    Arguments:
        categories: how many there are.
    """

    def __init__(self, categories: int):
        super().__init__()
        if not (isinstance(categories, int) and categories >= 1):
            raise InputError(f"Categorical(categories): expected a whole number of at least 1, got {categories!r}.")
        self.categories = categories
        self.support = f"codes from 0 to {categories - 1}"

    @property
    def raw_shape(self):
        return (*self.shape, self.categories)

    @property
    def feature_shape(self):
        return (*self.shape, self.categories)

    def _fits(self, x):
        return (x >= 0) & (x < self.categories) & (x == x.floor() if x.is_floating_point() else True)

    def view(self, x):
        return one_hot(x.long().clamp(0, self.categories - 1), self.categories).to(torch.get_default_dtype())

    def log_prob(self, raw, x):
        index = x.long().clamp(0, self.categories - 1).expand(raw.shape[:-1]).unsqueeze(-1)
        return raw.log_softmax(-1).gather(-1, index).squeeze(-1)

    def mean(self, raw):
        return raw.softmax(-1)

    def pool(self, raw):
        return self.mean(raw).mean(0).argmax(-1)

    def draw(self, raw):
        return (raw - torch.log(-torch.log(torch.rand_like(raw).clamp(1e-7, 1 - 1e-7)))).argmax(-1)
