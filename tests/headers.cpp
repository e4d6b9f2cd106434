// Holds nothing: the target of this file carries the precompiled headers of all tests.
