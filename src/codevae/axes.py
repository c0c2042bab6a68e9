"""The notation: one letter per axis, in this order, in every signature.

    S samples · K subsets · B data points · M modalities · D latent dimensions · C components · P private dimensions

The letters are jaxtyping axes: `Float[Tensor, "M B D"]`. They are checked under the tests and cost nothing elsewhere.
"""

from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

__all__ = ["Bool", "Float", "Int", "Shaped", "Tensor"]
