from skynet.scoring.v1 import case_pb2 as _case_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ObserveRequest(_message.Message):
    __slots__ = ("begin", "end")
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    begin: BeginObservation
    end: EndObservation
    def __init__(self, begin: _Optional[_Union[BeginObservation, _Mapping]] = ..., end: _Optional[_Union[EndObservation, _Mapping]] = ...) -> None: ...

class BeginObservation(_message.Message):
    __slots__ = ("label",)
    LABEL_FIELD_NUMBER: _ClassVar[int]
    label: str
    def __init__(self, label: _Optional[str] = ...) -> None: ...

class EndObservation(_message.Message):
    __slots__ = ("observation_id",)
    OBSERVATION_ID_FIELD_NUMBER: _ClassVar[int]
    observation_id: str
    def __init__(self, observation_id: _Optional[str] = ...) -> None: ...

class ObserveResponse(_message.Message):
    __slots__ = ("began", "ended", "error")
    BEGAN_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    began: ObservationBegan
    ended: _case_pb2.Observation
    error: ObservationError
    def __init__(self, began: _Optional[_Union[ObservationBegan, _Mapping]] = ..., ended: _Optional[_Union[_case_pb2.Observation, _Mapping]] = ..., error: _Optional[_Union[ObservationError, _Mapping]] = ...) -> None: ...

class ObservationBegan(_message.Message):
    __slots__ = ("observation_id", "gateway_token")
    OBSERVATION_ID_FIELD_NUMBER: _ClassVar[int]
    GATEWAY_TOKEN_FIELD_NUMBER: _ClassVar[int]
    observation_id: str
    gateway_token: str
    def __init__(self, observation_id: _Optional[str] = ..., gateway_token: _Optional[str] = ...) -> None: ...

class ObservationError(_message.Message):
    __slots__ = ("observation_id", "message")
    OBSERVATION_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    observation_id: str
    message: str
    def __init__(self, observation_id: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...
