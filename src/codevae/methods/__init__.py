"""The published methods, one per file, each stating only its difference from `Method`."""

from codevae.methods.base import Bound, Experts, Method
from codevae.methods.cmvae import CMVAE
from codevae.methods.codevae import CoDEVAE
from codevae.methods.mmjsd import MMJSD
from codevae.methods.mmvae import MMVAE
from codevae.methods.mmvaeplus import MMVAEPlus
from codevae.methods.mopoe import MoPoE
from codevae.methods.mvae import MVAE
from codevae.methods.mvtcae import MVTCAE
from codevae.methods.vae import VAE

__all__ = ["CMVAE", "MMJSD", "MMVAE", "MVAE", "MVTCAE", "VAE", "Bound", "CoDEVAE", "Experts", "MMVAEPlus", "Method", "MoPoE"]
