# SPDX-License-Identifier: MIT
"""Clusters of similar vectors."""

import numpy as np

from .arguments import as_names
from .graphs import neighbours


def butina_clusters(
    x: "ArrayLike", threshold: float = 0.65,
    kernel: "str | Kernel | BitKernel" = "jaccard",
    packed: "bool | int | None" = None, names: "ArrayLike | None" = None
) -> "tuple[NDArray[np.int64], NDArray[np.int64] | list[list[str]]]":
    """Divides vectors into clusters around vectors with many neighbours.

    Neighbours of a vector are the vectors whose kernel value with it reaches
    the threshold. The vectors are visited from the one with the most neighbours
    to the one with the fewest; of equal numbers, the later vector comes first.
    A vector that is in no cluster yet becomes the centre of a new one, which
    gets all its neighbours that are in no cluster yet. The neighbours are found
    exactly. Clusters are the same as those of RDKit's `Butina.ClusterData`,
    without reordering, for the distance 1 - threshold.

    Parameters
    ----------
    x : array_like or sparse array, shape (n, d)
        The vectors. With `packed=True`, an array of uint8.
    threshold : float
        The least kernel value of neighbours, above 0.
    kernel : str, Kernel or BitKernel
        As for `threshold_graph`.
    packed : bool or int, optional
        As for `near_duplicates`.
    names : list or array of str, length n, optional
        Names of the vectors. With names, the clusters are returned instead of
        their centres.

    Returns
    -------
    labels : int64, shape (n,)
        The number of each vector's cluster. Clusters are numbered in the order
        in which they are made.
    centres : int64, shape (number of clusters,)
        The vector in the centre of each cluster. With names, a list of clusters
        instead: the list of each cluster's names, with the centre first.

    References
    ----------
    D. Butina, Unsupervised data base clustering based on Daylight's fingerprint
    and Tanimoto similarity, J. Chem. Inf. Comput. Sci. 1999.

    Examples
    --------
    >>> labels, centres = faiss_ext.butina_clusters(
    ...     fingerprints, 0.65, packed=True)
    >>> sizes = np.bincount(labels)

    Names instead of numbers:

    >>> _, clusters = faiss_ext.butina_clusters(
    ...     fingerprints, 0.65, packed=True, names=smiles)
    >>> for centre, *others in clusters:
    ...     print(centre, len(others))
    """
    where = "butina_clusters"
    ends, ids, _ = neighbours(x, threshold, kernel, packed, where)
    counts = np.diff(ends)
    n = len(counts)
    names = as_names(names, n, where)
    labels, centres = np.full(n, -1), []
    for i in np.lexsort((np.arange(n), counts))[::-1].tolist():
        if labels[i] < 0:
            near = ids[ends[i] : ends[i + 1]]
            labels[near[labels[near] < 0]] = len(centres)
            labels[i] = len(centres)
            centres.append(i)
    centres = np.array(centres, "int64")
    return labels, centres if names is None else members(labels, centres, names)


def members(labels, centres, names):
    """The names of each cluster, the centre first."""
    clusters = [[names[centre]] for centre in centres]
    for i, label in enumerate(labels):
        if i != centres[label]:
            clusters[label].append(names[i])
    return clusters
