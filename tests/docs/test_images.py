"""Evaluate the calls in the tables of docs/howto/images.md, for each library that is installed."""

import mmap
import re
from pathlib import Path

import numpy as np
import pytest

import arrayhub as ah

PAGE = (Path(__file__).resolve().parents[2] / "docs/howto/images.md").read_text()
CALLS = dict(re.findall(r"^\| ([^|]+) \| `([^`]+)` \|", PAGE, re.MULTILINE))


def make_sound(av):
    frame = av.AudioFrame("s16p", "stereo", 5)
    return {"x": frame.planes[0], "frame": frame}


def make_gray(pil):
    return {"x": pil.new("L", (6, 4))}


def make_image_of_qt(qt):
    return {"x": qt.QImage(6, 4, qt.QImage.Format.Format_RGB888)}


# The library, the names of the call, the shape of the result, and whether the results of two calls share memory.
OBJECTS = {
    "Pillow image": ("PIL.Image", lambda pil: {"x": pil.new("RGB", (6, 4))}, (4, 6, 3), True),
    "Pillow image above 16 MB (4 million pixels of mode RGB), of one bit per pixel, of mode LAB, or of one band and"
    " mapped from a file (BMP, TGA, SGI, IM)": ("PIL.Image", lambda pil: {"x": pil.new("1", (6, 4))}, (4, 6), False),
    "Pillow images of one file (TIFF, GIF, WebP, APNG)": ("PIL.Image", make_gray, (4, 6), False),
    "Pillow image, for torch": ("PIL.Image", lambda pil: {"x": pil.new("RGB", (6, 4))}, (4, 6, 3), False),
    "several Pillow images of one size, as a batch": ("PIL.Image", make_gray, (2, 4, 6), False),
    "OpenCV UMat": ("cv2", lambda cv2: {"x": cv2.UMat(np.ones((4, 6), "u1"))}, (4, 6), False),
    "PyAV video plane": ("av", lambda av: {"x": av.VideoFrame(6, 4, "gray").planes[0]}, (4, 6), True),
    "PyAV video frame": ("av", lambda av: {"x": av.VideoFrame(6, 4, "yuv420p")}, (4, 6, 3), False),
    "PyAV audio plane of 16-bit samples": ("av", make_sound, (5,), True),
    "PyAV audio frame": ("av", lambda av: {"x": av.AudioFrame("s16p", "stereo", 5)}, (2, 5), False),
    "PySide6 QImage": ("PySide6.QtGui", make_image_of_qt, (4, 20), True),
    "PyQt6 QImage": ("PyQt6.QtGui", make_image_of_qt, (4, 20), True),
    "pygame Surface": ("pygame", lambda pygame: {"x": pygame.Surface((6, 4), depth=32)}, (6, 4, 3), True),
    "mapped raw file": ("mmap", lambda module: {"x": mmap.mmap(-1, 48)}, (24,), True),
    "OpenCV": ("cv2", lambda cv2: {"x": ah.zeros((8, 8), "u1"), "cv2": cv2}, (4, 4), False),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_call_has_the_shape_and_the_memory_of_the_page(name):
    library, make, shape, shares = OBJECTS[name]
    names = {"arrayhub": ah, **make(pytest.importorskip(library))}
    first, second = (ah.asarray(eval(CALLS[name], dict(names))) for _ in range(2))
    assert first.shape == shape and (first.ptr == second.ptr) is shares
