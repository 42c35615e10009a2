// Delay line: q is d of CYCLES cycles ago (CYCLES >= 1), 0 right after reset.
//
// A ring with one pointer, not a chain of registers: the same at the ports, but a simulator moves one word
// a cycle instead of CYCLES of them. In silicon it is a small register file or the chain, as the tool likes.
module plexus_delay #(
    parameter WIDTH = 1,
    parameter CYCLES = 1
) (
    input clk,
    input rst,
    input [WIDTH-1:0] d,
    output [WIDTH-1:0] q
);
  // `at` has room for every CYCLES and is compared with a parameter of 32 bits.
  /* verilator lint_off WIDTHTRUNC */
  /* verilator lint_off WIDTHEXPAND */
  reg [WIDTH-1:0] ring[0:CYCLES-1];
  reg [15:0] at;
  integer i;

  initial begin
    at = 0;
    for (i = 0; i < CYCLES; i = i + 1) ring[i] = 0;
  end

  assign q = ring[at];

  always @(posedge clk) begin
    if (rst) begin
      at <= 0;
      for (i = 0; i < CYCLES; i = i + 1) ring[i] <= 0;
    end else begin
      ring[at] <= d;
      at <= at == CYCLES - 1 ? 16'd0 : at + 16'd1;
    end
  end
  /* verilator lint_on WIDTHEXPAND */
  /* verilator lint_on WIDTHTRUNC */
endmodule
