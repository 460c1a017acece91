"""Free energies of matchings and b-matchings: messages, Newton's steps on them, scalings, and certificates."""
