// Stopping a kernel before it is done: where the user asks for it (Ctrl-C), or where another of its threads has failed.
#pragma once

#include <atomic>
#include <chrono>

namespace calibrant {

// Throws where the user wants everything to stop; set by whoever knows how to ask (bind.cpp), and asked rarely.
inline std::atomic<void (*)()> ask_user{nullptr};

// One thread's part in a kernel: the thread that called it asks the user, the others look whether it has given up.
class Watch {
public:
    struct Stopped {};  // what ends the work of a thread whose kernel has failed elsewhere

    Watch(std::atomic<bool>& stop, bool asks) : stop_(stop), asks_(asks), outer_(current_), next_(asks ? later() : Time{}) {
        current_ = this;
    }
    ~Watch() { current_ = outer_; }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // Kernels call this between stretches of work of a few milliseconds or less.
    static void look() {
        if (current_) current_->look_up();
    }

private:
    using Clock = std::chrono::steady_clock;
    using Time = Clock::time_point;
    static Time later() { return Clock::now() + std::chrono::milliseconds(200); }

    void look_up() {
        if (stop_.load(std::memory_order_relaxed)) throw Stopped{};
        if (!asks_ || Clock::now() < next_) return;
        if (const auto ask = ask_user.load(std::memory_order_relaxed)) ask();
        next_ = later();
    }

    std::atomic<bool>& stop_;
    const bool asks_;
    Watch* const outer_;
    Time next_;
#ifdef __linux__
    // Kept where a thread begins with: else the first look of a thread asks for memory, and its lack ends the process.
    [[gnu::tls_model("initial-exec")]]
#endif
    static inline thread_local Watch* current_ = nullptr;
};

// Lets a kernel without threads of its own be stopped.
struct Alone {
    std::atomic<bool> stop{false};
    Watch watch{stop, true};
};

}  // namespace calibrant
