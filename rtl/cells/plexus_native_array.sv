// The systolic array as a C++ model (native_array.cpp), called once a cycle at most.
//
// Arguments have the width of the largest array whatever ROWS and COLS are: DPI functions of one name must
// have one signature. Wide vectors are handed over only in cycles that use them, and nothing is called
// while the array is empty.
module plexus_native_array #(
    parameter ROWS = 128,
    parameter COLS = 128,
    parameter GROUPS = 4,
    parameter ROW_CYCLES = 2
) (
    input clk,
    input rst,
    input [7:0] plant,  // planted fault, 0 in the product
    input [3:0] stationary_valid,
    input [39:0] stationary_mode,
    input [3:0] stationary_shift,
    input [3:0] stationary_head,
    input [3:0] stationary_tail,
    input [31:0] stationary_ticket,
    input [ROWS-1:0] stationary_active,
    input [64*ROWS-1:0] stationary_data,
    input [8*ROWS-1:0] stationary_scale,
    input [4*ROWS-1:0] stationary_tags,
    input [3:0] moving_valid,
    input [39:0] moving_mode,
    input [3:0] moving_swap,
    input [3:0] moving_head,
    input [3:0] moving_tail,
    input [31:0] moving_ticket,
    input [ROWS-1:0] moving_active,
    input [64*ROWS-1:0] moving_data,
    input [8*ROWS-1:0] moving_scale,
    // a port a row group: joined to one vector they would be copied in every cycle
    output reg [3:0] sums_valid,
    output reg [31:0] sums_ticket,
    output reg [32*COLS-1:0] sums_data_0,
    output reg [32*COLS-1:0] sums_data_1,
    output reg [32*COLS-1:0] sums_data_2,
    output reg [32*COLS-1:0] sums_data_3,
    output reg [3:0] transposed_valid,
    output reg [31:0] transposed_ticket,
    output reg [32*COLS-1:0] transposed_data_0,
    output reg [32*COLS-1:0] transposed_data_1,
    output reg [32*COLS-1:0] transposed_data_2,
    output reg [32*COLS-1:0] transposed_data_3
);
  import "DPI-C" function chandle plexus_array_new(
      input int rows, input int cols, input int groups, input int row_cycles);
  import "DPI-C" function void plexus_array_free(input chandle array);
  import "DPI-C" function void plexus_array_reset(input chandle array);
  import "DPI-C" function void plexus_array_plant(input chandle array, input int fault);
  import "DPI-C" function void plexus_array_moving(
      input chandle array, input int valid, input longint mode, input int swap, input int head, input int tail,
      input int ticket, input bit [127:0] active, input bit [8191:0] data, input bit [1023:0] scale);
  import "DPI-C" function void plexus_array_stationary(
      input chandle array, input int valid, input longint mode, input int shift, input int head, input int tail,
      input int ticket, input bit [127:0] active, input bit [8191:0] data, input bit [1023:0] scale,
      input bit [511:0] tags);
  // bit g: sums leave at row group g, to be fetched; bit 4 + g: raw bits do; bit 8: more are on their way.
  import "DPI-C" function int plexus_array_step(input chandle array);
  // The row of the lowest 1 among such flags; the result is its ticket.
  import "DPI-C" function int plexus_array_row(input chandle array, input int flags, output bit [4095:0] data);

  chandle array;
  int flags;
  int ticket;
  bit [7:0] left;
  bit [4095:0] row;
  reg filled;
  integer g;

  initial begin
    array = plexus_array_new(ROWS, COLS, GROUPS, ROW_CYCLES);
    filled = 0;
    sums_valid = 0;
    sums_ticket = 0;
    transposed_valid = 0;
    transposed_ticket = 0;
  end
  final plexus_array_free(array);

  always @(posedge clk) begin
    if (rst) begin
      plexus_array_reset(array);
      filled <= 0;
      sums_valid <= 0;
      transposed_valid <= 0;
    end else begin
      if (plant != 0) plexus_array_plant(array, int'(plant));
      // A moving beat comes before the stationary one of the same cycle: its swap takes the shadow before it.
      if (moving_valid != 0)
        plexus_array_moving(array, int'(moving_valid), longint'(moving_mode), int'(moving_swap), int'(moving_head),
                            int'(moving_tail), moving_ticket, 128'(moving_active), 8192'(moving_data),
                            1024'(moving_scale));
      if (stationary_valid != 0)
        plexus_array_stationary(array, int'(stationary_valid), longint'(stationary_mode), int'(stationary_shift),
                                int'(stationary_head), int'(stationary_tail), stationary_ticket,
                                128'(stationary_active), 8192'(stationary_data), 1024'(stationary_scale),
                                512'(stationary_tags));
      if (filled || moving_valid != 0 || stationary_valid != 0) begin
        flags = plexus_array_step(array);
        // One call in a loop, not a call a port: each has a vector of its own, which is cleared in every cycle.
        left = flags[7:0];
        while (left != 0) begin
          ticket = plexus_array_row(array, int'(left), row);
          if (left[0]) begin
            sums_data_0 <= row[32*COLS-1:0];
            sums_ticket[7:0] <= ticket[7:0];
          end else if (left[1]) begin
            sums_data_1 <= row[32*COLS-1:0];
            sums_ticket[15:8] <= ticket[7:0];
          end else if (left[2]) begin
            sums_data_2 <= row[32*COLS-1:0];
            sums_ticket[23:16] <= ticket[7:0];
          end else if (left[3]) begin
            sums_data_3 <= row[32*COLS-1:0];
            sums_ticket[31:24] <= ticket[7:0];
          end else if (left[4]) begin
            transposed_data_0 <= row[32*COLS-1:0];
            transposed_ticket[7:0] <= ticket[7:0];
          end else if (left[5]) begin
            transposed_data_1 <= row[32*COLS-1:0];
            transposed_ticket[15:8] <= ticket[7:0];
          end else if (left[6]) begin
            transposed_data_2 <= row[32*COLS-1:0];
            transposed_ticket[23:16] <= ticket[7:0];
          end else if (left[7]) begin
            transposed_data_3 <= row[32*COLS-1:0];
            transposed_ticket[31:24] <= ticket[7:0];
          end
          left = left & (left - 1);
        end
        sums_valid <= flags[3:0];
        transposed_valid <= flags[7:4];
        filled <= flags[8];
      end else begin
        sums_valid <= 0;
        transposed_valid <= 0;
      end
    end
  end
endmodule
