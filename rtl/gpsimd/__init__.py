"""GPSIMD: the programmable engine. Its scalar core: RV32IMC_Zicsr_Zifencei, five stages, in order.

fetch.py lines of code to instructions (F); expand.py, decode.py what one is (D); alu.py, divide.py, csr.py and
scalar_core.py run it (X, M) and retire it (W).
"""
