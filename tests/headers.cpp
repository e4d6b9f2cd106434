// Empty source of the target that carries the precompiled headers of all tests.
