// Every layer, loss and container.
#pragma once

#include "calque/nn/activation.h"
#include "calque/nn/container.h"
#include "calque/nn/convolution.h"
#include "calque/nn/dropout.h"
#include "calque/nn/functional_call.h"
#include "calque/nn/linear.h"
#include "calque/nn/loss.h"
#include "calque/nn/normalization.h"
#include "calque/nn/pooling.h"
#include "calque/nn/recurrent.h"
#include "calque/nn/shaping.h"
#include "calque/nn/transformer.h"
