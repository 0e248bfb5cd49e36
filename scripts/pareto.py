# SPDX-License-Identifier: MIT
"""Selects points worth having: Pareto fronts, and the fastest points with enough recall."""


def front(points, recall, speed):
    """The points that no other beats in recall and speed at once, by ascending recall. Both are functions of points."""
    kept = []
    for point in sorted(points, key=lambda p: (recall(p), speed(p)), reverse=True):
        if not kept or speed(point) > speed(kept[-1]):
            kept.append(point)
    return kept[::-1]


def fastest(points, recall, speed, target):
    """The fastest point whose recall is at least the target; None if there is none."""
    return max((p for p in points if recall(p) >= target), key=speed, default=None)
