"""Values and bytes: what is stored comes back equal, of the same type, and never names code to run."""

from waitpoint.codec.arguments import args_digest
from waitpoint.codec.jsonform import to_json
from waitpoint.codec.kinds import is_model
from waitpoint.codec.natives import Kind
from waitpoint.codec.paths import path_of
from waitpoint.codec.registry import PROCESS, Registry, register, register_builtin
from waitpoint.codec.unknown import UnknownValue, find_unknown, made
from waitpoint.codec.wire import dumps, dumps_plain, loads

__all__ = [
    "PROCESS", "Kind", "Registry", "UnknownValue", "args_digest", "dumps", "dumps_plain", "find_unknown", "made",
    "is_model", "loads", "path_of", "register", "register_builtin", "to_json",
]  # fmt: skip
