"""One good call of every kernel, of any size and kind: what tests of all kernels begin with."""

import ast
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import calibrant
from calibrant import _core


@cache
def signatures():
    """Return each kernel's arguments with their types, from the stub."""
    stub = Path(calibrant.__file__).parent / "_core.pyi"
    functions = [node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.FunctionDef)]
    return {f.name: {a.arg: ast.unparse(a.annotation) if a.annotation else "" for a in f.args.args} for f in functions}


KERNELS = sorted(signatures())


class Call:
    """Arguments for kernels: n rows of k classes in two groups, where there are two, and m of anything else."""

    def __init__(self, n=12, k=5, m=7, kind: Any = np.float64, seed=0, weighted=True):
        self.n, self.k, self.m, self.kind = n, k, m, kind
        self.g = min(2, k)
        self.rng = np.random.default_rng([n, k, m, seed])
        self.logits = np.round(self.rng.normal(size=(n, k)) * 3, 3).astype(kind)
        self.labels = self.rng.integers(0, k, n)
        self.labels[-1:] = k - 1
        self.groups = np.arange(k) % self.g
        self.weights = self.rng.integers(0, 4, n) * 0.5 if weighted else None

    def __call__(self, kernel, **changed):
        """Return a good call's arguments by name."""
        own = {**self._common(), **getattr(self, f"_{kernel}", dict)(), **changed}
        return {name: own[name] for name in signatures()[kernel]}

    def _uniform(self, *shape):
        return self.rng.random(shape)

    def _rising(self, *shape):
        return np.sort(self.rng.normal(size=shape) * 2, axis=-1)

    def _softmax(self):
        p = np.exp(self.logits.astype(np.float64) - self.logits.max(axis=1, keepdims=True))
        return (p / p.sum(axis=1, keepdims=True)).astype(self.kind)

    def _cut(self, size):
        """Return starts of as many groups as there are, of two at least where there is room for them."""
        return np.array([0, size // 2, size])[: None if self.g > 1 else 3 : 1 if self.g > 1 else 2]

    def _common(self):
        n, k, kind = self.n, self.k, self.kind
        return {
            "logits": self.logits,
            "labels": self.labels,
            "weights": self.weights,
            "row_weights": self.weights,
            "groups": self.groups,
            "out": np.full((n, k), 7, kind),
            "centres": _core.linear_centres(self.logits, 0.8, -20.0, 1),
            "threads": 2,
            "beta": 0.8,
            "floor": -20.0,
            "centred": True,
            "tolerance": 1e-3,
            "marginals": False,
            "values": self._softmax(),
            "probabilities": self._softmax(),
            "scores": self.logits,
            "scale": 0.5,
            "mean": 0.3,
        }

    def _add_class_kernels(self):
        k = self.k
        return {
            "products": self.logits,
            "half_norms": self._uniform(k),
            "weights": None if self.weights is None else self._uniform(k),
            "starts": self._cut(k + 1),
            "first": 1,
            "skip": np.arange(self.n) % k,
            "shifts": np.full((self.n, 1), -np.inf),
            "sums": np.zeros((self.n, self.g)),
        }

    def _finish_class_kernels(self):
        n, g = self.n, self.g
        shifts, own, prior = self._uniform(n, 1), self._uniform(n), self._uniform(g)
        more = {"zero_log": -30.0, "clip": 1e-6, "out": np.full((n, g), 7, self.kind)}
        return {"sums": self._uniform(n, g), "shifts": shifts, "own": own, "prior": prior, **more}

    def _add_linear_mixture(self):
        k, panel = self.k, 64 // np.dtype(self.kind).itemsize
        padded = -(-k // panel) * panel
        widths = np.array([1, k, k + 1] if k > 1 else [1, 2])
        weights = self.rng.normal(size=sum(k if w == 1 else w * padded for w in widths)).astype(self.kind)
        frames = np.array([[0.8, -20.0, i % 2, 0.3, 0.5 * (w == k + 1), 0.4] for i, w in enumerate(widths)])
        intercepts = self.rng.normal(size=(len(widths), k)).astype(self.kind)
        given = {"frames": frames, "columns": widths, "weights": weights, "intercepts": intercepts}
        return {**given, "out": self._softmax()}

    def _best_partition(self):
        weights = self._uniform(self.n) + 0.1
        return {"weights": weights, "positives": weights * self._uniform(self.n), "bins": 3}

    def _convex_on_simplex(self):
        return {"gram": np.cov(self.rng.normal(size=(self.m, 40)))}

    def _best_quadratic(self):
        start = np.full(self.m, 1 / self.m)
        return {**self._convex_on_simplex(), "linear": self.rng.normal(size=self.m), "start": start}

    def _bin_lift(self):
        return {"edges": self._rising(self.k, self.m), "table": self._uniform(self.k, self.m + 1), "normalize": True}

    def _bin_look_up(self):
        given = {"scores": self.logits[:, 0].copy(), "edges": self._rising(self.m), "table": self._uniform(self.m + 1)}
        return {**given, "out": np.empty(self.n, self.kind)}

    def _bin_sums(self):
        return {"edges": self._rising(self.g, self.m)}

    def _binwise_apply(self):
        return {"edges": self._rising(self.m), "betas": self._uniform(self.m + 1)}

    def _cell_loss(self):
        weights = self._uniform(self.n)
        return {"scores": self._rising(self.n), "weights": weights, "outcomes": weights * self._uniform(self.n)}

    def _cell_sums(self):
        coarse = self.g << 6
        first = (np.arange(coarse) * 4).astype(np.int32)
        shift = np.full(coarse, 24, np.int32)
        return {"group_count": self.g, "bits": 6, "first": first, "shift": shift, "out": np.zeros((4 * coarse, 2))}

    def _cell_regression(self):
        weights = self._uniform(self.n)
        given = {"features": self.rng.normal(size=(3, self.n)), "theta": self.rng.normal(size=3)}
        return {**given, "weights": weights, "outcomes": weights * self._uniform(self.n)}

    def _score_cells(self):
        given = {"odds": self.logits[:, 0].copy(), "labels": self.rng.integers(0, 2, self.n)}
        cell_keys, counts = np.zeros(self.n, np.int32), np.zeros((1 << 20, 2), np.int32)
        return {**given, "cell_keys": cell_keys, "counts": counts, "there": np.zeros(1 << 16, np.uint8)}

    def _split_glances(self):
        given = self._score_cells()
        _core.score_cells(**given)
        return {"counts": given["counts"], "there": given["there"], "folds": 3}

    def _fold_cells(self):
        cell_keys = self.rng.integers(-(2**31), 2**31, self.n).astype(np.int32)
        first, shift = np.arange(1 << 16, dtype=np.int32), np.full(1 << 16, 16, np.int32)
        given = {"cell_keys": cell_keys, "labels": self.rng.integers(0, 2, self.n), "first": first, "shift": shift}
        held = self.rng.integers(-(2**31), 2**31, 1 << 16).astype(np.int32)
        return {**given, "held": held, "out": np.zeros((1 << 16, 4), np.int32)}

    def _class_bins(self):
        return {"edges": np.linspace(0, 1, self.m + 2) ** 2, "floors": self._uniform(self.k) / 9}

    def _curve_sums(self):
        knots, stations = np.linspace(-9, 9, self.m + 2), np.linspace(0.2, 3, self.g)
        return {"knots": knots, "stations": stations, "values": self._rising(self.g, self.m + 2)}

    _curve_apply = _curve_sums

    def _ensemble_apply(self):
        return {"w_scaled": 0.5, "w_identity": 0.3, "w_uniform": 0.2}

    def _finite_logs(self):
        return {"share": 1e-3, "level": 1.0 / self.k, "keep_top": True, "depth": 30.0}

    def _imax(self):
        n = max(self.n, 6)
        weights = self._uniform(n) + 0.1
        outcomes = weights * (self._uniform(n) < np.linspace(0.1, 0.9, n))
        cells = {"scores": np.linspace(-3, 3, n), "weights": weights, "outcomes": outcomes}
        return {**cells, "starts": np.array([0, n]), "bins": 3, "affine": False, "uniforms": self._uniform(3, 2)}

    def _isotonic_apply(self):
        m = self.m + 2
        knots, values = np.sort(self._rising(m)).astype(self.kind), np.sort(self._uniform(m))
        return {"starts": self._cut(m), "knots": knots, "values": values, "steps": False, "epsilon": 1e-3}

    def _negatives_between(self):
        return {"starts": self._cut(self.m), "bounds": self._rising(self.m).astype(self.kind)}

    def _merge_close(self):
        return {"sorted": self._rising(self.m).astype(self.kind), "starts": self._cut(self.m), "resolution": 0.5}

    def _keep_probabilities(self):
        return {"noise": 1, "nodes": 33}

    def _keep_shares(self):
        draws = 10 * self.m
        packed, reach = _core.pack_noise(self.rng.normal(size=(self.k, draws)).astype(self.kind))
        return {"packed": packed, "reach": reach, "draws": draws}

    def _pack_noise(self):
        return {"noise": self.rng.normal(size=(self.k, 10 * self.m)).astype(self.kind)}

    def _keep_top(self):
        return {"probabilities": self.rng.dirichlet(np.ones(self.k), self.n).astype(self.kind)}

    def _normalize_rows(self):
        return {"keep_top": True, "marginals": self.rng.random((self.n, self.k)).astype(self.kind)}

    def _label_hits(self):
        return {"most": 2}

    def _logistic_apply(self):
        return {"odds": self.logits, "coefficients": self.rng.normal(size=(self.k, 3))}

    def _logistic_lift(self):
        return {"coefficients": self.rng.normal(size=(self.k, 3)), "normalize": True}

    def _logistic_sums(self):
        targets = np.column_stack([np.full(self.g, 0.1), np.full(self.g, 0.8)])
        return {"coefficients": self.rng.normal(size=(self.g, 3)), "targets": targets, "two_slopes": True}

    def _matrix_sums(self):
        return {"weights": self.rng.normal(size=(self.k + 2, self.k)) / 5}

    _matrix_blocks = _matrix_sums

    def _matrix_moment(self):
        return {**self._matrix_sums(), "shift": self.rng.normal(size=self.k + 1)}

    def _matrix_along(self):
        return {**self._matrix_sums(), "directions": self.rng.normal(size=(self.k + 2, self.m))}

    def _mixture_sums(self):
        return {"columns": self._uniform(self.n, self.k), "w": np.full(self.k, 1 / self.k)}

    def _pair_bins(self):
        outcomes = (self._uniform(self.n) < 0.4).astype(float)
        return {"scores": self._uniform(self.n), "outcomes": outcomes, "edges": np.linspace(0, 1, self.m + 2) ** 2}

    def _panel_products(self):
        panel = 64 // np.dtype(self.kind).itemsize
        size = self.m * (-(-self.k // panel) * panel)
        x = self.rng.normal(size=(self.n, self.m)).astype(self.kind)
        return {"x": x, "panels": self.rng.normal(size=size).astype(self.kind)}

    def _pieces_apply(self):
        m = self.m + 4
        knots = np.sort(self._rising(m))
        return {"starts": self._cut(m), "knots": knots, "pieces": self.rng.normal(size=(m, 4))}

    def _pool_adjacent(self):
        return {"sums": self._uniform(self.n), "weights": self._uniform(self.n) + 0.1, "starts": self._cut(self.n)}

    def _resample_sums(self):
        n, m, k = self.n, self.m, self.k
        rows = {"group": self.rng.integers(0, m, n), "outcomes": self._uniform(n), "excess": self._uniform(n)}
        sums = {name: np.zeros((3, m + 1)) for name in ("mass", "events", "gaps")}
        given = {"rows": self._uniform(n, k), "seeds": np.arange(3, dtype=np.uint64), "row_sums": np.zeros((3, k))}
        return {**rows, **sums, **given}

    def _row_keys(self):
        return {"relative": True, "fine": False}

    def _softmax_residual(self):
        return {"scores": self.logits * self.kind(0.7), "b": self.rng.normal(size=self.k)}

    def _spread_confidence(self):
        alphas, betas = self._uniform(3, self.m), self._uniform(3, self.m)
        given = {"alphas": alphas, "betas": betas, "filled": self._uniform(3, self.m) < 0.8}
        return {**given, "shares": self._uniform(self.n), "start": 0.4, "margin": 1e-3}

    def _sweep(self):
        n = max(self.n, 1)
        steps = np.vstack([np.ones(n), self._uniform(n), self._uniform(n) < 0.5])
        prefix = np.concatenate([np.zeros((3, 1)), np.cumsum(steps, axis=1)], axis=1)
        return {"values": np.sort(self._uniform(n)), "prefix": prefix, "equal_width": False, "norm": 2}

    def _temperature_sums(self):
        places = np.arange(self.n) % self.g
        return {"places": places, "betas": self._uniform(self.g) + 0.5, "loss": 0}

    def _triweight(self):
        points = self._rising(self.m)
        return {"places": self.rng.normal(size=self.n), "points": points, "weights": self._uniform(2, self.m), "h": 0.9}

    def _upper_venn_abers(self):
        weights = self._uniform(self.n) + 0.1
        return {"weights": weights, "positives": weights * self._uniform(self.n), "unit": 0.3}

    def _vector_sums(self):
        return {"d": self.rng.normal(size=self.k), "b": self.rng.normal(size=self.k), "curvature": True}
