// SPDX-License-Identifier: MIT
#include <faiss_ext/io/index_factory.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <stdexcept>
#include <utility>

#include <faiss/IndexBinaryIVF.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIVF.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/index_factory.h>

#include <faiss_ext/indexes/IndexAsymmetricHash.h>
#include <faiss_ext/indexes/IndexBinaryFlatKernel.h>
#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>
#include <faiss_ext/indexes/IndexBinaryHNSWKernel.h>
#include <faiss_ext/indexes/IndexBinaryHNSWSIMD.h>
#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/indexes/IndexBinaryRefineKernel.h>
#include <faiss_ext/indexes/IndexConcurrent.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexHNSWKernel.h>
#include <faiss_ext/indexes/IndexIDTable.h>
#include <faiss_ext/indexes/IndexIVFPQ4.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/indexes/IndexPreTransformSIMD.h>
#include <faiss_ext/indexes/IndexRefineKernel.h>
#include <faiss_ext/indexes/index_registry.h>

#include "core/errors.h"
#include "core/field_strings.h"
#include "core/hamming.h"
#include "core/string_token.h"
#include "hashes/hash_strings.h"
#include "indexes/fast_scan.h"
#include "indexes/graph_settings.h"
#include "indexes/index_facts.h"
#include "indexes/index_parts.h"
#include "indexes/with_ids.h"
#include "io/newer_faiss.h"
#include "maps/map_strings.h"

namespace faiss_ext {

namespace {

using faiss::Index;
using faiss::IndexBinary;

/// Tokenises the string of an index. Strings of FAISS stay unchanged.
Token whole_index(const std::string& text) {
    return whole(is_faiss_ext_string(text) ? without_spaces(text) : text);
}

/// Returns whether the objects of a registered class get the index that their
/// string has behind their own.
template <class IndexT>
bool is_wrapper(const ClassEntry<IndexT>& entry) {
    return takes_parts(*entry.make());
}

/// Returns whether the objects of a class are outside of all other indexes,
/// even of ID maps and Refine.
template <class IndexT>
bool is_outermost(const ClassEntry<IndexT>& entry) {
    return entry.type == typeid(IndexConcurrentTemplate<IndexT>);
}

/// The forms of the registered classes.
template <class IndexT>
std::vector<std::string> registered_forms() {
    std::vector<std::string> forms;
    for (const std::string& name : class_table<IndexT>().names()) {
        const auto entry = class_table<IndexT>().find(name);
        if (is_outermost(*entry)) {
            forms.push_back(name + ",...");
            continue;
        }
        const bool wraps = is_wrapper(*entry);
        const bool is_binary = std::is_same_v<IndexT, IndexBinary>;
        const char* behind = is_binary ? ",<binary index>" : ",<index>";
        forms.push_back(name + "(...)" + (wraps ? behind : ""));
    }
    return forms;
}

std::vector<std::string> index_forms() {
    std::vector<std::string> forms = hash_forms();
    for (std::string& form : forms) {
        form += ",<binary index>";
    }
    forms.push_back("<scheme>,AFlat");
    for (const std::string& form : map_forms()) {
        forms.push_back(form + ",<index>");
    }
    for (const std::string& form : registered_forms<Index>()) {
        forms.push_back(form);
    }
    forms.push_back("HNSW<M>,KFlat(<kernel>)");
    forms.push_back("IDMap,...");
    forms.push_back("IDMap2,...");
    forms.push_back("...,Refine(KFlat(<kernel>))");
    return forms;
}

/// Returns whether a token begins with the name of a registered index, float or
/// binary.
template <class IndexT>
bool is_registered(const Token& part) {
    const TokenHead head(part);
    const auto entry = class_table<IndexT>().find(head.letters);
    return head.ends_well() && entry &&
            (head.digits.empty() || !entry->number_key.empty());
}

bool is_vectors(const Token& part) {
    return is_registered<Index>(part);
}

bool is_codes(const Token& part) {
    return is_registered<IndexBinary>(part);
}

/// Returns whether a token begins with a registered index that gets the one
/// behind it.
template <class IndexT>
bool is_wrapper(const Token& part) {
    return is_registered<IndexT>(part) &&
            is_wrapper(*class_table<IndexT>().find(TokenHead(part).letters));
}

template <class IndexT>
bool is_outermost(const Token& part) {
    return is_registered<IndexT>(part) &&
            is_outermost(*class_table<IndexT>().find(TokenHead(part).letters));
}

template <class IndexT>
std::unique_ptr<IndexT> make_registered(
        int d,
        const Token& part,
        faiss::MetricType metric) {
    const std::string name = TokenHead(part).letters;
    Spec spec = arguments_of(part, *class_table<IndexT>().find(name));
    const auto is_given = [&](const std::string& key,
                              const std::string& value) {
        return std::any_of(
                spec.arguments.begin(),
                spec.arguments.end(),
                [&](const auto& a) {
                    return a.key == key && a.value == value;
                });
    };
    const auto entry = class_table<IndexT>().find_in_string(name, is_given);
    auto index = entry->make();
    index->d = d;
    index->metric_type = metric;
    if constexpr (std::is_same_v<IndexT, IndexBinary>) {
        index->code_size = bytes_of_bits(d);
    }
    read_string(dynamic_cast<HasFields&>(*index), spec);
    return index;
}

/// Throws unless a token consists of a name and arguments.
void check_syntax(const Token& part) {
    Spec::parse(part.text, part.begin, part.end);
}

/// Returns what follows the first part of a string, an index. Throws if it is
/// missing.
/// @param expected  the message if it is missing
Token behind_first(
        const Token& part,
        const std::string& expected,
        const std::vector<std::string>& examples) {
    const Token head = part.split()[0];
    if (head.end == part.end) {
        check_syntax(head);
        throw_parse_error(*part.text, part.end, expected, examples);
    }
    return {part.text, head.end + 1, part.end};
}

/// Throws if a string begins with a part that must come first in the whole
/// string.
void check_not_first(const Token& part) {
    const Token first = part.split()[0];
    if (first.str() == "IDMap" || first.str() == "IDMap2") {
        first.fail(first.str() + " must come first in the string");
    }
}

std::unique_ptr<Index> make_index(int d, Token part, faiss::MetricType metric);
std::unique_ptr<Index> make_index_with_ids(
        int d,
        const Token& part,
        faiss::MetricType metric);
std::unique_ptr<IndexBinary> make_binary_index(int d, const Token& part);
std::unique_ptr<IndexBinary> make_binary_index_with_ids(
        int d,
        const Token& part);

/// Makes an index of a registered class around the index behind it.
template <class IndexT>
std::unique_ptr<IndexT> make_wrapper(
        int d,
        const Token& part,
        faiss::MetricType metric) {
    constexpr bool is_binary = std::is_same_v<IndexT, IndexBinary>;
    const Token head = part.split()[0];
    const std::string name = TokenHead(head).letters;
    const Token behind = behind_first(
            part,
            "expected an index inside " + name,
            is_binary ? std::vector<std::string>{",BFlat", ",BIVF1024"}
                      : std::vector<std::string>{",Flat", ",KFlat(...)"});
    const bool comes_first = is_outermost<IndexT>(head);
    if (!comes_first) {
        check_not_first(behind);
    } else if (head.begin != 0) {
        head.fail(name + " must come first in the string");
    }
    auto index = make_registered<IndexT>(d, head, metric);
    std::vector<std::unique_ptr<IndexT>> parts(1);
    if constexpr (is_binary) {
        parts[0] = comes_first ? make_binary_index_with_ids(d, behind)
                               : make_binary_index(d, behind);
    } else {
        parts[0] = comes_first ? make_index_with_ids(d, behind, metric)
                               : make_index(d, behind, metric);
    }
    index->d = parts[0]->d; // a hash in front has other dimensions
    if constexpr (is_binary) {
        index->code_size = parts[0]->code_size;
    }
    index->is_trained = index->is_trained && parts[0]->is_trained;
    try {
        give_parts(*index, std::move(parts));
    } catch (const faiss::FaissException& e) {
        head.fail(message_of(e));
    }
    return index;
}

/// A part such as `HNSW32(efConstruction=100,efSearch=64)`.
struct GraphPart {
    int links;
    GraphSettings settings;

    explicit GraphPart(const Token& part) {
        const TokenHead head(part);
        const Token number = part.after(head.letters.size());
        links = head.digits.size() > 4 ? 0 : std::atoi(head.digits.c_str());
        if (links < 2 || links > 1024) {
            number.fail(
                    "invalid number of links '" + head.digits + "'",
                    {"a number from 2 to 1024"});
        }
        Spec spec = Spec::parse(part.text, part.begin, part.end);
        read_string(settings, spec);
    }
};

bool is_hnsw(const Token& part, const std::string& name = "HNSW") {
    const TokenHead head(part);
    return head.letters == name && !head.digits.empty() &&
            (head.next == '\0' || head.next == '(');
}

/// Returns whether a token begins with a graph of codes that has settings,
/// which FAISS's strings do not have.
bool has_graph_settings(const Token& part) {
    return is_hnsw(part, "BHNSW") && TokenHead(part).next == '(';
}

/// Returns the forms of binary indexes that can store the codes of a hash.
/// @param more  further accepted forms
std::vector<std::string> storage_forms(std::vector<std::string> more) {
    more.insert(
            more.begin(),
            {"BFlat",
             "BHash<b>",
             "BHash<nhash>x<b>",
             "BIVF<nlist>",
             "BIVF<nlist>_HNSW<M>",
             "BHNSW<M>"});
    for (const std::string& form : registered_forms<IndexBinary>()) {
        if (form != "BKFlat(...)" && form != "BConcurrent,...") {
            more.push_back(form);
        }
    }
    return more;
}

/// @param forms  further accepted forms
std::unique_ptr<IndexBinary> make_storage(
        int nbits,
        const Token& part,
        std::vector<std::string> forms = {}) {
    forms = storage_forms(std::move(forms));
    const std::string s = part.str();
    if (is_wrapper<IndexBinary>(part)) {
        return make_wrapper<IndexBinary>(nbits, part, faiss::METRIC_L2);
    }
    if (is_codes(part)) {
        return make_registered<IndexBinary>(nbits, part, faiss::METRIC_L2);
    }
    if (s == "BFlat") {
        return make_with_ids<IndexBinaryFlatSIMD>(nbits);
    }
    if (has_graph_settings(part)) {
        const GraphPart graph(part);
        auto index = make_with_ids<IndexBinaryHNSWSIMD>(nbits, graph.links);
        graph.settings.apply(index->hnsw);
        return index;
    }
    // replace each number by #; FAISS accepts any numbers and fails later, or
    // never
    std::string form;
    std::vector<long> numbers;
    for (size_t i = 0; i < s.size();) {
        const size_t n = num_digits(s, i);
        if (n == 0) {
            form += s[i++];
            continue;
        }
        form += '#';
        const bool is_graph = form.ends_with("HNSW#");
        const long low = is_graph ? 2 : 1, high = is_graph ? 1024 : 99999999;
        const long value = n > 8 ? 0 : std::stol(s.substr(i, n));
        if (value < low || value > high) {
            part.after(i).fail(
                    "'" + s.substr(i, n) + "' is out of range",
                    {"a number from " + std::to_string(low) + " to " +
                     std::to_string(high)});
        }
        numbers.push_back(value);
        i += n;
    }
    if (s.find('#') != std::string::npos) {
        form.clear(); // a literal '#' is not a number
    }
    if (form != "BHash#" && form != "BHash#x#" && form != "BIVF#" &&
        form != "BIVF#_HNSW#" && form != "BHNSW#") {
        part.fail("unknown binary index '" + s + "'", forms);
    }
    if (part.starts_with("BHash")) {
        const long b = numbers.back();
        const long nhash = numbers.size() > 1 ? numbers[0] : 1;
        if (b > 63 || nhash * b > nbits) {
            part.fail(
                    s + " needs more bits than the codes have",
                    {"<b> up to 63 and <nhash> * <b> up to " +
                     std::to_string(nbits)});
        }
    }
    try {
        return with_simd_hamming(
                std::unique_ptr<IndexBinary>(
                        faiss::index_binary_factory(nbits, s.c_str())),
                Graphs::convert);
    } catch (const std::exception& e) {
        part.fail("FAISS says: " + message_of(e), forms);
    }
}

std::unique_ptr<Index> make_hnsw(
        int d,
        const Token& hnsw,
        const Token& flat,
        faiss::MetricType metric) {
    const GraphPart graph(hnsw);
    auto storage = make_registered<Index>(d, flat, metric);
    auto* vectors = dynamic_cast<IndexFlatKernel*>(storage.get());
    if (!vectors) {
        flat.fail("a graph needs KFlat behind it", {"KFlat(<kernel>)"});
    }
    auto index = make_with_ids<IndexHNSWKernel>(vectors, graph.links);
    storage.release();
    index->own_fields = true;
    graph.settings.apply(index->hnsw);
    return index;
}

bool is_exact_for_bits(const Token& part) {
    return TokenHead(part).letters == "BKFlat";
}

std::unique_ptr<IndexBinary> make_bit_graph(
        int d,
        const Token& hnsw,
        const Token& flat) {
    const GraphPart graph(hnsw);
    const auto exact = make_registered<IndexBinary>(d, flat, faiss::METRIC_L2);
    try {
        auto index = make_with_ids<IndexBinaryHNSWKernel>(
                d,
                *dynamic_cast<IndexBinaryFlatKernel&>(*exact).kernel,
                graph.links);
        graph.settings.apply(index->hnsw);
        return index;
    } catch (const faiss::FaissException& e) {
        hnsw.fail(message_of(e));
    }
}

/// Returns IDMap or IDMap2 if the string begins with it, else an empty string.
std::string id_map_name(const std::vector<Token>& parts) {
    std::string name = parts[0].str();
    const auto is_id_map = [](const std::string& name) {
        return name == "IDMap" || name == "IDMap2";
    };
    if (!is_id_map(name) || parts.size() < 2) {
        return "";
    }
    if (is_id_map(parts[1].str())) {
        parts[1].fail("IDMap is given twice; use one");
    }
    return name;
}

/// Inverted lists keep ids themselves.
template <class IndexT>
std::unique_ptr<IndexT> with_id_map(
        const Token& part,
        const std::string& name,
        std::unique_ptr<IndexT> sub) {
    if (keeps_ids(*sub)) {
        part.fail(
                "inverted lists keep ids themselves",
                {"the same string without " + name + ", and add_with_ids"});
    }
    auto index = std::make_unique<IndexIDTableTemplate<IndexT>>(sub.get());
    index->own_fields = true;
    sub.release();
    return index;
}

/// Moves the transformations that FAISS put before an index into an
/// IndexPreTransformSIMD.
std::unique_ptr<Index> with_fast_transforms(std::unique_ptr<Index> index) {
    auto made = make_with_ids<IndexPreTransformSIMD>();
    made->own_fields = true;
    made->verify_chain = false;
    made->d = index->d;
    made->metric_type = index->metric_type;
    made->ntotal = index->ntotal;
    made->is_trained = index->is_trained;
    if (auto* pre = dynamic_cast<faiss::IndexPreTransform*>(index.get())) {
        made->index = std::exchange(pre->index, nullptr);
        made->chain.swap(pre->chain);
    } else {
        made->index = index.release();
    }
    return made;
}

/// Puts a transformation before an index and its present transformations.
std::unique_ptr<Index> prepend(
        std::unique_ptr<faiss::VectorTransform> vt,
        std::unique_ptr<Index> index) {
    if (!dynamic_cast<IndexPreTransformSIMD*>(index.get())) {
        index = with_fast_transforms(std::move(index));
    }
    auto& pre = dynamic_cast<IndexPreTransformSIMD&>(*index);
    // vt has no other owner yet
    pre.IndexPreTransform::prepend_transform(vt.get());
    vt.release();
    return index;
}

/// Returns the output dimension of a map if it follows the name, as in
/// `RFF64(gaussian)`; else 0.
int output_dimension(const Token& map) {
    const TokenHead head(map);
    const auto entry = class_table<FeatureMap>().find(head.letters);
    return entry->number_key == "dims" && head.digits.size() <= 8
            ? std::atoi(head.digits.c_str())
            : 0;
}

/// Makes an explicit map before any other index. The other index is made first
/// if possible, because a map of many dimensions takes a while to draw.
std::unique_ptr<Index> make_mapped(
        int d,
        const Token& part,
        faiss::MetricType metric) {
    const Token head = part.split()[0];
    const Token behind = behind_first(
            part,
            "expected an index for the mapped vectors",
            {",Flat", ",IVF1024,PQ32", ",HNSW32"});
    check_not_first(behind);
    std::unique_ptr<Index> index;
    if (const int dims = output_dimension(head)) {
        index = make_index(dims, behind, metric);
    }
    auto map = make_map(d, head);
    if (!index) {
        index = make_index(map->d_out, behind, metric);
    }
    return prepend(std::move(map), std::move(index));
}

bool is_refine(const Token& part) {
    return part.starts_with("Refine(");
}

/// The string in the parentheses of Refine(...).
Token inside_refine(const Token& part) {
    return {part.text,
            part.begin + std::string("Refine(").size(),
            part.end - 1};
}

std::unique_ptr<Index> make_with_refine(
        int d,
        const Token& base_part,
        const Token& refine_part,
        faiss::MetricType metric) {
    // make the fast parts first
    std::unique_ptr<Index> refine;
    if (refine_part.str() == "RFlat") {
        refine = std::make_unique<faiss::IndexFlat>(d, metric);
    } else {
        refine = make_index(d, inside_refine(refine_part), metric);
    }
    try {
        if (!dynamic_cast<const IndexFlatKernel*>(refine.get())) {
            delete refine->get_distance_computer();
        }
    } catch (const faiss::FaissException& e) {
        refine_part.fail(
                "this index cannot re-rank: " + message_of(e),
                {"Refine(KFlat(<kernel>))", "RFlat"});
    }
    auto base = make_index(d, base_part, metric);
    auto index = make_with_ids<IndexRefineKernel>(base.get(), refine.get());
    index->own_fields = true;
    index->own_refine_index = true;
    base.release();
    refine.release();
    return index;
}

/// The forms of indexes, and of FAISS's usual transformations in front of them.
std::vector<std::string> in_front_forms() {
    std::vector<std::string> forms = index_forms();
    for (const char* transform :
         {"PCA<dims>", "PCAR<dims>", "OPQ<M>_<dims>", "RR<dims>", "L2norm"}) {
        forms.push_back(std::string(transform) + ",<index>");
    }
    return forms;
}

/// Throws an error that says why the tokens before one of our parts are
/// invalid.
[[noreturn]] void fail_in_front(const Token& front, const Token& behind) {
    for (const Token& part : front.split()) {
        const std::string s = part.str();
        if (s == "IDMap" || s == "IDMap2") {
            part.fail(s + " must come first in the string");
        }
        for (const char* coarse : {"IVF", "IMI"}) {
            if (part.starts_with(coarse)) {
                part.fail(
                        s + " cannot have " + behind.str() +
                                " inside its cells, only FAISS's own codes",
                        {"HKM1(<kernel>),IVF1024,Flat",
                         "IVF1024,Flat,Refine(KFlat(<kernel>))",
                         "HNSW32,KFlat(<kernel>)"});
            }
        }
    }
    front.fail(
            "'" + front.str() +
                    "' is not a transformation that FAISS can put in front of " +
                    behind.str(),
            in_front_forms());
}

/** Refuses numbers in a string of FAISS's parts for which FAISS makes indexes
 * that crash or find nothing: 0, graphs with fewer than 2 links, and blocks of
 * fast scans other than the default ones.
 *
 * SQ0 is a part of newer versions. Numbers with a point may begin with 0.
 */
void check_faiss_numbers(const Token& part) {
    const std::string s = part.str();
    for (size_t i = 0; i < s.size();) {
        const size_t n = num_digits(s, i);
        const std::string front = s.substr(0, i), number = s.substr(i, n);
        const bool has_point =
                front.ends_with(".") || (i + n < s.size() && s[i + n] == '.');
        const int least = front.ends_with("HNSW")                  ? 2
                : front.ends_with("SQ") && !front.ends_with("LSQ") ? 0
                                                                   : 1;
        if (n > 0 && front.ends_with("fs_") && number != "32") {
            part.after(i).fail(
                    "FAISS cannot search blocks of " + number + " vectors",
                    {"32"});
        }
        if (n > 0 && !has_point && n < 9 && std::stoi(number) < least) {
            part.after(i).fail(
                    "'" + number + "' is out of range",
                    {"a number from " + std::to_string(least)});
        }
        i += std::max<size_t>(n, 1);
    }
}

/// Returns the transformations that FAISS makes from a string such as
/// `PCA64,L2norm`.
std::vector<std::unique_ptr<faiss::VectorTransform>> make_transforms(
        int d,
        const Token& part,
        const Token& behind) {
    check_faiss_numbers(part);
    std::unique_ptr<Index> made;
    try {
        made.reset(faiss::index_factory(d, (part.str() + ",Flat").c_str()));
    } catch (const std::exception&) {
        if (const auto needs = needs_newer_faiss(part.str()); !needs.empty()) {
            part.fail(needs);
        }
        // reported below
    }
    auto* pre = dynamic_cast<faiss::IndexPreTransform*>(made.get());
    if (!pre || !dynamic_cast<faiss::IndexFlat*>(pre->index) ||
        pre->index->d <= 0) {
        fail_in_front(part, behind);
    }
    std::vector<std::unique_ptr<faiss::VectorTransform>> chain;
    for (faiss::VectorTransform* vt : pre->chain) {
        chain.emplace_back(vt);
    }
    pre->chain.clear();
    return chain;
}

/// Returns whether FAISS can make an index.
bool makes_index(int d, const std::string& string) {
    try {
        delete faiss::index_factory(d, string.c_str());
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

/// Throws for a graph of FAISS with settings, as in `HNSW32(efSearch=64),Flat`.
void check_no_graph_settings(const Token& part) {
    for (const Token& one : part.split()) {
        const TokenHead head(one);
        if (is_hnsw(one) && head.next == '(') {
            one.after(head.letters.size() + head.digits.size())
                    .fail("parentheses are for HNSW in front of KFlat, and for BHNSW; with other indexes, leave them out, set efSearch by faiss_ext.set_index_parameter(index, \"efSearch\", 64), and hnsw.efConstruction before you add vectors");
        }
    }
}

/// Makes an index that consists only of FAISS's parts.
std::unique_ptr<Index> make_faiss_index(
        int d,
        const Token& part,
        faiss::MetricType metric) {
    const std::string s = part.str();
    check_no_graph_settings(part);
    check_faiss_numbers(part);
    try {
        return std::unique_ptr<Index>(
                faiss::index_factory(d, s.c_str(), metric));
    } catch (const faiss::FaissException& e) {
        if (const std::string needs = needs_newer_faiss(s); !needs.empty()) {
            part.fail(needs);
        }
        if (makes_index(d, s + ",Flat")) {
            throw_parse_error(
                    *part.text,
                    part.end,
                    "expected an index behind '" + s + "'",
                    {",Flat", ",IVF1024,PQ32", ",HNSW32"});
        }
        part.fail(
                "neither faiss_ext nor FAISS makes an index from '" + s +
                        "'; FAISS says: " + message_of(e),
                index_forms());
    } catch (const std::out_of_range&) {
        part.fail("a number is too large for FAISS");
    }
}

/// Makes a hash from `part` and an index for its codes. The index is made
/// first, because the random numbers of many bits take a while to draw.
std::pair<std::unique_ptr<KernelHash>, std::unique_ptr<IndexBinary>>
make_hash_and_storage(
        int d,
        const Token& part,
        const Token& storage_part,
        std::vector<std::string> forms = {}) {
    const std::string digits = TokenHead(part).digits;
    const int nbits = digits.size() > 8 ? 0 : std::atoi(digits.c_str());
    if (nbits <= 0) {
        make_hash(d, part); // throws if the hash is invalid
    }
    for (const Token& one : storage_part.split()) {
        if (is_exact_for_bits(one)) {
            one.fail(
                    "this index cannot store the codes of a hash, which are compared by Hamming distance",
                    {"BFlat"});
        }
    }
    auto storage =
            make_storage(padded_bits(nbits), storage_part, std::move(forms));
    return {make_hash(d, part), std::move(storage)};
}

/// Returns the binary index behind a hash, if there is one and nothing else.
std::optional<Token> storage_behind(const std::vector<Token>& parts) {
    if (parts.size() == 2 ||
        (parts.size() > 2 && is_wrapper<IndexBinary>(parts[1]))) {
        return Token{parts[0].text, parts[1].begin, parts.back().end};
    }
    return std::nullopt;
}

/// Makes an index without IDMap and Refine.
std::unique_ptr<Index> make_core(
        int d,
        const std::vector<Token>& parts,
        faiss::MetricType metric) {
    const Token& head = parts[0];
    if (is_hash(head)) {
        const auto storage_part = storage_behind(parts);
        if (!storage_part) {
            check_syntax(head);
            const size_t at = parts.size() == 1 ? head.end : parts[2].begin - 1;
            throw_parse_error(
                    *head.text,
                    at,
                    parts.size() == 1 ? "expected a binary index for the codes"
                                      : "unexpected text",
                    parts.size() == 1
                            ? std::vector<
                                      std::string>{",BFlat", ",BIVF1024", ",AFlat"}
                            : std::vector<std::string>{
                                      ",Refine(KFlat(...))",
                                      ",RFlat",
                                      "the end"});
        }
        if (storage_part->str() == "AFlat") {
            return make_with_ids<IndexAsymmetricHash>(
                    *make_hash(d, head), metric);
        }
        auto [hash, storage] =
                make_hash_and_storage(d, head, *storage_part, {"AFlat"});
        auto index = make_with_ids<IndexKernelHash>(
                hash.get(), storage.get(), metric);
        index->own_fields = true;
        hash.release();
        storage.release();
        return index;
    }
    if (is_vectors(head) && parts.size() == 1) {
        return make_registered<Index>(d, head, metric);
    }
    if (is_hnsw(head) && parts.size() > 1 && is_vectors(parts[1]) &&
        (parts.size() == 2 || is_wrapper<Index>(parts[1]))) {
        return make_hnsw(d, head, parts[1], metric);
    }
    const bool is_graph =
            is_hnsw(head) && parts.size() > 2 && is_vectors(parts[1]);
    if (is_vectors(head) || is_graph) {
        throw_parse_error(
                *head.text,
                is_graph ? parts[1].end : head.end,
                "unexpected text",
                {",Refine(...)", ",RFlat", "the end"});
    }
    head.fail("unknown index '" + head.str() + "'", index_forms());
}

/// Limits nested indexes to the depth that can be read from files.
struct NestingGuard {
    static constexpr int limit = 12;
    static int& depth() {
        thread_local int value = 0;
        return value;
    }

    explicit NestingGuard(const Token& part) {
        if (depth() == limit) {
            part.fail("more than " + std::to_string(limit) + " nested indexes");
        }
        depth()++;
    }
    ~NestingGuard() {
        depth()--;
    }
};

/// Makes an index with IDMap in front or Refine behind; else returns null.
std::unique_ptr<Index> make_id_map_or_refine(
        int d,
        const Token& part,
        const std::vector<Token>& parts,
        faiss::MetricType metric) {
    if (const auto name = id_map_name(parts); !name.empty()) {
        return with_id_map<Index>(
                parts[0],
                name,
                make_index(d, part.after(name.size() + 1), metric));
    }
    const Token& last = parts.back();
    if (parts.size() > 1 && (last.str() == "RFlat" || is_refine(last))) {
        return make_with_refine(
                d, {part.text, part.begin, last.begin - 1}, last, metric);
    }
    return nullptr;
}

std::unique_ptr<Index> make_index(int d, Token part, faiss::MetricType metric) {
    const NestingGuard inside(part);
    if (!is_faiss_ext_string(part.str())) {
        return make_faiss_index(d, part, metric);
    }
    std::vector<Token> parts = part.split();

    if (is_outermost<Index>(parts[0])) {
        return make_wrapper<Index>(d, part, metric);
    }

    // IDMap is outside of what follows, and next is Refine, which gets the
    // untransformed vectors
    if (auto index = make_id_map_or_refine(d, part, parts, metric)) {
        return index;
    }

    // next come FAISS's transformations
    size_t first = 0;
    while (first < parts.size() && !is_hash(parts[first]) &&
           !is_vectors(parts[first]) && !is_hnsw(parts[first]) &&
           !is_map(parts[first])) {
        first++;
    }
    if (first == parts.size()) {
        for (const Token& one : parts) {
            if (is_codes(one)) {
                one.fail(
                        "'" + one.str() +
                        "' is a binary index; use index_binary_factory");
            }
        }
        part.fail("unknown index '" + part.str() + "'", index_forms());
    }
    const auto behind = [&](int d) {
        if (is_map(parts[first])) {
            return make_mapped(
                    d, {part.text, parts[first].begin, part.end}, metric);
        }
        if (is_wrapper<Index>(parts[first])) {
            return make_wrapper<Index>(
                    d, {part.text, parts[first].begin, part.end}, metric);
        }
        return make_core(
                d,
                std::vector<Token>(parts.begin() + first, parts.end()),
                metric);
    };
    if (first == 0) {
        return behind(d);
    }
    auto chain = make_transforms(
            d, {part.text, part.begin, parts[first].begin - 1}, parts[first]);
    auto index = behind(chain.back()->d_out);
    for (; !chain.empty(); chain.pop_back()) {
        index = prepend(std::move(chain.back()), std::move(index));
    }
    return index;
}

/// Makes an index that takes ids, even of FAISS's parts only.
std::unique_ptr<Index> make_index_with_ids(
        int d,
        const Token& part,
        faiss::MetricType metric) {
    if (is_faiss_ext_string(part.str())) {
        return make_index(d, part, metric);
    }
    if (auto index = make_id_map_or_refine(d, part, part.split(), metric)) {
        return index;
    }
    return with_fast_transforms(make_index(d, part, metric));
}

std::unique_ptr<IndexBinary> make_binary_with_refine(
        int d,
        const Token& base_part,
        const Token& refine_part) {
    const Token exact = inside_refine(refine_part);
    if (exact.split().size() != 1 || !is_exact_for_bits(exact)) {
        exact.fail(
                "a binary index cannot re-rank by '" + exact.str() + "'" +
                        (is_vectors(exact)
                                 ? "; index_factory makes indexes of vectors"
                                 : ""),
                {"BKFlat(<kernel>)"});
    }
    auto refine = make_registered<IndexBinary>(d, exact, faiss::METRIC_L2);
    auto* bits = dynamic_cast<IndexBinaryFlatKernel*>(refine.get());
    // indexes of codes take whole bytes
    const bool takes_codes = !is_hash(base_part.split()[0]);
    auto base = make_binary_index(takes_codes ? padded_bits(d) : d, base_part);
    auto index = make_with_ids<IndexBinaryRefineKernel>(base.get(), bits);
    index->own_fields = true;
    base.release();
    refine.release();
    return index;
}

std::unique_ptr<IndexBinary> make_binary_index(int d, const Token& part) {
    const NestingGuard inside(part);
    const std::vector<Token> parts = part.split();
    if (is_outermost<IndexBinary>(parts[0])) {
        return make_wrapper<IndexBinary>(d, part, faiss::METRIC_L2);
    }
    if (const auto name = id_map_name(parts); !name.empty()) {
        return with_id_map<IndexBinary>(
                parts[0],
                name,
                make_binary_index(d, part.after(name.size() + 1)));
    }
    if (parts.size() > 1 && is_refine(parts.back())) {
        return make_binary_with_refine(
                d,
                {part.text, part.begin, parts.back().begin - 1},
                parts.back());
    }
    const auto fail = [&](const std::string& problem) {
        part.fail(
                problem,
                storage_forms(
                        {"BConcurrent,...",
                         "BKFlat(...)",
                         "BHNSW<M>,BKFlat(...)",
                         "...,Refine(BKFlat(...))",
                         "<scheme>,<binary index> such as SIK256(gaussian),BFlat",
                         "IDMap,...",
                         "IDMap2,..."}));
    };
    if (parts.size() == 2 && is_hnsw(parts[0], "BHNSW") &&
        is_exact_for_bits(parts[1])) {
        return make_bit_graph(d, parts[0], parts[1]);
    }
    const bool is_of_faiss = !is_faiss_ext_string(part.str());
    if ((parts.size() == 1 &&
         (is_of_faiss || is_codes(parts[0]) || has_graph_settings(parts[0]))) ||
        is_wrapper<IndexBinary>(parts[0])) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                d % 8 == 0 || is_exact_for_bits(parts[0]),
                "the number of bits is %d, expected a multiple of 8; only BKFlat(...), alone, behind BHNSW or in Refine, takes other numbers",
                d);
        return make_storage(d, part, {"BKFlat(...)"});
    }
    if (is_of_faiss) {
        try {
            return with_simd_hamming(
                    std::unique_ptr<IndexBinary>(
                            faiss::index_binary_factory(d, part.str().c_str())),
                    Graphs::convert);
        } catch (const std::exception& e) {
            fail("neither faiss_ext nor FAISS makes a binary index from '" +
                 part.str() + "'; FAISS says: " + message_of(e));
        }
    }
    const auto storage_part = storage_behind(parts);
    if (!is_hash(parts[0]) || !storage_part) {
        fail("unknown binary index '" + part.str() + "'");
    }
    auto [hash, storage] = make_hash_and_storage(d, parts[0], *storage_part);
    auto index =
            make_with_ids<IndexBinaryKernelHash>(hash.get(), storage.get());
    index->own_fields = true;
    hash.release();
    storage.release();
    return index;
}

/// Makes an index that takes ids, even of FAISS's parts only.
std::unique_ptr<IndexBinary> make_binary_index_with_ids(
        int d,
        const Token& part) {
    auto index = make_binary_index(d, part);
    const bool takes_ids = is_faiss_ext_string(part.str()) ||
            dynamic_cast<const HasIds<IndexBinary>*>(index.get()) ||
            dynamic_cast<const IndexBinaryIDTable*>(index.get());
    if (takes_ids) {
        return index;
    }
    auto table = std::make_unique<IndexBinaryIDTable>(index.get());
    table->own_fields = true;
    index.release();
    return table;
}

/// Returns whether the word at a position means FAISS's IndexIVFSpectralHash,
/// such as `SH1.2g` in `IVF256,ITQ64,SH1.2g`. Our SH is followed by a binary
/// index.
bool is_ivf_spectral_hash(const std::string& text, size_t at) {
    if (at < 2 || text.compare(at, 2, "SH") != 0) {
        return false;
    }
    const size_t before = text.rfind(',', at - 2) + 1;
    const size_t end = std::min(text.find_first_of(",)", at), text.size());
    const auto stands = [&](const std::string& word, size_t place) {
        return text.compare(place, word.size(), word) == 0;
    };
    const bool is_last = end == text.size() || text[end] == ')' ||
            stands(",RFlat", end) || stands(",Refine(", end);
    return is_last && (stands("ITQ", before) || stands("PCA", before)) &&
            text.find("IVF") < before;
}

void check_dimension(int d) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d > 0, "the dimension is %d, expected a positive number", d);
}

} // namespace

bool is_faiss_ext_string(const std::string& text) {
    const std::string description = without_spaces(text);
    // look for our names where an item can begin; parentheses may be unbalanced
    for (size_t i = 0; i < description.size(); i++) {
        if (i > 0 && description[i - 1] != ',' && description[i - 1] != '(') {
            continue;
        }
        if (is_ivf_spectral_hash(description, i)) {
            continue;
        }
        const Token rest = whole(description.substr(i));
        if (is_vectors(rest) || is_hash(rest) || is_codes(rest) ||
            is_map(rest) || has_graph_settings(rest)) {
            return true;
        }
    }
    return false;
}

bool is_string_for_codes(const std::string& description) {
    const Token text = whole(without_spaces(description));
    const std::vector<Token> parts = text.split();
    if (is_refine(parts.back()) &&
        is_exact_for_bits(inside_refine(parts.back()))) {
        return true;
    }
    for (const Token& part : parts) {
        const bool is_in_front = part.str() == "IDMap" ||
                part.str() == "IDMap2" || is_outermost<IndexBinary>(part);
        if (!is_in_front) {
            return is_codes(part) ||
                    (part.starts_with("B") && !is_hash(part) && !is_map(part) &&
                     !is_vectors(part));
        }
    }
    return false;
}

std::unique_ptr<Index> index_factory(
        int d,
        const std::string& description,
        faiss::MetricType metric) {
    check_dimension(d);
    return make_index(d, whole_index(description), metric);
}

std::unique_ptr<IndexBinary> index_binary_factory(
        int d,
        const std::string& description) {
    check_dimension(d);
    return make_binary_index(d, whole_index(description));
}

} // namespace faiss_ext
