// A linear map over GF(2): bit i of `out` is the sum of the bits of `in` that row i of MATRIX names.
//
// Row i is MATRIX[i*WIDTH +: WIDTH]. Terms that rows share are left to synthesis. Summed in words of 64
// bits: that is four times as fast in a simulator as a reduction of the whole width. If GATED, `out` is 0
// without `en`, and a simulator does not look at `in`.
module plexus_xor_map #(
    parameter WIDTH = 64,
    parameter OUT = 8,
    parameter [WIDTH*OUT-1:0] MATRIX = 0,
    parameter GATED = 0
) (
    /* verilator lint_off UNUSEDSIGNAL */
    input  wire             en,  // counts if GATED only
    /* verilator lint_on UNUSEDSIGNAL */
    input  wire [WIDTH-1:0] in,
    output wire [OUT-1:0]   out
);

    localparam WORDS = (WIDTH + 63) / 64;

    // Rows and inputs are filled up with zeros to whole words, and parameters are conditions.
    /* verilator lint_off WIDTHTRUNC */
    /* verilator lint_off WIDTHEXPAND */

    wire [64*WORDS-1:0] whole = in;

    genvar i, j;
    generate
        if (GATED) begin : gated
            reg [64*WORDS-1:0] mask;
            reg [63:0]         sum;
            reg [OUT-1:0]      sums;
            integer            n, k;
            always @* begin
                mask = 0;
                sum = 0;
                sums = 0;
                if (en) begin
                    for (n = 0; n < OUT; n = n + 1) begin
                        mask = MATRIX[n*WIDTH +: WIDTH];
                        sum = 0;
                        for (k = 0; k < WORDS; k = k + 1) sum = sum ^ (whole[64*k +: 64] & mask[64*k +: 64]);
                        sums[n] = ^sum;
                    end
                end
            end
            assign out = sums;
        end else begin : always_on
            wire [63:0] word [0:WORDS-1];
            for (j = 0; j < WORDS; j = j + 1) begin : cut
                assign word[j] = whole[64*j +: 64];
            end
            for (i = 0; i < OUT; i = i + 1) begin : row
                wire [64*WORDS-1:0] mask = MATRIX[i*WIDTH +: WIDTH];
                wire [63:0]         sum [0:WORDS];
                assign sum[0] = 64'd0;
                for (j = 0; j < WORDS; j = j + 1) begin : part
                    assign sum[j+1] = sum[j] ^ (word[j] & mask[64*j +: 64]);
                end
                assign out[i] = ^sum[WORDS];
            end
        end
    endgenerate
    /* verilator lint_on WIDTHEXPAND */
    /* verilator lint_on WIDTHTRUNC */

endmodule
