"""The messages and stubs of package quire.v1, generated from the project's protos when the package is built."""
