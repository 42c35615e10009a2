// A row of FP32 adders as a C++ model (native_add.cpp), called in cycles with `valid` only.
//
// Arguments have the width of the largest row whatever LANES is: DPI functions of one name must have one
// signature. `out` holds while nothing valid arrives.
module plexus_add_lanes #(
    parameter LANES = 128
) (
    input clk,
    input [7:0] plant,  // planted fault, 0 in the product
    input valid,
    input [32*LANES-1:0] a,
    input [32*LANES-1:0] b,
    input [1:0] rounding,  // rtl.contract.isa.Rounding
    input [31:0] random,
    output reg [32*LANES-1:0] out
);
  import "DPI-C" function void plexus_add_lanes(
      input int lanes, input int fault, input int rounding, input int random, input bit [4095:0] a,
      input bit [4095:0] b, output bit [4095:0] out);

  bit [4095:0] sums;  // of the cycle before
  reg filled;

  initial begin
    sums = 0;
    filled = 0;
    out = 0;
  end

  always @(posedge clk) begin
    filled <= valid;
    if (filled) out <= sums[32*LANES-1:0];  // before they are overwritten: no register between, and no copy to one
    if (valid) plexus_add_lanes(LANES, int'(plant), int'(rounding), int'(random), 4096'(a), 4096'(b), sums);
  end
endmodule
