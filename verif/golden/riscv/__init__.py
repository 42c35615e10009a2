"""Golden RISC-V hart, RV32IMC_Zicsr_Zifencei in machine mode: one instruction at a time, as the ratified text says."""
