from __future__ import annotations

import io
from pathlib import Path

import pytest

from skynet import Image
from skynet.image import image_urls

PNG = b"\x89PNG\r\n\x1a\n"


class Picture:
    """As PIL's do it."""

    def save(self, fp: io.BytesIO, format: str) -> None:
        assert format == "PNG"
        fp.write(PNG)


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG + b"x", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
    ],
)
def test_bytes_tell_what_they_are(data: bytes, media_type: str, tmp_path: Path) -> None:
    file = tmp_path / "image"
    file.write_bytes(data)
    for source in (data, bytearray(data), memoryview(data), file, str(file), Image(data)):
        (url,) = image_urls(source)
        assert url.startswith(f"data:{media_type};base64,")
    assert image_urls([data, file]) == [Image(data).url] * 2


def test_urls_stay_what_they_are() -> None:
    for url in ("https://a/b.png", "http://a/b", "HTTPS://A/B", "data:image/png;base64,AAAA"):
        assert image_urls(url) == [url] == image_urls((Image(url),))


def test_whatever_can_be_saved_is_saved() -> None:
    assert image_urls(Picture()) == ["data:image/png;base64,iVBORw0KGgo="]


def test_none_is_no_image() -> None:
    assert image_urls(None) == image_urls([]) == []


def test_a_type_may_be_given() -> None:
    assert Image(b"....ftypavif", media_type="image/avif").url == "data:image/avif;base64,Li4uLmZ0eXBhdmlm"


def test_images_are_values() -> None:
    assert Image(PNG) == Image(PNG) != Image("https://a/b.png")
    assert len({Image(PNG), Image(PNG)}) == 1
    assert repr(Image("https://a/b.png")) == "Image('https://a/b.png')"
    assert len(repr(Image(PNG + bytes(1000)))) < 80


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (3, TypeError, "an image is of type int; give bytes, a path, an http"),
        (b"", ValueError, "an image of 0 bytes begins with b'', which is neither PNG, JPEG, GIF nor WebP"),
        (b"RIFF1234WAVE", ValueError, "an image of 12 bytes begins with b'RIFF1234'"),
        ("nowhere.png", FileNotFoundError, "nowhere.png"),
    ],
)
def test_what_is_no_image_says_so(source: bytes, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message.replace("(", r"\(")):
        image_urls(source)
