// Clock gate: a latch that is open while clk is low, and an AND. `enable` in a cycle decides about the
// rising edge that ends it. There are no glitches: the latch does not move while clk is high.

module plexus_clock_gate (
    input  wire clk,
    input  wire enable,
    output wire gated
);

    reg open;

    /* verilator lint_off NOLATCH */
    /* verilator lint_off COMBDLY */
    always_latch if (!clk) open = enable;
    /* verilator lint_on COMBDLY */
    /* verilator lint_on NOLATCH */

    assign gated = clk & open;

endmodule
