"""How the trained readers of `models/` are made: data, training, export, figures. See README.md in this folder."""
