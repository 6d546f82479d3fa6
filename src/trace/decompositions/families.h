// The families of decompositions, one a file.
#pragma once

namespace calque {

class DecompositionBuilder;

void decompose_activations(DecompositionBuilder& table);
void decompose_activations_backward(DecompositionBuilder& table);
void decompose_copies(DecompositionBuilder& table);
void decompose_factories(DecompositionBuilder& table);
void decompose_indexing(DecompositionBuilder& table);
void decompose_interpolation(DecompositionBuilder& table);
void decompose_losses(DecompositionBuilder& table);
void decompose_normalization(DecompositionBuilder& table);
void decompose_pointwise(DecompositionBuilder& table);
void decompose_recurrent(DecompositionBuilder& table);
void decompose_reductions(DecompositionBuilder& table);
void decompose_resampling(DecompositionBuilder& table);
void decompose_shaping(DecompositionBuilder& table);

}  // namespace calque
