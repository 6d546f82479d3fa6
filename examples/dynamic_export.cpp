// An export that promises more than the program can keep: the error lists fixes, which a program can read and apply.
#include <calque/calque.h>

#include <iostream>

using namespace calque;

struct Halves : Typed<Halves> {
  static constexpr const char* forward_arguments[] = {"x"};
  Tensor forward(const Tensor& x) {
    const std::vector<Tensor> two = x.chunk(2);  // of equal size only where the rows are even
    return two[0] * two[1];
  }
};

int main() try {
  Halves module;
  const Tensor x = randn({6, 3});
  DynamicShapes shapes = DynamicShapes::dict({{"x", DynamicShapes::dict({{0, Dim("rows")}})}});
  for (int attempt = 1; attempt <= 2; ++attempt) try {
      const ExportedProgram program = export_program(module, {x}, {}, {.dynamic_shapes = shapes});
      std::cout << "attempt " << attempt << ": exported for x " << shapes << "\n";
      for (const auto& [symbol, range] : program.range_constraints()) std::cout << symbol << " in " << range << "\n";
      const Tensor result = program.call({ones({10, 3})}).to_tensor();
      std::cout << "ten rows give " << result.sizes() << "\n";
      return attempt == 2 ? 0 : 1;  // the first cannot be exported
    } catch (const UserError& error) {
      if (error.kind() != ErrorKind::constraint_violation) throw;
      std::cout << "attempt " << attempt << ": " << error.what() << "\n";
      shapes = refine_dynamic_shapes_from_suggested_fixes(error.what(), shapes);
    }
  return 1;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
