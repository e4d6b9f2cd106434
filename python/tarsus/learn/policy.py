"""A trained policy: dense layers and what normalises their input, as a file of arrays.

The file (.npz) has ``mean`` and ``scale`` of observations [n]; ``weight0``, ``bias0``, ``weight1``, …; ``action_offset`` and
``action_scale`` [action_size]; and, as ``task_…``, the settings of the motion task that it was trained for. Between layers is max(0, x)::

    action = action_offset + action_scale * (W2 relu(W1 relu(W0 ((x - mean) * scale) + b0) + b1) + b2)
"""

import numpy as np

from ..errors import ValueError  # noqa: A004 (the C++ name)


class Policy:
    """Deterministic: the mean of what was trained."""

    def __init__(self, mean, scale, layers, action_offset, action_scale, task=None):
        self.mean, self.scale, self.layers = mean, scale, layers
        self.action_offset, self.action_scale, self.task = action_offset, action_scale, dict(task or {})

    def __call__(self, observation):
        """Actions [..., action_size] of observations [..., observation_size]."""
        size = self.layers[0][0].shape[1]
        if np.shape(observation)[-1:] != (size,):
            raise ValueError(f"observation: is of shape {np.shape(observation)}, expected {size} numbers each, as of the task "
                             "that the policy was trained for")
        x = (observation - self.mean) * self.scale
        for weight, bias in self.layers[:-1]:
            x = np.maximum(x @ weight.T + bias, 0)
        weight, bias = self.layers[-1]
        return self.action_offset + self.action_scale * (x @ weight.T + bias)

    def save(self, path):
        """Writes the file. Weights are single precision, as they were trained."""
        arrays = {"mean": self.mean, "scale": self.scale, "action_offset": self.action_offset, "action_scale": self.action_scale}
        for i, (weight, bias) in enumerate(self.layers):
            arrays[f"weight{i}"], arrays[f"bias{i}"] = weight.astype(np.float32), bias.astype(np.float32)
        np.savez_compressed(path, **arrays, **{f"task_{key}": value for key, value in self.task.items()})

    def save_onnx(self, path):
        """Writes the same as an ONNX graph in single precision: "observation" [worlds, n] to "action" [worlds, action_size].
        Needs the package onnx."""
        import onnx
        from onnx import TensorProto, helper, numpy_helper

        nodes, weights, last = [], [], "observation"

        def node(operation, *arrays, **attributes):
            nonlocal last
            names = [f"{operation.lower()}{len(nodes)}_{i}" for i in range(len(arrays))]
            weights.extend(numpy_helper.from_array(np.asarray(a, np.float32), name) for a, name in zip(arrays, names))
            nodes.append(helper.make_node(operation, [last, *names], [f"x{len(nodes)}"], **attributes))
            last = f"x{len(nodes) - 1}"

        node("Sub", self.mean)
        node("Mul", self.scale)
        for i, (weight, bias) in enumerate(self.layers):
            if i:
                node("Relu")
            node("Gemm", weight, bias, transB=1)
        node("Mul", self.action_scale)
        node("Add", self.action_offset)
        nodes[-1].output[0] = "action"
        inputs = helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["worlds", self.layers[0][0].shape[1]])
        outputs = helper.make_tensor_value_info("action", TensorProto.FLOAT, ["worlds", len(self.action_scale)])
        model = helper.make_model(helper.make_graph(nodes, "policy", [inputs], [outputs], weights), producer_name="tarsus",
                                  ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, str(path))

    @classmethod
    def load(cls, path):
        with np.load(path, allow_pickle=False) as file:
            layers = []
            while f"weight{len(layers)}" in file:
                layers.append(tuple(file[f"{part}{len(layers)}"].astype(np.float64) for part in ("weight", "bias")))
            task = {key[5:]: file[key] for key in file.files if key.startswith("task_")}
            return cls(file["mean"], file["scale"], layers, file["action_offset"], file["action_scale"], task)
