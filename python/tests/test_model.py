"""`skynet.llm`: in a real worker, with the sidecar's side of it played here."""

from __future__ import annotations

import functools
import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import REPOSITORY, StartRuns, StartWorker, WriteMetric, shared_folder
from fake_sidecar import FakeSidecar, Message, Peer

import skynet
from skynet._worker.rows import METRIC_EXCEPTION, SCORE

USAGE = {"prompt_tokens": 2006, "cached_prompt_tokens": 1920, "completion_tokens": 300, "reasoning_tokens": 17}

# Does what the output says; the feedback is what that leaves in `said`.
DOES = """
import asyncio, json, os, signal, sys, threading, time
import skynet
from skynet import ModelError, llm
def score(input, output, expected=None):
    scope = dict(globals(), said="")
    exec(output, scope)
    return 1.0, {"feedback": str(scope["said"])}
"""

# The same with coroutines.
AWAITS = """
import asyncio, os, threading, time
from skynet import ModelError, llm
async def score(input, output, expected=None):
    scope = dict(globals())
    exec("async def does():\\n    " + output.replace("\\n", "\\n    "), scope)
    return 1.0, {"feedback": str(await scope["does"]())}
"""


def does(action: str) -> tuple[bytes, bytes]:
    return b"{}", json.dumps(action).encode()


def calls(sidecar: FakeSidecar, worker: Peer, count: int = 1) -> list[Message]:
    """Waits until so many calls were made."""
    sidecar.until(lambda: len(worker.of_type("model_call")) >= count, f"for {count} calls of a model")
    return worker.of_type("model_call")


def finish(sidecar: FakeSidecar, worker: Peer, number: int = 1) -> list[str]:
    sidecar.until(lambda: worker.has_finished(number), f"for chunk {number}")
    return [row.text for row in sorted(worker.all_rows(number), key=lambda row: row.position)]


def test_the_judge_of_the_seeds_runs_as_it_is_written(start_worker: StartWorker, start_method: str) -> None:
    (page,) = (shared_folder() / "seeds").glob("003_*.txt")
    found = re.search(r"^from skynet import llm\n.*?^If you do not", page.read_text(encoding="utf-8"), re.M | re.S)
    assert found is not None
    sidecar, worker = start_worker(found[0].removesuffix("If you do not"), start_method)
    worker.send_chunk(1, [(b'{"question": "2+2?"}', b'"4"'), (b'{"question": "2+3?"}', b'"4"')])
    (call,) = calls(sidecar, worker)
    assert call == {
        "type": "model_call",
        "call": 1,
        "chunk": 1,
        "case": 0,
        "messages": [
            {"role": "system", "content": "Answer PASS or FAIL, then give one sentence of reasons."},
            {"role": "user", "content": "Question: 2+2?\nAnswer: 4"},
        ],
        "model": None,
        "temperature": None,
        "max_tokens": None,
        "response_format": None,
        "timeout_ms": None,
    }
    worker.answer(1, "PASS. It is 4.")
    assert calls(sidecar, worker, 2)[1]["case"] == 1
    worker.answer(2, "FAIL. It is 5.")
    assert finish(sidecar, worker) == ["PASS. It is 4.", "FAIL. It is 5."]
    assert [row.value for row in worker.all_rows(1)] == [1.0, 0.0]


def test_an_answer_is_text_that_knows_what_it_cost(start_worker: StartWorker) -> None:
    sidecar, worker = start_worker(DOES)
    ask = (
        "a = llm('hi')\n"
        "said = repr((str(a), type(a).__name__, a.model, a.usage, a.cost_usd, a.cost_not_known_reason, a + '!'))"
    )
    worker.send_chunk(1, [does(ask), does(ask)])
    calls(sidecar, worker, 1)
    worker.answer(1, "é😀", model="gpt", usage=USAGE, cost_usd="0.000123456789")
    calls(sidecar, worker, 2)
    worker.answer(2, "", cost_not_known_reason="m has no price")
    usage = "Usage(prompt_tokens=2006, cached_prompt_tokens=1920, completion_tokens=300, reasoning_tokens=17, calls=1)"
    assert finish(sidecar, worker) == [
        f"('é😀', 'ModelText', 'gpt', {usage}, 0.000123456789, '', 'é😀!')",
        "('', 'ModelText', 'm', None, None, 'm has no price', '!')",
    ]


def test_what_the_metric_sets_is_sent(start_worker: StartWorker) -> None:
    sidecar, worker = start_worker(DOES)
    ask = (
        "llm('p\\ud800', model='m', temperature=0, max_tokens=5, response_format={'type': 'json_object'}, timeout=1.5)"
    )
    worker.send_chunk(1, [does(ask)])
    (call,) = calls(sidecar, worker)
    worker.answer(1, "x")
    finish(sidecar, worker)
    assert call["messages"] == [{"role": "user", "content": "p\ufffd"}]
    assert (call["model"], call["temperature"], call["max_tokens"]) == ("m", 0, 5)
    assert (call["response_format"], call["timeout_ms"]) == ({"type": "json_object"}, 1500)


def test_an_error_is_raised_with_what_is_known_of_it(start_worker: StartWorker) -> None:
    sidecar, worker = start_worker(DOES)
    ask = """
try:
    llm("hi")
except ModelError as e:
    said = repr((str(e), e.status, e.provider_message, e.finish_reason, e.request_id, e.text, e.usage[0], e.cost_usd))
"""
    worker.send_chunk(1, [does(ask), does("llm('hi')")])
    calls(sidecar, worker, 1)
    fields = {"finish_reason": "length", "text": "The ans", "provider_message": "p", "request_id": "req-1"}
    worker.refuse(1, "the answer was cut", status=200, usage=USAGE, cost_usd="0.25", **fields)
    calls(sidecar, worker, 2)
    worker.refuse(2, "the provider refused", status=401)
    assert finish(sidecar, worker) == [
        "('the answer was cut', 200, 'p', 'length', 'req-1', 'The ans', 2006, 0.25)",
        "ModelError: the provider refused (metric.py, line 7)",
    ]
    (row,) = (row for row in worker.all_rows(1) if row.position == 1)
    assert row.kind == METRIC_EXCEPTION
    assert "_worker" not in row.detail
    assert "metric.py" in row.detail


def test_an_error_can_be_pickled() -> None:
    error = skynet.ModelError("cut", status=200, usage=skynet.Usage(**USAGE), cost_usd=0.5, text="x")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), vars(again)) == (str(error), vars(error))


def test_any_number_of_threads_ask_at_once_and_print(start_worker: StartWorker, start_method: str) -> None:
    sidecar, worker = start_worker(DOES, start_method)
    action = """
said = [None] * 100
def ask(n):
    sys.stdout.write(f"asks {n}\\n")
    said[n] = int(llm(str(n)))
    sys.stdout.write(f"knows {n}\\n")
threads = [threading.Thread(target=ask, args=(n,)) for n in range(100)]
for thread in threads: thread.start()
for thread in threads: thread.join()
said = [said == list(range(100)), llm("main")]
"""
    worker.send_chunk(7, [does(action)])
    asked = calls(sidecar, worker, 100)
    assert {(call["chunk"], call["case"]) for call in asked} == {(7, 0)}
    assert sorted(call["call"] for call in asked) == list(range(1, 101))
    for call in reversed(asked):
        worker.answer(call["call"], call["messages"][0]["content"])
    calls(sidecar, worker, 101)
    worker.answer(101, "main")
    assert finish(sidecar, worker, 7) == ["[True, 'main']"]
    assert sorted(worker.printed().splitlines()) == sorted(
        f"{word} {n}" for n in range(100) for word in ("asks", "knows")
    )


def test_a_thread_that_outlives_its_case_gets_its_answer_and_keeps_no_chunk(start_worker: StartWorker) -> None:
    sidecar, worker = start_worker(DOES)
    action = (
        "threading.Thread(target=lambda: print('late:', llm('late'))).start()\n"
        "while not os.path.exists(input.get('gate', '/')): pass"
    )
    worker.send_chunk(1, [does(action)])
    finish(sidecar, worker)
    calls(sidecar, worker)
    # It reads while the main thread waits for chunks, and hands those over.
    for number in range(2, 6):
        worker.send_chunk(number, [does("said = 'on'"), (b'{"\xff": 1}', b"1"), does("said = llm('in between')")])
        calls(sidecar, worker, number)
        worker.answer(number, "asked")
        assert [text[:5] for text in finish(sidecar, worker, number)] == ["on", "input", "asked"]
    worker.answer(1, "at last")
    sidecar.until(lambda: "late: at last\n" in worker.printed())
    assert [row.text for row in sidecar.score(worker, [does("said = 'after'")], number=6)] == ["after"]


def test_an_answer_does_not_spoil_the_chunk_in_hand(start_worker: StartWorker) -> None:
    # The rest of the chunk is read after the answer, from a text that the answer must not have overwritten.
    sidecar, worker = start_worker(DOES)
    broken = (b"{", b"1")
    cases = [does("said = len(llm('hi'))"), broken, does("said = 'c'"), broken, does("said = 'e'")]
    for number in (1, 2):
        worker.send_chunk(number, cases)
        calls(sidecar, worker, number)
        worker.answer(number, "x" * 1_000_000)
        assert [text[:7] for text in finish(sidecar, worker, number)] == ["1000000", "input i", "c", "input i", "e"]


def test_coroutines_ask_at_once_and_the_loop_goes_on(start_worker: StartWorker, start_method: str) -> None:
    sidecar, worker = start_worker(AWAITS, start_method)
    action = """
ticks = 0
async def tick():
    nonlocal ticks
    while True:
        await asyncio.sleep(0)
        ticks += 1
ticking = asyncio.create_task(tick())
said = await asyncio.gather(*(llm.aio(str(n), input="x") for n in range(200)))
before = ticks
last = await llm.aio("last")
ticking.cancel()
return [int(one) for one in said] == list(range(200)), last, last.model, ticks > before
"""
    worker.send_chunk(1, [does(action), does("return await llm.aio('again')")])
    asked = calls(sidecar, worker, 200)
    for call in reversed(asked):
        assert call["messages"][1] == {"role": "user", "content": "x"}
        worker.answer(call["call"], call["messages"][0]["content"])
    calls(sidecar, worker, 201)
    worker.answer(201, "bye", model="gpt")
    calls(sidecar, worker, 202)
    worker.answer(202, "hello again")
    assert finish(sidecar, worker) == ["(True, 'bye', 'gpt', True)", "hello again"]
    assert [row.text for row in sidecar.score(worker, [does("return 'next'")], number=2)] == ["next"]


def test_a_coroutine_may_give_up_and_others_go_on(start_worker: StartWorker) -> None:
    sidecar, worker = start_worker(AWAITS)
    action = """
given_up = asyncio.create_task(llm.aio("slow"))
fails = asyncio.create_task(llm.aio("fails"))
other = asyncio.create_task(llm.aio("other"))
await asyncio.sleep(0)
given_up.cancel()
try:
    await fails
except ModelError as error:
    return str(error), await other, given_up.cancelled(), llm("without await"), threading.active_count()
"""
    worker.send_chunk(1, [does(action)])
    calls(sidecar, worker, 3)
    worker.answer(1, "nobody wants it")
    worker.refuse(2, "no")
    worker.answer(3, "yes")
    calls(sidecar, worker, 4)
    worker.answer(4, "now")
    (text,) = finish(sidecar, worker)
    assert text.startswith("('no', 'yes', True, 'now', ")


def test_a_call_blocks_its_thread_while_a_coroutine_waits_too(start_worker: StartWorker) -> None:
    sidecar, worker = start_worker(AWAITS)
    action = "waits = asyncio.create_task(llm.aio('a'))\nawait asyncio.sleep(0)\nreturn llm('b'), await waits"
    worker.send_chunk(1, [does(action)])
    calls(sidecar, worker, 2)
    worker.answer(2, "B")
    worker.answer(1, "A")
    assert finish(sidecar, worker) == ["('B', 'A')"]


def test_what_metrics_break_in_json_breaks_no_answer(start_worker: StartWorker) -> None:
    sidecar, worker = start_worker(DOES)
    worker.send_chunk(
        1, [does("json.loads = json.dumps = json.JSONDecoder = json.JSONEncoder = None\nsaid = llm('x')")]
    )
    calls(sidecar, worker)
    worker.answer(1, "fine")
    assert finish(sidecar, worker) == ["fine"]


@pytest.mark.parametrize("waits", ["llm('hi')", "asyncio.run(llm.aio('hi'))"])
def test_an_interrupt_reaches_a_metric_that_waits_for_a_model(
    start_worker: StartWorker, start_method: str, waits: str
) -> None:
    sidecar, worker = start_worker(DOES, start_method)
    worker.send_chunk(1, [does(f"try:\n    {waits}\nfinally:\n    print('cleaned up')"), does("print('never')")])
    calls(sidecar, worker)
    sidecar.signal(1)
    assert (sidecar.ended(1)["exit_code"], sidecar.ended(1)["signal"]) == (0, None)
    sidecar.until(lambda: not worker.is_open)
    assert worker.printed() == "cleaned up\n"


@pytest.mark.parametrize("others", ["pass", "threading.Thread(target=llm, args=('other',), daemon=True).start()"])
def test_an_alarm_of_the_metric_ends_its_wait_and_leaves_the_connection_whole(
    start_worker: StartWorker, others: str
) -> None:
    sidecar, worker = start_worker(DOES)
    action = f"""
{others}
def fire(*_): raise TimeoutError("too late")
signal.signal(signal.SIGALRM, fire)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    llm("slow")
except TimeoutError as error:
    said = [str(error), llm("again")]
"""

    def asked_again() -> list[int]:
        return [call["call"] for call in worker.of_type("model_call") if call["messages"][0]["content"] == "again"]

    def has_asked(times: int) -> bool:
        return len(asked_again()) == times

    for number in range(1, 4):
        worker.send_chunk(number, [does(action)])
        sidecar.until(functools.partial(has_asked, number))
        # The late answers come first.
        for call in range(1, asked_again()[-1]):
            worker.answer(call, "late")
        worker.answer(asked_again()[-1], "in time")
        assert finish(sidecar, worker, number) == ["['too late', 'in time']"]


def test_alarms_at_any_moment_lose_no_answer(start_worker: StartWorker) -> None:
    source = """
import random, signal, threading
from skynet import llm
class Late(Exception): pass
def fire(*_): raise Late
signal.signal(signal.SIGALRM, fire)
def ask(count):
    for n in range(count):
        name = f"{threading.get_ident()}-{n}"
        assert llm(name) == name
def score(input, output):
    threads = [threading.Thread(target=ask, args=(200,)) for _ in range(output)]
    for thread in threads: thread.start()
    known = late = 0
    for n in range(400):
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 8e-4))
                known += llm(str(n)) == str(n)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Late:
            late += 1
    for thread in threads: thread.join()
    return known + late, {"feedback": ""}
"""
    sidecar, worker = start_worker(source)
    answered = 0

    def has_finished() -> bool:
        nonlocal answered
        for call in worker.of_type("model_call")[answered:]:
            worker.answer(call["call"], call["messages"][0]["content"])
            answered += 1
        return worker.has_finished(1)

    worker.send_chunk(1, [(b"{}", b"0"), (b"{}", b"3")])
    sidecar.until(has_finished, "for all answers")
    # One may be known and late.
    assert [row.kind for row in worker.all_rows(1)] == [SCORE] * 2
    assert all(row.value >= 400 for row in worker.all_rows(1))


def test_the_end_of_the_sidecar_wakes_everybody(start_worker: StartWorker, tmp_path: Path) -> None:
    sidecar, worker = start_worker(DOES)
    log = tmp_path / "log"
    action = f"""
def ask():
    try:
        llm("hi")
    except ModelError as error:
        with open({str(log)!r}, "a") as file: file.write(str(error) + "\\n")
threads = [threading.Thread(target=ask) for _ in range(4)]
for thread in threads: thread.start()
ask()
for thread in threads: thread.join()
ask()
"""
    worker.send_chunk(1, [does(action)])
    calls(sidecar, worker, 5)
    # Its connection alone: the rest of the sidecar is still there.
    sidecar.peers.remove(worker)
    worker.sock.shutdown(1)
    worker.sock.close()
    sidecar.ended(1)
    lines = log.read_text().splitlines()
    assert len(lines) == 6
    assert set(lines) == {"the sidecar is gone, and with it the way to the model; nothing can be done here"}


def test_a_worker_that_has_asked_leaves_when_its_connection_ends(start_worker: StartWorker, start_method: str) -> None:
    sidecar, worker = start_worker(DOES, start_method)
    worker.send_chunk(1, [does("llm('hi')")])
    calls(sidecar, worker)
    worker.answer(1, "x")
    finish(sidecar, worker)
    sidecar.peers.remove(worker)
    worker.sock.close()
    assert (sidecar.ended(1)["exit_code"], sidecar.ended(1)["signal"]) == (0, None)


def test_an_alarm_that_ends_a_wait_is_told_with_where_the_metric_was(start_worker: StartWorker) -> None:
    source = """
import signal
from skynet import llm
def fire(*_): raise TimeoutError("too late")
signal.signal(signal.SIGALRM, fire)
def score(input, output):
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    return llm("slow")
"""
    sidecar, worker = start_worker(source)
    (row,) = sidecar.score(worker, [does("")])
    assert (row.kind, row.text) == (METRIC_EXCEPTION, "TimeoutError: too late (metric.py, line 4)")
    assert 'return llm("slow")' in row.detail


def test_a_process_that_the_metric_forks_is_told_that_it_cannot_ask(start_worker: StartWorker) -> None:
    sidecar, worker = start_worker(DOES)
    action = """
waits = threading.Thread(target=llm, args=("parent",))
waits.start()
while not skynet.metric_call.current.models._inbox._receivers: time.sleep(0.001)
reader, writer = os.pipe()
if not os.fork():
    try:
        llm("child")
    except RuntimeError as error:
        os.write(writer, str(error).encode())
    os._exit(0)
os.wait()
said = os.read(reader, 1000).decode()
print("forked")
waits.join()
"""
    worker.send_chunk(1, [does(action)])
    sidecar.until(lambda: "forked" in worker.printed())
    worker.answer(1, "x")
    (text,) = finish(sidecar, worker)
    assert text.startswith("skynet.llm() was called in a process that the metric forked, which has no connection")


def test_a_call_while_loading_says_where_to_call(
    start_sidecar: Callable[..., FakeSidecar], write_metric: WriteMetric
) -> None:
    sidecar = start_sidecar()
    loaded = sidecar.configure(write_metric("from skynet import llm\nllm('warm up')\ndef score(i, o): pass"))
    (problem,) = loaded["metric"]["problems"]
    assert problem["message"].startswith("RuntimeError: skynet.llm() was called while the metric is being loaded")
    assert problem["message"].endswith("call it within score (metric.py, line 2)")


def test_run_code_is_told_where_its_models_are(start_runs: StartRuns) -> None:
    sidecar = start_runs("from skynet import llm\ndef run(artifact, input): return llm('hi')")
    row = sidecar.run(1, "x")
    assert row.kind == METRIC_EXCEPTION
    assert row.text.startswith("RuntimeError: skynet.llm() is for metrics; run code asks models with any OpenAI client")


def test_outside_a_metric_it_says_so() -> None:
    with pytest.raises(RuntimeError, match=r"skynet\.llm\(\) works while skynet-scorer calls the metric only"):
        skynet.llm("hi")
    with pytest.raises(RuntimeError, match="which this is not"):
        skynet.llm.aio("hi").send(None)


def test_images_go_with_the_user_message(start_worker: StartWorker, tmp_path: Path) -> None:
    sidecar, worker = start_worker(DOES)
    (tmp_path / "a.gif").write_bytes(b"GIF89a")
    action = f"llm('look', images=[b'\\x89PNG\\r\\n\\x1a\\n', {str(tmp_path / 'a.gif')!r}])"
    worker.send_chunk(1, [does(action), does("llm('be strict', input='this', images='https://a/b.png')")])
    calls(sidecar, worker)
    worker.answer(1, "x")
    first, second = calls(sidecar, worker, 2)
    worker.answer(2, "x")
    finish(sidecar, worker)
    assert first["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
                {"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lGODlh"}},
            ],
        }
    ]
    picture = {"type": "image_url", "image_url": {"url": "https://a/b.png"}}
    assert second["messages"] == [
        {"role": "system", "content": "be strict"},
        {"role": "user", "content": [{"type": "text", "text": "this"}, picture]},
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("1", "TypeError: prompt must be a str, not int; give text"),
        ("'p', {'a': 1}", "TypeError: input must be a str, not dict; give text, such as json.dumps of it"),
        ("'p', model=3", "TypeError: model must be a str, not int; give text"),
        ("'p', temperature=float('nan')", "ValueError: temperature is nan, which is not finite; give a finite number"),
        ("'p', temperature='0'", "ValueError: temperature is of type str, not a number; give a finite number"),
        ("'p', max_tokens=0", "ValueError: max_tokens is 0; it must be 1 or more"),
        ("'p', max_tokens=1.5", "TypeError: max_tokens must be an int, not float"),
        ("'p', timeout=0", "ValueError: timeout is 0; it must be more than 0"),
        ("'p', response_format='json'", "TypeError: response_format must be a dict as in OpenAI's chat completions"),
        ("'p', response_format={'a': {1}}", "TypeError: response_format cannot be sent as JSON: Object of type set"),
        ("'p', images=b'BM'", "ValueError: an image of 2 bytes begins with b'BM', which is neither PNG, JPEG"),
        ("'p', images=[3]", "TypeError: an image is of type int; give bytes, a path, an http(s) or data URL"),
        ("'p', images='/none.png'", "FileNotFoundError: [Errno 2] No such file or directory"),
    ],
)
def test_arguments_that_cannot_be_sent_are_named(start_worker: StartWorker, arguments: str, message: str) -> None:
    sidecar, worker = start_worker(DOES)
    (row,) = sidecar.score(worker, [does(f"llm({arguments})")])
    assert (row.kind, row.text[: len(message)]) == (METRIC_EXCEPTION, message)
    assert worker.of_type("model_call") == []


def test_a_large_image_arrives_whole_while_others_print(start_worker: StartWorker) -> None:
    sidecar, worker = start_worker(DOES)
    action = """
printing = threading.Thread(target=lambda: [print("x" * 1000) for _ in range(500)])
printing.start()
said = llm("look", images=b"GIF89a" + bytes(5_000_000))
printing.join()
"""
    worker.send_chunk(1, [does(action)])
    (call,) = calls(sidecar, worker)
    assert len(call["messages"][0]["content"][1]["image_url"]["url"]) == 22 + 4 * (5_000_008 // 3)
    worker.answer(1, "seen")
    assert finish(sidecar, worker) == ["seen"]
    assert worker.printed() == ("x" * 1000 + "\n") * 500


def test_importing_takes_the_standard_library_alone() -> None:
    code = """
import sys
before = set(sys.modules)
from skynet import llm
new = {name.partition(".")[0] for name in set(sys.modules) - before} - {"skynet"}
slow = {"asyncio", "json", "dataclasses", "inspect"}
print(sorted(new - set(sys.stdlib_module_names) - {"_frozen_importlib"}), sorted(new & slow))
"""
    if sys.version_info < (3, 10):
        code = code.replace(
            "set(sys.stdlib_module_names)",
            "{n for n in new if 'site-packages' not in str(getattr(sys.modules[n], '__file__', ''))}",
        )
    # Without site: whatever this environment imports at its start says nothing of the package.
    ended = subprocess.run(
        [sys.executable, "-S", "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "python")},
    )
    assert ended.stdout == "[] []\n"
