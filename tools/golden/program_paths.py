"""Programs without the paths of the machine that exported them."""

import re

import torch


def without_paths(ep):
    """Traces name files, not where they are on this machine."""
    for module in ep.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                if trace := node.meta.get("stack_trace"):
                    node.meta["stack_trace"] = re.sub(r'"[^"]*/(site-packages/)?(torch/[^"]*|[^"/]*)"', r'"\2"', trace)
                node.meta.pop("from_node", None)
    return ep
