"""Operations of a layer of a model, or of a table, one after another on a core: a composite of runs of `core`, with one
report: a row an operation (`rows`), some of them scaled from smaller runs (`axes`, `scaled`)."""
