"""p(x_m | z): what a decoder's raw numbers mean, and how the values look to an encoder.

A likelihood knows the shape of one value, how many raw numbers the decoder must give for it, and four views of them: `log_prob`,
`mean`, `predict` (one value of the stored type) and `draw`. `features` is what an encoder sees: scaled, one-hot or log1p, and 0
where nothing is. Missing values inside a present modality are masked before any arithmetic, and count nothing.

Numbers are modelled in units learned from the training data (`standardise`): (x − offset) / unit, column by column for a table,
channel by channel for an image. Densities are those of the scaled values, so that they can be compared over columns.
"""

from codevae.likelihoods.base import Likelihood
from codevae.likelihoods.categories import Bernoulli, Categorical
from codevae.likelihoods.columns import Columns
from codevae.likelihoods.counts import NegativeBinomial, Poisson, ZeroInflatedNegativeBinomial
from codevae.likelihoods.numbers import Laplace, Normal, StudentT

__all__ = [
    "Bernoulli",
    "Categorical",
    "Columns",
    "Laplace",
    "Likelihood",
    "NegativeBinomial",
    "Normal",
    "Poisson",
    "StudentT",
    "ZeroInflatedNegativeBinomial",
]
