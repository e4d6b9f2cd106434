"""Recordings for other programs: glTF (Blender, three.js), MCAP (robotics tools), XYZ and DCD (particles)."""

import json
import struct

import numpy as np

from .. import ValueError, element_mass  # noqa: A004 (the C++ name)
from ..files import complete
from .page import STEPS_A_SECOND

FLOAT, UINT = 5126, 5125
ARRAY_BUFFER, ELEMENT_BUFFER = 34962, 34963


# -- shapes as triangles --


def _revolve(profile, sides=24):
    """Vertices, normals and triangles of a profile [n][(radius, z, normal radius, normal z)] rotated about z."""
    profile = np.asarray(profile, float)
    angle = np.linspace(0, 2 * np.pi, sides + 1)
    c, s = np.cos(angle)[None, :], np.sin(angle)[None, :]
    ring = np.ones_like(c)
    r, z, nr, nz = (profile[:, k : k + 1] for k in range(4))
    vertices = np.stack([r * c, r * s, z * ring], -1).reshape(-1, 3)
    normals = np.stack([nr * c, nr * s, nz * ring], -1).reshape(-1, 3)
    triangles = []
    for i in range(len(profile) - 1):
        for k in range(sides):
            a = i * (sides + 1) + k
            b = a + sides + 1
            triangles += [(a, a + 1, b + 1), (a, b + 1, b)]
    triangles = np.array(triangles)
    corners = vertices[triangles]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    return vertices, normals, triangles[area > 1e-12 * max(np.abs(vertices).max() ** 2, 1e-300)]


def _capsule(radius, half):
    t = np.linspace(-np.pi / 2, 0, 9)
    low = [(radius * np.cos(a), -half + radius * np.sin(a), np.cos(a), np.sin(a)) for a in t]
    return _revolve(low + [(r, -z, n, -m) for r, z, n, m in low[::-1]])


def _cylinder(radius, half):
    return _revolve([(0, -half, 0, -1), (radius, -half, 0, -1), (radius, -half, 1, 0), (radius, half, 1, 0),
                     (radius, half, 0, 1), (0, half, 0, 1)])


def _box(x, y, z):
    vertices, normals, triangles = [], [], []
    for axis in range(3):
        for sign in (-1, 1):
            n = np.zeros(3)
            n[axis] = sign
            u, v = np.eye(3)[(axis + 1) % 3], np.eye(3)[(axis + 2) % 3]
            corners = [n + sign * a * u + b * v for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
            first = len(vertices)
            vertices += [corner * (x, y, z) for corner in corners]
            normals += [n] * 4
            triangles += [(first, first + 1, first + 2), (first, first + 2, first + 3)]
    return np.array(vertices), np.array(normals), np.array(triangles)


def triangles_of(shape, meshes):
    """(vertices, normals, triangles) of a shape in its own frame; None for an infinite shape."""
    size, kind = shape["size"], shape["type"]
    if kind == "box":
        return _box(*size)
    if kind == "capsule":
        return _capsule(size[0], size[1])
    if kind == "cylinder":
        return _cylinder(size[0], size[1])
    if kind in ("sphere", "ellipsoid"):
        scale = np.array(size if kind == "ellipsoid" else [size[0]] * 3, float)
        vertices, normals, triangles = _capsule(1.0, 0.0)
        normals = normals / scale
        return vertices * scale, normals / np.linalg.norm(normals, axis=1, keepdims=True), triangles
    if kind == "mesh":
        import base64

        mesh = meshes[shape["mesh"]]
        vertices = np.frombuffer(base64.b64decode(mesh["vertices"]), "<f4").reshape(-1, 3).astype(float)
        triangles = np.frombuffer(base64.b64decode(mesh["triangles"]), "<i4").reshape(-1, 3)
        corners = vertices[triangles]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        length = np.linalg.norm(normals, axis=1)
        keep = length > 0
        normals = normals[keep] / length[keep, None]
        return corners[keep].reshape(-1, 3), np.repeat(normals, 3, 0), np.arange(3 * keep.sum()).reshape(-1, 3)
    return None


# -- glTF 2.0 --


class _Buffer:
    def __init__(self):
        self.data, self.views, self.accessors = bytearray(), [], []

    def add(self, values, kind, component=FLOAT, target=None, bounds=False):
        values = np.ascontiguousarray(values, "<f4" if component == FLOAT else "<u4")
        view = {"buffer": 0, "byteOffset": len(self.data), "byteLength": values.nbytes}
        if target:
            view["target"] = target
        self.data += values.tobytes()
        self.views.append(view)
        accessor = {"bufferView": len(self.views) - 1, "componentType": component, "count": len(values), "type": kind}
        if bounds:
            flat = values.reshape(len(values), -1)
            accessor["min"], accessor["max"] = flat.min(0).tolist(), flat.max(0).tolist()
        self.accessors.append(accessor)
        return len(self.accessors) - 1


def _xyzw(orientation):
    o = np.asarray(orientation, float)
    o = o / np.linalg.norm(o, axis=-1, keepdims=True)
    return np.concatenate([o[..., 1:], o[..., :1]], -1)


def gltf(recording):
    """The recording as a binary glTF 2.0 file: a node for each body, its shapes below it, and one animation."""
    scene, buffer = recording.scene, _Buffer()
    worlds, nbody = scene.get("worlds", 1), len(scene["bodies"])
    materials, meshes, nodes = {}, {}, []
    # glTF has y up.
    nodes.append({"name": scene["name"] or "tarsus", "rotation": [-np.sqrt(0.5), 0, 0, np.sqrt(0.5)], "children": []})
    documents = {"meshes": [], "materials": []}

    def material(rgba):
        key = tuple(rgba)
        if key not in materials:
            linear = [((c + 0.055) / 1.055) ** 2.4 if c > 0.04045 else c / 12.92 for c in np.clip(rgba[:3], 0, 1)]
            entry = {"pbrMetallicRoughness": {"baseColorFactor": [*linear, float(np.clip(rgba[3], 0, 1))], "metallicFactor": 0.0,
                                              "roughnessFactor": 0.7}}
            if rgba[3] < 1:
                entry["alphaMode"] = "BLEND"
            documents["materials"].append(entry)
            materials[key] = len(documents["materials"]) - 1
        return materials[key]

    def mesh(shape):
        key = json.dumps([shape["type"], shape["size"], shape.get("mesh"), shape["rgba"]])
        if key not in meshes:
            found = triangles_of(shape, scene["meshes"])
            if found is None or len(found[2]) == 0:
                meshes[key] = None
            else:
                vertices, normals, triangles = found
                primitive = {"attributes": {"POSITION": buffer.add(vertices, "VEC3", target=ARRAY_BUFFER, bounds=True),
                                            "NORMAL": buffer.add(normals, "VEC3", target=ARRAY_BUFFER)},
                             "indices": buffer.add(triangles.reshape(-1), "SCALAR", UINT, ELEMENT_BUFFER),
                             "material": material(shape["rgba"])}
                documents["meshes"].append({"primitives": [primitive]})
                meshes[key] = len(documents["meshes"]) - 1
        return meshes[key]

    first = recording.frames[0].poses
    shapes_of = {}
    for shape in scene["shapes"]:
        if not shape.get("hidden") and shape["rgba"][3] > 0 and mesh(shape) is not None:
            shapes_of.setdefault(shape["body"], []).append(shape)
    animated = []
    for world in range(worlds):
        for body, information in enumerate(scene["bodies"]):
            row = world * nbody + body
            node = {"name": information["name"] or f"body {body}", "translation": first[row, :3].astype(float).tolist(),
                    "rotation": _xyzw(first[row, 3:]).tolist()}
            nodes.append(node)
            nodes[0]["children"].append(len(nodes) - 1)
            animated.append((len(nodes) - 1, row))
            for shape in shapes_of.get(body, []):
                nodes.append({"mesh": mesh(shape), "translation": [float(x) for x in shape.get("position", (0, 0, 0))],
                              "rotation": _xyzw(shape.get("orientation", (1, 0, 0, 0))).tolist()})
                node.setdefault("children", []).append(len(nodes) - 1)
    document = {"asset": {"version": "2.0", "generator": "tarsus"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": nodes,
                **{key: value for key, value in documents.items() if value}}
    moves = np.ptp(recording.poses, axis=0).max(axis=1) > 0
    if moves.any():  # glTF does not allow an empty animation
        document["animations"] = [_animation(recording, [(node, row) for node, row in animated if moves[row]], buffer)]
    if buffer.views:
        document.update(buffers=[{"byteLength": len(buffer.data)}], bufferViews=buffer.views, accessors=buffer.accessors)
    return _glb(document, bytes(buffer.data))


def _animation(recording, animated, buffer):
    times = recording.times - recording.times[0]
    time = buffer.add(times[:, None].astype("<f4"), "SCALAR", bounds=True)
    poses, samplers, channels = recording.poses, [], []
    for node, row in animated:
        track = poses[:, row]
        turn = _xyzw(track[:, 3:])
        # q and -q are the same orientation; viewers interpolate neighbours of the same sign the short way.
        signs = np.cumprod(np.where((turn[1:] * turn[:-1]).sum(1) < 0, -1.0, 1.0))
        turn[1:] *= signs[:, None]
        for path, values, kind in (("translation", track[:, :3], "VEC3"), ("rotation", turn, "VEC4")):
            samplers.append({"input": time, "output": buffer.add(values, kind), "interpolation": "LINEAR"})
            channels.append({"sampler": len(samplers) - 1, "target": {"node": node, "path": path}})
    return {"name": "run", "samplers": samplers, "channels": channels}


def _glb(document, data):
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    data += b"\0" * (-len(data) % 4)
    body = struct.pack("<II", len(text), 0x4E4F534A) + text
    if data:
        body += struct.pack("<II", len(data), 0x004E4942) + data
    return struct.pack("<III", 0x46546C67, 2, 12 + len(body)) + body


def write_gltf(path, recording):
    """A binary glTF 2.0 file (.glb) with the shapes and one animation."""
    data = gltf(recording)
    with complete(path) as part:
        part.write_bytes(data)


# -- MCAP --


def mcap_writer():
    try:
        from mcap.writer import Writer
    except ImportError as error:
        raise ImportError('MCAP files need the package "mcap": pip install mcap') from error
    return Writer


def write_mcap(path, recording):
    """An MCAP file with Foxglove's JSON messages: transforms of all bodies on /tf, the series on /series."""
    Writer = mcap_writer()
    scene = recording.scene
    vector = {"type": "object", "properties": {c: {"type": "number"} for c in "xyz"}}
    quaternion = {"type": "object", "properties": {c: {"type": "number"} for c in "xyzw"}}
    stamp = {"type": "object", "title": "time", "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}}}
    transform = {"type": "object", "title": "foxglove.FrameTransform", "properties": {
        "timestamp": stamp, "parent_frame_id": {"type": "string"}, "child_frame_id": {"type": "string"},
        "translation": vector, "rotation": quaternion}}
    transforms = {"type": "object", "title": "foxglove.FrameTransforms",
                  "properties": {"transforms": {"type": "array", "items": transform}}}
    series = {"type": "object", "title": "tarsus.Series",
              "properties": {name: {"type": "number"} for name, _ in recording.series}}
    names = [b["name"] or f"body {i}" for i, b in enumerate(scene["bodies"])]
    worlds = scene.get("worlds", 1)
    if worlds > 1:
        names = [f"{world}/{name}" for world in range(worlds) for name in names]
    with complete(path) as part, open(part, "wb") as file:
        writer = Writer(file)
        writer.start(library="tarsus")
        channels = {}
        for topic, schema in (("/tf", transforms), ("/series", series)):
            number = writer.register_schema(name=schema["title"], encoding="jsonschema", data=json.dumps(schema).encode())
            channels[topic] = writer.register_channel(topic=topic, message_encoding="json", schema_id=number)
        for frame in recording.frames:
            nanoseconds = round(frame.time * 1e9)
            when = {"sec": nanoseconds // 10**9, "nsec": nanoseconds % 10**9}
            poses = frame.poses.astype(float)
            rows = [{"timestamp": when, "parent_frame_id": "tarsus", "child_frame_id": name,
                     "translation": dict(zip("xyz", p[:3])), "rotation": dict(zip("wxyz", p[3:]))}
                    for name, p in zip(names, poses)]
            messages = [("/tf", {"transforms": rows}),
                        ("/series", {name: value for (name, _), value in zip(recording.series, frame.values)
                                     if np.isfinite(value)})]
            for topic, message in messages:
                writer.add_message(channels[topic], log_time=nanoseconds, publish_time=nanoseconds,
                                   data=json.dumps(message).encode())
        writer.finish()


# -- particles --


def _species(scene):
    return [(b["name"] or "X").split()[0].replace("particle", "X") for b in scene["bodies"]]


def write_xyz(path, recording):
    """Extended XYZ, a block for each frame: species, positions and masses in the system's units, which the comment line names.

    As in ParticleSystem.save(), species that are not chemical symbols are X, with their name as a label.
    """
    species, units, timestep = _species(recording.scene), recording.scene["units"], recording.scene["timestep"]
    symbols = [name if element_mass(name) else "X" for name in species]
    labels = species if symbols != species else None
    rows = [f"{body['mass']:.17g}" + (f" {labels[i]}" if labels else "") for i, body in enumerate(recording.scene["bodies"])]
    box, lattice = recording.scene["box"], ""
    if any(box):
        lattice = f'Lattice="{box[0]:.17g} 0 0 0 {box[1]:.17g} 0 0 0 {box[2]:.17g}" '
        if not all(box):
            lattice += f'pbc="{" ".join("FT"[length > 0] for length in box)}" '
    with complete(path) as part, open(part, "w", encoding="ascii", errors="replace") as out:
        for frame in recording.frames:
            step = round(frame.time * STEPS_A_SECOND)
            out.write(f"{len(species)}\n{lattice}Properties=species:S:1:pos:R:3:masses:R:1{':label:S:1' if labels else ''} "
                      f"units={units} step={step} time={step * timestep:.9g}\n")
            for symbol, (x, y, z), rest in zip(symbols, frame.poses[:, :3].tolist(), rows):
                out.write(f"{symbol} {x:.9g} {y:.9g} {z:.9g} {rest}\n")


def write_dcd(path, recording):
    """CHARMM's binary trajectory (32 bit, Angstrom), as NAMD and LAMMPS write it. Times in the header are frame numbers.

    Raises ValueError for units without a conversion to Angstrom.
    """
    scale = {"angstrom_fs": 1, "nm_ps": 10}.get(recording.scene["units"])
    if scale is None:
        raise ValueError(f"{path}: a DCD file is in Angstrom, expected particles in nm_ps or angstrom_fs, not in "
                         f"{recording.scene['units']}")
    frames, n, box = recording.frames, len(recording.scene["bodies"]), scale * np.array(recording.scene["box"])
    cell = struct.pack("<6d", box[0], 90, box[1], 90, 90, box[2]) if all(box > 0) else b""

    def block(data):
        return struct.pack("<i", len(data)) + data + struct.pack("<i", len(data))

    control = [len(frames), 0, 1, len(frames)] + [0] * 5
    header = b"CORD" + struct.pack("<9i", *control) + struct.pack("<f", 1.0) + struct.pack("<10i", bool(cell), *[0] * 8, 24)
    title = struct.pack("<i", 1) + b"tarsus".ljust(80)
    with complete(path) as part, open(part, "wb") as out:
        out.write(block(header) + block(title) + block(struct.pack("<i", n)))
        for frame in frames:
            if cell:
                out.write(block(cell))
            for axis in range(3):
                out.write(block(np.ascontiguousarray(scale * frame.poses[:, axis], "<f4").tobytes()))


OF_PARTICLES = (".xyz", ".dcd")  # particle systems have no orientations
WRITERS = {".glb": write_gltf, ".mcap": write_mcap, ".xyz": write_xyz, ".dcd": write_dcd}
