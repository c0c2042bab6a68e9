"""Arrays → PNG pictures inside the page."""

import base64
import io

import numpy as np

from codevae.report.extra import extra

_ENDS = {"low": (33, 102, 172), "middle": (247, 247, 247), "high": (178, 24, 43)}
"""The colours of a strip: blue below the mean, red above it."""


def strip_of_pictures(pictures: np.ndarray, low: float, high: float) -> np.ndarray:
    """(n, height, width, colours) → one picture (height, n (width + gap) − gap, 4), red-green-blue-alpha in bytes; absent is clear."""
    count, height, width, colours = pictures.shape
    gap = max(1, width // 16)
    there = ~np.isnan(pictures).any(-1)
    grey = np.clip((np.nan_to_num(pictures) - low) / (high - low), 0, 1)
    grey = grey if colours == 3 else np.repeat(grey[..., :1], 3, -1)
    canvas = np.zeros((height, count * (width + gap) - gap, 4), dtype=np.uint8)
    for place in range(count):
        part = canvas[:, place * (width + gap) : place * (width + gap) + width]
        part[..., :3] = np.round(255 * grey[place])
        part[..., 3] = 255 * there[place]
    return canvas


def strip_of_colours(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """(n, columns) → one picture with a line per row, blue below the middle of low and high and red above it; absent is clear."""
    scaled = np.clip((np.nan_to_num(values) - low) / (high - low), 0, 1)[..., None]
    ends = {name: np.array(colour, dtype=float) for name, colour in _ENDS.items()}
    below = ends["low"] + 2 * scaled * (ends["middle"] - ends["low"])
    above = ends["middle"] + (2 * scaled - 1) * (ends["high"] - ends["middle"])
    colours = np.where(scaled < 0.5, below, above)
    alpha = np.where(np.isnan(values), 0.0, 255.0)[..., None]
    return np.round(np.concatenate([colours, alpha], -1)).astype(np.uint8)


def data_uri(picture: np.ndarray) -> str:
    """A picture (height, width, 4) in bytes as the text of an `img`'s src."""
    file = io.BytesIO()
    extra("matplotlib.image").imsave(file, picture, format="png", pil_kwargs={"optimize": True})
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
