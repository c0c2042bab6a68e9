"""A method of your own: one class. It trains, embeds, imputes and is evaluated like the ones that are there.

The one below is JMVAE without its joint encoder, for brevity's sake: a product of experts whose every single expert is drawn towards it.

    L(x) = E_{q(z|x)} log p(x|z) − KL(q(z|x) ‖ p(z)) − α Σ_m KL(q(z|x) ‖ q(z|x_m))
"""

import torch

from codevae import MultimodalVAE, PoE, data, fit, metrics
from codevae.distributions import Normal, kl
from codevae.methods import Bound, Method
from codevae.subsets import Plan


class Drawn(Method):
    """A product of experts that every expert is drawn towards.

    Arguments:
        alpha: how strongly.
    """

    def __init__(self, alpha: float = 0.1):
        super().__init__()
        self.alpha, self.consensus = alpha, PoE(prior_expert=True)

    def bound(self, model, batch):
        experts, observed = model.encode(batch), batch.observed
        plan = Plan(observed.unsqueeze(0), observed.any(-1).unsqueeze(0).float(), observed)  # one row: all that is there
        q = self.posterior(experts, plan.mask)
        log_px = model.log_prob(batch, q.draw(1)).mean(0)  # (K,B,M)
        divergence = kl(q.shared, self.prior.distribution())  # (K,B)
        there = observed.mT.unsqueeze(-1)
        mine = Normal(torch.where(there, experts.shared.loc, q.shared.loc), torch.where(there, experts.shared.scale, q.shared.scale))
        value = (log_px.sum(-1) - divergence)[0] - self.alpha * kl(q.shared, mine).sum(0)
        return Bound(torch.where(plan.points, value, 0.0), torch.zeros(()), log_px, divergence, plan)


def main(steps: int = 300) -> float:
    """Train it on the bundled digits, and say what it learned."""
    digits = data.multiple_features(missing=0.4)
    train, test = digits[:1400], digits[1400:]
    model = MultimodalVAE(data.modalities(train), latent_dim=16, method=Drawn(), seed=0)
    history = fit(model, train, steps=steps)
    accuracy = metrics.linear_probe(model.embed(train), train.labels["digit"], model.embed(test), test.labels["digit"])
    likelihood = metrics.log_likelihood(model, test[:50], samples=50)
    print(f"bound {history['bound'][-1]:.1f}, probe {accuracy:.3f}, log-likelihood {likelihood.joint.mean():.1f}")
    return accuracy


if __name__ == "__main__":
    main()
