"""The descriptor of buf.validate, which our stubs name in their options.

A process may register `buf/validate/validate.proto` once. So when another package brings it, that one serves;
otherwise the copy that `make protos` generated here.
"""

try:
    from buf.validate import validate_pb2
except ModuleNotFoundError:
    from palimpsest.buf_validate import validate_pb2

__all__ = ["validate_pb2"]
