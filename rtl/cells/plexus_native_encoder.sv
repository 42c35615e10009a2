// A flit encoder as a C++ model (native_encoder.cpp), called once for each beat that is taken.
//
// Arguments have the width of the largest beat whatever BYTES is: DPI functions of one name must have one
// signature.
module plexus_native_encoder #(
    parameter BYTES = 64,
    parameter LOW_FIRST = 0
) (
    input clk,
    input rst,
    input [7:0] plant,  // planted fault, 0 in the product
    input i_valid,
    output i_ready,
    input i_first,
    input i_last,
    input [8*BYTES-1:0] i_data,
    output reg o_valid,
    input o_ready,
    output reg o_first,
    output reg o_last,
    output reg [8*BYTES-1:0] o_data
);
  import "DPI-C" function chandle plexus_encoder_new(input int bytes, input int low_first);
  import "DPI-C" function void plexus_encoder_free(input chandle encoder);
  import "DPI-C" function void plexus_encoder_reset(input chandle encoder);
  import "DPI-C" function void plexus_encoder_beat(
      input chandle encoder, input int first, input int last, input int fault, input bit [1023:0] data,
      output bit [127:0] tail);

  chandle encoder;
  bit [127:0] tail;

  initial begin
    encoder = plexus_encoder_new(BYTES, LOW_FIRST);
    o_valid = 0;
    o_first = 0;
    o_last = 0;
    o_data = 0;
  end
  final plexus_encoder_free(encoder);

  assign i_ready = !o_valid || o_ready || plant == 4;

  always @(posedge clk) begin
    if (rst) begin
      plexus_encoder_reset(encoder);
      o_valid <= 0;
      o_first <= 0;
      o_last <= 0;
      o_data <= 0;
    end else if (i_valid && i_ready) begin
      plexus_encoder_beat(encoder, int'(i_first), int'(i_last), int'(plant), 1024'(i_data), tail);
      o_valid <= 1;
      o_first <= i_first;
      o_last <= i_last;
      o_data <= i_last ? {tail[111:0], i_data[8*BYTES-113:0]} : i_data;
    end else if (o_ready) o_valid <= 0;
  end
endmodule
