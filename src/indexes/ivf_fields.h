// SPDX-License-Identifier: MIT
// Fields of a faiss::IndexIVF or IndexBinaryIVF, or of a class derived from one
// of them. A patch release of FAISS has moved the fields of IndexIVF.

#pragma once

#include <type_traits>

#include <faiss_ext/indexes/loaded_fields.h>

namespace faiss_ext {

template <class IVF>
auto& nprobe_of(IVF& ivf) {
    return ivf.*loaded<&std::remove_const_t<IVF>::nprobe>;
}

template <class IVF>
auto& max_codes_of(IVF& ivf) {
    return ivf.*loaded<&std::remove_const_t<IVF>::max_codes>;
}

template <class IVF>
auto& invlists_of(IVF& ivf) {
    return ivf.*loaded<&std::remove_const_t<IVF>::invlists>;
}

template <class IVF>
auto& direct_map_of(IVF& ivf) {
    return ivf.*loaded<&std::remove_const_t<IVF>::direct_map>;
}

} // namespace faiss_ext
