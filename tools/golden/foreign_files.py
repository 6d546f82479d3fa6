"""Files of other tools, as those tools write them: tests/file/golden/foreign. What each package makes is made where the package is
there: run it once in the peers' environment (torch, transformers) and once where onnx, h5py, gguf, msgpack, numpy and tensorboard are.

    python tools/golden/foreign_files.py tests/file/golden/foreign
"""
import importlib
import io
import json
import pathlib
import pickle
import sys
import tarfile
import zipfile

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)


def has(name):
    try:
        importlib.import_module(name)
        return True
    except ImportError:
        return False


if has("torch"):
    import torch

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    optimiser = torch.optim.Adam(net.parameters())
    net(torch.rand(5, 3)).sum().backward()
    optimiser.step()
    state = {name: tensor.detach() for name, tensor in net.state_dict().items()}
    torch.save(state, folder / "state.pt")
    torch.save({"epoch": 7, "loss": 0.25, "model_state_dict": state, "optimizer_state_dict": optimiser.state_dict(),
                "note": "of a training loop"}, folder / "training.pt")
    torch.save({"epoch": 7, "args": __import__("argparse").Namespace(lr=0.1), "net": state}, folder / "training_args.pt")
    torch.save({"state_dict": state, "optimizer_states": [optimiser.state_dict()], "pytorch-lightning_version": "2.5.0"},
               folder / "lightning.ckpt")
    torch.save(optimiser.state_dict(), folder / "optimizer.pt")
    torch.save(net, folder / "module.pt")
    torch.save([torch.ones(2), torch.zeros(3)], folder / "list.pt")
    torch.save(torch.ones(2, 2), folder / "tensor.pt")
    torch.jit.save(torch.jit.script(net), str(folder / "script.pt"))
    torch.save(state, folder / "legacy.pt", _use_new_zipfile_serialization=False)
    program = torch.export.export(net, (torch.rand(5, 3),), dynamic_shapes=({0: torch.export.Dim("rows")},))
    torch.export.save(program, folder / "program.pt2")
    for name in ("state.pt", "program.pt2"):  # as another tool zips it
        compressed = folder / ("compressed_" + name)
        with zipfile.ZipFile(folder / name) as old, zipfile.ZipFile(compressed, "w", zipfile.ZIP_DEFLATED) as new:
            for entry in old.namelist():
                new.writestr(entry, old.read(entry))
    for name, value in torch.load(folder / "compressed_state.pt").items():  # PyTorch reads it so
        assert torch.equal(value, state[name]), name
    torch.export.load(folder / "compressed_program.pt2")
    pathlib.Path(folder / "program_input.json").write_text(
        json.dumps({"x": torch.arange(6.0).reshape(2, 3).tolist(), "y": net(torch.arange(6.0).reshape(2, 3)).tolist()}))
if has("onnx"):
    from onnx import TensorProto, helper, save

    node = helper.make_node("Relu", ["x"], ["y"])
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy")
    save(helper.make_model(helper.make_graph([node], "g", [x], [y])), folder / "relu.onnx")
if has("h5py"):
    import h5py

    with h5py.File(folder / "tf_model.h5", "w") as file:
        file["dense/kernel"] = [1.0, 2.0]
if has("gguf"):
    import gguf
    import numpy

    writer = gguf.GGUFWriter(folder / "tiny.gguf", "llama")
    writer.add_tensor("token_embd.weight", numpy.ones((2, 2), dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
if has("msgpack"):
    import msgpack

    (folder / "flax_model.msgpack").write_bytes(
        msgpack.packb({"params": {"dense": {"kernel": msgpack.ExtType(1, msgpack.packb([[1], "float32", bytes(4)]))}}}))
if has("numpy"):
    import numpy

    numpy.save(folder / "array.npy", numpy.ones(3))
    numpy.savez(folder / "arrays.npz", a=numpy.ones(3))
if has("tensorboard"):
    from tensorboard.compat.proto import graph_pb2, meta_graph_pb2

    graph = graph_pb2.GraphDef()
    node = graph.node.add(name="x", op="Placeholder")
    node.attr["dtype"].type = 1
    graph.versions.producer = 1
    (folder / "frozen_graph.pb").write_bytes(graph.SerializeToString())
    meta = meta_graph_pb2.MetaGraphDef()
    meta.graph_def.CopyFrom(graph)
    meta.meta_info_def.tags.append("serve")
    body = meta.SerializeToString()
    length = bytes([len(body) & 0x7F | 0x80, len(body) >> 7]) if len(body) > 127 else bytes([len(body)])
    (folder / "saved_model.pb").write_bytes(b"\x08\x01\x12" + length + body)  # SavedModel: schema version, meta graphs
if has("sentencepiece"):
    import sentencepiece

    text = " ".join(f"word{i % 7} of {i % 5}" for i in range(200))
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter([text]), model_prefix=str(folder / "pieces"),
                                             vocab_size=30, hard_vocab_limit=False, minloglevel=2)
    (folder / "pieces.vocab").unlink()
with open(folder / "plain.pkl", "wb") as file:
    pickle.dump({"a": [1, 2, 3]}, file, protocol=4)
with tarfile.open(folder / "files.tar", "w") as archive:
    content = b"some text\n"
    info = tarfile.TarInfo("a.txt")
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))
