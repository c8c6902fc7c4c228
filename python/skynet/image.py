"""Images to show a model."""

from __future__ import annotations

import binascii
import io
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol, Union

    class SavableImage(Protocol):
        """What a PIL image can do; PIL itself is never imported."""

        def save(self, fp: io.BytesIO, format: str) -> object: ...

    ImageSource = Union[bytes, bytearray, memoryview, str, os.PathLike[str], "Image", SavableImage]

# How files of each type begin, in order of trial.
BEGINNINGS = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))

ACCEPTED = "bytes, a path, an http(s) or data URL, a PIL image, a skynet.Image, or a list of these"


class Image:
    """An image to show a model: `Image(data)`, `Image("plot.png")` or `Image("https://…")`.

    Bytes and files are PNG, JPEG, GIF or WebP, unless `media_type`, such as `"image/avif"`, says otherwise. `url` is
    the `https:` or `data:` URL that the model gets. Raises `OSError` for a file that cannot be read, `ValueError` for
    bytes of a type that is not known.
    """

    __slots__ = ("url",)

    url: str

    def __init__(
        self, source: bytes | bytearray | memoryview | str | os.PathLike[str], media_type: str | None = None
    ) -> None:
        if isinstance(source, str) and source[:8].lower().startswith(("http://", "https://", "data:")):
            self.url = source
        elif isinstance(source, (bytes, bytearray, memoryview)):
            self.url = _data_url(bytes(source), media_type)
        elif isinstance(source, (str, os.PathLike)):
            with open(source, "rb") as file:
                self.url = _data_url(file.read(), media_type)
        else:
            raise TypeError(f"an image cannot be made from a value of type {type(source).__name__}; give {ACCEPTED}")

    def __repr__(self) -> str:
        shown = self.url if len(self.url) <= 60 else self.url[:60] + "…"
        return f"Image({shown!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Image) and other.url == self.url

    def __hash__(self) -> int:
        return hash(self.url)


def image_urls(images: ImageSource | Sequence[ImageSource] | None) -> list[str]:
    """The URLs of one image or of a list of them; none of `None`. Raises `OSError`, `TypeError`, `ValueError`."""
    if images is None:
        return []
    if isinstance(images, (list, tuple)):
        return [_url(image) for image in images]
    return [_url(images)]


def _url(image: object) -> str:
    if isinstance(image, Image):
        return image.url
    if isinstance(image, (bytes, bytearray, memoryview, str, os.PathLike)):
        return Image(image).url
    save = getattr(image, "save", None)
    if not callable(save):
        raise TypeError(f"an image is of type {type(image).__name__}; give {ACCEPTED}")
    saved = io.BytesIO()
    save(saved, format="PNG")
    return _data_url(saved.getvalue(), None)


def _data_url(data: bytes, media_type: str | None) -> str:
    encoded = binascii.b2a_base64(data, newline=False).decode()
    return f"data:{media_type or _media_type(data)};base64,{encoded}"


def _media_type(data: bytes) -> str:
    for beginning, media_type in BEGINNINGS:
        if data.startswith(beginning):
            return media_type
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    raise ValueError(
        f"an image of {len(data)} bytes begins with {data[:8]!r}, which is neither PNG, JPEG, GIF nor WebP; "
        "convert it, or say what it is with skynet.Image(data, media_type=…)"
    )
