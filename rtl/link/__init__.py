"""One end of a link: a port, from packets of a core to words of lanes and back. `port.py` connects all of it,
`link_layer.py` all but the lanes; the other rooms hold the parts."""
