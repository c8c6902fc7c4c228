from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CaseErrorCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CASE_ERROR_CODE_UNSPECIFIED: _ClassVar[CaseErrorCode]
    CASE_ERROR_CODE_INVALID_CASE: _ClassVar[CaseErrorCode]
    CASE_ERROR_CODE_METRIC_EXCEPTION: _ClassVar[CaseErrorCode]
    CASE_ERROR_CODE_METRIC_RETURN_VALUE: _ClassVar[CaseErrorCode]
    CASE_ERROR_CODE_METRIC_TIMEOUT: _ClassVar[CaseErrorCode]
    CASE_ERROR_CODE_METRIC_CRASHED: _ClassVar[CaseErrorCode]
    CASE_ERROR_CODE_RUN_EXCEPTION: _ClassVar[CaseErrorCode]
    CASE_ERROR_CODE_RUN_TIMEOUT: _ClassVar[CaseErrorCode]
    CASE_ERROR_CODE_RUN_CRASHED: _ClassVar[CaseErrorCode]
    CASE_ERROR_CODE_RUN_RETURN_VALUE: _ClassVar[CaseErrorCode]
CASE_ERROR_CODE_UNSPECIFIED: CaseErrorCode
CASE_ERROR_CODE_INVALID_CASE: CaseErrorCode
CASE_ERROR_CODE_METRIC_EXCEPTION: CaseErrorCode
CASE_ERROR_CODE_METRIC_RETURN_VALUE: CaseErrorCode
CASE_ERROR_CODE_METRIC_TIMEOUT: CaseErrorCode
CASE_ERROR_CODE_METRIC_CRASHED: CaseErrorCode
CASE_ERROR_CODE_RUN_EXCEPTION: CaseErrorCode
CASE_ERROR_CODE_RUN_TIMEOUT: CaseErrorCode
CASE_ERROR_CODE_RUN_CRASHED: CaseErrorCode
CASE_ERROR_CODE_RUN_RETURN_VALUE: CaseErrorCode

class JsonValue(_message.Message):
    __slots__ = ("json", "value")
    JSON_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    json: str
    value: _struct_pb2.Value
    def __init__(self, json: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ...) -> None: ...

class Case(_message.Message):
    __slots__ = ("id", "input", "output", "expected", "observation_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    input: JsonValue
    output: JsonValue
    expected: JsonValue
    observation_id: str
    def __init__(self, id: _Optional[str] = ..., input: _Optional[_Union[JsonValue, _Mapping]] = ..., output: _Optional[_Union[JsonValue, _Mapping]] = ..., expected: _Optional[_Union[JsonValue, _Mapping]] = ..., observation_id: _Optional[str] = ...) -> None: ...

class CaseResult(_message.Message):
    __slots__ = ("id", "index", "score", "error", "timing", "observation", "metric_usage", "output")
    ID_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    TIMING_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_FIELD_NUMBER: _ClassVar[int]
    METRIC_USAGE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    id: str
    index: int
    score: Score
    error: CaseError
    timing: Timing
    observation: Observation
    metric_usage: ModelUsage
    output: JsonValue
    def __init__(self, id: _Optional[str] = ..., index: _Optional[int] = ..., score: _Optional[_Union[Score, _Mapping]] = ..., error: _Optional[_Union[CaseError, _Mapping]] = ..., timing: _Optional[_Union[Timing, _Mapping]] = ..., observation: _Optional[_Union[Observation, _Mapping]] = ..., metric_usage: _Optional[_Union[ModelUsage, _Mapping]] = ..., output: _Optional[_Union[JsonValue, _Mapping]] = ...) -> None: ...

class Score(_message.Message):
    __slots__ = ("value", "feedback", "scores", "side_info_json")
    class ScoresEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    VALUE_FIELD_NUMBER: _ClassVar[int]
    FEEDBACK_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    SIDE_INFO_JSON_FIELD_NUMBER: _ClassVar[int]
    value: float
    feedback: str
    scores: _containers.ScalarMap[str, float]
    side_info_json: str
    def __init__(self, value: _Optional[float] = ..., feedback: _Optional[str] = ..., scores: _Optional[_Mapping[str, float]] = ..., side_info_json: _Optional[str] = ...) -> None: ...

class CaseError(_message.Message):
    __slots__ = ("code", "message")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: CaseErrorCode
    message: str
    def __init__(self, code: _Optional[_Union[CaseErrorCode, str]] = ..., message: _Optional[str] = ...) -> None: ...

class Timing(_message.Message):
    __slots__ = ("queued_ms", "metric_ms", "run_ms")
    QUEUED_MS_FIELD_NUMBER: _ClassVar[int]
    METRIC_MS_FIELD_NUMBER: _ClassVar[int]
    RUN_MS_FIELD_NUMBER: _ClassVar[int]
    queued_ms: float
    metric_ms: float
    run_ms: float
    def __init__(self, queued_ms: _Optional[float] = ..., metric_ms: _Optional[float] = ..., run_ms: _Optional[float] = ...) -> None: ...

class Observation(_message.Message):
    __slots__ = ("id", "run_ms", "run_not_measured_reason", "cost_usd", "cost_not_measured_reason", "usage")
    ID_FIELD_NUMBER: _ClassVar[int]
    RUN_MS_FIELD_NUMBER: _ClassVar[int]
    RUN_NOT_MEASURED_REASON_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    COST_NOT_MEASURED_REASON_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    id: str
    run_ms: float
    run_not_measured_reason: str
    cost_usd: float
    cost_not_measured_reason: str
    usage: ModelUsage
    def __init__(self, id: _Optional[str] = ..., run_ms: _Optional[float] = ..., run_not_measured_reason: _Optional[str] = ..., cost_usd: _Optional[float] = ..., cost_not_measured_reason: _Optional[str] = ..., usage: _Optional[_Union[ModelUsage, _Mapping]] = ...) -> None: ...

class ModelUsage(_message.Message):
    __slots__ = ("calls", "prompt_tokens", "cached_prompt_tokens", "completion_tokens", "reasoning_tokens", "cost_usd")
    CALLS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHED_PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REASONING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    calls: int
    prompt_tokens: int
    cached_prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cost_usd: float
    def __init__(self, calls: _Optional[int] = ..., prompt_tokens: _Optional[int] = ..., cached_prompt_tokens: _Optional[int] = ..., completion_tokens: _Optional[int] = ..., reasoning_tokens: _Optional[int] = ..., cost_usd: _Optional[float] = ...) -> None: ...
