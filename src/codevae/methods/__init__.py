"""The published methods, one per file, each stating only its difference from `Method`."""

from codevae.methods.base import Bound, Experts, Method
from codevae.methods.codevae import CoDEVAE
from codevae.methods.vae import VAE

__all__ = ["Bound", "CoDEVAE", "Experts", "Method", "VAE"]
