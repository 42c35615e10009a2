"""NKI, the kernel language of AWS Neuron, on the kernel language: docs/nki.md has what there is."""
