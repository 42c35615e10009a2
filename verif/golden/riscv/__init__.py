"""Golden RISC-V hart, RV32IMC_Zicsr_Zifencei in machine mode: one instruction after the other, as the ratified text says."""
