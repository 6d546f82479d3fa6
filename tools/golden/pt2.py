"""Writes programs exported by PyTorch to tests/export/golden: NAME.pt2, its inputs (NAME.in) and results (NAME.out, both
safetensors; results by their place). The programs are those of tests/peers/pt2_cases.py. Usage: pt2.py OUT_FOLDER"""

import io
import json
import os
import sys
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "peers"))

import pt2_cases  # noqa: E402
import torch  # noqa: E402
import torch.utils._pytree as pytree  # noqa: E402
from program_paths import without_paths  # noqa: E402
from pt2 import clone, flat_inputs  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from torch._export.serde.serialize import serialize  # noqa: E402
from torch.export.pt2_archive._package import package_pt2  # noqa: E402

NAMES = """basic two_layers_dynamic state tied dtypes conv_training cond nested_cond no_grad_region_strict unbacked several_results list_result some_unused
keyword_default empty_int_list shape_arithmetic derived constants constant_outputs constant_inputs kwargs nested_inputs namedtuple mutated_input
memory_format device_dtype infinities complex_argument optional_tensors custom_op custom_optional custom_list decomposed_conv mapped while_loop
preserved_modules custom_metadata unicode auto_functionalized_two lstm""".split()


def old_form(ep, path):
    """The archive of PyTorch 2.6: one JSON, three pickles. It had no names, kinds and forward_arg_names."""
    artifact = serialize(ep)
    program = json.loads(artifact.exported_program)
    program["schema_version"] = {"major": 8, "minor": 2}
    program["torch_version"] = "2.6.0"
    del program["guards_code"]
    for node in program["graph_module"]["graph"]["nodes"]:
        del node["name"], node["is_hop_single_tensor_return"]
        for argument in node["inputs"]:
            del argument["kind"]
    for entry in program["graph_module"]["module_call_graph"]:
        if entry["signature"]:
            del entry["signature"]["forward_arg_names"]
    with zipfile.ZipFile(path, "w") as f:
        f.writestr("version", "8.2")
        f.writestr("serialized_exported_program.json", json.dumps(program))
        f.writestr("serialized_state_dict.pt", artifact.state_dict)
        f.writestr("serialized_constants.pt", artifact.constants)
        f.writestr("serialized_example_inputs.pt", artifact.example_inputs)
        f.writestr("extra_files/extra.txt", "moo")
    torch.export.load(path)


def main(out):
    for name in NAMES:
        ep, args, kwargs = pt2_cases.CASES[name]()
        path = os.path.join(out, name)
        torch.export.save(without_paths(ep), path + ".pt2")
        results = pytree.tree_leaves(torch.export.load(path + ".pt2").module()(*clone(args), **clone(kwargs)))
        save_file({k: v.detach().contiguous().clone() for k, v in flat_inputs(ep, args, kwargs).items()}, path + ".in")
        save_file({str(i): v.detach().contiguous().clone() for i, v in enumerate(results) if isinstance(v, torch.Tensor)}, path + ".out")
    ep, args, _ = pt2_cases.CASES["two_layers_dynamic"]()
    without_paths(ep)
    old_form(ep, os.path.join(out, "old_form.pt2"))
    other, _, _ = pt2_cases.CASES["basic"]()
    package_pt2(os.path.join(out, "several.pt2"), exported_programs={"first": ep, "second": without_paths(other)}, extra_files={"extra.txt": "moo", "folder/é.txt": "ça"})
    torch.manual_seed(0)
    shared = torch.arange(12.0).reshape(3, 4)
    checkpoint = {"weight": shared, "row": shared[1], "turned": shared.t(), "half": torch.ones(2, dtype=torch.bfloat16), "empty": torch.zeros(0, 2), "flags": torch.tensor([True, False]), "parameter": torch.nn.Parameter(torch.ones(2)), "scalar": torch.tensor(7)}
    torch.save(checkpoint, os.path.join(out, "../../file/golden/checkpoint.pt"))
    torch.save(checkpoint, os.path.join(out, "../../file/golden/checkpoint_legacy.pt"), _use_new_zipfile_serialization=False)
    nested = {"list": [1, -2, 2**40, 2.5, None, True, "é"], "tuple": ((), (1,), {"k": torch.tensor([1, 2])}), "dtype": torch.float16, "size": torch.Size([2, 3]), "bytes": b"\x00\xff", "device": torch.device("cpu"), "complex": 1 + 2j, "uint16": torch.tensor([1, 2], dtype=torch.uint16)}
    torch.save(nested, os.path.join(out, "../../file/golden/nested.pt"))


if __name__ == "__main__":
    main(sys.argv[1])
