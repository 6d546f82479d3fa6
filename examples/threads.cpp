// One program, any number of threads: once loaded it does not change, and needs no lock.
#include <calque/calque.h>

#include <atomic>
#include <iostream>
#include <thread>

using namespace calque;

struct Mlp : Typed<Mlp> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> up = child<Linear>("up", 8, 32);
  Child<Linear> down = child<Linear>("down", 32, 8);
  Tensor forward(const Tensor& x) { return down(up(x).relu()); }
};

int main() try {
  Mlp mlp;
  const DynamicShapes rows = parse_dynamic_shapes({"x=rows,*"}, {"x"});
  save_program(export_program(mlp, {randn({2, 8})}, {}, {.dynamic_shapes = rows}), "mlp.pt2");
  const std::shared_ptr<const ExportedProgram> program = load_program("mlp.pt2");

  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int64_t t = 1; t <= 4; ++t)
    threads.emplace_back([&, t] {
      const NoGradGuard no_grad;  // a thread's modes are its own
      const Tensor x = full({t, 8}, static_cast<double>(t));
      for (int i = 0; i < 50; ++i) right += allclose(program->call({x}).to_tensor(), mlp(x), 1e-4, 1e-5);
    });
  for (std::thread& thread : threads) thread.join();
  std::cout << right << " of 200 calls right\n";
  return right == 200 ? 0 : 1;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
