"""Ship a fitted map to where the model runs: ONNX, torch, SQL, JSON and JavaScript, vLLM.

Every map says once what it computes, in plain operations (`calibrant.formulas`); each file here is one reader of that.
"""

from .description import Description, describe
from .json_text import evaluator, to_json
from .onnx_append import append_to_model
from .onnx_graph import onnx_model
from .sql import to_sql
from .torch_module import to_torch
from .vllm import to_vllm
from .writing import TARGETS, export

__all__ = [
    "TARGETS",
    "Description",
    "append_to_model",
    "describe",
    "evaluator",
    "export",
    "onnx_model",
    "to_json",
    "to_sql",
    "to_torch",
    "to_vllm",
]
