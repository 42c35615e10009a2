// The systolic array as a C++ model (native_array.cpp), called once a cycle at most.
//
// Arguments have the width of the largest array whatever ROWS and COLS are: DPI functions of one name must
// have one signature. Wide vectors are handed over only in cycles that use them, and nothing is called
// while the array is empty.
module plexus_native_array #(
    parameter ROWS = 128,
    parameter COLS = 128,
    parameter LATENCY = 384
) (
    input clk,
    input rst,
    input [7:0] plant,  // planted fault, 0 in the product
    input [3:0] stationary_valid,
    input [31:0] stationary_mode,
    input [ROWS-1:0] stationary_active,
    input [64*ROWS-1:0] stationary_data,
    input [3:0] moving_valid,
    input [31:0] moving_mode,
    input [3:0] moving_swap,
    input [7:0] moving_ticket,
    input [ROWS-1:0] moving_active,
    input [64*ROWS-1:0] moving_data,
    output reg sums_valid,
    output reg [7:0] sums_ticket,
    output reg [32*COLS-1:0] sums_data
);
  import "DPI-C" function chandle plexus_array_new(input int rows, input int cols, input int latency);
  import "DPI-C" function void plexus_array_free(input chandle array);
  import "DPI-C" function void plexus_array_reset(input chandle array);
  import "DPI-C" function void plexus_array_plant(input chandle array, input int fault);
  import "DPI-C" function void plexus_array_moving(
      input chandle array, input int valid, input int mode, input int swap, input int ticket,
      input bit [127:0] active, input bit [8191:0] data);
  import "DPI-C" function void plexus_array_stationary(
      input chandle array, input int valid, input int mode, input bit [127:0] active, input bit [8191:0] data);
  // bit 0: sums leave, to be fetched; bit 1: more are on their way; bits 15:8: their ticket.
  import "DPI-C" function int plexus_array_step(input chandle array);
  import "DPI-C" function void plexus_array_sums(input chandle array, output bit [4095:0] data);

  chandle array;
  int flags;
  bit [4095:0] sums;
  reg filled;

  initial begin
    array = plexus_array_new(ROWS, COLS, LATENCY);
    filled = 0;
    sums_valid = 0;
    sums_ticket = 0;
    sums_data = 0;
  end
  final plexus_array_free(array);

  always @(posedge clk) begin
    if (rst) begin
      plexus_array_reset(array);
      filled <= 0;
      sums_valid <= 0;
    end else begin
      if (plant != 0) plexus_array_plant(array, int'(plant));
      // A moving beat comes before the stationary one of the same cycle: its swap takes the shadow before it.
      if (moving_valid != 0)
        plexus_array_moving(array, int'(moving_valid), moving_mode, int'(moving_swap), int'(moving_ticket),
                            128'(moving_active), 8192'(moving_data));
      if (stationary_valid != 0)
        plexus_array_stationary(array, int'(stationary_valid), stationary_mode, 128'(stationary_active),
                                8192'(stationary_data));
      if (filled || moving_valid[0]) begin
        flags = plexus_array_step(array);
        if (flags[0]) begin
          plexus_array_sums(array, sums);
          sums_data <= sums[32*COLS-1:0];
          sums_ticket <= flags[15:8];
        end
        sums_valid <= flags[0];
        filled <= flags[1];
      end else sums_valid <= 0;
    end
  end
endmodule
