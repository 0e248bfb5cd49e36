"""Experiments of Kim and Choi, Binary embedding with additive homogeneous kernels."""

from __future__ import annotations
