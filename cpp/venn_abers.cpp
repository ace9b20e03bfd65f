#include "venn_abers.hpp"

#include <vector>

#include "interrupt.hpp"

namespace calibrant {
namespace {

constexpr std::int64_t kGlance = 1 << 18;  // groups between two looks

// Cumulative weight and cumulative positives.
struct Point {
    double x, y;
};

// Positive where the way from a over b to c turns left.
inline double turn(Point a, Point b, Point c) { return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x); }

// The lower hull of what lies to the right of the new row, the leftmost corner last.
class Hull {
public:
    void push(Point p) {
        while (corners_.size() > 1 && turn(p, corners_.back(), corners_[corners_.size() - 2]) <= 0) corners_.pop_back();
        corners_.push_back(p);
    }
    void pop() { corners_.pop_back(); }
    Point left() const { return corners_.back(); }
    Point next() const { return corners_[corners_.size() - 2]; }

private:
    std::vector<Point> corners_;
};

}  // namespace

void upper_venn_abers(const double* weights, const double* positives, std::int64_t count, double unit, double* out) {
    const Alone alone;
    std::vector<Point> points(count + 1);
    points[0] = {0, 0};
    for (std::int64_t i = 0; i < count; ++i) points[i + 1] = {points[i].x + weights[i], points[i].y + positives[i]};
    Hull hull;
    for (std::int64_t i = count; i >= 0; --i) {
        if (i % kGlance == 0) Watch::look();
        hull.push(points[i]);
    }
    Point before{-unit, -unit};  // the new row goes from here to the first group
    hull.push(before);
    for (std::int64_t i = 0; i < count; ++i) {
        if (i % kGlance == 0) Watch::look();
        const Point left = hull.left(), right = hull.next();
        out[i] = (right.y - left.y) / (right.x - left.x);
        // The new row moves past group i, which now begins where the new row did.
        before = {before.x + weights[i], before.y + positives[i]};
        if (turn(left, right, before) >= 0) continue;
        hull.pop();
        hull.push(before);
    }
}

}  // namespace calibrant
