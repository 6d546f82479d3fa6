"""Makes tests/export/golden/zoo: tiny models of twenty architectures, exported by PyTorch with dynamic batch and length, with
inputs and results at two sizes.

    python tools/golden/zoo_programs.py tests/export/golden/zoo

Each program comes without stack traces, so that the files do not depend on where PyTorch is installed.
"""

import os
import sys
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "peers"))

import programs  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
import zoo_cases  # noqa: E402
import zoo_programs  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

CLASSES = ["AlbertForMaskedLM", "BartModel", "BertForQuestionAnswering", "BloomForCausalLM", "CLIPVisionModel", "CohereForCausalLM", "ConvNextForImageClassification", "DebertaModel",
           "DistilBertForMaskedLM", "ElectraForTokenClassification", "GPT2LMHeadModel", "GPTJForCausalLM", "GPTNeoForCausalLM", "HubertForCTC", "LlamaForCausalLM", "MobileBertModel",
           "ResNetForImageClassification", "T5ForConditionalGeneration", "ViTModel", "XGLMForCausalLM"]


def fewer_layers(settings):
    """One layer is enough where there is a number of layers."""
    return {k: 1 if k in ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers", "encoder_layers", "decoder_layers") else fewer_layers(v) if isinstance(v, dict) else v
            for k, v in settings.items()}


def main(folder):
    os.makedirs(folder, exist_ok=True)
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    for arch in zoo_cases.CONFIGS:
        if arch not in ("gpt_neo",):
            zoo_cases.CONFIGS[arch] = fewer_layers(zoo_cases.CONFIGS[arch])
    known = {c: (a, t, c) for a, t, c in zoo_cases.classes(os.path.join(os.path.dirname(programs.__file__), "zoo.tsv"))}
    for cls in CLASSES:
        arch, task, cls = known[cls]
        model = zoo_cases.model(arch, cls)
        x, dims = zoo_cases.inputs(arch, task, cls)
        with torch.no_grad():
            ep = zoo_programs.export(model, x, dims, True)
            for node in ep.graph.nodes:
                node.meta.pop("stack_trace", None)
            ep.example_inputs = None
            path = os.path.join(folder, cls)
            torch.export.save(ep, path + ".pt2")
            for number, (batch, length) in enumerate(((2, 7), (3, 11))):
                inputs = zoo_cases.inputs(arch, task, cls, batch=batch, length=length)[0]
                save_file({k: v.contiguous() for k, v in inputs.items()}, f"{path}.{number}.in")
                save_file({k: v.contiguous() for k, v in zoo_programs.paths(ep.module()(**inputs)).items()}, f"{path}.{number}.out")


if __name__ == "__main__":
    main(sys.argv[1])
