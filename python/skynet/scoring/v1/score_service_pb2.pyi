from skynet.scoring.v1 import case_pb2 as _case_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ScoreRequest(_message.Message):
    __slots__ = ("cases", "artifact")
    CASES_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    cases: _containers.RepeatedCompositeFieldContainer[_case_pb2.Case]
    artifact: _case_pb2.JsonValue
    def __init__(self, cases: _Optional[_Iterable[_Union[_case_pb2.Case, _Mapping]]] = ..., artifact: _Optional[_Union[_case_pb2.JsonValue, _Mapping]] = ...) -> None: ...

class ScoreResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[_case_pb2.CaseResult]
    def __init__(self, results: _Optional[_Iterable[_Union[_case_pb2.CaseResult, _Mapping]]] = ...) -> None: ...

class ScoreBatchRequest(_message.Message):
    __slots__ = ("cases", "artifact")
    CASES_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    cases: _containers.RepeatedCompositeFieldContainer[_case_pb2.Case]
    artifact: _case_pb2.JsonValue
    def __init__(self, cases: _Optional[_Iterable[_Union[_case_pb2.Case, _Mapping]]] = ..., artifact: _Optional[_Union[_case_pb2.JsonValue, _Mapping]] = ...) -> None: ...

class ScoreBatchResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[_case_pb2.CaseResult]
    def __init__(self, results: _Optional[_Iterable[_Union[_case_pb2.CaseResult, _Mapping]]] = ...) -> None: ...
