"""Number formats: conversions any to any, MX quantization."""
