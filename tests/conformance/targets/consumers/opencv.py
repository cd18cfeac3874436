"""OpenCV's `dnn` module, of version 4 or 5."""

import sys

import cv2
import numpy as np

model, given, results, wanted = sys.argv[1:5]
inputs = dict(np.load(given))
net = (
    cv2.dnn.readNetFromONNX(model, cv2.dnn.ENGINE_NEW) if hasattr(cv2.dnn, "ENGINE_NEW") else cv2.dnn.readNetFromONNX(model)
)
if hasattr(cv2.dnn, "ENGINE_NEW"):
    names = list(inputs)
    for name in names:
        net.setInput(inputs[name], name)
else:
    if len(inputs) > 1:
        net.setInputsNames(list(inputs))
    for name, array in inputs.items():
        net.setInput(array, name if len(inputs) > 1 else "")
names = wanted.split("|")
if sorted(names) != sorted(net.getUnconnectedOutLayersNames()):
    names = net.getUnconnectedOutLayersNames()  # in any order
outputs = net.forward(names)
# It returns None for an output without elements.
found = [np.zeros(0, np.float32) if array is None else array for array in outputs]
np.savez(results, **{str(index): array for index, array in enumerate(found)})
