"""Tools for clips: inverse kinematics of a two-segment limb, and foot paths that stand still on the ground in stance."""
import numpy as np

from tree import conj, mul, pitch, roll, rotate, yaw


def two_link(d, upper, lower, bend, toe_out=0.0):
    """Joint values that bring the end of a limb to d (in the frame that carries its first joint).

    At rest both segments point along -z; the second joint turns about y by an angle of sign `bend`. Returns the first
    joint's quaternion (yaw, roll, then pitch: the knee stays in the plane of the limb), the second's angle about y, and
    by how much d is beyond reach.
    """
    d = rotate(yaw(-np.asarray(toe_out)), d)
    far = np.linalg.norm(d, axis=-1)
    reach = np.clip(far, abs(upper - lower) + 1e-3, upper + lower - 1e-4)
    k = bend * (np.pi - np.arccos((upper**2 + lower**2 - reach**2) / (2 * upper * lower)))
    ax, az = -lower * np.sin(k), -upper - lower * np.cos(k)
    side = np.arctan2(d[..., 1], -d[..., 2])
    dx, dz = d[..., 0], -np.hypot(d[..., 1], d[..., 2])
    swing = np.arctan2(-dx, -dz) - np.arctan2(-ax, -az)
    q = mul(yaw(np.broadcast_to(toe_out, side.shape)), mul(roll(side), pitch(swing)))
    return q, k, np.maximum(far - (upper + lower - 1e-4), 0)


def smooth(x):
    x = np.clip(x, 0, 1)
    return x**3 * (10 - 15 * x + 6 * x * x)


def hermite(u, x0, v0, x1, v1):
    return (2 * u**3 - 3 * u**2 + 1) * x0 + (u**3 - 2 * u**2 + u) * v0 + (3 * u**2 - 2 * u**3) * x1 + (u**3 - u**2) * v1


def pulse(u, start, end, ramp):
    """1 inside [start, end], 0 beyond a distance `ramp` outside, smooth between."""
    return smooth((u - start + ramp) / ramp) * smooth((end + ramp - u) / ramp)


class Foot:
    """A rigid foot's path over one cycle, phase 0 at touch-down, `duty` the share of stance.

    In stance the foot rocks over its heel from pitch `land` to flat (until `flat`), stays flat (until `rise`), then rocks
    over its toe to pitch `leave`. Pitches are negative with toes up; `flat` and `rise` are shares of the cycle. The point
    about which it rocks does not move. In swing the ankle follows a cubic with the stance's velocity at both ends, lifted
    by `lift` and curled by `curl`. A foot that lands flat is above its place at the share `reached` of the swing and then
    moves straight down, so that it does not scuff. heel, toe: x of the sole's ends from the ankle; height: of the ankle
    above the sole.
    """

    def __init__(self, stride, duty, flat, rise, land, leave, heel, toe, height, lift, curl=0.0, reached=1.0):
        self.__dict__.update(locals())

    def stance(self, p):
        """Ankle (x from the flat foot's, z) and pitch at phase p in [0, duty]."""
        a = self.land * (1 - smooth(p / self.flat)) if self.flat > 0 else np.zeros_like(p)
        c = self.leave * smooth((p - self.rise) / (self.duty - self.rise)) ** 1.0 if self.rise < self.duty else np.zeros_like(p)
        # The foot turns about the heel while the toes are up, and about the toe while the heel is up.
        angle = a + c
        pivot = np.where(angle < 0, self.heel, self.toe)
        x = pivot - (pivot * np.cos(angle) - self.height * np.sin(angle))
        z = pivot * np.sin(angle) + self.height * np.cos(angle)
        return x, z, angle

    def path(self, phase):
        """World ankle x (for phase in any cycle), z and pitch; over a cycle x grows by the stride."""
        phase = np.asarray(phase, float)
        cycle, p = np.floor(phase), phase - np.floor(phase)
        x, z, angle = self.stance(np.minimum(p, self.duty))
        e, T = 1e-5, 1 - self.duty
        ends = []
        for at, side in ((self.duty, -1), (0.0, 1)):
            here, near = self.stance(np.array(at)), self.stance(np.array(at + side * e))
            ends.append([(h, side * (n - h) / e * T) for h, n in zip(here, near)])
        u = np.clip((p - self.duty) / T, 0, 1)
        (x0, vx0), (z0, vz0), (a0, va0) = ends[0]
        (x1, vx1), (z1, vz1), (a1, va1) = ends[1]
        bump = 16 * u**2 * (1 - u) ** 2
        early = 12 * u**2 * (1 - u) ** 4 * 3.8  # the foot curls early in swing and reaches late
        swing = p > self.duty
        w = self.reached
        x = np.where(swing, hermite(np.minimum(u / w, 1), x0, vx0 * w, x1 + self.stride, vx1 * w), x)
        z = np.where(swing, hermite(u, z0, vz0, z1, vz1) + self.lift * bump, z)
        angle = np.where(swing, hermite(u, a0, va0, a1, va1) + self.curl * early, angle)
        return x + cycle * self.stride, z, angle


def local(parent, world):
    return mul(conj(parent), world)
