"""What a run is told as: `report_json` on disk, `terminal` on the screen; where cycles went (`bounding`), and what
would make them fewer (`relief`, `relief_settings`)."""
