// A RAM that many read at once: PORTS read ports, one write port, registered reads, uninitialised.
//
// A read in the cycle of a write to its address gives the old row; rdata holds while ren is 0. Bit g of
// wmask lets GRANULE bits of wdata through. In hardware each reader has a copy; a simulator needs one.
// Under Verilator the array starts as all ones.

module plexus_lookup #(
    parameter WIDTH = 64,
    parameter DEPTH = 16,
    parameter GRANULE = 64,
    parameter ADDR = 4,
    parameter PORTS = 2
) (
    input  wire                     clk,
    input  wire                     ren,
    input  wire [PORTS*ADDR-1:0]    raddr,
    output wire [PORTS*WIDTH-1:0]   rdata,
    input  wire                     wen,
    input  wire [ADDR-1:0]          waddr,
    input  wire [WIDTH/GRANULE-1:0] wmask,
    input  wire [WIDTH-1:0]         wdata
);

    reg [WIDTH-1:0] mem [0:DEPTH-1];

    integer g;
    always @(posedge clk) begin
        for (g = 0; g < WIDTH/GRANULE; g = g + 1)
            if (wen && wmask[g]) mem[waddr][g*GRANULE +: GRANULE] <= wdata[g*GRANULE +: GRANULE];
    end

    genvar p;
    generate
        for (p = 0; p < PORTS; p = p + 1) begin : port
            reg [WIDTH-1:0] row;
            always @(posedge clk) if (ren) row <= mem[raddr[p*ADDR +: ADDR]];
            assign rdata[p*WIDTH +: WIDTH] = row;
        end
    endgenerate

`ifdef VERILATOR
    integer row;
    initial for (row = 0; row < DEPTH; row = row + 1) mem[row] = {WIDTH{1'b1}};
`endif

endmodule
