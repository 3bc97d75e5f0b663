"""Serves a model with the llama.cpp of the xllamacpp wheel until standard input ends; prints the server's URL.

usage: wheel_server.py MODEL THREADS SLOTS SLOT_TOKENS
"""

import os
import sys


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what llama.cpp prints must not mix with the address
    import xllamacpp

    threads, slots, slot_tokens = (int(argument) for argument in sys.argv[2:])
    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.n_parallel = slots
    params.n_ctx = slots * slot_tokens
    params.kv_unified = False
    params.cache_ram_mib = 0
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.verbosity = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, file=out, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
