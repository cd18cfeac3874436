"""Models of Keras."""

from __future__ import annotations

from tests.conformance.models import from_keras
from tests.conformance.models.network import Network, floats, ids, uniform


def keras_app(name, n=96, **options):
    return Network(
        name,
        "keras",
        "keras",
        from_keras.application(name, input_shape=(n, n, 3), **options),
        {"x": uniform("b", n, n, 3)},
        ({"b": 2}, {"b": 1}),
    )


NETWORKS = [
    keras_app("MobileNet", alpha=0.25),
    keras_app("MobileNetV2", alpha=0.35),
    keras_app("MobileNetV3Small", alpha=0.75, include_preprocessing=False),
    keras_app("DenseNet121"),
    keras_app("EfficientNetB0"),
    keras_app("EfficientNetV2B0"),
    keras_app("NASNetMobile"),
    keras_app("ResNet50"),
    keras_app("ResNet50V2"),
    keras_app("InceptionV3"),
    keras_app("InceptionResNetV2"),
    keras_app("Xception"),
    keras_app("ConvNeXtTiny"),
    keras_app("VGG16"),
    Network(
        "keras LSTM, GRU",
        "keras",
        "keras",
        from_keras.imported(from_keras.recurrent),
        {"x": ids(50, "b", 12)},
        ({"b": 2}, {"b": 1}),
    ),
    Network(
        "keras ConvLSTM2D",
        "keras",
        "keras",
        from_keras.imported(from_keras.conv_lstm),
        {"x": floats("b", 4, 16, 16, 3)},
        ({"b": 2}, {"b": 1}),
    ),
    Network(
        "keras transformer",
        "keras",
        "keras",
        from_keras.imported(from_keras.transformer),
        {"x": ids(50, "b", 12)},
        ({"b": 2}, {"b": 1}),
    ),
]
