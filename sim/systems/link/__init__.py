"""A link: two ports under traffic (`run`, `report`), what credits and the window allow (`model`), and a port that
anyone can attach a partner to (`device`)."""
