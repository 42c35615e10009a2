"""When a flit may go and which one is accepted: sessions, replay, credits, time-outs (docs/link-rules.md). No data path
but the retry buffer."""
