// Finding the place of values among sorted ones: of many, by a grid of cells that narrows the search to a few neighbours.
#pragma once

#include <cstdint>
#include <vector>

namespace calibrant {

// Places among the sorted values of several groups; group g owns starts[g] .. starts[g + 1] - 1.
template <class T>
class Search {
public:
    // `queries` says how many places will be asked for: fewer than there are values are not worth a grid.
    Search(const T* values, const std::int64_t* starts, std::int64_t group_count, std::int64_t queries)
        : values_(values), bare_(queries < starts[group_count]) {
        groups_.reserve(group_count);
        std::int64_t cells = 0;
        for (std::int64_t g = 0; g < group_count; ++g) {
            const std::int64_t from = starts[g], size = starts[g + 1] - from;
            Group group{from, size, T(0), T(0), T(0), cells, 2 * size};
            if (size) {
                group.low = values[from], group.high = values[from + size - 1];
                const T width = group.high - group.low;
                group.scale = width > 0 ? static_cast<T>(group.cells) / width : T(0);
            }
            groups_.push_back(group);
            cells += group.cells + 1;
        }
        if (bare_) return;
        table_.resize(cells);
        for (const Group& group : groups_) fill(group);
    }

    // How many values of the group are at or below x; x is not NaN.
    std::int64_t at_or_below(std::int64_t g, T x) const {
        const Group& group = groups_[g];
        if (group.size == 0 || x < group.low) return 0;
        if (x >= group.high) return group.size;
        std::int64_t from = 0, to = group.size;
        if (!bare_) {
            const std::int64_t c = cell(group, x);
            from = table_[group.table + c], to = table_[group.table + c + 1];
        }
        const T* own = values_ + group.from;
        while (to - from > 4) {
            const std::int64_t middle = from + (to - from) / 2;
            if (own[middle] <= x)
                from = middle + 1;
            else
                to = middle;
        }
        while (from < to && own[from] <= x) ++from;
        return from;
    }

    T low(std::int64_t g) const { return groups_[g].size ? groups_[g].low : T(0); }

private:
    struct Group {
        std::int64_t from, size;
        T low, high, scale;
        std::int64_t table, cells;
    };

    // Monotone in x, so a value in an earlier cell is smaller and one in a later cell is larger.
    static std::int64_t cell(const Group& group, T x) {
        const T place = (x - group.low) * group.scale;
        if (!(place > 0)) return 0;  // NaN too: infinity times zero, where the values span more than a number can hold
        return place < static_cast<T>(group.cells - 1) ? static_cast<std::int64_t>(place) : group.cells - 1;
    }

    void fill(const Group& group) {
        std::int64_t i = 0;
        for (std::int64_t c = 0; c <= group.cells; ++c) {
            while (i < group.size && cell(group, values_[group.from + i]) < c) ++i;
            table_[group.table + c] = static_cast<std::int32_t>(i);
        }
        if (group.cells) table_[group.table + group.cells] = static_cast<std::int32_t>(group.size);
    }

    const T* values_;
    bool bare_;
    std::vector<Group> groups_;
    std::vector<std::int32_t> table_;
};

}  // namespace calibrant
