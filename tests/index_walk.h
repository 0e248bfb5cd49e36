// SPDX-License-Identifier: MIT
// An index beside a model of it: a list of ids and vectors, searched by brute
// force. Steps are drawn from a source of choices, random or from a fuzzer;
// after each of them the two must agree.

#pragma once

#include <map>

#include <faiss/IndexIDMap.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/impl/io.h>

#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/kernel_registry.h>

#include "testing.h"

namespace faiss_ext_test {

/// What an index can do and finds.
struct WalkRow {
    const char* text;

    /// of the distances that it returns; empty: Hamming distances of its codes
    const char* kernel;

    enum class Finds {
        nearest, ///< the k nearest
        some,    ///< vectors with their distances, not always the nearest
        scores   ///< any vectors; all of them for k >= ntotal
    } finds = Finds::nearest;

    bool merges = true, ranges = true;
};

inline void PrintTo(const WalkRow& row, std::ostream* out) {
    *out << row.text;
}

inline std::vector<WalkRow> walk_rows() {
    using enum WalkRow::Finds;
    const char* sik = "";
    return {{"KFlat(gaussian,gamma=0.001)", "gaussian(gamma=0.001)"},
            {"KFlat(chi2,store=u8)", "chi2"},
            {"KFlat(chi2,store=sparse)", "chi2"},
            {"IDMap,KFlat(linear,store=sparse)", "linear", nearest},
            {"KFlat(js,store=f16)", "js"},
            {"KFlat(linear)", "linear"},
            {"IDMap,KFlat(intersection)", "intersection", nearest},
            {"IDMap2,KFlat(chi2)", "chi2", nearest},
            {"HNSW4,KFlat(chi2)", "chi2", some, true, false},
            {"KFlat(linear),Refine(KFlat(chi2))", "chi2", some, true, false},
            {"IDMap,KFlat(linear),Refine(KFlat(chi2))",
             "chi2",
             some,
             true,
             false},
            {"IDMap,KIVF3(M=3,nprobe=3),Refine(KFlat(chi2))",
             "chi2",
             some,
             true,
             false},
            {"KIVF3(M=3,nprobe=3)", nullptr, scores},
            {"AHK32(chi2),AFlat", nullptr, scores},
            {"IDMap,AHK32(chi2),AFlat", nullptr, scores},
            {"SIK32(gaussian,gamma=0.001),BFlat", sik, nearest},
            {"IDMap2,SIK32(gaussian,gamma=0.001),BFlat", sik, nearest},
            {"SIK32(gaussian,gamma=0.001),BPerm(M=3,B=200)", sik, nearest},
            {"SIK32(gaussian,gamma=0.001),BPerm(M=2,B=1)",
             sik,
             some,
             true,
             false},
            {"SIK32(gaussian,gamma=0.001),BIVF2", sik, some, true, false},
            {"SIK32(gaussian,gamma=0.001),BHash2x4", sik, some, false, false},
            {"SIK32(gaussian,gamma=0.001),BHNSW4", sik, some, true, false}};
}

/// Where the steps of a walk come from.
struct Choices {
    virtual ~Choices() = default;
    virtual size_t below(size_t n) = 0; ///< 0 to n - 1
    virtual bool done() = 0;
};

struct RandomChoices : Choices {
    std::mt19937_64 rng;
    size_t steps; ///< draws that are left

    RandomChoices(uint64_t seed, size_t steps) : rng(seed), steps(steps) {}
    size_t below(size_t n) override {
        steps -= steps > 0;
        return rng() % n;
    }
    bool done() override {
        return steps == 0;
    }
};

/// Throws a std::logic_error where the index and the model differ.
class IndexWalk {
   public:
    static constexpr int d = 6;
    static constexpr size_t most = 150; ///< vectors

    IndexWalk(const WalkRow& row, Choices& choose)
            : row(row), choose(choose), pool(make_pool()) {
        if (row.kernel && *row.kernel) {
            kernel = kernel_factory(row.kernel);
        }
        index = make_trained();
    }

    /// One step; returns its name.
    const char* step() {
        using Step = void (IndexWalk::*)();
        static const std::vector<std::pair<const char*, Step>> steps = {
                {"add", &IndexWalk::add},
                {"add", &IndexWalk::add},
                {"add", &IndexWalk::add},
                {"add of bad vectors", &IndexWalk::add_bad},
                {"remove a range", &IndexWalk::remove_range},
                {"remove some", &IndexWalk::remove_some},
                {"search", &IndexWalk::search_some},
                {"search by range", &IndexWalk::search_range},
                {"merge", &IndexWalk::merge},
                {"files", &IndexWalk::through_file},
                {"clone", &IndexWalk::through_clone},
                {"reset", &IndexWalk::reset}};
        size_t which = choose.below(steps.size());
        if (which == steps.size() - 1 && choose.below(8) > 0) {
            which = 0; // resets are rare
        }
        const auto& [name, function] = steps[which];
        try {
            (this->*function)();
            check("the number of vectors", size_t(index->ntotal) == size());
        } catch (const std::logic_error& e) {
            throw std::logic_error(
                    std::string(row.text) + ", " + name + ": " + e.what());
        }
        return name;
    }

    size_t size() const {
        return entries.size();
    }

   private:
    struct Entry {
        idx_t id;
        size_t vector; ///< in the pool
    };

    const WalkRow row;
    Choices& choose;
    const Floats pool; ///< counts from 1 to 99; some vectors twice
    std::unique_ptr<Kernel> kernel;
    std::unique_ptr<faiss::Index> index;
    std::vector<Entry> entries;
    idx_t next_id = 0; ///< above all that were given

    static void check(const std::string& what, bool good) {
        if (!good) {
            throw std::logic_error(what + " is wrong");
        }
    }

    static Floats make_pool() {
        std::mt19937 rng(5);
        Floats x(40 * d);
        for (float& v : x) {
            v = float(1 + rng() % 99);
        }
        std::copy_n(x.begin(), 5 * d, x.end() - 5 * d);
        return x;
    }

    size_t pool_size() const {
        return pool.size() / d;
    }

    Floats vectors(const std::vector<size_t>& which) const {
        Floats x;
        for (size_t i : which) {
            x.insert(x.end(), &pool[i * d], &pool[i * d] + d);
        }
        return x;
    }

    std::unique_ptr<faiss::Index> make_trained() const {
        auto made = index_factory(d, row.text);
        made->train(pool_size(), pool.data());
        return made;
    }

    std::vector<size_t> draw(size_t n) {
        std::vector<size_t> which(n);
        for (size_t& i : which) {
            i = choose.below(pool_size());
        }
        return which;
    }

    /// Adds to an index and gives what it is then expected to have in addition.
    /// `next` is the id after all that were in the index.
    std::vector<Entry> add_to(faiss::Index& to, idx_t& next, size_t n) {
        std::vector<Entry> added;
        std::vector<idx_t> ids;
        const std::vector<size_t> which = draw(n);
        const bool gives = choose.below(2);
        for (size_t i = 0; i < n; i++) {
            ids.push_back(next + (gives ? idx_t(choose.below(3)) : 0));
            next = std::max(next, ids.back() + 1);
            added.push_back({ids.back(), which[i]});
        }
        const Floats x = vectors(which);
        if (gives) {
            to.add_with_ids(n, x.data(), ids.data());
        } else {
            to.add(n, x.data());
        }
        return added;
    }

    void add() {
        const size_t n = choose.below(8);
        if (size() + n > most) {
            return;
        }
        for (const Entry& entry : add_to(*index, next_id, n)) {
            entries.push_back(entry);
        }
    }

    /// f throws a faiss::FaissException and changes nothing.
    template <class F>
    void refuses(F&& f) {
        const Bytes before = bytes_of(*index);
        check("that it does not throw", !error_of(f).empty());
        check("that it has changed", bytes_of(*index) == before);
    }

    void add_bad() {
        Floats x = vectors(draw(3));
        const float values[] = {NAN, INFINITY, -INFINITY};
        x[choose.below(x.size())] = values[choose.below(3)];
        const std::vector<idx_t> ids = {7, 8, 9};
        refuses([&] { index->add_with_ids(3, x.data(), ids.data()); });
        refuses([&] { index->add(3, x.data()); });
    }

    void remove(
            const faiss::IDSelector& selector,
            const std::function<bool(idx_t)>& is_selected) {
        std::vector<Entry> left;
        for (const Entry& entry : entries) {
            if (!is_selected(entry.id)) {
                left.push_back(entry);
            }
        }
        const size_t count = index->remove_ids(selector);
        check("the number of removed vectors", count == size() - left.size());
        entries = left;
    }

    idx_t some_id() {
        return entries.empty() || choose.below(10) == 0
                ? idx_t(choose.below(3000))
                : entries[choose.below(size())].id;
    }

    void remove_range() {
        const idx_t low = some_id(), high = low + choose.below(10);
        remove(faiss::IDSelectorRange(low, high),
               [&](idx_t id) { return id >= low && id < high; });
    }

    void remove_some() {
        std::vector<idx_t> ids;
        for (size_t i = choose.below(4); i > 0; i--) {
            ids.push_back(some_id());
        }
        remove(faiss::IDSelectorBatch(ids.size(), ids.data()), [&](idx_t id) {
            return std::count(ids.begin(), ids.end(), id) > 0;
        });
    }

    /// The distance of a query and each vector of the model.
    std::vector<double> distances_of(const Floats& q) const {
        std::vector<double> distances;
        if (kernel) {
            for (float v : kernel_distances(*kernel, q, pool, d)) {
                distances.push_back(v);
            }
        } else if (row.kernel) {
            const auto& hash = *hash_of(*index)->hash;
            const Bytes a = codes_of(hash, q), b = codes_of(hash, pool);
            for (size_t i = 0; i < pool_size(); i++) {
                distances.push_back(
                        hamming(a.data(), &b[i * a.size()], a.size()));
            }
        }
        std::vector<double> all;
        for (const Entry& entry : entries) {
            all.push_back(distances.empty() ? 0 : distances[entry.vector]);
        }
        return all;
    }

    static const IndexKernelHash* hash_of(const faiss::Index& index) {
        if (auto* map = dynamic_cast<const faiss::IndexIDMap*>(&index)) {
            return hash_of(*map->index);
        }
        return dynamic_cast<const IndexKernelHash*>(&index);
    }

    static bool close(double a, double b) {
        return std::abs(a - b) <= 1e-3 * std::max({1.0, std::abs(a)});
    }

    /// Each label is one of the model's, as often as there, with its distance.
    void check_labels(
            const std::vector<double>& truth,
            const std::vector<std::pair<idx_t, float>>& found) const {
        std::vector<bool> used(size());
        for (const auto& [label, distance] : found) {
            bool is_there = false;
            for (size_t i = 0; i < size() && !is_there; i++) {
                is_there = entries[i].id == label && !used[i] &&
                        (!row.kernel || close(truth[i], distance));
                if (is_there) {
                    used[i] = true;
                }
            }
            check("label " + std::to_string(label) + " at distance " +
                          std::to_string(distance),
                  is_there);
        }
    }

    void search_some() {
        const Floats q = vectors(draw(1));
        const idx_t k = 1 + choose.below(size() + 3);
        const auto [distances, labels] = faiss_ext_test::search(*index, q, k);
        std::vector<double> truth = distances_of(q);
        std::vector<std::pair<idx_t, float>> found;
        for (idx_t i = 0; i < k; i++) {
            if (labels[i] >= 0) {
                check("the place of -1", i == 0 || labels[i - 1] >= 0);
                check("the order", i == 0 || distances[i] >= distances[i - 1]);
                found.emplace_back(labels[i], distances[i]);
            } else {
                check("a label", labels[i] == -1);
            }
        }
        check_labels(truth, found);
        if (row.finds == WalkRow::Finds::some) {
            return;
        }
        const size_t expected = std::min<size_t>(k, size());
        check("the number of results", found.size() == expected);
        if (row.finds == WalkRow::Finds::nearest) {
            std::sort(truth.begin(), truth.end());
            for (size_t i = 0; i < found.size(); i++) {
                check("distance " + std::to_string(i),
                      close(truth[i], found[i].second));
            }
        }
    }

    void search_range() {
        const Floats q = vectors(draw(1));
        const std::vector<double> truth = distances_of(q);
        if (!row.ranges) {
            return; // what FAISS does there differs between its classes
        }
        if (!row.kernel) {
            const auto all = faiss_ext_test::range_search(
                    *index, q, std::numeric_limits<float>::max());
            check("the number in range", all[0].size() == size());
            check_labels(truth, all[0]);
            return;
        }
        // a radius that no distance is near
        double radius = truth.empty() ? 1 : truth[choose.below(size())];
        radius += 0.5;
        for (double distance : truth) {
            if (std::abs(distance - radius) < 0.01 * (1 + radius)) {
                return;
            }
        }
        const auto found =
                faiss_ext_test::range_search(*index, q, float(radius));
        check_labels(truth, found[0]);
        const size_t expected =
                std::count_if(truth.begin(), truth.end(), [&](double distance) {
                    return distance < radius;
                });
        check("the number in range", found[0].size() == expected);
    }

    void merge() {
        if (size() > most - 8) {
            return;
        }
        const auto other = make_trained();
        idx_t next = 0;
        std::vector<Entry> added = add_to(*other, next, choose.below(8));
        const idx_t shift = next_id;
        if (!row.merges) {
            refuses([&] { index->merge_from(*other, shift); });
            return;
        }
        index->merge_from(*other, shift);
        for (Entry& entry : added) {
            entry.id += shift;
            next_id = std::max(next_id, entry.id + 1);
            entries.push_back(entry);
        }
    }

    void through_file() {
        const Bytes file = bytes_of(*index);
        faiss::VectorIOReader reader;
        reader.data = file;
        index = read_index(&reader);
        search_some();
    }

    void through_clone() {
        index = faiss_ext::clone_index(index.get());
        search_some();
    }

    void reset() {
        index->reset();
        entries.clear();
        next_id = 0;
    }
};

} // namespace faiss_ext_test
