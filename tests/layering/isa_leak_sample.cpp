// What isa_leak.sh exists to find: a function that is shared with the rest of the program, in a file compiled for one
// instruction set. Only the test of that script compiles this.
template <typename T>
[[gnu::noinline]] T shared_with_everybody(T value) {
  return value + 1;
}

namespace calque::avx2 {
int sample(int value);
int sample(int value) { return shared_with_everybody(value); }
}  // namespace calque::avx2
