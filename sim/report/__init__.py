"""What a run is told as: `report_json` on disk, `terminal` on the screen; the rule of what passed
(`verdict`)."""
