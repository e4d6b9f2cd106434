"""A trained policy: dense layers and the normalisation of their input, as a file of arrays.

The file (.npz) has ``mean`` and ``scale`` of observations [n]; ``weight0``, ``bias0``, ``weight1``, …; ``action_offset``
and ``action_scale`` [action_size]; and, as ``task_…``, the settings of the motion task of its training. The activation is
max(0, x)::

    action = action_offset + action_scale * (W2 relu(W1 relu(W0 ((x - mean) * scale) + b0) + b1) + b2)
"""

import builtins
import zipfile
import zlib

import numpy as np

from ..errors import ValueError, ordinary_file  # noqa: A004 (the C++ name)
from ..files import complete

# Conditions on the numbers of a file: in words, and as a test.
_FINITE = ("finite", np.isfinite)
_POSITIVE = ("positive and finite", lambda x: (x > 0) & np.isfinite(x))
_NOT_NEGATIVE = ("at least 0 and finite", lambda x: (x >= 0) & np.isfinite(x))
_LIMIT = ("at least 0", lambda x: x >= 0)
_FLAG = ("0 or 1", lambda x: (x == 0) | (x == 1))
_COUNT = ("whole, at least 1", lambda x: (x >= 1) & (x == np.floor(x)) & (x < 2**31))
#: Settings of a task (MotionTask.settings): shapes, with "n" for any size, and ranges.
_TASK = {"kp": (("n",), _NOT_NEGATIVE), "kd": (("n",), _NOT_NEGATIVE), "force_limit": (("n",), _LIMIT),
         "joint_weight": (("n",), _NOT_NEGATIVE), "end_effectors": (("n", 4), _FINITE), "feet": (("n",), _COUNT),
         "reward": ((1,), _FLAG), "weights": ((5,), _NOT_NEGATIVE), "control_dt": ((1,), _POSITIVE),
         "substeps": ((1,), _COUNT), "phase": ((1,), _FLAG), "follow_root": ((1,), _FLAG),
         "relative_action": ((1,), _FLAG)}
_LATER = {"reward"}  # settings that older files lack


def _shape(sizes):
    return "[" + ", ".join(map(str, sizes)) + "]"


class _File:
    """Reads the arrays of a policy file and refuses invalid ones by name."""

    def __init__(self, path):
        self.path = path
        damaged = (builtins.ValueError, EOFError, KeyError, MemoryError, NotImplementedError, RuntimeError,
                   zipfile.BadZipFile, zlib.error)
        try:
            file = np.load(ordinary_file(path), allow_pickle=False)
        except damaged:
            file = None
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError(f"{path}: is not an .npz file or is damaged, expected a file written by Policy.save()")
        self.arrays = {}
        with file:
            for name in file.files:
                try:
                    self.arrays[name] = np.asarray(file[name])
                except damaged as error:
                    raise ValueError(f"{path}: {name}: cannot be read ({error}), expected numbers") from None

    def real(self, name, shape, kind=_FINITE):
        """An array of this shape ("n" stands for any size) with numbers that meet the condition."""
        if name not in self.arrays:
            raise ValueError(f"{self.path}: {name}: is missing, expected float32 or float64 {_shape(shape)}")
        values = self.arrays[name]
        if values.dtype not in (np.float32, np.float64):
            raise ValueError(f"{self.path}: {name}: is of {values.dtype}, expected float32 or float64")
        if values.ndim != len(shape) or any(want not in ("n", got) for got, want in zip(values.shape, shape)):
            raise ValueError(f"{self.path}: {name}: is {_shape(values.shape)}, expected {_shape(shape)}")
        wrong = values[~kind[1](values)]
        if wrong.size:
            raise ValueError(f"{self.path}: {name}: has {wrong[0]:g}, expected numbers that are {kind[0]}")
        return values

    def layers(self):
        """(weight, bias) of each layer, with matching sizes."""
        out = []
        while not out or {f"weight{len(out)}", f"bias{len(out)}"} & self.arrays.keys():
            names = f"weight{len(out)}", f"bias{len(out)}"
            weight, bias = self.real(names[0], ("n", "n")), self.real(names[1], ("n",))
            inputs = out[-1][1].size if out else self._observed(weight)
            if weight.shape != (bias.size, inputs) or not weight.size:
                raise ValueError(f"{self.path}: {names[0]}: is {_shape(weight.shape)} and {names[1]} "
                                 f"{_shape(bias.shape)}, expected [n, {inputs}] and [n]")
            out.append((weight.astype(np.float64), bias.astype(np.float64)))
        return out

    def _observed(self, weight):
        """Number of observations: the size of mean and scale where they agree, otherwise the input size of the first layer."""
        mean, scale = (self.arrays.get(name, np.zeros(0)).shape for name in ("mean", "scale"))
        return mean[0] if mean == scale and len(mean) == 1 and mean != (0,) else weight.shape[1]

    def task(self):
        """Settings of the task; they may be absent."""
        out = {name[5:]: values for name, values in self.arrays.items() if name.startswith("task_")}
        if out.keys() & _TASK.keys():
            for name, (shape, kind) in _TASK.items():
                if name in out or name not in _LATER:
                    self.real(f"task_{name}", shape, kind)
            self.real("task_kd", out["kp"].shape)
            if out["force_limit"].size:
                self.real("task_force_limit", out["kp"].shape, _LIMIT)
            if not out["weights"].any():
                raise ValueError(f"{self.path}: task_weights: are all 0, expected at least one positive weight")
            bodies = out["end_effectors"][:, 0]
            for body in bodies[~_COUNT[1](bodies)]:
                raise ValueError(f"{self.path}: task_end_effectors: has body {body:g}, expected one {_COUNT[0]}")
        return out


class Policy:
    """A deterministic policy: the mean of the trained distribution."""

    def __init__(self, mean, scale, layers, action_offset, action_scale, task=None):
        self.mean, self.scale, self.layers = mean, scale, layers
        self.action_offset, self.action_scale, self.task = action_offset, action_scale, dict(task or {})

    def __repr__(self):
        sizes = [self.layers[0][0].shape[1], *(bias.size for _, bias in self.layers)]
        return f"<tarsus.learn.Policy {' to '.join(map(str, sizes))}>"

    def __call__(self, observation):
        """Actions [..., action_size] of observations [..., observation_size]."""
        size = self.layers[0][0].shape[1]
        if np.shape(observation)[-1:] != (size,):
            raise ValueError(f"observation: is of shape {np.shape(observation)}, expected {size} numbers per observation, as in the task "
                             "that the policy was trained for")
        x = (observation - self.mean) * self.scale
        for weight, bias in self.layers[:-1]:
            x = np.maximum(x @ weight.T + bias, 0)
        weight, bias = self.layers[-1]
        return self.action_offset + self.action_scale * (x @ weight.T + bias)

    def save(self, path):
        """Writes the file. Weights are in single precision, as in training."""
        if str(path).lower().endswith(".onnx"):
            raise ValueError(f"path: is {path}, expected a file that does not end in .onnx: save_onnx() writes ONNX")
        observed, actions = self.layers[0][0].shape[1], self.layers[-1][1].size
        arrays = {name: np.broadcast_to(np.asarray(getattr(self, name), np.float64), (size,)) for name, size in (
            ("mean", observed), ("scale", observed), ("action_offset", actions), ("action_scale", actions))}
        for i, (weight, bias) in enumerate(self.layers):
            arrays[f"weight{i}"], arrays[f"bias{i}"] = weight.astype(np.float32), bias.astype(np.float32)
        with complete(path) as part, open(part, "wb") as file:  # under the exact name: savez adds an ending to a name without one
            np.savez_compressed(file, **arrays, **{f"task_{key}": value for key, value in self.task.items()})

    def save_onnx(self, path):
        """Writes the policy as an ONNX graph in single precision, from "observation" [worlds, n] to "action" [worlds,
        action_size]. Needs the package onnx."""
        if str(path).lower().endswith(".npz"):
            raise ValueError(f"path: is {path}, expected a file that does not end in .npz: save() writes .npz")
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
        outputs = helper.make_tensor_value_info("action", TensorProto.FLOAT, ["worlds", self.layers[-1][1].size])
        model = helper.make_model(helper.make_graph(nodes, "policy", [inputs], [outputs], weights), producer_name="tarsus",
                                  ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
        onnx.checker.check_model(model, full_check=True)
        with complete(path) as part:
            part.write_bytes(model.SerializeToString())

    @classmethod
    def load(cls, path):
        """Reads a file. Raises InputError if it is missing or not an ordinary file, and ValueError naming the file and the array
        that is missing, has another type or shape, or has numbers that are not finite or out of range. It does not check that a
        model has the bodies of the settings; the task does."""
        file = _File(path)
        layers = file.layers()
        observed, actions = layers[0][0].shape[1], layers[-1][1].size
        return cls(file.real("mean", (observed,)), file.real("scale", (observed,), _POSITIVE), layers,
                   file.real("action_offset", (actions,)), file.real("action_scale", (actions,)), file.task())
