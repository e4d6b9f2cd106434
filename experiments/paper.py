"""Figures of Yin & Yin 2020, "Linear Time Stable PD Controllers for Physics-based Character Animation", for comparison alone."""

# Table 1: n degrees of freedom, d of them at most on one branch.
MODELS = {"humanoid": (34, 13), "dog": (72, 24), "snake36": (36, 36), "snake72": (72, 72), "snake195": (195, 195)}

# Table 2: frames per second by DF, PCG, SF, MABA.
FRAMES = {
    ("humanoid", "walk"): (13752, 14108, 17083, 20224),
    ("humanoid", "run"): (14109, 14409, 17048, 20523),
    ("humanoid", "cartwheel"): (13729, 14436, 16962, 20213),
    ("humanoid", "backflip"): (13827, 14537, 16943, 19387),
    ("dog", "pace"): (6572, 4838, 8764, 11804),
    ("dog", "trot"): (6551, 4682, 8969, 11540),
    ("dog", "canter"): (6498, 4553, 8738, 11700),
    ("snake36", "slither"): (11897, 11935, 12259, 16444),
    ("snake72", "slither"): (5099, 5069, 3979, 8334),
    ("snake195", "slither"): (1036, 944, 417, 3036),
}
COLUMNS = ("dense", "pcg", "sparse", "maba")
LABELS = {"dense": "DF", "pcg": "PCG", "sparse": "SF", "maba": "MABA"}

# Table 3: per cent of the simulation's time that stable PD takes, by DF, SF, MABA.
SHARE = {"humanoid": (31.1, 18.2, 2.1), "dog": (44.3, 25.7, 3.6), "snake36": (28.0, 28.3, 1.7), "snake72": (39.9, 53.9, 2.5),
         "snake195": (64.4, 86.3, 3.7)}
