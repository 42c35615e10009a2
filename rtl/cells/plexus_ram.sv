// One read port, one write port, registered read, uninitialised.
//
// A read in the cycle of a write to the same address gives the old row; rdata holds while ren is 0.
// Bit g of wmask lets GRANULE bits of wdata through.
//
// Under Verilator the array starts as all ones, which is a NaN in every float format, and a driver
// reaches it without the ports, by scope, 32 bits at a time:
//     svSetScope(svGetScopeFromName("TOP.<top>.<path>.storage"));
//     plexus_ram_peek(row, word)          bits [32*word +: 32] of a row
//     plexus_ram_poke(row, word, value)   changes them
//     plexus_ram_width(), plexus_ram_depth()
// V<top>__Dpi.h, which Verilator writes, declares them. Out of range: 0, and no effect.

module plexus_ram #(
    parameter WIDTH = 64,
    parameter DEPTH = 16,
    parameter GRANULE = 8,
    parameter ADDR = 4
) (
    input  wire                     clk,
    input  wire                     ren,
    input  wire [ADDR-1:0]          raddr,
    output reg  [WIDTH-1:0]         rdata,
    input  wire                     wen,
    input  wire [ADDR-1:0]          waddr,
    input  wire [WIDTH/GRANULE-1:0] wmask,
    input  wire [WIDTH-1:0]         wdata
);

    reg [WIDTH-1:0] mem [0:DEPTH-1];

`ifndef VERILATOR
    integer g;
    always @(posedge clk) begin
        if (ren) rdata <= mem[raddr];
        for (g = 0; g < WIDTH/GRANULE; g = g + 1)
            if (wen && wmask[g]) mem[waddr][g*GRANULE +: GRANULE] <= wdata[g*GRANULE +: GRANULE];
    end
`else
    // A simulator pays for what is written only: lanes of 64 bits without a mask bit are skipped,
    // and the mask of a lane becomes one machine word.
    localparam LANE  = (WIDTH % 64 == 0 && 64 % GRANULE == 0) ? 64 : GRANULE;
    localparam LANES = WIDTH / LANE;
    localparam PARTS = LANE / GRANULE;

    reg [LANE-1:0] take;
    integer lane;
    integer part;

    // Only this process touches mem, and it reads before it writes: blocking assignments are safe
    // here, and cheaper than delayed ones.
    /* verilator lint_off BLKSEQ */
    always @(posedge clk) begin
        if (ren) rdata <= mem[raddr];
        if (wen) begin
            if (&wmask) begin
                mem[waddr] = wdata;
            end else begin
                for (lane = 0; lane < LANES; lane = lane + 1) begin
                    if (&wmask[lane*PARTS +: PARTS]) begin
                        mem[waddr][lane*LANE +: LANE] = wdata[lane*LANE +: LANE];
                    end else if (|wmask[lane*PARTS +: PARTS]) begin
                        for (part = 0; part < PARTS; part = part + 1)
                            take[part*GRANULE +: GRANULE] = {GRANULE{wmask[lane*PARTS + part]}};
                        mem[waddr][lane*LANE +: LANE] = (mem[waddr][lane*LANE +: LANE] & ~take)
                                                      | (wdata[lane*LANE +: LANE] & take);
                    end
                end
            end
        end
    end
    /* verilator lint_on BLKSEQ */

    integer row;
    initial begin
        for (row = 0; row < DEPTH; row = row + 1) mem[row] = {WIDTH{1'b1}};
        rdata = {WIDTH{1'b1}};
    end

    localparam WORDS = (WIDTH + 31) / 32;

    export "DPI-C" function plexus_ram_peek;
    export "DPI-C" function plexus_ram_poke;
    export "DPI-C" function plexus_ram_width;
    export "DPI-C" function plexus_ram_depth;

    // A word of a row whose width is a multiple of 32 is reached without a copy of the row; of a narrower row that branch
    // is never taken.
    /* verilator lint_off SELRANGE */
    function int plexus_ram_peek(input int index, input int word);
        bit [32*WORDS-1:0] whole;
        if (index < 0 || index >= DEPTH || word < 0 || word >= WORDS) return 0;
        if (WIDTH % 32 == 0) return mem[index[ADDR-1:0]][32*word +: 32];
        whole = (32*WORDS)'(mem[index[ADDR-1:0]]);
        return whole[32*word +: 32];
    endfunction

    function void plexus_ram_poke(input int index, input int word, input int value);
        bit [32*WORDS-1:0] whole;
        if (index < 0 || index >= DEPTH || word < 0 || word >= WORDS) return;
        if (WIDTH % 32 == 0) begin
            mem[index[ADDR-1:0]][32*word +: 32] = value;
        end else begin
            whole = (32*WORDS)'(mem[index[ADDR-1:0]]);
            whole[32*word +: 32] = value;
            mem[index[ADDR-1:0]] = whole[WIDTH-1:0];
        end
    endfunction
    /* verilator lint_on SELRANGE */

    function int plexus_ram_width();
        return WIDTH;
    endfunction

    function int plexus_ram_depth();
        return DEPTH;
    endfunction
`endif

endmodule
