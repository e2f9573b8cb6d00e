"""Training workloads in plain torch, one file each. Importing this package does not import torch."""

#: name -> module:Class
ZOO: dict[str, str] = {
    "resnet18": "models_zoo.resnet18:ResNet18",
    "resnet50": "models_zoo.resnet50:ResNet50",
    "vgg16": "models_zoo.vgg16:Vgg16",
    "inception_v3": "models_zoo.inception_v3:InceptionV3",
    "bert": "models_zoo.bert:Bert",
    "gpt2": "models_zoo.gpt2:Gpt2",
    "deepspeech2": "models_zoo.deepspeech2:DeepSpeech2",
}
