"""The frames, refusals and proofs of `spec/vectors`, replayed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast import errors, frames, types
from holdfast._link import SAFE, is_safe, read
from holdfast._wire import fault_of
from holdfast.identity import Identity, act_bytes, recorded

SPEC = Path(__file__).resolve().parents[3] / "spec"
VECTORS = SPEC / "vectors"
SCHEMA = json.loads((SPEC / "schema.json").read_text())


def load(name: str) -> Any:
    return json.loads((VECTORS / name).read_text())


@pytest.mark.parametrize("vector", load("frames.json"), ids=lambda vector: vector["name"])
def test_a_frame_is_read_and_written_as_it_stands(vector: dict[str, Any]) -> None:
    whole = bytes.fromhex(vector["hex"])
    decoded = frames.decode_stream(whole + b"next")
    assert decoded is not None
    message, taken = decoded
    assert taken == len(whole)
    assert message.to_json() == vector["message"]
    assert message.data == bytes.fromhex(vector["bytes"])
    assert whole[4] == vector["kind"]
    # On a WebSocket: the same without its length.
    assert frames.decode(whole[4:]) == message
    again = frames.encode_stream(message)
    assert frames.decode_stream(again) == (message, len(again))
    assert (again[4], len(again)) == (vector["kind"], len(whole))
    for cut in (0, 3, 4, len(whole) // 2, len(whole) - 1):
        assert frames.decode_stream(whole[:cut]) is None


@pytest.mark.parametrize("vector", load("frames.json"), ids=lambda vector: vector["name"])
def test_what_a_frame_says_fits_our_types(vector: dict[str, Any]) -> None:
    message = vector["message"]
    if "error" in message:
        fault = fault_of(message["error"])
        data = message["error"]["data"]
        assert (fault.code, fault.message, fault.hint) == (data["code"], data["message"], data.get("hint", ""))
        assert fault.details == data.get("details")
        assert type(fault) is errors.BY_CODE[data["code"]]
    elif "method" in message:
        table = SCHEMA["operations" if "id" in message else "events"]
        name = table[message["method"]]["params"]["$ref"].rsplit("/", 1)[1]
        model = getattr(types, name)
        read_back = read(model, message["params"])
        assert read_back.model_dump(mode="json", by_alias=True, exclude_unset=True) == message["params"]
        assert not read_back.model_extra


def test_what_may_be_asked_twice_is_in_the_table() -> None:
    assert set(SCHEMA["operations"]) >= SAFE
    # What starts, types, ends or hands over is not, unless it carries an id of its own.
    assert not SAFE & {"session.new", "session.send", "session.end", "session.signal", "run.start", "turn.give"}
    assert is_safe("run.start", {"run": "run_1"}) and not is_safe("run.start", {"command": "x"})


def test_what_is_generated_is_fresh() -> None:
    generate = SPEC.parent / "sdk/python/generate.py"
    done = subprocess.run([sys.executable, generate, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_every_code_has_a_class_and_a_vector() -> None:
    told = {vector["message"]["error"]["data"]["code"] for vector in load("frames.json") if "error" in vector["message"]}
    assert told == set(errors.BY_CODE)


@pytest.mark.parametrize("vector", load("refused.json")["refused"], ids=lambda vector: vector["name"])
def test_what_is_no_message_is_refused(vector: dict[str, Any]) -> None:
    with pytest.raises(frames.FrameError) as refused:
        frames.decode_stream(bytes.fromhex(vector["hex"]), load("refused.json")["frame_bytes_max"])
    assert refused.value.why == vector["why"]


@pytest.mark.parametrize("vector", load("refused.json")["incomplete"], ids=lambda vector: vector["name"])
def test_a_beginning_needs_more_bytes(vector: dict[str, Any]) -> None:
    assert frames.decode_stream(bytes.fromhex(vector["hex"])) is None


def test_the_challenge_is_signed_as_the_host_reads_it() -> None:
    proofs = load("proofs.json")
    who = Identity(proofs["actor"]["handle"], bytes.fromhex(proofs["secret"]))
    assert who.actor == proofs["actor"]
    signed = who.challenge_bytes(proofs["identify"]["challenge"])
    assert signed.hex() == proofs["identify"]["bytes"]
    assert who.sign(signed) == proofs["identify"]["signature"]


@pytest.mark.parametrize("act", load("proofs.json")["acts"], ids=lambda act: act["doc"])
def test_an_act_is_signed_as_the_host_reads_it(act: dict[str, Any]) -> None:
    proofs = load("proofs.json")
    who = Identity(proofs["actor"]["handle"], bytes.fromhex(proofs["secret"]))
    ask, nonce = json.loads(act["ask"]), bytes.fromhex(act["nonce"])
    assert act_bytes(act["session"], ask, nonce).hex() == act["bytes"]
    assert who.prove(act["session"], ask, nonce) == {"nonce": act["nonce"], "signature": act["signature"]}


def test_a_long_command_is_signed_by_its_beginning_and_its_hash() -> None:
    long = [json.loads(act["ask"])["run"]["command"] for act in load("proofs.json")["acts"] if "[…]" in act["ask"]]
    assert long == [recorded("ä" * 3000)]
    assert recorded("a" * 4096) == "a" * 4096
