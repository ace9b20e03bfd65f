// Fixed blocks of rows, shared among threads: the blocks depend on the shape alone, so every sum is formed in the
// same order whatever the number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "interrupt.hpp"

namespace calibrant {

// Rows of a block: about 64k elements, so that a block stays in the second-level cache.
inline std::int64_t block_rows(std::int64_t k) { return std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(1, k)); }

inline std::int64_t block_count(std::int64_t n, std::int64_t k) { return (n + block_rows(k) - 1) / block_rows(k); }

// Blocks in a row for one thread: two threads that write into the same fresh huge page would wait for one another. Where
// little is written, short runs keep a thread from waiting for the other's last one.
constexpr std::int64_t kWritersRun = 16, kReadersRun = 2;

// Blocks a thread must find to be started: one costs as much as reading a block or two.
constexpr std::int64_t kReadersShare = 4;

// The first exception of a thread needs memory of the thread's own, and where there is none the system's library ends the
// process: whoever starts a thread sets pages aside, and the thread takes their place before all else.
class Spare {
public:
#ifdef __linux__
    Spare() : pages_(mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        if (pages_ == MAP_FAILED) throw std::bad_alloc();
    }
    Spare(Spare&& other) noexcept : pages_(std::exchange(other.pages_, nullptr)) {}
    ~Spare() { give_back(); }
    void spend() {
        give_back();
        [[maybe_unused]] const volatile int none = std::uncaught_exceptions();  // asks for that memory
    }

private:
    static constexpr std::size_t kSize = 65536;  // many times what is needed
    void give_back() {
        if (pages_) munmap(std::exchange(pages_, nullptr), kSize);
    }
    void* pages_;
#else
    void spend() {}
#endif
};

// Calls work(block, first_row, last_row) once for each block. Threads take runs of at most `run_length` neighbouring blocks.
template <class Work>
void for_blocks(std::int64_t n, std::int64_t k, int threads, Work work, std::int64_t run_length = kWritersRun) {
    const std::int64_t rows = block_rows(k), blocks = block_count(n, k);
    const std::int64_t share = run_length == kReadersRun ? kReadersShare : 1;
    const std::int64_t most = std::clamp<std::int64_t>(blocks / share, 1, std::max(threads, 1));
    std::atomic<std::int64_t> next{0};
    std::atomic<bool> stop{false};
    const std::int64_t stride = std::max<std::int64_t>(1, std::min<std::int64_t>(run_length, blocks / (8 * most)));
    std::exception_ptr failure;
    std::mutex failing;
    auto run = [&](bool caller) noexcept {
        try {
            const Watch watch(stop, caller);
            for (std::int64_t first; (first = next.fetch_add(stride)) < blocks;)
                for (std::int64_t b = first; b < std::min(blocks, first + stride); ++b) {
                    Watch::look();
                    work(b, b * rows, std::min(n, (b + 1) * rows));
                }
        } catch (const Watch::Stopped&) {  // the failure that stopped it is known already
        } catch (...) {  // an exception that left a thread would end the process: it is thrown again by the caller's
            const std::lock_guard<std::mutex> lock(failing);
            if (!failure) failure = std::current_exception();
            stop.store(true);
        }
    };
    std::vector<std::thread> crew;
    try {
        crew.reserve(most);
        for (std::int64_t t = 1; t < most; ++t)
            crew.emplace_back([&run, spare = Spare()]() mutable {
                spare.spend();
                run(false);
            });
    } catch (const std::exception&) {
        // The system has no thread, or no memory for one, to spare: those that there are do the work.
    }
    run(true);
    for (auto& member : crew) member.join();
    if (failure) std::rethrow_exception(failure);
}

// Adds the blocks' partial sums in the order of the blocks.
inline void add_up(const std::vector<double>& parts, std::int64_t width, double* out) {
    for (std::int64_t j = 0; j < width; ++j) out[j] = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) out[i % width] += parts[i];
}

}  // namespace calibrant
