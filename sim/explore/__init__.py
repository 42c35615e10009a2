"""`plexus explore`: many runs from one file. `sweep` reads it, `points` are its runs, `rows` keeps what each came to,
`worker` runs one, `schedule` and `local` share them out, `table` and `page` show them."""
