#include "media/mel_frames.h"

#include "kernel/cpu/simd/vec_math.h"

namespace calque::CALQUE_ISA {
namespace {

using V = Vec<double>;
constexpr int64_t width = frames_at_once;
constexpr int64_t step = lanes<double>;

// A complex number of some of the eight frames.
struct Z {
  V re, im;
};
CALQUE_INLINE Z operator+(Z a, Z b) { return {a.re + b.re, a.im + b.im}; }
CALQUE_INLINE Z operator-(Z a, Z b) { return {a.re - b.re, a.im - b.im}; }
CALQUE_INLINE Z times(Z a, double re, double im) { return {a.re * re - a.im * im, a.re * im + a.im * re}; }
CALQUE_INLINE Z scaled(Z a, double by) { return {a.re * by, a.im * by}; }
CALQUE_INLINE Z turned_back(Z a) { return {a.im, -a.re}; }  // times -i

CALQUE_INLINE Z get(const double* at, int64_t point, int64_t lane) {
  return {load(at + point * 2 * width + lane), load(at + point * 2 * width + width + lane)};
}
CALQUE_INLINE void put(double* at, int64_t point, int64_t lane, Z z) {
  store(at + point * 2 * width + lane, z.re);
  store(at + point * 2 * width + width + lane, z.im);
}

// The transform of p numbers.
template <int p>
CALQUE_INLINE void small_transform(Z* a) {
  if constexpr (p == 2) {
    const Z sum = a[0] + a[1];
    a[1] = a[0] - a[1], a[0] = sum;
  } else if constexpr (p == 3) {
    constexpr double sine = 0.86602540378443864676;
    const Z sum = a[1] + a[2], across = turned_back(scaled(a[1] - a[2], sine)), middle = a[0] - scaled(sum, 0.5);
    a[0] = a[0] + sum, a[1] = middle + across, a[2] = middle - across;
  } else if constexpr (p == 4) {
    const Z s = a[0] + a[2], d = a[0] - a[2], t = a[1] + a[3], e = turned_back(a[1] - a[3]);
    a[0] = s + t, a[1] = d + e, a[2] = s - t, a[3] = d - e;
  } else {
    constexpr double c1 = 0.30901699437494742410, c2 = -0.80901699437494742410;
    constexpr double s1 = 0.95105651629515357212, s2 = 0.58778525229247312917;
    const Z t1 = a[1] + a[4], t2 = a[2] + a[3], d1 = a[1] - a[4], d2 = a[2] - a[3];
    const Z m1 = a[0] + scaled(t1, c1) + scaled(t2, c2), m2 = a[0] + scaled(t1, c2) + scaled(t2, c1);
    const Z n1 = turned_back(scaled(d1, s1) + scaled(d2, s2)), n2 = turned_back(scaled(d1, s2) - scaled(d2, s1));
    a[0] = a[0] + t1 + t2, a[1] = m1 + n1, a[4] = m1 - n1, a[2] = m2 + n2, a[3] = m2 - n2;
  }
}

// One pass of a transform that sorts itself (Stockham): n points are left to combine, `stride` of them lie together.
template <int p>
void pass(const double* in, double* out, int64_t n, int64_t stride, const double* roots, int64_t root_step) {
  const int64_t m = n / p;
  for (int64_t q = 0; q < m; ++q)
    for (int64_t r = 0; r < stride; ++r)
      for (int64_t lane = 0; lane < width; lane += step) {
        Z a[p];
        for (int j = 0; j < p; ++j) a[j] = get(in, r + stride * (q + m * j), lane);
        small_transform<p>(a);
        put(out, r + stride * p * q, lane, a[0]);
        for (int k = 1; k < p; ++k) {
          const double* const root = roots + 2 * root_step * q * k;
          put(out, r + stride * (p * q + k), lane, q == 0 ? a[k] : times(a[k], root[0], root[1]));
        }
      }
}

void run(const MelFramesJob& job) {
  const int64_t half = job.fft / 2;
  // Even samples are real, odd ones imaginary: they lie so already.
  const double* in = job.samples;
  double *out = job.work, *next = job.other;
  int64_t n = half, stride = 1;
  for (int64_t f = 0; f < job.factor_count; ++f) {
    const int64_t p = job.factors[f], root_step = job.fft / n;
    if (p == 2)
      pass<2>(in, out, n, stride, job.roots, root_step);
    else if (p == 3)
      pass<3>(in, out, n, stride, job.roots, root_step);
    else if (p == 4)
      pass<4>(in, out, n, stride, job.roots, root_step);
    else
      pass<5>(in, out, n, stride, job.roots, root_step);
    n /= p, stride *= p;
    in = out;
    double* const free = next;
    next = out, out = free;
  }
  // The power of the transform of all samples, put together from that of the two halves.
  double* const power = out;
  for (int64_t k = 0; k <= half; ++k)
    for (int64_t lane = 0; lane < width; lane += step) {
      const Z a = get(in, k == half ? 0 : k, lane), mirror = get(in, k == 0 ? 0 : half - k, lane),
              b = {mirror.re, -mirror.im};
      const Z even = scaled(a + b, 0.5), odd = turned_back(scaled(a - b, 0.5));
      const Z whole = even + times(odd, job.roots[2 * k], job.roots[2 * k + 1]);
      store(power + k * width + lane, whole.re * whole.re + whole.im * whole.im);
    }
  for (int64_t f = 0; f < job.filters; ++f) {
    const MelSpan& span = job.spans[f];
    for (int64_t lane = 0; lane < width; lane += step) {
      V sum{};
      for (int64_t i = 0; i < span.count; ++i)
        sum += load(power + (span.first + i) * width + lane) * job.weights[span.begin + i];
      sum = sum > job.floor ? sum : splat(job.floor);
      store(job.out + f * width + lane, job.log10 ? v_log10(sum) : v_log(sum));
    }
  }
}

}  // namespace

extern const MelFramesKernel mel_frames_kernel[];
const MelFramesKernel mel_frames_kernel[] = {{&run}};

}  // namespace calque::CALQUE_ISA
