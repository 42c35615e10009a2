"""What a run is told as: `report_json` on disk, `terminal` on the screen; where cycles went (`bounding`). What
would make them fewer is sim/advice."""
