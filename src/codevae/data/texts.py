"""A cell as the text that stands for it, so that 3, 3.0 and " 3" are one id and one category."""

from typing import Any

import numpy as np
import pandas as pd


def texts(cells: pd.Series) -> pd.Series:
    """Every cell as a text; missing where it is missing or blank.

    Example:
        >>> texts(pd.Series([3.0, None, 2.5])).tolist()
        ['3', nan, '2.5']
    """
    spelled = {value: spell(value) for value in cells.dropna().unique()}
    return cells.astype(object).map(spelled).astype(object)


def spell(value: Any) -> Any:
    """One value as a text, or NaN if nothing is left of it."""
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
    return str(value).strip() or np.nan


def unspell(cells: np.ndarray) -> np.ndarray:
    """Texts as whole numbers or numbers where all of them are, else as they are with "" for what is missing."""
    series = pd.Series(cells, dtype=object)
    numbers = pd.to_numeric(series, errors="coerce").to_numpy(np.float64)
    missing = series.isna().to_numpy()
    if missing.all() or (np.isnan(numbers) & ~missing).any():
        return np.where(missing, "", cells).astype(str)
    whole = not missing.any() and np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all()
    return numbers.astype(np.int64) if whole else numbers
