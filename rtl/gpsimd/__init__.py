"""GPSIMD: the programmable engine. Its scalar core: RV32IMC_Zicsr_Zifencei, five stages, in order.

fetch.py makes lines of code into instructions (F); decode.py with expand.py says what one is (D), registers.py what it
reads; execute.py with alu.py, divide.py, csr.py runs it (X); multiply.py, align.py end it (M); record.py tells of it.
scalar_core.py connects them.
"""
