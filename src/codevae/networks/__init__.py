"""Architectures: a sensible default for tables, images and token sequences.

An encoder maps features (B, …) to (B, 2 (D + P)) raw numbers, a decoder maps codes (N, D + P) to (N, …) raw numbers; any
`nn.Module` that does so serves. One with `sees_gaps = True` is given the entries as a second argument.
"""

from codevae.networks.image import ImageDecoder, ImageEncoder
from codevae.networks.table import TableDecoder, TableEncoder
from codevae.networks.tokens import TokenDecoder, TokenEncoder

__all__ = ["ImageDecoder", "ImageEncoder", "TableDecoder", "TableEncoder", "TokenDecoder", "TokenEncoder"]
