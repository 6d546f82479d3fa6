// Everything that a program needs to open a model, run it, trace it, export it and build one: tensors with their operators,
// modules, the hub, tokenizers and generation, graphs, programs, compiled functions. Each of these headers may be included alone, which compiles
// faster. Headers for those who extend Calque (op/library.h, op/mode.h, graph/passes.h, ...) are not here.
#pragma once

#include "calque/base/error.h"
#include "calque/base/thread.h"
#include "calque/base/version.h"
#include "calque/base/warning.h"
#include "calque/compile/compile.h"
#include "calque/export/export.h"
#include "calque/export/pt2.h"
#include "calque/file/safetensors.h"
#include "calque/generate/model_generate.h"
#include "calque/graph/rewrite.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/save_pretrained.h"
#include "calque/nn/functional.h"
#include "calque/nn/nn.h"
#include "calque/op/getitem.h"
#include "calque/op/index.h"
#include "calque/op/make.h"
#include "calque/op/ops.h"
#include "calque/op/value.h"
#include "calque/tensor/generator.h"
#include "calque/tensor/print.h"
#include "calque/text/tokenizer.h"
#include "calque/trace/make_fx.h"
#include "calque/trace/tracer.h"
