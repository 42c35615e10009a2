// A flit decoder as a C++ model (native_decoder.cpp), called in cycles in which a beat enters or may leave.
//
// Arguments have the width of the largest beat whatever BYTES is: DPI functions of one name must have one
// signature. Outputs keep the last beat that left while o_valid is 0.
module plexus_native_decoder #(
    parameter BYTES = 64,
    parameter LOW_FIRST = 0
) (
    input clk,
    input rst,
    input [7:0] plant,  // planted fault, 0 in the product
    input i_valid,
    input i_first,
    input i_last,
    input i_refuse,
    input [8*BYTES-1:0] i_data,
    output reg o_valid,
    output reg o_first,
    output reg o_last,
    output reg [8*BYTES-1:0] o_data,
    output reg o_good,
    output reg [47:0] o_dlp,
    output reg [1:0] o_groups,
    output reg [26:0] o_fix
);
  import "DPI-C" function chandle plexus_decoder_new(input int bytes, input int low_first);
  import "DPI-C" function void plexus_decoder_free(input chandle decoder);
  import "DPI-C" function void plexus_decoder_reset(input chandle decoder);
  import "DPI-C" function int plexus_decoder_step(
      input chandle decoder, input int control, input int fault, input bit [1023:0] data,
      output bit [1023:0] out, output bit [95:0] status);

  chandle decoder;
  int flags;
  bit [1023:0] out;
  bit [95:0] status;
  reg busy;

  initial begin
    decoder = plexus_decoder_new(BYTES, LOW_FIRST);
    busy = 0;
    o_valid = 0;
  end
  final plexus_decoder_free(decoder);

  always @(posedge clk) begin
    if (rst) begin
      plexus_decoder_reset(decoder);
      busy <= 0;
      o_valid <= 0;
    end else if (i_valid || busy) begin
      flags = plexus_decoder_step(
          decoder, int'({i_refuse, i_last, i_first, i_valid}), int'(plant), 1024'(i_data), out, status);
      busy <= flags[1];
      o_valid <= flags[0];
      if (flags[0]) begin
        o_data <= out[8*BYTES-1:0];
        {o_last, o_first, o_good, o_groups, o_fix, o_dlp} <= status[79:0];
      end
    end else o_valid <= 0;
  end
endmodule
