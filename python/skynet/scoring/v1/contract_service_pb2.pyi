from skynet.scoring.v1 import case_pb2 as _case_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ContractStep(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONTRACT_STEP_UNSPECIFIED: _ClassVar[ContractStep]
    CONTRACT_STEP_METRIC_FILE: _ClassVar[ContractStep]
    CONTRACT_STEP_METRIC_FUNCTION: _ClassVar[ContractStep]
    CONTRACT_STEP_REWARD_SPEC: _ClassVar[ContractStep]
    CONTRACT_STEP_SAMPLE_CASES: _ClassVar[ContractStep]
    CONTRACT_STEP_RUN_RETURN_VALUE: _ClassVar[ContractStep]
    CONTRACT_STEP_METRIC_CALL: _ClassVar[ContractStep]
    CONTRACT_STEP_METRIC_RETURN_VALUE: _ClassVar[ContractStep]

class ContractStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONTRACT_STATUS_UNSPECIFIED: _ClassVar[ContractStatus]
    CONTRACT_STATUS_PASSED: _ClassVar[ContractStatus]
    CONTRACT_STATUS_FAILED: _ClassVar[ContractStatus]
    CONTRACT_STATUS_SKIPPED: _ClassVar[ContractStatus]
CONTRACT_STEP_UNSPECIFIED: ContractStep
CONTRACT_STEP_METRIC_FILE: ContractStep
CONTRACT_STEP_METRIC_FUNCTION: ContractStep
CONTRACT_STEP_REWARD_SPEC: ContractStep
CONTRACT_STEP_SAMPLE_CASES: ContractStep
CONTRACT_STEP_RUN_RETURN_VALUE: ContractStep
CONTRACT_STEP_METRIC_CALL: ContractStep
CONTRACT_STEP_METRIC_RETURN_VALUE: ContractStep
CONTRACT_STATUS_UNSPECIFIED: ContractStatus
CONTRACT_STATUS_PASSED: ContractStatus
CONTRACT_STATUS_FAILED: ContractStatus
CONTRACT_STATUS_SKIPPED: ContractStatus

class CheckContractRequest(_message.Message):
    __slots__ = ("samples", "artifact")
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    samples: _containers.RepeatedCompositeFieldContainer[_case_pb2.Case]
    artifact: _case_pb2.JsonValue
    def __init__(self, samples: _Optional[_Iterable[_Union[_case_pb2.Case, _Mapping]]] = ..., artifact: _Optional[_Union[_case_pb2.JsonValue, _Mapping]] = ...) -> None: ...

class CheckContractResponse(_message.Message):
    __slots__ = ("check", "verdict")
    CHECK_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    check: ContractCheck
    verdict: ContractVerdict
    def __init__(self, check: _Optional[_Union[ContractCheck, _Mapping]] = ..., verdict: _Optional[_Union[ContractVerdict, _Mapping]] = ...) -> None: ...

class ContractCheck(_message.Message):
    __slots__ = ("step", "name", "status", "message", "warnings", "traceback", "duration_ms")
    STEP_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    TRACEBACK_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    step: ContractStep
    name: str
    status: ContractStatus
    message: str
    warnings: _containers.RepeatedScalarFieldContainer[str]
    traceback: str
    duration_ms: float
    def __init__(self, step: _Optional[_Union[ContractStep, str]] = ..., name: _Optional[str] = ..., status: _Optional[_Union[ContractStatus, str]] = ..., message: _Optional[str] = ..., warnings: _Optional[_Iterable[str]] = ..., traceback: _Optional[str] = ..., duration_ms: _Optional[float] = ...) -> None: ...

class ContractVerdict(_message.Message):
    __slots__ = ("passed", "passed_count", "failed_count", "skipped_count", "warning_count")
    PASSED_FIELD_NUMBER: _ClassVar[int]
    PASSED_COUNT_FIELD_NUMBER: _ClassVar[int]
    FAILED_COUNT_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_COUNT_FIELD_NUMBER: _ClassVar[int]
    WARNING_COUNT_FIELD_NUMBER: _ClassVar[int]
    passed: bool
    passed_count: int
    failed_count: int
    skipped_count: int
    warning_count: int
    def __init__(self, passed: bool = ..., passed_count: _Optional[int] = ..., failed_count: _Optional[int] = ..., skipped_count: _Optional[int] = ..., warning_count: _Optional[int] = ...) -> None: ...

class DescribeMetricRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeMetricResponse(_message.Message):
    __slots__ = ("loaded", "load_error", "fingerprint", "file", "arguments", "is_async", "reward_spec_json", "python_version", "start_method", "start_method_reason", "metric_timeout_ms", "workers", "version", "run_file", "run_timeout_ms", "metric_usage", "gateway_usage", "max_cost_usd")
    LOADED_FIELD_NUMBER: _ClassVar[int]
    LOAD_ERROR_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    IS_ASYNC_FIELD_NUMBER: _ClassVar[int]
    REWARD_SPEC_JSON_FIELD_NUMBER: _ClassVar[int]
    PYTHON_VERSION_FIELD_NUMBER: _ClassVar[int]
    START_METHOD_FIELD_NUMBER: _ClassVar[int]
    START_METHOD_REASON_FIELD_NUMBER: _ClassVar[int]
    METRIC_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RUN_FILE_FIELD_NUMBER: _ClassVar[int]
    RUN_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    METRIC_USAGE_FIELD_NUMBER: _ClassVar[int]
    GATEWAY_USAGE_FIELD_NUMBER: _ClassVar[int]
    MAX_COST_USD_FIELD_NUMBER: _ClassVar[int]
    loaded: bool
    load_error: str
    fingerprint: str
    file: str
    arguments: int
    is_async: bool
    reward_spec_json: str
    python_version: str
    start_method: str
    start_method_reason: str
    metric_timeout_ms: float
    workers: int
    version: str
    run_file: str
    run_timeout_ms: float
    metric_usage: _case_pb2.ModelUsage
    gateway_usage: _case_pb2.ModelUsage
    max_cost_usd: float
    def __init__(self, loaded: bool = ..., load_error: _Optional[str] = ..., fingerprint: _Optional[str] = ..., file: _Optional[str] = ..., arguments: _Optional[int] = ..., is_async: bool = ..., reward_spec_json: _Optional[str] = ..., python_version: _Optional[str] = ..., start_method: _Optional[str] = ..., start_method_reason: _Optional[str] = ..., metric_timeout_ms: _Optional[float] = ..., workers: _Optional[int] = ..., version: _Optional[str] = ..., run_file: _Optional[str] = ..., run_timeout_ms: _Optional[float] = ..., metric_usage: _Optional[_Union[_case_pb2.ModelUsage, _Mapping]] = ..., gateway_usage: _Optional[_Union[_case_pb2.ModelUsage, _Mapping]] = ..., max_cost_usd: _Optional[float] = ...) -> None: ...
